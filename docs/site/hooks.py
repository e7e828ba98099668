"""Pages of the site that are made from the code, and links of the pages that leave docs/.

Run by `mkdocs build --strict` (mkdocs.yml). The reference of the keys is made of the classes of `mmgibbs.config`, that
of the columns of `mmgibbs.results.columns`, that of the commands of their parsers, that of Python of `__all__`.
make_pages.py writes the first of these to docs/reference, where it is kept.
"""

from __future__ import annotations

import argparse
import inspect
import os
import posixpath
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
COPIED = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}  # pages beside docs/
EXAMPLES = "reference/examples.md"
_PICTURES = "![The report of a finished run](report.png#only-light)![The same](report-dark.png#only-dark)"
NOT_FOUND = "<p>This site has no page at this address. Choose one from the menu, or use the search.</p>"
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*")
LINK = re.compile(r"(?<!!)\[([^\]]*)\]\((?!https?:|#)([^)#\s]+)(#[^)]*)?\)")  # within the repository, no picture


def on_files(files: Any, config: Any) -> Any:
    from mkdocs.structure.files import File

    sys.path.insert(0, str(ROOT))  # here, for mkdocs restores it once this file is loaded
    os.environ.setdefault("COLUMNS", "88")  # of help texts
    for path, text in pages().items():
        files.append(File.generated(config, path, content=text))
    for path, content in notebook_pages().items():
        files.append(File.generated(config, path, content=content))
    files.append(File.generated(config, "assets/site.css", content=(ROOT / "docs" / "site" / "site.css").read_text()))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links to files of the repository lead to the page that has them, or become plain text."""
    if page.file.src_uri == "README.md":
        markdown = markdown.replace("# Documentation\n", f"# mmgibbs\n\n{introduction()}\n## Documentation\n", 1)
    return LINK.sub(lambda link: _site_link(link, page.file.src_uri), markdown)


def on_page_content(html: str, **_: Any) -> str:
    """Options of commands within text are not broken after their hyphens (`.option` of site.css)."""
    code = re.compile(r"<code>([^<\n]*--[^<\n]*)</code>")
    return code.sub(lambda found: OPTION.sub(r'<span class="option">\g<0></span>', found[0]), html)


def on_post_template(output: str, template_name: str, **_: Any) -> str:
    """The page of an address that is not there says what to do."""
    if template_name != "404.html":
        return output
    return output.replace("404 - Not found</h1>", f"Not found</h1>{NOT_FOUND}")


def _site_link(link: re.Match[str], page: str) -> str:
    """The same link within the site, relative to the folder of the page."""
    text, target, anchor = link[1], link[2], link[3] or ""
    source = next((old for old, new in COPIED.items() if new == page), f"docs/{page}")
    path = Path(os.path.normpath((ROOT / source).parent / target))
    name = path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else ""
    if name in COPIED:
        destination = COPIED[name]
    elif name.startswith("docs/") and name.endswith((".md", ".ipynb")):
        destination = name.removeprefix("docs/").replace(".ipynb", ".md")
    elif name.startswith("configs/") and name.endswith(".yaml"):
        destination, anchor = EXAMPLES, f"#{path.stem}"
    else:
        return text
    return f"[{text}]({posixpath.relpath(destination, posixpath.dirname(page) or '.')}{anchor})"


def pages() -> dict[str, str]:
    """Path in the site -> Markdown of every page that is made."""
    out = {new: (ROOT / old).read_text(encoding="utf-8") for old, new in COPIED.items()}
    return out | {
        EXAMPLES: examples(),
        "reference/output.md": columns(),
        "reference/commands.md": commands(),
        "reference/python.md": python(),
    }


def notebook_pages() -> dict[str, str | bytes]:
    """Path in the site -> a page for each notebook, as it was executed, and its pictures."""
    from nbconvert import MarkdownExporter

    out: dict[str, str | bytes] = {}
    for path in sorted((ROOT / "docs" / "notebooks").glob("*.ipynb")):
        names = {"unique_key": path.stem, "output_files_dir": f"{path.stem}_files"}
        text, resources = MarkdownExporter().from_filename(str(path), resources=names)
        heading, _, body = text.lstrip().partition("\n")
        download = f'<a href="../{path.name}" download>Download the notebook</a>'
        out[f"notebooks/{path.stem}.md"] = f"{heading}\n\n{download}\n{body}"
        out |= {f"notebooks/{picture}": content for picture, content in resources["outputs"].items()}
    return out


def introduction() -> str:
    """The beginning of the README: what it is, a picture, how to install it, and your own data."""
    text = (ROOT / "README.md").read_text(encoding="utf-8").split("\n\n", 1)[1].split("\n## The analysis file")[0]
    text = re.sub(r"<picture>.*?</picture>", _PICTURES, text, flags=re.DOTALL)
    return re.sub(r"<!--.*?-->\n", "", text).replace("](docs/", "](") + "\n"


def examples() -> str:
    lines = ["# Example analyses", "", "Each of these files is in `configs/` and ready to run."]
    for path in sorted(ROOT.glob("configs/*.yaml")):
        lines += ["", f"## {path.stem}", "", "```yaml", path.read_text(encoding="utf-8").rstrip(), "```"]
    return "\n".join(lines) + "\n"


# ------------------------------------------------------------------------------------------------ keys


def keys() -> str:
    """Every key of the analysis file, section by section, from the schema."""
    from mmgibbs.config.schema import analysis_schema

    schema = analysis_schema()
    lines = [
        "# The analysis file: every key", "",
        "`mmgibbs schema` prints the same as a JSON schema, with which editors complete keys and mark mistakes.", "",
        *_table_of_keys(schema),
    ]  # fmt: skip
    for name, places in used(schema).items():
        section = schema["$defs"][name]
        where = f"In {', '.join(f'`{place}`' for place in places)}."
        lines += [
            "",
            f"## {name}",
            "",
            section["description"].split("\n\n")[0],
            "",
            where,
            "",
            *_table_of_keys(section),
        ]
    return "\n".join(lines) + "\n"


def used(schema: dict) -> dict[str, list[str]]:
    """Section -> the places of the analysis file that have it, in their order: 'model.fixed.NAME.legendre'."""
    found: dict[str, list[str]] = {}
    waiting = [("", schema)]
    while waiting:
        place, section = waiting.pop(0)
        mapping = next(s for s in (section, *section.get("anyOf", ())) if "properties" in s)
        inner = [(f"{place}.{key}".lstrip("."), value) for key, value in mapping["properties"].items()]
        inner += [(f"{place}.NAME".lstrip("."), mapping["additionalProperties"])]
        for at, name in (reference for where, value in inner for reference in _references(where, value)):
            if at not in found.setdefault(name, []):
                found[name].append(at)
                waiting.append((at, schema["$defs"][name]))
    return found


def _references(place: str, schema: object) -> Iterator[tuple[str, str]]:
    """(place, name) of every section that a key may have as its value; NAME stands for any name."""
    if not isinstance(schema, dict):
        return
    if "$ref" in schema:
        yield place, schema["$ref"].rsplit("/", 1)[1]
    for one in schema.get("anyOf", ()):
        yield from _references(place, one)
    yield from _references(place, schema.get("items"))
    yield from _references(f"{place}.NAME", schema.get("additionalProperties"))


def _table_of_keys(section: dict) -> list[str]:
    mapping = next(s for s in (section, *section.get("anyOf", ())) if "properties" in s)
    required = mapping.get("required", ())
    rows = [
        f"| `{key}` | {_cell(_meaning(key, p))} | {accepted(p)} | {_default(key, p, required)} |"
        for key, p in mapping["properties"].items()
    ]
    if isinstance(mapping["additionalProperties"], dict):
        rows.append(f"| *any name* | a name of your own | {accepted(mapping['additionalProperties'])} | |")
    if not rows:
        return ["It has no keys."]
    if all(row.endswith(("|  |", "| |")) for row in rows):  # a column without a cell says nothing
        return ["| key | meaning | accepts |", "|---|---|---|", *(row[: row.rindex("|", 0, -1) + 1] for row in rows)]
    return ["| key | meaning | accepts | default |", "|---|---|---|---|", *rows]


def _meaning(key: str, schema: dict) -> str:
    return schema.get("description", "Says which of these sections it is." if key == "kind" else "")


def _default(key: str, schema: dict, required: tuple[str, ...]) -> str:
    import json

    if key in required:
        return "needed"
    return f"`{json.dumps(schema['default'])}`" if "default" in schema else ""


def _cell(text: str) -> str:
    parts = " ".join(text.split()).replace("|", "\\|").split("`")  # every other one is code, which needs no more
    plain = [part.replace("<", "&lt;").replace("[", "\\[").replace("*", "\\*") for part in parts[::2]]
    return "`".join(part for pair in zip(plain, [*parts[1::2], ""], strict=False) for part in pair).removesuffix("`")


def accepted(schema: dict) -> str:
    """What a schema accepts, in words."""
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[1]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        found = list(dict.fromkeys(filter(None, map(accepted, schema["anyOf"]))))
        return (", or " if any(word.startswith(("a list", "names")) for word in found) else " or ").join(found)
    if "const" in schema or "enum" in schema:
        values = schema.get("enum", [schema.get("const")])
        return ", ".join(f"`{str(v).lower() if isinstance(v, bool) else v}`" for v in values)
    kinds = [schema["type"]] if isinstance(schema.get("type"), str) else list(schema.get("type", ()))
    return " or ".join(dict.fromkeys(filter(None, (_kind(kind, schema) for kind in kinds))))


def _kind(kind: str, schema: dict) -> str:
    if kind == "array":
        items = accepted(schema["items"])
        return f"a list of {_several(items)}" if " or " not in items else f"a list ({items})"
    if kind == "object":
        inner = schema.get("additionalProperties")
        return f"names, each with {accepted(inner)}" if isinstance(inner, dict) else "a mapping"
    if kind in ("integer", "number") and "string" not in schema.get("type", ()):
        return ("a whole number" if kind == "integer" else "a number") + _limits(schema)
    return {"string": "text", "boolean": "", "null": "", "integer": "", "number": ""}[kind]


def _several(items: str) -> str:
    """'a number above 0' as 'numbers above 0'; a list of lists of numbers is a matrix to its readers."""
    for one, many in (("a list of", "lists of"), ("a number", "numbers"), ("a whole number", "whole numbers")):
        if items.startswith(one):
            return many + items.removeprefix(one)
    return {"text": "texts"}.get(items, items)


LARGE = 1e9  # limits beyond it keep out what no analysis has, and would only confuse


def _limits(schema: dict) -> str:
    words = (
        ("minimum", "of at least"),
        ("exclusiveMinimum", "above"),
        ("maximum", "of at most"),
        ("exclusiveMaximum", "below"),
    )
    said = [f"{word} {_number(schema[key])}" for key, word in words if abs(schema.get(key, LARGE)) < LARGE]
    return f" {' and '.join(said).replace('and of', 'and')}" if said else ""


def _number(value: float) -> str:
    return f"{value:,.0f}" if value % 1 == 0 else f"{value:g}"


# ------------------------------------------------------------------------------------------------ columns, commands


def columns() -> str:
    from mmgibbs.results.columns import OUTPUTS, PARAMETERS

    lines = ["# The run folder: every table and column", ""]
    lines += ["Words in capitals represent names and numbers of your analysis, as `p_top_X` for `p_top_5`.", ""]
    lines += ["Every table that is listed as `.csv` is also written as `.parquet`, except `chromosomes.csv`. A run"]
    lines += ["leaves `solutions.csv` out if it has more than 1,000,000 rows, unless you set `output: {csv: always}`."]
    for file, output in OUTPUTS.items():
        lines += ["", f"## {file}", "", f"A row is {output.rows}.", "", "| column | meaning |", "|---|---|"]
        lines += [f"| `{column}` | {_cell(meaning)} |" for column, meaning in output.columns.items()]
    lines += ["", "## Parameters", "", "The rows of `summary.csv`, and the variables of `draws.nc`.", ""]
    lines += ["| parameter | meaning |", "|---|---|"]
    return (
        "\n".join([*lines, *(f"| {_code(name)} | {_cell(meaning)} |" for name, meaning in PARAMETERS.items())]) + "\n"
    )


def _code(name: str) -> str:
    """A name in a table; Markdown shows the backslash of an escaped bar within code."""
    return f"<code>{name.replace('|', '&#124;')}</code>" if "|" in name else f"`{name}`"


def commands() -> str:
    """The help text of every command."""
    from mmgibbs import cli

    lines = ["# Commands", ""]
    for name in cli._COMMANDS:
        lines += [f"## mmgibbs {name}", "", "```text", _parser_of(name).format_help().rstrip(), "```", ""]
    return "\n".join(lines)


def _parser_of(name: str) -> argparse.ArgumentParser:
    from mmgibbs import cli

    parser = cli._parser([name])
    actions = (a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    return next(actions).choices[name]


def python() -> str:
    """Every public name of both packages, from its docstring."""
    lines = ["# Python", "", inspect.cleandoc(_documentation("mmgibbs")), ""]
    for package in ("mmgibbs", "mmgibbs.pedigree"):
        lines += [f"## Package {package}", ""]
        for home in sorted(public(package)):
            lines.append(f"::: {home}\n    options:\n      heading_level: 3\n")
    return "\n".join(lines)


def _documentation(package: str) -> str:
    text = inspect.getdoc(import_module(package)) or ""
    return re.sub(r"(?m)^((?: {4}.*\n?)+)", lambda code: f"```python\n{inspect.cleandoc(code[1])}\n```\n", text)


def public(package: str) -> Iterator[str]:
    """Where each public name is defined, dotted."""
    module = import_module(package)
    for name in module.__all__:
        found = getattr(module, name)
        yield f"{found.__module__}.{found.__qualname__}"
