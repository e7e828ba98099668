"""Traits, weights and missing patterns of the records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mmgibbs.config import Analysis
from mmgibbs.data.dropped_records import find_dropped
from mmgibbs.data.environments import keep_environment, note_records_without_environment
from mmgibbs.data.phenotypes import MOST, SHOWN, Phenotypes, refuse_rows
from mmgibbs.data.responses import no_records_error, read_response, response_columns
from mmgibbs.data.trait_codes import warn_of_trait_codes
from mmgibbs.models.response import Response
from pedigree.messages import ResultWarning
from pedigree.tables import format_number


@dataclass(frozen=True)
class Records:
    """The records that observe a trait."""

    phenotypes: Phenotypes
    y: np.ndarray  # (n, T) float64, NaN where not observed
    observed: np.ndarray  # (n, T) bool
    weight: np.ndarray  # (n,) float64
    mean: np.ndarray  # (T,) float64
    variance: np.ndarray  # (T,) float64, of the sample; 0 where a trait has one record
    n_read: int
    notes: tuple[str, ...]
    responses: tuple[Response, ...] = ()  # of the traits that are not normal
    warnings: tuple[str, ...] = ()  # values that may mean missing ones


def read_records(analysis: Analysis, phenotypes: Phenotypes) -> Records:
    """Traits as numbers; a record without any is left out and counted.

    DataError: no number, a trait without records, a weight that is not positive.
    """
    traits = analysis.traits
    dropped, notes = find_dropped(analysis, phenotypes)
    observable = [
        phenotypes.without(dropped[t.name], [column for column, _ in response_columns(t)])
        if t.name in dropped
        else phenotypes
        for t in traits
    ]
    observable = [keep_environment(t, table) if t.where else table for t, table in zip(traits, observable, strict=True)]
    notes += note_records_without_environment(traits, phenotypes)
    responses = tuple(read_response(t, i, observable[i]) for i, t in enumerate(traits) if t.type != "normal")
    liabilities = {r.trait: r.start() for r in responses}  # NaN where the record lacks the trait
    y = np.stack(
        [
            liabilities[i] if i in liabilities else observable[i].numbers(t.column, f"traits.{t.name}", t.missing)
            for i, t in enumerate(traits)
        ],
        axis=1,
    )
    warnings = warn_of_trait_codes(traits, y, responses, phenotypes)
    used = ~np.isnan(y).all(axis=1)
    n_read = len(y)
    for i, trait in enumerate(traits):
        if np.isnan(y[:, i]).all():
            raise no_records_error(trait, phenotypes)
    if not used.all():
        notes.append(f"{np.count_nonzero(~used):,} of {n_read:,} records left out: no observed trait")
        phenotypes, y = phenotypes.keep(used), y[used]
        responses = tuple(r.keep(used) for r in responses)
    observed = ~np.isnan(y)
    count = observed.sum(axis=0)
    mean = np.nansum(y, axis=0) / count
    # What rounding leaves of a constant less its mean is no variance.
    constant = np.nanmax(y, axis=0) == np.nanmin(y, axis=0)
    variance = np.where(constant, 0.0, np.nansum((y - mean) ** 2, axis=0) / np.maximum(count - 1, 1))
    for r in responses:
        if r.unit_residual:  # no centring: the first threshold is 0; the liability has a residual variance of 1
            mean[r.trait], variance[r.trait], constant[r.trait] = 0.0, 2.0, False
    for i in np.flatnonzero(constant).tolist():
        notes.append(
            ResultWarning(
                f"trait '{traits[i].name}' does not vary: every one of its {count[i]} records is "
                f"{format_number(mean[i])}"
            )
        )
    weight = _weights(analysis, phenotypes)
    return Records(phenotypes, y, observed, weight, mean, variance, n_read, tuple(notes), responses, warnings)


def observing(observed: np.ndarray, traits: Sequence[int]) -> np.ndarray:
    """(n,) bool: the record observes one of the traits."""
    return np.logical_or.reduce(observed[:, list(traits)], axis=1)


def _weights(analysis: Analysis, phenotypes: Phenotypes) -> np.ndarray:
    column = analysis.data.weights
    if column is None:
        return np.ones(len(phenotypes))
    weight = phenotypes.numbers(column, "data.weights")
    wrong = np.flatnonzero(~(weight >= 1 / MOST))
    if len(wrong):
        problems = ["no weight" if np.isnan(weight[i]) else f"the weight {weight[i]:g}" for i in wrong[:SHOWN]]
        raise refuse_rows(
            phenotypes.name,
            phenotypes.rows[wrong],
            [f"found {f} in column '{column}' (data.weights)" for f in problems],
            f"a positive weight, from {1 / MOST:g} to {MOST:g}" if np.any(weight[wrong] > 0) else "a positive weight",
        )
    return weight


def missing_patterns(observed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(pattern (n,) int32, patterns (p, T) bool): the distinct sets of observed traits, the most complete first."""
    T = observed.shape[1]
    if T > 62:
        patterns, pattern = np.unique(observed, axis=0, return_inverse=True)
    else:
        values, pattern = np.unique(observed @ (1 << np.arange(T, dtype=np.int64)), return_inverse=True)
        patterns = (values[:, None] >> np.arange(T)) & 1 == 1
    order = np.argsort(-patterns.sum(axis=1), kind="stable")
    return np.argsort(order)[pattern.ravel()].astype(np.int32), patterns[order]
