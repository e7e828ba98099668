"""Rules that every source file keeps: types, public parts of Numba, encodings, the order of sums, words of messages.

Functions that Numba compiles may go without types: theirs are those of the call. A sum is made in the same order
wherever its arrays lie in memory: where a compiled function may reorder sums (`reassoc`), the compiler runs a loop in
lanes; if the loop also writes an array, it does so only where a check at run time finds the arrays far enough apart.
So no such loop does both.
"""

import ast
import re

import pytest
from helpers.compiled import BODIES, COMPILED, SOURCES, decorator
from helpers.support import ROOT

from mmgibbs.errors import ConfigError
from mmgibbs.runs.place import RunFolder

PUBLIC = {"numba", "numba.extending", "numba.typed", "numba.types", "numba.config"}
PRIVATE_LIBRARIES = {"llvmlite", "cupy_backends"}
INTRINSICS = "mmgibbs/machine/intrinsics.py"  # has the measured gain of each beside it
OPTIONS = {"_nrt", "pipeline_class", "no_cpython_wrapper"}
OTHER_WAYS = re.compile("found beside|beside (it|model|plugin), needed|together, needed|do(es)? not go (with|together)")
WRITES_AND_SUMS = """
@njit(fastmath={"reassoc"})
def products(x, y, out):
    s = 0.0
    for r in range(len(x)):
        out[r] = 2 * x[r]
        s += out[r] * y[r]
    return s
"""


@pytest.fixture(scope="module")
def trees():
    return {p.relative_to(ROOT).as_posix(): ast.parse(p.read_text(encoding="utf-8")) for p in SOURCES}


def faults(trees, find):
    return {name: found for name, found in ((name, find(tree)) for name, tree in trees.items()) if found}


def without_types(node, of_class=False):
    """Functions with an argument or a result that has no annotation, compiled ones and what they hold aside."""
    found = []
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
            found += without_types(child, isinstance(child, ast.ClassDef) or (of_class and isinstance(child, ast.If)))
            continue
        decorators = {decorator(d) for d in child.decorator_list}
        if decorators & COMPILED:
            continue
        a = child.args
        args = [*a.posonlyargs, *a.args, *a.kwonlyargs, *filter(None, (a.vararg, a.kwarg))]
        is_open = any(x.annotation is None for x in args[of_class and "staticmethod" not in decorators :])
        if is_open or (child.returns is None and not (child.name == "__init__" and len(args) > 1)):
            found.append(child.name)
        found += without_types(child)
    return found


def test_every_function_that_is_not_compiled_has_types(trees):
    found = faults(trees, without_types)
    assert {name: functions for name, functions in found.items() if set(functions) - BODIES.get(name, set())} == {}
    assert all((ROOT / package / "py.typed").exists() for package in ("mmgibbs", "mmgibbs/pedigree"))


def private_uses(tree):
    names = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names.append(node.module or "")
            if node.module == "numba":
                names += [f"numba.{alias.name}" for alias in node.names if alias.name in ("core", "np", "cpython")]
        elif isinstance(node, ast.keyword) and node.arg in OPTIONS:
            names.append(f"llvmlite: {node.arg}")
    is_private = lambda name: (
        re.split(r"\W", name)[0] in PRIVATE_LIBRARIES or (name.split(".")[0] == "numba" and name not in PUBLIC)
    )
    return [name for name in names if is_private(name)]


def test_only_public_parts_of_numba_are_used(trees):
    assert set(faults(trees, private_uses)) == {INTRINSICS}


def without_encoding(tree):
    """Text that is read or written in whatever encoding the system has."""
    found = []
    for node in (n for n in ast.walk(tree) if isinstance(n, ast.Call)):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        modes = [a.value for a in node.args[1:] if isinstance(a, ast.Constant) and isinstance(a.value, str)]
        opened = isinstance(node.func, ast.Name) and name == "open" and not any("b" in mode for mode in modes)
        if (name in ("read_text", "write_text") or opened) and not any(k.arg == "encoding" for k in node.keywords):
            found.append(f"line {node.lineno}: {name}")
    return found


def test_text_files_say_their_encoding(trees):
    assert faults(trees, without_encoding) == {}


def writing_sums(tree):
    """Innermost loops that write and sum, of functions whose decorator allows other orders of a sum."""
    functions = (f for f in ast.walk(tree) if isinstance(f, ast.FunctionDef))
    loops = [
        (f.name, loop)
        for f in functions
        if any("reassoc" in ast.unparse(d) for d in f.decorator_list)
        for loop in ast.walk(f)
        if isinstance(loop, ast.For)
    ]
    found = []
    for name, loop in loops:
        nodes = [node for body in loop.body for node in ast.walk(body)]
        sums = [n.target for n in nodes if isinstance(n, ast.AugAssign)]
        targets = [t for n in nodes if isinstance(n, ast.Assign) for t in n.targets] + sums
        writes = any(isinstance(t, ast.Subscript) for t in targets) and any(isinstance(t, ast.Name) for t in sums)
        if writes and not any(isinstance(n, ast.For) for n in nodes):
            found.append(f"{name}, line {loop.lineno}")
    return found


def test_no_loop_that_may_reorder_sums_writes_too(trees):
    assert faults(trees, writing_sums) == {}
    assert len(writing_sums(ast.parse(WRITES_AND_SUMS))) == 1
    assert writing_sums(ast.parse(WRITES_AND_SUMS.replace("out[r] = 2 * x[r]", "pass"))) == []


def test_what_is_refused_together_cannot_be_combined(trees):
    """One way to say it, in the messages of every package."""
    texts = lambda tree: [n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    assert faults(trees, lambda tree: [text for text in texts(tree) if OTHER_WAYS.search(text)]) == {}
    with pytest.raises(ConfigError, match="^overwrite cannot be combined with extend; needed one of them at most$"):
        RunFolder(None, None, overwrite=True, extend=10)
