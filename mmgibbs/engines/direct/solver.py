"""Solutions of the mixed-model equations for many right-hand sides at given variances: by one sparse factor, where that
takes less time than iterations for each of them.

Seconds are estimated from counts; the machine has a say only where the factor would not fit into free memory.
Measured on one core, maternal model of 100,000 animals, 202,065 equations: a column takes PCG 0.36 s to an error of
1e-4 posterior standard deviations; the pattern and its order take 2 s, the factor (5.5 million elements, 4.4e9
operations) 1.2 s, a column then 0.01 s.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mmgibbs.engines.direct.standard_errors import MOST_EQUATIONS
from mmgibbs.engines.pcg.solver import PcgSolver
from mmgibbs.errors import DeviceError, ModelError
from mmgibbs.likelihood.cholesky.factor import Factor
from mmgibbs.likelihood.coefficients import Coefficients, joined_coefficients, solve_factor
from mmgibbs.machine.memory import free_bytes
from mmgibbs.models.design import Design

ITERATED = 1.8e-6  # seconds of PCG for a column of an equation
ORDERED = 1.0e-5  # seconds to make and to order the pattern of an equation
FACTORISED = 2.7e-10  # seconds of an operation
SOLVED = 2.0e-9  # seconds of a column for an element of L
WORTH = 1.0  # seconds that it must save: the kernels of a factor are compiled for it, once


@dataclass(frozen=True)
class DirectSolver:
    """C^-1 b by the factor of C. Vectors are in sweep order, as those of PcgSolver."""

    factor: Factor
    places: np.ndarray  # (equations,) int64 the place in sweep order of each equation in force

    def solve(self, b: np.ndarray) -> np.ndarray:
        """C^-1 b, (N, m), 0 for components that are set to 0."""
        out = np.zeros(b.shape)
        out[self.places] = solve_factor(self.factor, b[self.places])
        return out


@dataclass(frozen=True)
class PlannedFactor:
    """A factor that is worth its time: where its elements will stand is known, and what they need in memory."""

    solver: PcgSolver
    known: Coefficients
    G: Sequence[np.ndarray | None]
    R: np.ndarray

    @property
    def bytes(self) -> int:
        """Bytes that are needed to make the factor."""
        return self.known.bytes

    def made(self) -> DirectSolver | None:
        """Make the factor; None where it would not fit into the free memory, or C is nearly singular."""
        if not fit_together(self):
            return None
        try:
            return DirectSolver(self.known.factor(self.G, self.R), _places(self.solver, self.known))
        except ModelError:  # PCG says so if it matters
            return None


def fit_together(*planned: PlannedFactor | None) -> bool:
    """Check whether all of these factors fit into the free memory at once."""
    free = free_bytes()
    return free is None or sum(plan.bytes for plan in planned if plan is not None) <= free


def direct_solver(
    solver: PcgSolver, G: Sequence[np.ndarray | None], R: np.ndarray, columns: int
) -> DirectSolver | None:
    """Plan and make the factor as in `planned_factor`; None as well where it would not fit."""
    planned = planned_factor(solver, G, R, columns)
    return None if planned is None else planned.made()


def may_pay(design: Design, columns: int) -> bool:
    """Check whether a factor may be faster than so many solutions by PCG, and is worth the search for an order."""
    dense = any(t.relationship.dense is not None for t in design.terms)
    return _gained(design, columns) > 0 and design.n_equations <= MOST_EQUATIONS and not dense


def _gained(design: Design, columns: int) -> float:
    """Seconds that a factor and its solutions may take, once there is an order."""
    return columns * ITERATED * design.n_equations - ORDERED * design.n_equations - WORTH


def planned_factor(
    solver: PcgSolver, G: Sequence[np.ndarray | None], R: np.ndarray, columns: int
) -> PlannedFactor | None:
    """Plan the factor of C for a number of right-hand sides; None where PCG is faster.

    solver: of the same equations; G, R: the variances, G None for fixed terms.
    """
    design = solver.equations.design
    if not may_pay(design, columns):
        return None
    try:
        known = joined_coefficients(design, G)
    except DeviceError:
        return None
    seconds = known.symbolic.flops * FACTORISED + columns * known.symbolic.nonzeros * SOLVED
    return None if seconds > _gained(design, columns) else PlannedFactor(solver, known, G, R)


def _places(solver: PcgSolver, known: Coefficients) -> np.ndarray:
    """Find the sweep positions of the equations in force, (equations,) int64."""
    layout = known.explicit.layout
    place = np.empty(layout.size, np.int64)
    swept = solver.split(np.arange(layout.size))
    for of_model, lists, of_sweep in zip(layout.split(place), solver.equations.terms, swept, strict=True):
        of_model[lists.code] = of_sweep
    return place[layout.active]
