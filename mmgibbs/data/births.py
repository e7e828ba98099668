"""Years of birth, from births as herd books write them."""

from __future__ import annotations

import polars as pl

MAX_BIRTH_YEARS = 60  # of a trend


def birth_years(births: pl.Series) -> pl.Series:
    """Int64: the year of each birth, null where it is unknown.

    Births are years, years with a fraction (dates), or numbers like 20110304, whose year is taken.
    """
    number = pl.DataFrame({"birth": births.cast(pl.Float64)})
    as_date = pl.col("birth").is_between(1e7, 1e8)
    year = pl.when(as_date).then(pl.col("birth") / 10_000).otherwise(pl.col("birth")).floor().cast(pl.Int64)
    return number.select(year).to_series()


def group_years(years: pl.Series, max_groups: int = MAX_BIRTH_YEARS) -> pl.Series:
    """Int64: each year, or the first of several where there would be more than `max_groups`."""
    if years.null_count() == len(years) or years.n_unique() <= max_groups:
        return years
    known = years.drop_nulls().to_numpy()
    first, span = int(known.min()), int(known.max() - known.min()) + 1
    width = -(-span // max_groups)
    return years if width == 1 else (years - first) // width * width + first
