"""The mean of each birth year, kept in every draw: the genetic trend with its uncertainty."""

from __future__ import annotations

import numpy as np
import polars as pl

from mmgibbs.data.dates import group_years
from mmgibbs.posterior.averages import LevelAverages


def birth_year_averages(birth_years: pl.Series | None) -> LevelAverages | None:
    """The animals of each birth year, by pedigree code; None where births are unknown or all of one year."""
    if birth_years is None:
        return None
    years = group_years(birth_years)
    labels = years.drop_nulls().unique().sort()
    if len(labels) < 2:
        return None
    group = np.where(years.is_null(), -1, np.searchsorted(labels.to_numpy(), years.fill_null(labels[0]).to_numpy()))
    return LevelAverages.by_group(group, [str(y) for y in labels])
