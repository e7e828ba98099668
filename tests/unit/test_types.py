"""Every function says its types, and both packages tell type checkers so.

mypy holds the types themselves (`mypy`, its settings in pyproject.toml). Functions that Numba compiles may go without:
their types are those of the call.
"""

import ast

import pytest
from helpers.compiled import BODIES, COMPILED, SOURCES, decorator
from helpers.support import ROOT


def without_types(source: str) -> list[str]:
    """Functions with an argument or a result that has no annotation, compiled ones and what they hold aside."""
    found = []

    def visit(node, of_class):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
                if any(decorator(d) in COMPILED for d in child.decorator_list):
                    continue
                a = child.args
                args = [*a.posonlyargs, *a.args, *a.kwonlyargs, *filter(None, (a.vararg, a.kwarg))]
                static = any(decorator(d) == "staticmethod" for d in child.decorator_list)
                open_ = [x for x in args[of_class and not static :] if x.annotation is None]
                if open_ or (child.returns is None and not (child.name == "__init__" and len(args) > 1)):
                    found.append(f"line {child.lineno}: {child.name}")
                visit(child, False)
            else:
                visit(child, isinstance(child, ast.ClassDef) or (of_class and isinstance(child, ast.If)))

    visit(ast.parse(source), False)
    return found


def test_every_function_that_is_not_compiled_has_types():
    found = {
        str(p.relative_to(ROOT)): [
            f
            for f in without_types(p.read_text(encoding="utf-8"))
            if f.split()[-1] not in BODIES.get(p.relative_to(ROOT).as_posix(), ())
        ]
        for p in SOURCES
    }
    assert {path: functions for path, functions in found.items() if functions} == {}


def test_a_function_without_types_is_seen():
    source = "class A:\n    def f(self, x) -> int: ...\n    @njit\n    def g(a):\n        def h(b): ...\ndef k(): ..."
    assert without_types(source) == ["line 2: f", "line 6: k"]
    under_a_condition = "class A:\n    if X:\n        def f(self) -> int: ...\n        def g(self, x) -> int: ..."
    assert without_types(under_a_condition) == ["line 4: g"]


@pytest.mark.parametrize("package", ["mmgibbs", "pedigree"])
def test_type_checkers_are_told_of_the_types(package):
    assert (ROOT / package / "py.typed").exists()
