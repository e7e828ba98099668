"""Rows of the phenotypes that are the same as an earlier one: pasted or joined twice, each would count as a record.

Two records of one animal may be equal by chance, as scores often are. Rows are named only where chance can hardly
explain them. Of the pairs of rows that are equal in all columns but those of measurements (traits, and numbers that are
not whole), a share

    c = pairs that are equal in the measurements / all pairs

would be equal in these too were they drawn at random; records of one animal resemble each other, so that _ALIKE c is
allowed for. What is expected so must be a small part, _BY_CHANCE, of what is found. A measurement that all records of
an animal have in common, as its birth weight, is no chance and counts among the other columns. Whole numbers alone say
nothing: scores, counts and numbers of respondents are often equal.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from mmgibbs.config import Analysis
from mmgibbs.data.phenotypes import SHOWN, Phenotypes, read_phenotypes
from mmgibbs.data.responses import response_columns
from pedigree.tables import counted

_ALIKE, _BY_CHANCE = 10.0, 0.1


def warn_of_doubles(analysis: Analysis, phenotypes: Phenotypes) -> tuple[str, ...]:
    """A warning where records are the same as earlier ones in every column of the table. phenotypes: with a trait."""
    of_traits = {c for trait in analysis.traits for c, _ in response_columns(trait)}
    read = _comparable(phenotypes.frame)  # the columns that the analysis uses
    if (
        not any(_has_fractions(read[c]) for c in of_traits.intersection(read.columns))
        or not _same_as_earlier(read).any()
    ):
        return ()
    table = _every_column(analysis, phenotypes)
    again = _same_as_earlier(table)
    if not again.any():
        return ()
    measured = [c for c in table.columns if _has_fractions(table[c])]
    values = [c for c in table.columns if c in of_traits or c in measured]
    keys = [c for c in table.columns if c not in values]
    values = _varying_columns(table.filter(~again), keys, values) if keys else values
    keys = [c for c in table.columns if c not in values]
    if not keys or not any(_has_fractions(table[c].filter(again)) for c in of_traits.intersection(measured, values)):
        return ()
    share = _pairs(table, values) / (table.height * (table.height - 1) / 2)
    if _ALIKE * share * _pairs(table, keys) > _BY_CHANCE * _pairs(table, table.columns):
        return ()
    rows = phenotypes.rows[again.to_numpy()]
    shown = ", ".join(str(row) for row in rows[:SHOWN]) + (", ..." if len(rows) > SHOWN else "")
    return (
        f"{phenotypes.name}: {counted(len(rows), 'row', 'is')} the same as an earlier one in every column (row"
        f"{'' if len(rows) == 1 else 's'} {shown}): entered twice? Each counts as a record",
    )


def _same_as_earlier(frame: pl.DataFrame) -> pl.Series:
    """(n,) Boolean. Only rows of equal hashes are compared: to compare all of them takes 200 bytes a row."""
    out, hashes = np.zeros(frame.height, bool), frame.hash_rows()
    if hashes.n_unique() < frame.height:
        alike = hashes.is_duplicated().arg_true()
        earlier = frame[alike].select(pl.struct(pl.all()).is_first_distinct()).to_series()
        out[alike.filter(~earlier)] = True
    return pl.Series(out)


def _every_column(analysis: Analysis, phenotypes: Phenotypes) -> pl.DataFrame:
    """The same records with all columns of the table, of which an analysis reads those that it uses."""
    every = phenotypes.table or read_phenotypes(analysis.data)
    return _comparable(every.frame.filter(pl.Series(np.isin(every.rows, phenotypes.rows))))


def _comparable(frame: pl.DataFrame) -> pl.DataFrame:
    uncomparable = (pl.Binary, pl.Object, pl.Duration, pl.Null)
    return frame.select(c for c in frame.iter_columns() if not c.dtype.is_nested() and c.dtype not in uncomparable)


def _has_fractions(cells: pl.Series) -> bool:
    """Some are numbers, and not whole."""
    text = cells.cast(pl.String).str.strip_chars().str.replace(",", ".", literal=True)
    numbers = text.cast(pl.Float64, strict=False)
    return bool((numbers.is_finite() & (numbers % 1 != 0)).any())  # 'NaN' and 'inf' are none


def _varying_columns(distinct: pl.DataFrame, keys: list[str], values: list[str]) -> list[str]:
    """Those of `values` of which rows of equal keys have several; all, where no distinct rows have equal keys."""
    n = distinct.n_unique(keys)
    if n == distinct.height:
        return values
    return [c for c in values if distinct.n_unique([*keys, c]) > n]


def _pairs(frame: pl.DataFrame, columns: Sequence[str]) -> float:
    """Pairs of rows that are equal in these columns."""
    size = frame.group_by(columns).len()["len"].cast(pl.Float64)
    return float((size * (size - 1)).sum()) / 2
