"""How many bytes the hybrid engine takes on a device."""

from __future__ import annotations

from mmgibbs.equations.nonzeros import count_nonzeros_by_terms
from mmgibbs.equations.structured import StructuredEquations


def vector_bytes(equations: StructuredEquations) -> int:
    """Count the bytes of two right-hand sides in float64, and of the effects."""
    return equations.design.n_effects * (2 * 8 + equations.real.itemsize)


def matrix_bytes(equations: StructuredEquations) -> int:
    """The numbers of pairs of levels in different blocks, each read once in a sweep; from below, as if each were for
    all components of both."""
    terms, numbers = equations.design.terms, 0
    for (i, j), (total, inside) in count_nonzeros_by_terms(equations.design, equations.partition).items():
        numbers += -(-(total - inside) // (terms[i].n_components * terms[j].n_components))
    return numbers * (equations.real.itemsize + 4)
