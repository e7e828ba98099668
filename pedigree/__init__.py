"""Pedigrees: reading and checking, inbreeding, the relationship matrix and its inverse.

Knows nothing of the rest of mmgibbs.
Names are imported when first used, so that `mmgibbs.pedigree.relationship` and `mmgibbs.pedigree.inbreeding` need NumPy
and Numba only. (`from mmgibbs.pedigree.inbreeding import inbreeding` is the function; `mmgibbs.pedigree.inbreeding` is
the module.)
"""

from importlib import import_module
from typing import Any

_HOME = {
    "PedigreeError": "errors",
    "TableError": "errors",
    "ParentGroups": "read",
    "Pedigree": "read",
    "read_pedigree": "read",
    "read_table": "tables",
    "open_table": "tables",
    "Relatives": "relationship",
    "relatives": "relationship",
    "a_inverse_csr": "relationship",
    "a_inverse_times": "relationship",
    "a_inverse_triplets": "relationship",
    "a_times": "relationship_products",
    "relationship_block": "relationship_products",
    "quadratic_form": "relationship",
    "simulate_pedigree": "simulate",
    "Population": "simulate",
}
__all__ = list(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'mmgibbs.pedigree' has no attribute '{name}'")
    return getattr(import_module(f"mmgibbs.pedigree.{_HOME[name]}"), name)
