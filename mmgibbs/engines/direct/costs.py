"""Milliseconds and bytes of a factorisation, estimated from counts before anything is built, as in engines/costs.py."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mmgibbs.engines.costs import dense_levels
from mmgibbs.equations.nonzeros import count_nonzeros
from mmgibbs.likelihood.coefficients import Blocks, eliminated
from mmgibbs.models.design import Design

Joined = tuple[tuple[Blocks | None, ...], tuple[Blocks, ...]]  # components that may covary, of terms and of residuals

PER_MILLION_OPERATIONS = 0.165  # of a factorisation by columns
PER_ELEMENT = 5.4e-6  # of L: the lists that C is made of, and the solution
GRADIENT = 1.8  # a selected inverse and its sums, to a factorisation
MAX_FACTOR_EQUATIONS = 100_000  # up to which a factor is looked at: a matter of seconds
MAX_FACTOR_BYTES = 2_000_000_000  # that the factors of all chains may take
LISTED = 100  # bytes of a number that an element of C is a sum of, in the lists and while they are made


@dataclass(frozen=True)
class FactorCost:
    """Cost of L D L' by columns, and of the likelihood that is evaluated with it."""

    elements: int  # of L
    operations: int  # multiplications with additions
    bytes: int  # of each chain; 0 of a bound
    is_bound: bool = False  # without fill: a factor has more elements and operations than that

    @property
    def milliseconds(self) -> float:
        """Milliseconds of an evaluation of log p(y | variances)."""
        return PER_MILLION_OPERATIONS * self.operations / 1e6 + PER_ELEMENT * self.elements

    @property
    def gradient_ms(self) -> float:
        """Milliseconds that its gradient takes beside that."""
        return GRADIENT * self.milliseconds

    def is_too_large(self, chains: int) -> bool:
        """Compare the bytes of so many chains with what they may take."""
        return self.bytes * chains > MAX_FACTOR_BYTES

    @property
    def words(self) -> str:
        """What `auto` says of it."""
        return f"{self.milliseconds:.2g} ms per factorisation ({self.elements:,} elements)"

    @property
    def facts(self) -> dict[str, object]:
        """What run.json has of it."""
        return {
            "elements": self.elements,
            "operations": self.operations,
            "without_fill": self.is_bound,
            "milliseconds_per_factorisation": self.milliseconds,
        }


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
    return FactorCost(elements, elements**2 // n, 0, is_bound=True)


def factor_cost(design: Design, of_terms: Sequence[Blocks | None], of_residuals: Sequence[Blocks]) -> FactorCost:
    """Compute the cost of the factor from the elimination alone; components may covary as in `coefficients`."""
    explicit, known = eliminated(design, of_terms, of_residuals)
    elements = known.nonzeros
    factors = 8 * 5 * elements + 32 * design.n_equations  # pattern by rows and columns, two factors, an inverse
    listed = sum(unit.kappa.size + unit.sums.size for unit in explicit.units.values())
    return FactorCost(elements, known.flops, factors + explicit.bytes + LISTED * listed)


def describe_too_large(design: Design, chains: int) -> str | None:
    """Describe equations whose factor is known to be too large before it is looked at; None: it is not."""
    if design.n_equations > MAX_FACTOR_EQUATIONS:
        return f"{design.n_equations:,} equations, more than {MAX_FACTOR_EQUATIONS:,}"
    levels = dense_levels(design)
    if LISTED * sum(m * m for m in levels) * chains > MAX_FACTOR_BYTES:
        return f"relationships that join all of {sum(levels):,} animals"
    return None
