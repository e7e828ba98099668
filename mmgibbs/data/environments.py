"""Traits by environment: the levels of their column, and the records that have each."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl

from mmgibbs.config import Analysis, Data, Trait, load_config
from mmgibbs.data.natural_order import natural
from mmgibbs.data.phenotypes import Phenotypes, read_phenotypes
from mmgibbs.data.responses import response_columns
from pedigree.tables import counted, quoted


def load_analysis(source: str | os.PathLike | dict, overrides: Sequence[str] = ()) -> Analysis:
    """Load an analysis as `load_config` does, with the levels of traits by environment from the table of records."""
    return load_config(source, overrides, find_environments)


def find_environments(data: Data, path: str, by: str, columns: Sequence[str]) -> list[str]:
    """Levels of column `by` with a value in one of these columns, in natural order; path: of the trait in the YAML."""
    phenotypes = read_phenotypes(data, [by, *columns])
    level = phenotypes.text(by, f"{path}.by")
    has_value = np.zeros(len(phenotypes), bool)
    for column in columns:
        has_value |= phenotypes.text(column, path).is_not_null().to_numpy()
    return sorted(level.filter(pl.Series(has_value)).drop_nulls().unique(), key=natural)


def without_other_environments(trait: Trait, phenotypes: Phenotypes) -> Phenotypes:
    """The same records with no value of the trait where `where` says that they have none."""
    outside = np.zeros(len(phenotypes), bool)
    for column, cell in trait.where.items():
        in_level = phenotypes.text(column, f"traits.{trait.name}.where") == cell
        outside |= ~in_level.fill_null(False).to_numpy()
    return phenotypes.without(outside, [column for column, _ in response_columns(trait)])


def note_records_without_environment(traits: Sequence[Trait], phenotypes: Phenotypes) -> Iterator[str]:
    """Say how many records have the value of a trait, but none of a column that says whose it is."""
    for where in dict.fromkeys(column for trait in traits for column in trait.where):
        lacking = phenotypes.text(where, "traits: where").is_null()
        values = dict.fromkeys(c for t in traits if where in t.where for c, _ in response_columns(t))
        has_value = pl.Series(np.zeros(len(phenotypes), bool))
        for column in values:
            has_value |= phenotypes.text(column, "traits").is_not_null()
        n = int((lacking & has_value).sum())
        if n:
            names = " and ".join(quoted(column) for column in values)
            yield (
                f"{phenotypes.name}: {counted(n, 'record', 'has')} a value in column {names} and none in column "
                f"{quoted(where)}, and {'belongs' if n == 1 else 'belong'} to no trait"
            )
