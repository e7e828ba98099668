"""The sources use what Numba, LLVM and CuPy publish, and nothing else; one file writes instructions by hand."""

import ast
import re

from helpers.compiled import SOURCES
from helpers.support import ROOT

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


def test_private_parts_are_seen():
    source = (
        "import numba.core.event\nfrom numba.core import cgutils\nfrom numba.np.arrayobj import x\n"
        "from numba import core\n"
        "from llvmlite import ir\nfrom cupy_backends.cuda.libs import cusparse\n@njit(_nrt=False)\ndef f(): ...\n"
        "import numba\nfrom numba import njit, types\nfrom numba.extending import intrinsic\n"
    )
    assert [use.split(": ")[1] for use in private_uses(source)] == [
        "numba.core.event", "numba.core", "numba.np.arrayobj", "numba.core", "llvmlite", "cupy_backends.cuda.libs",
        "_nrt=",
    ]  # fmt: skip
