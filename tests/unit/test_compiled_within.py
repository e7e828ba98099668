"""Functions that kernels alone call are compiled without a way to call them from Python: such a call would end the
process without a word, so that there must be none.
"""

import ast
import re

import pytest
from helpers.compiled import BODIES, COMPILED, SOURCES, decorator
from helpers.support import ROOT

NO_ENTRY = ("no_cpython_wrapper=True", "WITHIN")  # of a decorator


def _is_compiled(node: ast.FunctionDef) -> bool:
    return any(decorator(d) in COMPILED for d in node.decorator_list)


def without_entry(source: str) -> set[str]:
    """Names of the functions of a module that cannot be called from Python."""
    functions = [n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.FunctionDef) and _is_compiled(n)]
    return {f.name for f in functions if any(word in ast.unparse(d) for d in f.decorator_list for word in NO_ENTRY)}


def python_calls(
    source: str,
    of: dict[str, set[str]],
    own: set[str],
    bodies: frozenset[str] = frozenset(),
    in_python: frozenset[str] = frozenset(),
) -> list:
    """'line n: name' where plain Python calls a function of `own` or one that is imported from a module of `of`.

    bodies: functions of the module that are compiled where they are called from; in_python: compiled ones that a test
    runs in Python (`py_func`).
    """
    tree, found = ast.parse(source), []
    names, modules = set(own), {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            names |= {a.asname or a.name for a in node.names if a.name in of.get(node.module or "", ())}
            modules |= {a.asname or a.name: of.get(f"{node.module}.{a.name}", set()) for a in node.names}
        elif isinstance(node, ast.Import):
            modules |= {a.asname: of.get(a.name, set()) for a in node.names if a.asname}

    def visit(node):
        compiled = isinstance(node, ast.FunctionDef) and (_is_compiled(node) or node.name in bodies)
        if compiled and node.name not in in_python:
            return
        if isinstance(node, ast.Call):
            f = node.func
            plain = isinstance(f, ast.Name) and f.id in names
            dotted = isinstance(f, ast.Attribute) and isinstance(f.value, ast.Name)
            if plain or (dotted and f.attr in modules.get(f.value.id, ())):
                found.append(f"line {node.lineno}: {ast.unparse(f)}")
        for child in ast.iter_child_nodes(node):
            visit(child)

    visit(tree)
    return found


def _module(path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


@pytest.fixture(scope="module")
def of():
    return {_module(p): without_entry(p.read_text(encoding="utf-8")) for p in SOURCES}


def test_python_calls_none_of_them(of):
    assert sum(map(len, of.values())) > 40
    tests = sorted((ROOT / "tests").rglob("*.py"))
    paths = [*SOURCES, *tests]
    in_python = frozenset(re.findall(r"(\w+)\.py_func\(", "".join(p.read_text(encoding="utf-8") for p in tests)))
    found = {}
    for path in paths:
        name = path.relative_to(ROOT).as_posix()
        bodies = frozenset(BODIES.get(name, ()))
        found[name] = python_calls(
            path.read_text(encoding="utf-8"), of, of.get(_module(path), set()), bodies, in_python
        )
    assert {name: calls for name, calls in found.items() if calls} == {}


def test_a_call_from_python_is_seen():
    source = (
        "from room import sums as s\nimport room as r\n@njit(**WITHIN)\ndef f(x): return s(x)\n"
        "@njit\ndef g(x): return f(x)\ndef h(x): return g(f(x)) + s(x) + r.sums(x) + f.py_func(x)"
    )
    assert without_entry(source) == {"f"}
    assert sorted(python_calls(source, {"room": {"sums"}}, {"f"})) == ["line 7: f", "line 7: r.sums", "line 7: s"]
    assert python_calls(source, {"room": {"sums"}}, {"f"}, frozenset("h")) == []
    assert python_calls(source, {}, {"f"}, frozenset("h"), frozenset("g")) == ["line 6: f"]
