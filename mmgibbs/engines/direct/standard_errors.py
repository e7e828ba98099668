"""Posterior standard deviations of all levels from the selected inverse: PEV, and variances of fixed levels."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from mmgibbs.engines.direct.original_scale import original_scale_rows
from mmgibbs.equations.base import layout
from mmgibbs.errors import DeviceError
from mmgibbs.likelihood.cholesky.factor import Factor
from mmgibbs.likelihood.coefficients import Coefficients, joined_coefficients
from mmgibbs.machine.memory import refuse_beyond_free
from mmgibbs.machine.speed import Tell, describe_duration, estimate_seconds
from mmgibbs.models.design import Design

COLUMNS = 64  # right-hand sides at once
MOST_EQUATIONS = 1_000_000  # of which the pattern of a factor is looked for, where nobody says how many
PATTERN_SECONDS = 4e-7  # for each equation, and each element of a dense block: the order of elimination
OPERATIONS_OF_INVERSE = 3.0  # of the factor and the inverse, in those of the factor
MOST_OPERATIONS = 2e11  # of a factorisation: with the inverse some minutes on one core
LARGER_MACHINE = "a machine with more memory"
MONTE_CARLO = "(sampler.pev_samples estimates them by Monte Carlo, each with its standard error)"


def posterior_sd(
    design: Design, G: Sequence[np.ndarray | None], R: np.ndarray, used: int = 0, tell: Tell | None = None
) -> list[np.ndarray]:
    """sqrt(diag(B C^-1 B')) per term, (q, k), where B undoes the scaling of covariates; 0 for components set to 0.

    used: bytes that the solution needs besides. DeviceError where the factor and its inverse would not fit into memory,
    ModelError where C is not positive definite.
    """
    advice = _advise(design)
    matrix = _joined(design, G, advice, tell)
    refuse_beyond_free(used + matrix.bytes, f"inverting {design.n_equations:,} equations for PEV", advice)
    return _inverted(matrix, G, R, tell)


def affordable_posterior_sd(
    design: Design, G: Sequence[np.ndarray | None], R: np.ndarray, used: int = 0, tell: Tell | None = None
) -> list[np.ndarray] | str:
    """Compute the posterior standard deviations where the factor fits and takes minutes at most.

    Otherwise return the reason why it does not. tell: called before each step that may take long.
    """
    n = design.n_equations
    beyond = _describe_excess(design)
    if beyond is not None:
        return beyond
    try:
        matrix = _joined(design, G, LARGER_MACHINE, tell)
    except DeviceError as error:
        return str(error)
    known = matrix.symbolic
    if known.flops > MOST_OPERATIONS:
        return f"a factor of {n:,} equations takes {known.flops:.1e} operations, more than {MOST_OPERATIONS:.0e}"
    try:
        refuse_beyond_free(used + matrix.bytes, f"inverting {n:,} equations", LARGER_MACHINE)
    except DeviceError as error:
        return str(error)
    return _inverted(matrix, G, R, tell)


def _describe_excess(design: Design) -> str | None:
    """Why nothing is tried: known before a pattern of that size is made."""
    n = design.n_equations
    if n > MOST_EQUATIONS:
        return f"{n:,} equations are more than {MOST_EQUATIONS:,}"
    joined = [t.relationship.dense.levels.size for t in design.terms if t.relationship.dense is not None]
    if sum(m**3 for m in joined) / 3 > MOST_OPERATIONS:
        return f"a factor of {max(joined):,} animals that are all related takes over {MOST_OPERATIONS:.0e} operations"
    return None


def count_posterior_sd(design: Design, G: Sequence[np.ndarray | None], pev_limit: int | None) -> int:
    """Bytes of the factor and its inverse; 0 where none is made. pev_limit: up to so many equations; None: where it is
    affordable."""
    if pev_limit is not None:
        matrix = _joined(design, G, _advise(design)) if design.n_equations <= pev_limit else None
        return 0 if matrix is None else matrix.bytes
    if _describe_excess(design) is not None:
        return 0
    try:
        matrix = joined_coefficients(design, G)
    except DeviceError:  # does not fit, and is left out
        return 0
    return matrix.bytes if matrix.symbolic.flops <= MOST_OPERATIONS else 0


def _advise(design: Design) -> str:
    """Advise what to do where the inverse does not fit, though the solutions do."""
    return f"{LARGER_MACHINE}, or sampler.pev_limit below {design.n_equations} (PEV and reliability are then blank)"


def _joined(design: Design, G: Sequence[np.ndarray | None], advice: str, tell: Tell | None = None) -> Coefficients:
    """C with the pattern of its factor; DeviceError with this advice where that does not fit into memory."""
    if tell is not None:
        joined = sum(t.relationship.dense.levels.size**2 for t in design.terms if t.relationship.dense is not None)
        tell(
            f"PEV: looking for the pattern of a factor of {design.n_equations:,} equations"
            f"{describe_duration(PATTERN_SECONDS * (design.n_equations + joined))}"
        )
    return joined_coefficients(design, G, advice=advice)


def _inverted(
    matrix: Coefficients, G: Sequence[np.ndarray | None], R: np.ndarray, tell: Tell | None = None
) -> list[np.ndarray]:
    """Compute the diagonal of the inverse at these variances, (q, k) per term."""
    if tell is not None:
        seconds = estimate_seconds(OPERATIONS_OF_INVERSE * matrix.symbolic.flops)
        tell(f"PEV: inverting {matrix.design.n_equations:,} equations{describe_duration(seconds)}")
    factor = matrix.factor(G, R)
    return sd_of_factor(matrix, factor, matrix.selected_inverse(factor))


def sd_of_factor(matrix: Coefficients, factor: Factor, selected: np.ndarray) -> list[np.ndarray]:
    """`original_scale_sd` from a factor and its selected inverse."""
    return original_scale_sd(matrix.design, matrix.diagonal(selected), factor.solve)


def original_scale_sd(
    design: Design, diagonal: np.ndarray, solve: Callable[[np.ndarray], np.ndarray]
) -> list[np.ndarray]:
    """sqrt(diag(B C^-1 B')) per term, (q, k), where B undoes the scaling of covariates; 0 for components set to 0.

    diagonal: (equations,) of C^-1; solve: b -> C^-1 b, (equations, m). Rows of B that are not of the identity cost a
    solution each.
    """
    places = layout(design)
    active = [np.ascontiguousarray(a) for a in places.split(places.active)]
    variance = np.zeros(places.size)
    variance[places.active] = diagonal
    moved, B = original_scale_rows(design, active)
    for first in range(0, moved.size, COLUMNS):
        rows = B[first : first + COLUMNS].toarray()[:, places.active]
        variance[moved[first : first + COLUMNS]] = np.sum(rows.T * solve(np.ascontiguousarray(rows.T)), axis=0)
    return [np.sqrt(v) for v in places.split(variance)]
