"""The page of messages: every error that input can cause, as the sources raise it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KINDS = ("ConfigError", "DataError", "ModelError", "DeviceError", "PedigreeError", "TableError", "VersionError")
BASE = "mmgibbs/errors.py"
RAISES = re.compile(rf"raise ({'|'.join(KINDS)}|ValueError)\(|\bRule\(|^def describe", re.MULTILINE)
MIN_WORDS = 3  # of a message; what is shorter only passes on another one
# Folder or file -> subject and what mends most of its errors. The first that fits a file is taken.
SUBJECTS = {
    "pedigree/": ("Tables and pedigrees", "Correct the named row of the table, or tell the program how it is written: "
                  "`data.separator`, `data.encoding`, `data.columns`, `data.missing`."),
    "mmgibbs/data/genotypes/": ("Files of genotypes", "[Genotypes](genotypes.md) describes the formats and how ids are "
                                "matched; convert other files with PLINK."),
    "mmgibbs/data/ mmgibbs/models/families/": (
        "Records, effects and relationships", "The message names the table and the column, or the key of "
        "the analysis that asks for it; correct one of the two."),
    "mmgibbs/config/": ("The analysis file", "Look the key up in [the analysis file](analysis-file.md); `mmgibbs "
                        "schema` gives your editor the same checks."),
    "mmgibbs/draft/formula/": ("Formulas", "[Models as formulas](../how-to/formulas.md) has the grammar."),
    "mmgibbs/draft/": ("`mmgibbs init`", "Give what it cannot guess as an option (`mmgibbs init --help`)."),
    "mmgibbs/build/ mmgibbs/models/priors/": ("The model and its data", "The data do not support the model as it is "
                                              "written: simplify it, fix a variance, or give it a proper prior."),
    "mmgibbs/regressions/": ("Regressions", "[Using a regression](../tutorials/using-a-regression.md) has the shapes "
                             "and options that they expect."),
    "mmgibbs/reml/ mmgibbs/likelihood/ mmgibbs/models/ mmgibbs/equations/ mmgibbs/posterior/ mmgibbs/sampler/ "
    "mmgibbs/engines/": ("While a run computes", "Numbers became singular or infinite: give starts nearer the data, a "
                         "proper prior, or fewer effects and components."),
    "mmgibbs/machine/": ("Devices, memory and places of output", "Choose another folder, fewer chains or "
                         "`device: cpu`."),
    "mmgibbs/runs/ mmgibbs/results/": ("Run folders, continuing, prediction", "[Runs that take hours]"
                                       "(../how-to/long-runs.md) explains resuming; a damaged folder is run again."),
    "mmgibbs/report/": ("Reports and figures", "They are made from a finished run folder; run the analysis first."),
    "mmgibbs/validation/": ("`mmgibbs validate`", "[Validation](../how-to/validation.md) lists the designs."),
    "mmgibbs/association/": ("`mmgibbs gwas` and `mmgibbs finemap`", "[Which SNPs have an effect]"
                             "(../how-to/association.md) has the order of the steps."),
    "mmgibbs/population/contributions/": (
        "`mmgibbs contributions`", "[Contributions and matings](../how-to/contributions.md) has its tables."
    ),
    "mmgibbs/exchange/": ("`mmgibbs import` and `mmgibbs export`", "[Moving from BLUPF90](../how-to/from-blupf90.md) "
                          "lists what is taken over."),
    "mmgibbs/population/ mmgibbs/simulation/ mmgibbs/":
        ("Other commands", "`mmgibbs COMMAND --help` lists the options."),
}  # fmt: skip
_INTRODUCTION = """\
# Messages

Every error that input can cause, as the program writes it, by subject.
Words in italics stand for names, numbers and lists of your analysis.
A message says what is wrong, where, what was found and what is needed.
A command prints the message alone and ends with status 2.
Python raises it as one of these classes, all of them kinds of `ValueError`:

| class | what it means |
|---|---|
"""
_MADE = "\nThis page is made from the sources by `python docs/site/make_pages.py`.\n"


def messages() -> str:
    """Return the page."""
    sources = Sources(ROOT)
    listed: dict[str, set[str]] = {title: set() for title, _ in SUBJECTS.values()}
    for path, text in sources.messages():
        listed[_find_subject(path)].add(text)
    lines = [_INTRODUCTION.rstrip(), *_describe_kinds(), _MADE]
    for title, advice in SUBJECTS.values():
        if listed[title]:
            lines += [f"## {title}", "", advice, ""]
            lines += [f"- {text}" for text in sorted(listed[title], key=_sort_key)] + [""]
    return "\n".join(lines)


def _describe_kinds() -> Iterator[str]:
    for file in (BASE, "pedigree/errors.py"):
        for node in ast.parse((ROOT / file).read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and node.name in KINDS:
                yield f"| `{node.name}` | {(ast.get_docstring(node) or '').splitlines()[0]} |"


def _find_subject(path: str) -> str:
    return next(title for starts, (title, _) in SUBJECTS.items() if path.startswith(tuple(starts.split())))


def _sort_key(text: str) -> tuple[str, str]:
    """Those that begin with a placeholder stand behind the others, by their words."""
    return re.sub(r"[^a-z ]", "", re.sub(r"\*[^*]*\*", "~", text).lower()), text


@dataclass
class Sources:
    """The modules of the program, their constants and functions."""

    root: Path
    modules: dict[str, ast.Module] = field(init=False)
    constants: dict[str, object] = field(init=False)
    functions: dict[str, ast.FunctionDef] = field(init=False)

    def __post_init__(self) -> None:
        files = sorted(p for package in ("mmgibbs", "mmgibbs/pedigree") for p in (self.root / package).rglob("*.py"))
        texts = {p.relative_to(self.root).as_posix(): p.read_text(encoding="utf-8") for p in files}
        self.modules = {path: ast.parse(text) for path, text in texts.items() if RAISES.search(text)}
        self.constants, self.functions = {}, {}
        for module in self.modules.values():
            for node in module.body:
                if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                    if isinstance(node.value, ast.Constant):
                        self._define(self.constants, node.targets[0].id, node.value.value)
                elif isinstance(node, ast.FunctionDef):
                    self._define(self.functions, node.name, node)

    @staticmethod
    def _define(table: dict, name: str, value: object) -> None:
        """A name that two modules give different meanings has none here."""
        table[name] = value if table.get(name, value) == value else None

    def messages(self) -> Iterator[tuple[str, str]]:
        """(file, text in Markdown) of every error, and of every rule about keys of the analysis."""
        for path, module in self.modules.items():
            for node in ast.walk(module):
                for argument in _find_arguments(node, path):
                    for text in self._render_all(argument):
                        if len(re.findall(r"[A-Za-z]{2,}", re.sub(r"\*[^*]*\*", "", text))) >= MIN_WORDS:
                            yield path, text

    def _render_all(self, node: ast.expr) -> Iterator[str]:
        """A message that a function writes has the texts that it returns."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and self.functions.get(node.func.id):
            for inner in ast.walk(self.functions[node.func.id]):
                if isinstance(inner, ast.Return) and isinstance(inner.value, (ast.JoinedStr, ast.BinOp, ast.Constant)):
                    yield self.render(inner.value)
        else:
            yield self.render(node)

    def render(self, node: ast.expr) -> str:
        return re.sub(r"\s+", " ", "".join(self._parts(node))).strip()

    def _parts(self, node: ast.expr) -> list[str]:
        if isinstance(node, ast.Constant):
            return [_escape(str(node.value))]
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            return self._parts(node.left) + self._parts(node.right)
        if not isinstance(node, ast.JoinedStr):
            return [self.placeholder(node)]
        parts: list[str] = []
        for value in node.values:
            if isinstance(value, ast.Constant):
                parts.append(_escape(str(value.value)))
            elif isinstance(value, ast.FormattedValue):
                text = self.placeholder(value.value)
                if not (
                    "*" in text and parts and re.search(r"[\w*]$", "".join(parts))
                ):  # the ending of a word, or more
                    parts.append(text)
        return parts

    def placeholder(self, node: ast.expr) -> str:
        """What stands for a value: an option, a constant, alternatives, or the name of the value in italics."""
        if isinstance(node, ast.Constant):
            return _escape(str(node.value))
        if isinstance(node, ast.Name) and isinstance(self.constants.get(node.id), (str, int, float)):
            value = self.constants[node.id]
            return _escape(value) if isinstance(value, str) else f"{value:,}"
        if isinstance(node, ast.IfExp):
            return max(self.placeholder(node.body), self.placeholder(node.orelse), key=len)
        if isinstance(node, ast.JoinedStr):
            return self.render(node)
        name = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
        if isinstance(node, ast.Call) and name in ("option", "option_name") and isinstance(node.args[0], ast.Constant):
            words = [f"--{str(node.args[0].value).replace('_', '-')}"]
            words += [str(a.value) for a in node.args[1:] if isinstance(a, ast.Constant) and a.value is not True]
            return f"`{' '.join(words)}`"
        if isinstance(node, ast.Call) and name == "nearest":
            return "did you mean '*name*'?"
        if isinstance(node, ast.Call) and name == "counted" and isinstance(node.args[1], ast.Constant):
            return f"*n* {node.args[1].value}s"
        return f"*{_find_name(node)}*"


def _find_arguments(node: ast.AST, path: str) -> Iterator[ast.expr]:
    """The messages of an error or of a rule."""
    if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and isinstance(node.exc.func, ast.Name):
        kinds = (*KINDS, "ValueError") if path.startswith("mmgibbs/config/") else KINDS
        if node.exc.func.id in kinds and node.exc.args:
            yield node.exc.args[0]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Rule" and len(node.args) > 2:
        template = f"{_write_template(node.args[0])}: {_write_template(node.args[2])}".removeprefix(": ")
        yield ast.parse(f"f{template!r}", mode="eval").body


def _write_template(node: ast.AST) -> str:
    """The text of a rule for `str.format`, with the names of its values in braces."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(_write_template(value) for value in node.values)
    return f"{{{ast.unparse(node.value if isinstance(node, ast.FormattedValue) else node)}}}"


def _find_name(node: ast.AST) -> str:
    """The last word of a value's name, in plain words; of a call, that of what it is given."""
    if isinstance(node, ast.Attribute):
        words = node.attr
    elif isinstance(node, ast.Name):
        words = node.id
    elif isinstance(node, (ast.Subscript, ast.Starred)):
        return _find_name(node.value)
    elif isinstance(node, ast.Call):
        if node.args and not (isinstance(node.func, ast.Name) and node.func.id.startswith("describe")):
            return _find_name(node.args[0])
        return _find_name(node.func)
    elif isinstance(node, (ast.GeneratorExp, ast.ListComp)):
        return _find_name(node.generators[0].iter)
    elif isinstance(node, (ast.BinOp, ast.Compare)):
        return _find_name(node.left)
    elif isinstance(node, ast.UnaryOp):
        return _find_name(node.operand)
    else:
        words = "value"
    return (
        re.sub(r"[^a-z0-9]+", " ", re.sub(r"^(describe|name|list)_", "", words.strip("_")).lower()).strip() or "value"
    )


def _escape(text: str) -> str:
    """Write text in Markdown, whose signs mean nothing outside code."""
    parts = text.split("`")
    parts[::2] = [re.sub(r"([\\*_\[<|])", r"\\\1", part) for part in parts[::2]]
    return "`".join(parts)
