"""Rules that every source file keeps: types of functions, public parts of Numba, the order of sums.

Functions that Numba compiles may go without types: theirs are those of the call. A sum is made in the same order
wherever its arrays lie in memory: where a compiled function may reorder sums (`reassoc`), the compiler runs a loop in
lanes; if the loop also writes an array, it does so only where a check at run time finds the arrays far enough apart.
So no such loop does both.
"""

import ast
import re
from pathlib import Path

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


def test_type_checkers_are_told_of_the_types():
    assert all((ROOT / package / "py.typed").exists() for package in ("mmgibbs", "pedigree"))


PUBLIC = {"numba", "numba.extending", "numba.typed", "numba.types", "numba.config"}
PRIVATE_LIBRARIES = {"llvmlite", "cupy_backends"}
INTRINSICS = "mmgibbs/machine/intrinsics.py"  # has the measured gain of each beside it
OPTION = re.compile(r"\b_nrt\b|\bpipeline_class\b|\bno_cpython_wrapper\b")


def private_uses(source: str) -> list[str]:
    uses = []
    for node in ast.walk(ast.parse(source)):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
            if node.module == "numba":
                names += [f"numba.{alias.name}" for alias in node.names if alias.name in ("core", "np", "cpython")]
        elif isinstance(node, ast.keyword) and node.arg and OPTION.search(node.arg):
            names = [f"{node.arg}="]
        for name in names:
            library = name.split(".")[0]
            if library in PRIVATE_LIBRARIES or name.endswith("=") or (library == "numba" and name not in PUBLIC):
                uses.append(f"line {node.lineno if hasattr(node, 'lineno') else 0}: {name}")
    return uses


def test_only_public_parts_are_used():
    uses = {p.relative_to(ROOT).as_posix(): private_uses(p.read_text(encoding="utf-8")) for p in SOURCES}
    assert uses.pop(INTRINSICS), "then it needs no exception"
    assert {name: found for name, found in uses.items() if found} == {}


PACKAGE = Path(__file__).parents[2] / "mmgibbs"

WRITES_AND_SUMS = """
@njit(fastmath={"reassoc"})
def products(x, y, out):
    s = 0.0
    for r in range(len(x)):
        out[r] = 2 * x[r]
        s += out[r] * y[r]
    return s
"""


def reordered(tree):
    """Functions whose decorator allows other orders of a sum."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef) and any("reassoc" in ast.unparse(d) for d in function.decorator_list):
            yield function


def innermost(function):
    for loop in ast.walk(function):
        if isinstance(loop, ast.For) and not any(isinstance(n, ast.For) for body in loop.body for n in ast.walk(body)):
            yield loop


def writes_and_sums(loop):
    nodes = [node for body in loop.body for node in ast.walk(body)]
    targets = [t for n in nodes if isinstance(n, ast.Assign) for t in n.targets]
    targets += [n.target for n in nodes if isinstance(n, ast.AugAssign)]
    writes = any(isinstance(t, ast.Subscript) for t in targets)
    return writes and any(isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name) for n in nodes)


def found(source):
    loops = [(f, loop) for f in reordered(ast.parse(source)) for loop in innermost(f)]
    return [f"{f.name}, line {loop.lineno}" for f, loop in loops if writes_and_sums(loop)]


def test_no_loop_that_may_reorder_sums_writes_too():
    sources = {path: path.read_text() for path in PACKAGE.rglob("*.py") if "reassoc" in path.read_text()}
    assert len(sources) > 3
    assert {str(path): found(source) for path, source in sources.items() if found(source)} == {}


@pytest.mark.parametrize(
    ("changed", "lines"), [(WRITES_AND_SUMS, 1), (WRITES_AND_SUMS.replace("out[r] = 2 * x[r]", "pass"), 0)]
)
def test_such_a_loop_would_be_found(changed, lines):
    assert len(found(changed)) == lines
