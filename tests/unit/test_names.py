"""Plain names: a reader should not have to learn a word that this project made up."""

import ast
import re

import pytest
from helpers.support import ROOT

from mmgibbs.errors import ConfigError
from mmgibbs.runs.place import RunFolder

# What classes, functions, arguments, variables, attributes and modules are called no longer
RENAMED = set(
    "Stand Held Sent Lost Talk Judge Keeper RunPlace Root ExactEngine Walk ThisMachine Workplace RegressionSchedule "
    "RegressionJob RegressionChains RegressionStand RUN_OPTIONS inverse_times REGRESSION shower stored begin_with "
    "why_not ask_for_visit root_of stand keeper judge told whence".split()
)


def identifiers(source: str) -> set[str]:
    """Every name that the source gives or uses, without leading and trailing underscores."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                found.add(name)
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                found.add(name)
            case ast.keyword(arg=str(name)):
                found.add(name)
            case ast.alias(name=name, asname=alias):
                found |= {*name.split("."), alias or ""}
    return {name.strip("_") for name in found}


def test_names_are_plain():
    for path in (path for package in ("mmgibbs", "pedigree") for path in (ROOT / package).rglob("*.py")):
        assert (identifiers(path.read_text(encoding="utf-8")) | {path.stem}) & RENAMED == set(), path.name


def test_pages_use_no_old_name():
    """Code spans of the pages."""
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        spans = re.findall(r"`([^`\n]+)`", page.read_text(encoding="utf-8"))
        used = {word for span in spans for word in re.findall(r"\w+", span)}
        assert used & RENAMED == set(), page.name


def test_what_is_refused_together_cannot_be_combined():
    """One way to say it, in the messages of every package."""
    other_ways = re.compile(
        "found beside|beside (it|model|plugin), needed|together, needed|do(es)? not go (with|together)"
    )
    for path in sorted((ROOT / "mmgibbs").rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        strings = [n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
        assert [text for text in strings if other_ways.search(text)] == [], path.name


def test_overwrite_resume_and_extend_cannot_be_combined():
    with pytest.raises(ConfigError, match="^overwrite cannot be combined with extend; needed one of them at most$"):
        RunFolder(None, None, overwrite=True, extend=10)
