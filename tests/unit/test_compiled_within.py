"""Functions that kernels alone call are compiled without a way to call them from Python: such a call would end the
process without a word, so that there must be none, now or later: they are not passed to `partial` or to threads either.
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


def python_uses(
    source: str,
    of: dict[str, set[str]],
    own: set[str],
    bodies: frozenset[str] = frozenset(),
    in_python: frozenset[str] = frozenset(),
) -> list:
    """'line n: name' where plain Python calls a function of `own` or one that is imported from a module of `of`, or
    passes it on, names it anew or keeps it, which can only lead to a call; its plain form (`py_func`) may be used, and
    `from_python` (helpers/from_python.py) gives it an entry.

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
            modules |= {a.asname or a.name: of.get(a.name, set()) for a in node.names}

    def visit(node):
        compiled = isinstance(node, ast.FunctionDef) and (_is_compiled(node) or node.name in bodies)
        plain_form = isinstance(node, ast.Attribute) and node.attr == "py_func"
        given_an_entry = isinstance(node, ast.Call) and ast.unparse(node.func) == "from_python"
        if (compiled and node.name not in in_python) or plain_form:
            return
        if given_an_entry:
            for argument in node.args:
                if not isinstance(argument, ast.Name | ast.Attribute):
                    visit(argument)
            return
        plain = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in names
        dotted = isinstance(node, ast.Attribute) and node.attr in modules.get(ast.unparse(node.value), ())
        if plain or dotted:
            found.append(f"line {node.lineno}: {ast.unparse(node)}")
        for child in ast.iter_child_nodes(node):
            visit(child)

    visit(tree)
    return found


def _module(path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


@pytest.fixture(scope="module")
def of():
    return {_module(p): without_entry(p.read_text(encoding="utf-8")) for p in SOURCES}


def test_python_uses_none_of_them(of):
    assert sum(map(len, of.values())) > 40
    tests = sorted((ROOT / "tests").rglob("*.py"))
    paths = [*SOURCES, *tests]
    in_python = frozenset(re.findall(r"(\w+)\.py_func\(", "".join(p.read_text(encoding="utf-8") for p in tests)))
    found = {}
    for path in paths:
        name = path.relative_to(ROOT).as_posix()
        bodies = frozenset(BODIES.get(name, ()))
        found[name] = python_uses(path.read_text(encoding="utf-8"), of, of.get(_module(path), set()), bodies, in_python)
    assert {name: calls for name, calls in found.items() if calls} == {}


def test_a_call_from_python_is_seen():
    source = (
        "from room import sums as s\nimport room as r\n@njit(**WITHIN)\ndef f(x): return s(x)\n"
        "@njit\ndef g(x): return f(x)\ndef h(x): return g(f(x)) + s(x) + r.sums(x) + f.py_func(x) "
        "+ from_python(f)(x) + from_python(s(x))"
    )
    assert without_entry(source) == {"f"}
    assert sorted(python_uses(source, {"room": {"sums"}}, {"f"})) == [
        "line 7: f",
        "line 7: r.sums",
        "line 7: s",
        "line 7: s",
    ]
    assert python_uses(source, {"room": {"sums"}}, {"f"}, frozenset("h")) == []
    assert python_uses(source, {}, {"f"}, frozenset("h"), frozenset("g")) == ["line 6: f"]


@pytest.mark.parametrize(
    "use",
    [
        "partial(s, 1)", "pool.submit(s, 1)", "threads([partial(s, share) for share in shares])", "map(r.sums, x)",
        "(kernel := s)", "{'sums': s}", "lambda x: s(x)", "room.deep.sums", "x.y(key=f)",
    ],
)  # fmt: skip
def test_a_function_that_is_passed_on_is_seen(use):
    source = (
        "from room import sums as s\nimport room as r\nimport room.deep\n@njit(**WITHIN)\ndef f(x): return s(x)\n"
        f"def g(x): return {use}\ndef fine(x): return x.sums + s.py_func(x) + x.f + r.others"
    )
    (seen,) = python_uses(source, {"room": {"sums"}, "room.deep": {"sums"}}, {"f"})
    assert seen.startswith("line 6: ")


def test_a_kernel_of_threads_that_loses_its_entry_is_seen():
    """The sources as they are, with the options of one kernel changed: it is passed to threads by `partial` alone."""
    path = ROOT / "mmgibbs" / "engines" / "coloured" / "pieces.py"
    right = path.read_text(encoding="utf-8")
    passed = "self.threads([partial(sum_pieces, "
    options = right[: right.index("def sum_pieces(")].rpartition("@njit(")[2]
    assert passed in right and not without_entry(right) & {"sum_pieces"}
    wrong = right.replace(f"@njit({options}def sum_pieces(", "@njit(**WITHIN)\ndef sum_pieces(")
    line = wrong[: wrong.index(passed)].count("\n") + 1
    assert python_uses(wrong, {}, without_entry(wrong)) == [f"line {line}: sum_pieces"]
    assert python_uses(right, {}, without_entry(right)) == []
