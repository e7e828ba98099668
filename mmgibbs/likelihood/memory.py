"""Bytes of C and of its factor, counted before any of them is made. Measured as the growth of resident memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mmgibbs.equations.explicit.csr import ExplicitEquations
from mmgibbs.machine.memory import refuse_beyond_free
from mmgibbs.models.design import Design

DENSE = 40  # for an element of K^-1 of levels that are all related, in the lists that C is made of
LISTED = 18  # for an element of the blocks of C, of two that mirror each other once, while the pattern is looked for
ORDERED = 29  # for an element of the pattern, both triangles, while the equations are ordered
KEPT = 16  # for the same, later: its place in the factor, and its value
OF_PRIOR = 100  # for an element of the prior while C is made of scores (scores.py)
SOLUTION = "sampler.engine: pcg (REML by Monte Carlo), a machine with more memory, or sampler.method: gibbs"


def bytes_of_related(design: Design, of_terms: Sequence[Sequence[tuple[int, ...]] | None] | None = None) -> int:
    """Count the bytes of the lists and the pattern of terms whose levels are all related.

    of_terms: components that may covary; None: all.
    """
    total = 0
    for number, term in enumerate(design.terms):
        dense = term.relationship.dense
        if dense is None:
            continue
        blocks = None if of_terms is None else of_terms[number]
        sizes = [len(block) for block in blocks] if blocks is not None else [term.n_components]
        n_stored, n_all = sum(k * (k + 1) // 2 for k in sizes), sum(k * k for k in sizes)
        total += dense.levels.size**2 * DENSE
        total += pattern_bytes(dense.levels.size**2 * n_stored, dense.levels.size**2 * n_all)
    return total


def pattern_bytes(n_stored: int, n_all: int) -> int:
    """Count the bytes of the search for the pattern.

    n_stored: elements of blocks of which none mirrors another; n_all: of all blocks.
    """
    return LISTED * n_stored + ORDERED * n_all


def refuse_large_lists(
    design: Design, of_terms: Sequence[Sequence[tuple[int, ...]] | None], advice: str = SOLUTION
) -> None:
    """A DeviceError where levels that are all related would not fit into memory as lists."""
    _refuse(design, bytes_of_related(design, of_terms), advice)


def refuse_large_pattern(
    explicit: ExplicitEquations, sizes: Mapping[tuple[int, int], int], advice: str = SOLUTION
) -> None:
    """A DeviceError where the pattern would not fit into memory; sizes: elements of each block (i, j), i >= j."""
    _refuse(explicit.design, count_pattern(sizes), advice)


def count_pattern(sizes: Mapping[tuple[int, int], int]) -> int:
    """Bytes while the pattern of these blocks is found."""
    return pattern_bytes(sum(sizes.values()), sum(n * (1 if i == j else 2) for (i, j), n in sizes.items()))


def _refuse(design: Design, needed: int, advice: str) -> None:
    refuse_beyond_free(needed, f"the pattern of a factor of {design.n_equations:,} equations", advice)
