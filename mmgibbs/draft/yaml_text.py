"""Words of YAML: names, lists and entries as an analysis file writes them.

Lines of a drafted file that nobody has to scroll for: long comments and long lists go on in the next line.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterable

from mmgibbs.draft.columns import Column

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_WORDS = {"yes", "no", "on", "off", "true", "false", "null", "y", "n", "none"}


def entry(c: Column, body: str, key: str = "column") -> str:
    """'NAME: {column: COLUMN, BODY}', the column where it is not the name."""
    name = c.label
    of_column = f"{key}: {yaml_text(c.name)}" if name != c.name else ""
    return f"{yaml_text(name)}: {{{', '.join(filter(None, (of_column, body)))}}}"


def yaml_text(text: str) -> str:
    plain = _PLAIN.fullmatch(text) or re.fullmatch(r"[A-Za-z0-9_./-]*[A-Za-z_/][A-Za-z0-9_./-]*", text)
    return text if plain and text.lower() not in _WORDS else json.dumps(text, ensure_ascii=False)


def yaml_list(values: Iterable[str]) -> str:
    return f"[{', '.join(yaml_text(v) if v else json.dumps(v) for v in values)}]"


MAX_COLUMNS = 160
_COMMENT = re.compile(r"(\s*# ?)(.*)")
_TRAILING_COMMENT = re.compile(r"(.*\S)  # (.*)")


def fold_lines(lines: Iterable[str]) -> list[str]:
    """Return the lines, those above MAX_COLUMNS in several that mean the same."""
    return [part for line in lines for part in (_fold(line) if len(line) > MAX_COLUMNS else [line])]


def _fold(line: str) -> list[str]:
    comment = _COMMENT.fullmatch(line)
    if comment is not None:
        mark, text = comment.groups()
        if re.match(r"[\w\"' ]+: \{", text):  # an alternative that is to be used by deleting its '#'
            return [f"{mark}{part}" for part in _fold(text)]
        indent = re.match(r" *", text)[0]  # type: ignore[index]
        return textwrap.wrap(
            text.strip(), MAX_COLUMNS, initial_indent=mark + indent, subsequent_indent=f"{mark}{indent}  ",
            break_on_hyphens=False,
        )  # fmt: skip
    split = _TRAILING_COMMENT.fullmatch(line)
    if split is not None and _is_outside_quotes(split[1]):
        indent = " " * (len(line) - len(line.lstrip()))
        said = textwrap.wrap(
            split[2], MAX_COLUMNS, initial_indent=f"{indent}# ", subsequent_indent=f"{indent}# ", break_on_hyphens=False
        )
        return [*said, *(_fold(split[1]) if len(split[1]) > MAX_COLUMNS else [split[1]])]
    return _fold_list(line)


def _is_outside_quotes(text: str) -> bool:
    return text.count('"') % 2 == 0


def _fold_list(line: str) -> list[str]:
    """Break a list or mapping in brackets behind its commas, which YAML allows."""
    indent = " " * (len(line) - len(line.lstrip()) + 4)
    parts = re.findall(r'(?:"(?:[^"\\]|\\.)*"|[^",])+(?:, |$)', line)
    if "".join(parts) != line or not re.search(r"[\[{]", parts[0]):
        return [line]
    out = [parts[0]]
    for part in parts[1:]:
        if len(out[-1]) + len(part) > MAX_COLUMNS:
            out[-1] = out[-1].rstrip()
            out.append(indent + part)
        else:
            out[-1] += part
    return out
