"""A sum is made in the same order wherever its arrays lie in memory.

Where a compiled function may reorder sums (`reassoc`), the compiler runs a loop in lanes. If the loop also writes an
array, it does so only where a check at run time finds the arrays far enough apart, and sums one by one elsewhere: the
bits would depend on what the allocator did. So no such loop does both.
"""

import ast
from pathlib import Path

import pytest

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
    return [
        f"{f.name}, line {loop.lineno}"
        for f in reordered(ast.parse(source))
        for loop in innermost(f)
        if writes_and_sums(loop)
    ]


def test_no_loop_that_may_reorder_sums_writes_too():
    sources = {path: path.read_text() for path in PACKAGE.rglob("*.py") if "reassoc" in path.read_text()}
    assert len(sources) > 3
    assert {str(path): found(source) for path, source in sources.items() if found(source)} == {}


@pytest.mark.parametrize(
    ("changed", "lines"), [(WRITES_AND_SUMS, 1), (WRITES_AND_SUMS.replace("out[r] = 2 * x[r]", "pass"), 0)]
)
def test_such_a_loop_would_be_found(changed, lines):
    assert len(found(changed)) == lines
