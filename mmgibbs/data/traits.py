"""Traits, weights and missing patterns of the records.

Traits by environment: the levels of their column, and the records that have each.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import polars as pl

from mmgibbs.config import Analysis, Data, Trait, load_config
from mmgibbs.config.orders import Levels
from mmgibbs.data.alike_levels import describe_alike, describe_unknown
from mmgibbs.data.dropped_records import find_dropped
from mmgibbs.data.levels import natural, order_levels
from mmgibbs.data.missing_codes import written_codes
from mmgibbs.data.phenotypes import MOST, SHOWN, Phenotypes, read_phenotypes, refuse_rows
from mmgibbs.data.responses import no_records_error, read_response, response_columns
from mmgibbs.data.trait_codes import warn_of_trait_codes
from mmgibbs.errors import ConfigError
from mmgibbs.models.families import Response
from mmgibbs.pedigree.messages import ResultWarning
from mmgibbs.pedigree.spelling import find_respelled
from mmgibbs.pedigree.tables import agreeing, counted, format_number, quoted

MAX_RECORDS_OF_SPELLING = 3  # a level with more is an environment, whatever others are called


def load_analysis(source: str | os.PathLike | dict, overrides: Sequence[str] = ()) -> Analysis:
    """Load an analysis as `load_config` does, with the levels of traits by environment from the table of records."""
    return load_config(source, overrides, find_environments)


def find_environments(data: Data, path: str, by: str, columns: Sequence[str], where: Mapping[str, str]) -> Levels:
    """Levels of column `by` with a value in one of these columns, in their order; path: of the trait in the YAML.

    where: column -> the cell that records of the trait have. ConfigError for a level in two spellings.
    """
    phenotypes = read_phenotypes(data, [by, *columns, *where])
    level = phenotypes.text(by, f"{path}.by")
    has_value = np.zeros(len(phenotypes), bool)
    for column in columns:
        has_value |= phenotypes.text(column, path).is_not_null().to_numpy()
    has_value &= ~_outside(where, f"{path}.where", phenotypes)
    of_records = level.filter(pl.Series(has_value)).drop_nulls()
    place = f"column {quoted(by)} ({path}.by)"
    _refuse_respelled(of_records, f"{phenotypes.name}: {place}")
    return order_levels(of_records.unique().to_list(), by, phenotypes.frame[by].dtype, data.order, place)


def _refuse_respelled(level: pl.Series, place: str) -> None:
    """ConfigError where few records have a level that is another one in other letters: each would be a trait."""
    count = dict(level.value_counts().iter_rows())
    often = [name for name, n in count.items() if n > MAX_RECORDS_OF_SPELLING]
    seldom = [name for name in count if name not in often]
    matched = find_respelled(pl.Series(seldom, dtype=pl.String), pl.Series(often, dtype=pl.String))
    if matched.height:
        pairs = ", ".join(
            f"{quoted(text)} ({counted(count[text], 'record')}) beside {quoted(known)}"
            for text, known, _ in matched.iter_rows()
        )
        raise ConfigError(f"{place}: expected each environment in one spelling, got {pairs}; correct the table")


def _outside(where: Mapping[str, str], path: str, phenotypes: Phenotypes) -> np.ndarray:
    """(n,) bool: the record lacks one of these cells."""
    outside = np.zeros(len(phenotypes), bool)
    for column, cell in where.items():
        outside |= ~(phenotypes.text(column, path) == cell).fill_null(False).to_numpy()
    return outside


def _advise(phenotypes: Phenotypes, cells: Sequence[str]) -> str:
    return f"write data.missing: {written_codes((*phenotypes.missing, *cells))}"


def keep_environment(trait: Trait, phenotypes: Phenotypes) -> Phenotypes:
    """Remove the values of the trait from the records that `where` excludes."""
    outside = _outside(trait.where, f"traits.{trait.name}.where", phenotypes)
    return phenotypes.without(outside, [column for column, _ in response_columns(trait)])


def note_records_without_environment(traits: Sequence[Trait], phenotypes: Phenotypes) -> Iterator[str]:
    """Say how many records have the value of a trait, but none of a column that says whose it is; and which levels of
    such a column may be one, or a code for none."""
    for where in dict.fromkeys(column for trait in traits for column in trait.where):
        values = dict.fromkeys(c for t in traits if where in t.where for c, _ in response_columns(t))
        has_value = pl.Series(np.zeros(len(phenotypes), bool))
        for column in values:
            has_value |= phenotypes.text(column, "traits").is_not_null()
        levels = phenotypes.text(where, "traits: where")
        used = levels.filter(has_value)
        for said in (describe_alike(used, where), describe_unknown(used, where, partial(_advise, phenotypes))):
            if said is not None:
                yield ResultWarning(f"{phenotypes.name}: traits: {said}")
        n = used.null_count()
        of_traits = {t.where[where] for t in traits if where in t.where}
        without = sorted(set(levels.drop_nulls()) - of_traits - set(used), key=natural)
        if len(of_traits) > 1 and without:
            names = ", ".join(quoted(level) for level in without[:SHOWN]) + (", ..." if len(without) > SHOWN else "")
            has, of_values = agreeing(len(without), "has"), " and ".join(quoted(column) for column in values)
            level_place = f"{names} in column {quoted(where)}"
            yield f"{phenotypes.name}: {level_place} {has} no value in column {of_values}, and no trait"
        if n:
            names = " and ".join(quoted(column) for column in values)
            yield (
                f"{phenotypes.name}: {counted(n, 'record', 'has')} a value in column {names} and none in column "
                f"{quoted(where)}, and {'belongs' if n == 1 else 'belong'} to no trait"
            )


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
    responses = tuple(read_response(t, i, observable[i]) for i, t in enumerate(traits) if not t.is_normal)
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
        if r.has_unit_residual:  # no centring: the first threshold is 0; the liability has a residual variance of 1
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
