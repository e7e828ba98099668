"""What a validation finds, as tables: statistics, predictions, and how they were made."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import polars as pl

OVER_FOLDS, FROM_MODEL, FROM_SIMULATION, FROM_FAMILIES = "folds", "model", "simulation", "bootstrap of families"
FROM_DRAWS = "draws"
FOLDS_TEXT = (
    "standard deviation over folds divided by the root of their number; approximate, as folds share training data"
)
SCHEMA = dict.fromkeys(("method", "term", "effect", "trait", "statistic"), pl.String) | {
    "estimate": pl.Float64, "se": pl.Float64, "expected": pl.Float64, "se_from": pl.String, "n": pl.Int64,
}  # fmt: skip


class Named(Protocol):
    """What a prediction is called by."""

    @property
    def term(self) -> str: ...

    @property
    def effect(self) -> str: ...


@dataclass(frozen=True)
class Validation:
    """What was found."""

    # method, term, effect, trait, statistic, estimate, se, expected, se_from, n: animals (lr) or records (kfold, of the
    # folds that have the statistic)
    table: pl.DataFrame
    # method, term, effect, trait, fold, animal, row, predicted, observed: corrected record, or whole data (lr)
    predictions: pl.DataFrame
    info: dict
    directory: Path | None = None
    head: dict[str, Any] = field(default_factory=dict)  # of the page, see validated.head_of

    def as_text(self) -> str:
        """The table for people to read."""
        from mmgibbs.report.terminal import table_as_text

        return table_as_text(self.table, "estimate", "se")


def statistics_frame(rows: list[tuple]) -> pl.DataFrame:
    """Rows in the order of SCHEMA."""
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def predictions_frame(
    method: str,
    of: Named,
    trait: str,
    fold: Any,
    animal: pl.Series,
    row: Any,
    predicted: np.ndarray,
    observed: np.ndarray,
) -> pl.DataFrame:
    named = {"method": method, "term": of.term, "effect": of.effect, "trait": trait}
    columns = {"fold": fold, "animal": animal, "row": row, "predicted": predicted, "observed": observed}
    types = {"fold": pl.String, "animal": pl.String, "row": pl.Int64, "predicted": pl.Float64, "observed": pl.Float64}
    return pl.DataFrame(columns, schema=types).select(*(pl.lit(v).alias(k) for k, v in named.items()), pl.all())


def number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def of_errors(rows: list[tuple], texts: dict[str, str]) -> dict[str, str]:
    """Texts about the standard errors that there are."""
    return {
        source: text for source, text in texts.items() if source in {row[list(SCHEMA).index("se_from")] for row in rows}
    }
