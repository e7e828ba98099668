"""Which functions of the sources Numba compiles."""

import ast

from helpers.support import ROOT

COMPILED = {"kernel", "njit", "intrinsic", "overload"}  # decorators
# Functions that Numba compiles where they are called from, and those that write its code.
BODIES = {
    "mmgibbs/engines/pcg/absorption.py": {"prefetch_relatives", "_prefetch_nothing", "_prefetch_family"},
    "mmgibbs/engines/coloured/gather.py": {"gather_relatives", "_row_by_row", "_family"},
    "mmgibbs/engines/coloured/squares.py": {"square_of_level", "_independent", "_mendelian"},
    "mmgibbs/engines/pcg/rows.py": {"row_of_inverse", "_independent", "_family"},
    "mmgibbs/machine/intrinsics.py": {
        "_row_address",
        "_load_row",
        "_store_row",
        "_repeat_number",
        "_multiple",
        "codegen",
    },
}
PACKAGES = ("mmgibbs", "mmgibbs/pedigree")  # the second is a link in a checkout, which rglob does not follow
SOURCES = sorted({p for package in PACKAGES for p in (ROOT / package).rglob("*.py")})


def decorator(node: ast.expr) -> str:
    """Its name, without module and arguments."""
    node = node.func if isinstance(node, ast.Call) else node
    return node.attr if isinstance(node, ast.Attribute) else node.id
