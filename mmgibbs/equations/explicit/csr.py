"""The explicit mixed-model equations: one CSR block for each pair of scalar effects, new variances without a rebuild.

    block(i, j) = G^-1[c_i, c_j] K^-1 + sum_p R_p^-1[t_i, t_j] U^p        (unit_blocks.py)

A scalar effect is one component of one term; scalar effects are numbered term by term, component by component.
`set_variances` is one pass over the stored values. Blocks of the same two effects share `indptr` and `indices`, and a
block that equals its mirror image is stored once. Rows and columns of components set to 0 (`Term.active`) stay in a
block and hold zeros, the diagonal included. C is symmetric to the last bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from mmgibbs.equations.base import Layout, layout, precisions
from mmgibbs.equations.explicit.unit_blocks import UnitBlock, unit_blocks
from mmgibbs.models.design import Design
from mmgibbs.pedigree.kernels import kernel


class ScalarEffect(NamedTuple):
    """One component of one term."""

    term: int
    component: int
    trait: int
    effect: int  # numbered through all terms
    covariate: int  # which of the effect's own


@dataclass
class ExplicitEquations:
    """C as blocks of scalar effects, at the variances given last, levels in model order."""

    design: Design
    real: np.dtype  # of stored values; sums run in float64
    units: dict[tuple[int, int], UnitBlock]
    layout: Layout
    scalar_effects: tuple[ScalarEffect, ...]
    values: dict[tuple[int, int], np.ndarray] = field(default_factory=dict)  # absent: the block is zero
    record_precision: np.ndarray | None = None  # (patterns, T, T) R_p^-1 in force

    @property
    def n_equations(self) -> int:
        return self.design.n_equations

    @property
    def bytes(self) -> int:
        """Unit blocks and values; arrays that several blocks share count once."""
        values = {id(v): v.nbytes for v in self.values.values()}
        return sum(unit.bytes for unit in self.units.values()) + sum(values.values())

    def set_variances(self, G: Sequence[np.ndarray | None], R: np.ndarray) -> None:
        """New coefficients on the stored unit blocks. G: one (k, k) per term, None for fixed terms; R: (T, T)."""
        self.set_precisions(*precisions(self.design, G, R))

    def set_precisions(self, inverses: Sequence[np.ndarray], record_precision: np.ndarray) -> None:
        """Set the matrices that `precisions` gives: (k, k) per term, and (patterns, T, T)."""
        self.record_precision = record_precision
        old, self.values = self.values, {}
        for i, row in enumerate(self.scalar_effects):
            for j, column in enumerate(self.scalar_effects):
                unit = self.units.get((row.effect, column.effect))
                by_pattern = np.ascontiguousarray(self.record_precision[:, row.trait, column.trait])
                prior = inverses[row.term][row.component, column.component] if row.term == column.term else 0.0
                if unit is None or (not by_pattern.any() and (prior == 0.0 or unit.kappa.size == 0)):
                    continue
                if j < i and self._mirrored(row, column):
                    self.values[i, j] = self.values[j, i]
                    continue
                values = old.pop((i, j), None)
                if values is None:
                    values = np.empty(unit.indices.size, self.real)
                sums = unit.sums[row.covariate, column.covariate]
                _combine(unit.kappa, unit.position, unit.pattern, sums, prior, by_pattern, values)
                held = self._held_at_zero(row), self._held_at_zero(column)
                if held[0].any() or held[1].any():
                    _hold_at_zero(unit.indptr, unit.indices, *held, values)
                self.values[i, j] = values

    def _mirrored(self, row: ScalarEffect, column: ScalarEffect) -> bool:
        """Blocks (i, j) and (j, i) are one array: symmetric within an effect, unless different levels are set to 0."""
        same_levels = np.array_equal(self._held_at_zero(row), self._held_at_zero(column))
        return row.effect == column.effect and same_levels

    def _held_at_zero(self, scalar: ScalarEffect) -> np.ndarray:
        return self._held[scalar.term][scalar.component]

    @cached_property
    def _held(self) -> list[np.ndarray]:
        return [np.ascontiguousarray(~active.T) for active in self.layout.split(self.layout.active)]


def explicit_equations(design: Design, precision: str = "double") -> ExplicitEquations:
    """The unit blocks of a design; `set_variances` makes the blocks. precision: 'double' or 'single' (float32)."""
    real = np.dtype(np.float32 if precision == "single" else np.float64)
    scalars, first_effect = [], 0
    for number, term in enumerate(design.terms):
        components = [
            (e, t, a)
            for e, effect in enumerate(term.effects)
            for t in effect.traits
            for a in range(effect.n_regressors)
        ]
        scalars += [ScalarEffect(number, c, t, first_effect + e, a) for c, (e, t, a) in enumerate(components)]
        first_effect += len(term.effects)
    return ExplicitEquations(design, real, unit_blocks(design, real), layout(design), tuple(scalars))


# One pass over the values of a block each.


@kernel
def _combine(kappa, position, pattern, sums, prior, by_pattern, out):
    """out = prior K^-1 + sum_p by_pattern[p] U^p."""
    if kappa.size > 0 and prior != 0.0:
        for e in range(np.uint64(out.size)):
            out[e] = prior * kappa[e]
    else:
        out[:] = 0.0
    for m in range(np.uint64(sums.size)):
        out[position[m]] += by_pattern[pattern[m]] * sums[m]


@kernel
def _hold_at_zero(indptr, indices, row_held, column_held, values):
    for row in range(indptr.size - 1):
        for e in range(indptr[row], indptr[row + 1]):
            if row_held[row] or column_held[indices[e]]:
                values[e] = 0.0
