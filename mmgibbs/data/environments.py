"""Traits by environment: the levels of their column, and the records that have each."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import numpy as np
import polars as pl

from mmgibbs.config import Analysis, Data, Trait, load_config
from mmgibbs.config.orders import Levels
from mmgibbs.data.alike_levels import describe_alike, describe_unknown
from mmgibbs.data.level_order import order_levels
from mmgibbs.data.missing_codes import written_codes
from mmgibbs.data.natural_order import natural
from mmgibbs.data.phenotypes import SHOWN, Phenotypes, read_phenotypes
from mmgibbs.data.responses import response_columns
from mmgibbs.errors import ConfigError
from pedigree.messages import ResultWarning
from pedigree.spelling import find_respelled
from pedigree.tables import agreeing, counted, quoted

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
    """The same records with no value of the trait where `where` says that they have none."""
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
