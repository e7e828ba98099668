"""BLUP at given variances: solutions by PCG, and the errors of them by a selected inverse or by samples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from mmgibbs.build.pev_samples import PevSamples
from mmgibbs.engines.direct.solutions import direct_likelihood
from mmgibbs.engines.direct.standard_errors import affordable_posterior_sd, original_scale_sd, posterior_sd
from mmgibbs.equations.structured import StructuredEquations
from mmgibbs.likelihood.matrices import Variances
from mmgibbs.machine.memory import refuse_beyond_free
from mmgibbs.machine.speed import Lines, Tell, describe_duration, estimate_seconds
from mmgibbs.machine.threads import Threads
from mmgibbs.models.design import Design
from mmgibbs.models.residual import stack_classes

if TYPE_CHECKING:
    from mmgibbs.engines.pcg.prediction_errors import MonteCarloPev
    from mmgibbs.engines.pcg.solver import PcgSolver, Solution


def solve_equations(
    equations: StructuredEquations,
    G: Sequence[np.ndarray | None],
    R: np.ndarray,
    tolerance: float,
    threads: int = 1,
    preconditioner: str = "auto",
    tell: Tell | None = None,
    device: str = "cpu",
) -> Solution:
    """BLUE and BLUP by PCG; tell: called before it begins, and once a minute."""
    if tell is not None:
        tell(f"PCG: solving {equations.n_equations:,} equations, 50 to 500 iterations as a rule")
    solver, lines = _solver(equations, G, R, threads, preconditioner, device), Lines(tell)
    said = lambda n: lines.show(lambda seconds: f"PCG: iteration {n:,}, {seconds / n:.2g} s for each")
    return solver.solve(tolerance, callback=said)


def solve_by_factor(
    design: Design, G: Sequence[np.ndarray | None], R: np.ndarray, tell: Tell | None = None
) -> tuple[list[np.ndarray], list[np.ndarray], dict]:
    """Solutions and their errors, (q, k) per term on the user's scale, by one factor; facts for run.json."""
    likelihood = direct_likelihood(design, G)
    n, n_bytes = design.n_equations, likelihood.bytes
    refuse_beyond_free(n_bytes, f"a sparse factor of {n:,} equations", "a machine with more memory")
    if tell is not None:
        tell(f"BLUP: {likelihood.description}{describe_duration(estimate_seconds(likelihood.operations))}")
    point = likelihood.evaluate(Variances(list(G), stack_classes(R)))
    sd = original_scale_sd(design, point.inverse_diagonal, point.solve_equations)
    return design.to_original_scale(point.solutions), sd, likelihood.facts


def errors_of_solutions(
    equations: StructuredEquations,
    G: Sequence[np.ndarray | None],
    R: np.ndarray,
    pev_limit: int | None,
    threads: int = 1,
    sampled: PevSamples | None = None,
    preconditioner: str = "auto",
    tell: Tell | None = None,
    iterations: int = 0,
    device: str = "cpu",
) -> tuple[list[np.ndarray] | None, str | None, MonteCarloPev | None]:
    """(posterior SD of every level, on the original scale, or None, why it is not computed, and what samples say of
    it).

    It is not computed above `pev_limit` equations, or where that is None where it is estimated to take too long. tell:
    called before each step that may take long; iterations: that the solution took."""
    n = equations.n_equations
    used = equations.bytes + 8 * 8 * sum(t.n_levels * t.n_components for t in equations.design.terms)
    if pev_limit is None:
        sd = affordable_posterior_sd(equations.design, G, R, used, tell)
    elif n > pev_limit:
        sd = f"{n:,} equations are above sampler.pev_limit {pev_limit:,}"
    else:
        sd = posterior_sd(equations.design, G, R, used, tell)
    if not isinstance(sd, str):
        return sd, None, None
    if sampled is None:
        return None, sd, None
    from mmgibbs.engines.pcg.prediction_errors import monte_carlo_pev

    solver = _solver(equations, G, R, threads, preconditioner, device)
    by_samples = monte_carlo_pev(solver, G, R, sampled.diagonals, sampled.samples, sampled.seed, tell, iterations)
    return by_samples.sd, sd, by_samples


def _solver(
    equations: StructuredEquations,
    G: Sequence[np.ndarray | None],
    R: np.ndarray,
    threads: int,
    preconditioner: str,
    device: str,
) -> PcgSolver:
    from mmgibbs.engines.pcg.device_solver import make_solver

    solver = make_solver(equations, Threads(threads), preconditioner, device)
    solver.set_variances(G, R)
    return solver
