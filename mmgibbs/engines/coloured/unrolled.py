"""Sizes that the compiler sees: tuples of zeros whose length is the number of components or traits of a term.

A loop over `range(len(k_))` is written out by the compiler, and arrays of that many numbers can be kept in registers.
"""

from __future__ import annotations

from mmgibbs.equations.structured import StructuredEquations

UNROLL_FROM = 2000  # levels or entries of a term from which compiling a kernel for its very sizes (some seconds) pays
MAX_UNROLLED = 4  # components or traits


def unroll(size: int, work: int) -> tuple:
    """Return (0,) * size where unrolling pays, else (), which means a general loop."""
    return (0,) * size if size <= MAX_UNROLLED and work >= UNROLL_FROM else ()


def unroll_term(equations: StructuredEquations, term: int) -> tuple[tuple, tuple]:
    """k_ and T_: of the components and traits of a term."""
    t, lists = equations.design.terms[term], equations.terms[term]
    work = max(t.n_levels, lists.visit_record.size)
    return unroll(t.n_components, work), unroll(equations.design.n_traits, work)
