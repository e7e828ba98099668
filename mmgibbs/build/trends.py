"""The mean of each birth year, kept in every draw: the genetic trend with its uncertainty."""

from __future__ import annotations

import numpy as np
import polars as pl

from mmgibbs.data.births import birth_years
from mmgibbs.posterior.averages import LevelAverages
from pedigree.read import Pedigree


def birth_year_averages(pedigree: Pedigree | None) -> LevelAverages | None:
    """The animals of each birth year, by pedigree code; None where births are unknown or all of one year."""
    if pedigree is None or pedigree.birth is None:
        return None
    years = birth_years(pl.Series(pedigree.birth, nan_to_null=True))
    labels = years.drop_nulls().unique().sort()
    if len(labels) < 2:
        return None
    group = np.where(years.is_null(), -1, np.searchsorted(labels.to_numpy(), years.fill_null(labels[0]).to_numpy()))
    return LevelAverages.by_group(group, [str(y) for y in labels])
