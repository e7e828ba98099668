"""How many bytes the hybrid engine takes on a device."""

from __future__ import annotations

from mmgibbs.equations.nonzeros import count_nonzeros
from mmgibbs.equations.structured import StructuredEquations


def vector_bytes(equations: StructuredEquations) -> int:
    """Two right-hand sides in float64, and the effects."""
    return equations.design.n_effects * (2 * 8 + equations.real.itemsize)


def matrix_bytes(equations: StructuredEquations) -> int:
    """The values between blocks, each read once in a sweep; from below, for their positions are not counted."""
    total, inside = count_nonzeros(equations.design, equations.partition)
    return (total - inside) * equations.real.itemsize
