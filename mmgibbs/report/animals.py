"""animals.parquet: the pedigree in the user's own ids, so that a report can speak of parents and birth years."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl

from mmgibbs.chains.averages import LevelAverages


def animals_file(pedigree) -> dict[str, Callable[[Path], None]]:
    """The file and its writer, for `folder.write_run_folder`; nothing without a pedigree."""
    return {} if pedigree is None else {"animals.parquet": lambda path: animals_frame(pedigree).write_parquet(path)}


def animals_frame(pedigree) -> pl.DataFrame:
    """id, sire, dam (blank: unknown, or a group), birth (as read, or blank), in the order of the pedigree file."""
    order = np.asarray(pedigree.file_order, np.int64)
    n = len(order)

    def parents(codes: np.ndarray) -> pl.Series:
        own = pl.Series(codes[order].astype(np.int64))
        return pedigree.ids.gather(pl.select(pl.when((own >= 0) & (own < n)).then(own)).to_series())

    birth = np.full(n, np.nan) if pedigree.birth is None else pedigree.birth
    return pl.DataFrame(
        {
            "id": pedigree.ids.gather(order),
            "sire": parents(pedigree.sire),
            "dam": parents(pedigree.dam),
            "birth": pl.Series(birth[order], dtype=pl.Float64, nan_to_null=True),
        }
    )


def birth_year_averages(pedigree) -> LevelAverages | None:
    """The animals of each birth year, by pedigree code; None where births are unknown or all of one year."""
    if pedigree is None or pedigree.birth is None:
        return None
    years = birth_years(pl.Series(pedigree.birth, nan_to_null=True))
    labels = years.drop_nulls().unique().sort()
    if len(labels) < 2:
        return None
    group = np.where(years.is_null(), -1, np.searchsorted(labels.to_numpy(), years.fill_null(labels[0]).to_numpy()))
    return LevelAverages.by_group(group, [str(y) for y in labels])


def birth_years(births: pl.Series, most: int = 60) -> pl.Series:
    """Int64: the year of each birth, or the first of several where there would be more than `most`; blank: unknown.

    Births are years, years with a fraction (dates), or numbers like 20110304, whose year is taken.
    """
    number = pl.DataFrame({"birth": births.cast(pl.Float64)})
    long = pl.col("birth").is_between(1e7, 1e8)
    year = number.select(
        pl.when(long).then(pl.col("birth") / 10_000).otherwise(pl.col("birth")).floor().cast(pl.Int64)
    ).to_series()
    if year.null_count() == len(year):
        return year
    span = year.max() - year.min() + 1
    width = -(-span // most) if year.n_unique() > most else 1
    return year if width == 1 else (year - year.min()) // width * width + year.min()
