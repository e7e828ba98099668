"""Years of birth, from births as herd books write them."""

from __future__ import annotations

import polars as pl


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
    years = year.drop_nulls().to_numpy()
    first, span = int(years.min()), int(years.max() - years.min()) + 1
    width = -(-span // most) if year.n_unique() > most else 1
    return year if width == 1 else (year - first) // width * width + first
