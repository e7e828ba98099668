"""Predicted classes of traits that are not normal, and levels that lie in an end category."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from mmgibbs.posterior.predictive import PredictedClasses

INTERVAL = (2.5, 97.5)  # per cent of the draws


@dataclass(frozen=True)
class ExtremeLevels:
    """Levels of an effect on a trait whose records all lie in the lowest, or all in the highest category."""

    trait: str
    effect: str
    levels: int
    of: int
    first: list[str]  # a few of them by name


def predicted_frame(
    classes: Sequence[PredictedClasses], draws: Sequence[np.ndarray], traits: Sequence[str]
) -> pl.DataFrame:
    """A row for each trait, class and category: observed share, mean and interval of the predicted one.

    draws: (chains, draws, classes x columns) of each. Of counts the category is blank, and shares are means.
    """
    return pl.concat([_frame(of, d, traits[of.trait]) for of, d in zip(classes, draws, strict=True)])


def _frame(of: PredictedClasses, draws: np.ndarray, trait: str) -> pl.DataFrame:
    drawn, k = draws.reshape(-1, draws.shape[-1]), of.columns
    low, high = np.percentile(drawn, INTERVAL, axis=0)
    text = lambda values: pl.Series(values, dtype=pl.String)
    n = len(of.classes)
    return pl.DataFrame(
        {
            "trait": text([trait] * n * k),
            "effect": text([of.effect or None] * n * k),
            "level": text([level for level in of.classes for _ in range(k)]),
            "records": np.repeat(of.sizes, k),
            "category": text([*of.labels] * n if of.labels else [None] * n),
            "observed": of.shares(of.observed).ravel(),
            "predicted": drawn.mean(axis=0),
            "low": low,
            "high": high,
        }
    )
