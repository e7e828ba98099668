"""Milliseconds that a sweep takes, estimated from counts before anything is built.

Straight lines through what was measured on one core, mostly within a third of it (`python -m benchmarks choice`
measures them anew; the table "Which engine" of the measured figures is beside it). They are made of counts alone, so
that they are the same on every machine, and so is an engine that is chosen by them. The lines of each engine are in its
class.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mmgibbs.equations.partition import count_blocks_by_colour
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
