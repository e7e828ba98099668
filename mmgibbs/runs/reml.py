"""Estimates by REML as parameters with names and standard errors; the iteration watched, kept, and ended by signals."""

from __future__ import annotations

import signal
import time
from contextlib import suppress

import numpy as np

from mmgibbs.build.assemble import Assembled
from mmgibbs.likelihood.base import LikelihoodPoint, Source
from mmgibbs.likelihood.matrices import Variances
from mmgibbs.machine.speed import Tell, describe_duration, estimate_seconds
from mmgibbs.posterior.diagnostics import COLUMNS
from mmgibbs.posterior.draw_names import (
    RESIDUAL,
    matrix_name,
    relationship_name,
    residual_correlation_name,
    structure_name,
)
from mmgibbs.posterior.parameters import NamedParameters, named_parameters
from mmgibbs.reml.boundary import FLOOR
from mmgibbs.reml.estimate import Estimates
from mmgibbs.runs.place import RESUMED, RunFolder

STEP = 1e-6  # of the unit of an element: central differences of functions of the matrices
NO_ERROR = 1e-6  # of what the elements' units would give


def matrices_by_name(variances: list[Variances], classes: bool) -> dict[str, np.ndarray]:
    """(1, places, ...) of each covariance matrix, as parameters are made of."""
    first = variances[0]
    out = {
        matrix_name(i): np.stack([v.G[i] for v in variances])[None]  # type: ignore[misc]
        for i, g in enumerate(first.G)
        if g is not None
    }
    R = np.stack([v.R for v in variances])
    return out | {RESIDUAL: (R if classes else R[:, 0])[None]}


def estimates_table(estimates: Estimates, assembled: Assembled) -> dict[str, np.ndarray]:
    """The columns of a summary: estimates as mean, standard errors as sd, Monte Carlo errors as mcse, the rest NaN.

    Standard errors by the delta method, se(f) = sqrt(J V J') with J = df/dpsi; NaN where the boundary or the data leave
    none: on the boundary a variance is FLOOR units, and what is proportional to it has FLOOR times the error of the
    others.
    """
    named = _named(estimates, assembled, [estimates.vector])
    J = _jacobian(estimates, assembled)
    reach = np.abs(J) @ estimates.elements.scale
    errors = np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", J, estimates.covariance, J), 0.0))
    unknown = (
        np.abs((J * estimates.elements.scale) @ estimates.undetermined).max(axis=1, initial=0.0) > NO_ERROR * reach
    )
    if estimates.at_bound is not None:  # what such a parameter moves by more than its error has none
        unknown |= np.abs(J * estimates.elements.scale)[:, estimates.at_bound].max(axis=1, initial=0.0) > errors
    none = FLOOR if estimates.on_boundary else NO_ERROR
    errors = np.where(unknown | (errors <= none * reach), np.nan, errors)
    errors_of_correlations = _correlation_errors(estimates, assembled)
    errors = np.array(
        [errors_of_correlations.get(name, error) for name, error in zip(named.draws, errors, strict=True)]
    )
    for i, name in enumerate(named.draws):
        if named.functions.get(name, frozenset()) & errors_of_correlations.keys():
            errors[i] = np.nan  # J is that of the covariance matrices alone
    held = np.array([name in named.fixed for name in named.draws])
    table = {name: np.full(len(held), np.nan) for name in COLUMNS}
    table["mean"] = np.array([float(draws[0, 0]) for draws in named.draws.values()])
    table["sd"] = np.where(held, 0.0, errors)
    if estimates.monte_carlo is not None:
        of_monte_carlo = np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", J, estimates.monte_carlo, J), 0.0))
        table["mcse"] = np.where(held | np.isnan(errors), np.nan, of_monte_carlo)
    return {"parameter": np.array(list(named.draws), dtype=object)} | table


def _jacobian(estimates: Estimates, assembled: Assembled) -> np.ndarray:
    """(parameters, p) by central differences."""
    vector, scale, p = estimates.vector, estimates.elements.scale, len(estimates.elements)
    places = []
    for sign in (1.0, -1.0):
        for n in range(p):
            moved = vector.copy()
            moved[n] += sign * STEP * scale[n]
            places.append(moved)
    values = np.array([draws[0] for draws in _named(estimates, assembled, places).draws.values()])
    return (values[:, :p] - values[:, p:]) / (2 * STEP * scale)


def _named(estimates: Estimates, assembled: Assembled, places: list[np.ndarray]) -> NamedParameters:
    """Parameters at several vectors of what is estimated."""
    draws = draws_by_name(estimates, places, bool(assembled.model.residual.classes))
    return named_parameters(assembled.terms, draws, assembled.residual)


def draws_by_name(estimates: Estimates, places: list[np.ndarray], classes: bool) -> dict[str, np.ndarray]:
    """(1, places, ...) of each covariance matrix, and of the parameters of its structure and relationship."""
    elements = estimates.elements
    out = matrices_by_name([elements.variances(place, estimates.variances) for place in places], classes)
    for term in elements.structure_parameters(places[0]):
        out[structure_name(term)] = np.stack([elements.structure_parameters(place)[term] for place in places])[None]
    return out | correlations_by_name(estimates, len(places))


def correlations_by_name(estimates: Estimates, n: int = 1) -> dict[str, np.ndarray]:
    """(1, n, P) parameters of each relationship that was estimated, n times."""
    if estimates.correlations is None:
        return {}
    return {
        _name_of_source(source): np.tile(values, (1, n, 1))
        for source, values in estimates.correlations.group_values().items()
    }


def _name_of_source(source: Source) -> str:
    if source.term is not None:
        return relationship_name(source.term)
    assert source.group is not None, "a parameter is of one or the other"
    return residual_correlation_name(source.group)


def _correlation_errors(estimates: Estimates, assembled: Assembled) -> dict[str, float]:
    """Name of an estimated parameter of a relationship -> its standard error, NaN where it has none."""
    correlations = estimates.correlations
    if correlations is None:
        return {}
    errors = np.sqrt(np.diag(correlations.covariance)).tolist()
    return dict(zip(correlations.labels(assembled.model.design), errors, strict=True))


# ------------------------------------------------------------------------------------------------ the iteration

STATE = "reml"  # name of the checkpoint
CHECKPOINT_SECONDS = 1.0  # at least, between two of them
SLOW_STEP_SECONDS = 1800.0  # from which REML by Monte Carlo is worth trying


class RemlWatch:
    """Says each iteration, keeps its variances for a run that is continued, and ends the iteration at a signal."""

    def __init__(self, folder: RunFolder, tell: Tell | None):
        self._folder, self._tell, self._is_asked_to_stop = folder, tell, False
        self.start: Variances | None = None
        self.correlations: np.ndarray | None = None
        self._before = 0  # iterations of the run that is continued
        self._written = -CHECKPOINT_SECONDS  # when the state was kept last
        if folder.kind == RESUMED and folder.checkpoints is not None:
            state, _ = folder.checkpoints.read(STATE)
            if state is not None:
                n = int(state.arrays["terms"])
                G = [state.arrays.get(f"G.{i}") for i in range(n)]
                self.start, self._before = Variances(G, state.arrays["R"]), int(state.facts["sweep"])
                self.correlations = state.arrays.get("correlations")

    def ask_to_stop(self) -> None:
        self._is_asked_to_stop = True

    def begin(self, description: str, operations: float, step: str) -> None:
        """Begin the watch before the first iteration; operations: of what the step is."""
        if self._tell is not None:
            duration = describe_duration(estimate_seconds(operations))
            self._tell(f"REML: {description}{duration}{f' {step}' if duration else ''}")
            if estimate_seconds(operations) > SLOW_STEP_SECONDS:
                self._tell("REML: sampler.engine: pcg estimates by Monte Carlo, which is faster for so many equations")

    def __call__(self, iteration: int, point: LikelihoodPoint, distance: float) -> bool:
        """Return True to stop, after each iteration."""
        number = self._before + iteration
        if self._tell is not None:
            self._tell(
                f"REML: iteration {number}, log likelihood {point.log_likelihood:.4f}, about {distance:.1e} standard "
                "errors from the maximum"
            )
        now = time.monotonic()
        is_due = now - self._written >= CHECKPOINT_SECONDS or self._is_asked_to_stop
        if self._folder.checkpoints is not None and is_due:
            self._written = now
            at = point.variances
            arrays = {f"G.{i}": g for i, g in enumerate(at.G) if g is not None}
            with suppress(OSError):  # a full disk does not end the iteration
                arrays |= {"R": at.R, "terms": np.array(len(at.G))}
                arrays |= {} if self.correlations is None else {"correlations": self.correlations}
                self._folder.checkpoints.write(STATE, arrays, {"sweep": number, "engine": None})
        return self._is_asked_to_stop


def stopped_words(number: int, estimates: Estimates) -> str:
    """Describe an estimate whose iteration a signal ended."""
    distance, criteria = estimates.facts["distance_to_maximum"], estimates.criteria
    assert criteria is not None, "exact REML has a likelihood"
    return (
        f"REML was stopped by {signal.Signals(number).name} at a log likelihood of "
        f"{criteria.log_likelihood:.4f}: estimates and solutions are those of the best point so far, about "
        f"{distance:.1e} standard errors from the maximum"
    )
