"""Milliseconds that a sweep or a factorisation takes, estimated from counts before anything is built.

Straight lines through what was measured on one core, mostly within a third of it (`python -m benchmarks choice`
measures them anew; the table "Which engine" of the measured figures is beside it). They are made of counts alone, so
that they are the same on every machine, and so is an engine that is chosen by them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mmgibbs.equations.nonzeros import count_nonzeros
from mmgibbs.equations.partition import count_blocks_by_colour
from mmgibbs.likelihood.coefficients import Blocks, eliminated
from mmgibbs.models.design import Design


@dataclass(frozen=True)
class SweepCounts:
    """Counts that the time of a sweep of location effects and variances depends on."""

    sampled: int  # random terms whose covariance matrix is drawn
    blocks: int  # of the partition by colours
    visited: int  # components of the levels that records meet, record by record
    levels: int
    equations: int
    dense: int  # levels that dense blocks of K^-1 join
    dense_elements: int


@dataclass(frozen=True)
class SweepCost:
    """Milliseconds for each of the counts."""

    fixed: float
    sampled: float
    block: float
    visited: float
    level: float
    equation: float
    dense: float = 1e-3
    dense_element: float = 3e-7

    def milliseconds(self, counts: SweepCounts) -> float:
        return (
            self.fixed
            + self.sampled * counts.sampled
            + self.block * counts.blocks
            + self.visited * counts.visited
            + self.level * counts.levels
            + self.equation * counts.equations
            + self.dense * counts.dense
            + self.dense_element * counts.dense_elements
        )


SWEEPS = {
    "serial": SweepCost(0.058, 0.083, 0.0, 5.0e-6, 0.9e-5, 3.5e-5),
    "structured": SweepCost(0.057, 0.138, 0.0053, 2.6e-6, 1.5e-5, 0.5e-5),
}
PER_MILLION_OPERATIONS = 0.165  # of a factorisation by columns
PER_ELEMENT = 5.4e-6  # of L: the lists that C is made of, and the solution
GRADIENT = 1.8  # a selected inverse and its sums, to a factorisation


def dense_levels(design: Design) -> list[int]:
    """List the number of levels of each dense block of K^-1."""
    return [t.relationship.dense.levels.size for t in design.terms if t.relationship.dense is not None]


def sweep_counts(design: Design, sampled: int) -> SweepCounts:
    """Count the work of a sweep of a design in which `sampled` covariance matrices of effects are drawn."""
    terms = design.terms
    met = [(int(np.count_nonzero(e.level >= 0)), t.n_components) for t in terms for e in t.effects]
    dense = dense_levels(design)
    return SweepCounts(
        sampled,
        count_blocks_by_colour(design),
        sum(n * k for n, k in met),
        sum(t.n_levels for t in terms),
        design.n_equations,
        sum(dense),
        sum(m * m for m in dense),
    )


@dataclass(frozen=True)
class FactorCost:
    """Cost of L D L' by columns, and of the likelihood that is evaluated with it."""

    elements: int  # of L
    operations: int  # multiplications with additions
    bytes: int  # of engine `marginal` in each chain

    @property
    def milliseconds(self) -> float:
        """Milliseconds of an evaluation of log p(y | variances)."""
        return PER_MILLION_OPERATIONS * self.operations / 1e6 + PER_ELEMENT * self.elements

    @property
    def gradient_ms(self) -> float:
        """Milliseconds that its gradient takes beside that."""
        return GRADIENT * self.milliseconds


LISTED = 100  # bytes of a number that an element of C is a sum of, in the lists and while they are made


def least_cost(design: Design, of_terms: Sequence[Blocks | None], of_residuals: Sequence[Blocks]) -> FactorCost:
    """Return a lower bound of `factor_cost` that needs no elimination.

    L has the elements of the lower triangle of C, and fill, and the squares of n lengths that add up to m are at least
    m^2 / n. Where components of a term, or traits recorded together, are kept apart, C has fewer elements than are
    counted: then the bound is that of its diagonal alone. Bytes are not counted, 0.
    """
    n = elements = design.n_equations
    observed = [np.flatnonzero(pattern) for pattern in design.patterns]
    together = [
        any(set(traits.tolist()) <= set(block) for block in of_residuals[number])
        for traits, number in zip(observed, design.class_of_pattern, strict=True)
    ]
    if all(together) and all(blocks is None or len(blocks) == 1 for blocks in of_terms):
        elements = (count_nonzeros(design)[0] + n) // 2
    return FactorCost(elements, elements**2 // n, 0)


def factor_cost(design: Design, of_terms: Sequence[Blocks | None], of_residuals: Sequence[Blocks]) -> FactorCost:
    """Compute the cost of the factor from the elimination alone; components may covary as in `coefficients`."""
    explicit, known = eliminated(design, of_terms, of_residuals)
    elements = known.nonzeros
    factors = 8 * 5 * elements + 32 * design.n_equations  # pattern by rows and columns, two factors, an inverse
    listed = sum(unit.kappa.size + unit.sums.size for unit in explicit.units.values())
    return FactorCost(elements, known.flops, factors + explicit.bytes + LISTED * listed)
