"""Reliabilities of breeding values, and how many of them are negative: one rule for tables, messages and pages.

    reliability = 1 - PEV / prior variance

What rounding leaves below 0 is 0. A reliability that Monte Carlo error or an uncertain variance makes negative is
reported as it is, and warned of where it would be shown as negative.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl

from mmgibbs.results.relationships import describe_relationships

ROUNDING = 1e-6  # of a reliability of 0 that was computed, not drawn
SHOWN_AS_NEGATIVE = -0.005  # with two decimals


def reliabilities(pev: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """(n,) 1 - PEV / prior, 0 for what rounding leaves below it; NaN where the prior variance is 0 or unknown."""
    with np.errstate(divide="ignore", invalid="ignore"):
        values = np.where(prior > 0, 1 - pev / prior, np.nan)
    return np.where((values < 0) & (values > -ROUNDING), 0.0, values)


def count_negative(values: pl.Series) -> dict | None:
    """{negative, of, lowest} of reliabilities, or None where none would be shown as negative."""
    known = values.drop_nulls()
    if not len(known) or known.min() > SHOWN_AS_NEGATIVE:  # type: ignore[operator]
        return None
    return {"negative": int((known < -ROUNDING).sum()), "of": len(known), "lowest": known.min()}


def negative_reliabilities(solutions: pl.DataFrame | None, record: Mapping) -> dict | None:
    """The same of a run: of breeding values, polygenic, genomic and in total."""
    if solutions is None or "reliability" not in solutions.columns:
        return None
    related = [term for term, kind in describe_relationships(record).items() if kind["related"]]
    is_value = pl.col("term").is_in(related) | pl.col("effect").is_in(["gebv", "total"])
    return count_negative(solutions.lazy().filter(is_value).select("reliability").collect().to_series())
