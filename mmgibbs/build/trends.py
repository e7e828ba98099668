"""The mean of each birth year, kept in every draw: the genetic trend with its uncertainty."""

from __future__ import annotations

import numpy as np
import polars as pl

from mmgibbs.data.dates import group_years
from mmgibbs.pedigree.read import Pedigree
from mmgibbs.posterior.averages import LevelAverages

MAX_SHARE_UNKNOWN = 0.1  # of the parents of the animals of late birth years


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


def trend_notes(pedigree: Pedigree | None, birth_years: pl.Series | None) -> list[str]:
    """Say where unknown parents of late birth years draw a trend towards 0: nothing where few are, or with groups.

    An unknown parent is an animal of the base population, whose mean is 0, in whatever year its progeny are born.
    """
    if pedigree is None or birth_years is None or pedigree.groups or birth_years.null_count() == len(birth_years):
        return []
    first, last = int(birth_years.min()), int(birth_years.max())  # type: ignore[arg-type]
    is_late = (birth_years > (first + last) / 2).fill_null(False).to_numpy()
    if first == last:
        return []
    share = float(np.mean([pedigree.sire[is_late] < 0, pedigree.dam[is_late] < 0]))
    if share <= MAX_SHARE_UNKNOWN:
        return []
    return [
        f"{100 * share:.0f} % of the parents of animals born after {(first + last) // 2} are unknown. They count as "
        "animals of the base population, which draws a genetic trend towards 0; groups of unknown parents "
        "(data.groups) say where they come from"
    ]
