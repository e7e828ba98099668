"""Levels of class effects and of random effects: coded once, in an order that a reader expects."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

_WHOLE = r"^[+-]?[0-9]{1,18}$"


def level_order(ids: pl.Series) -> pl.Series:
    """Unique ids, without null: in numeric order where all are whole numbers, else as strings."""
    frame = pl.DataFrame({"id": ids.drop_nulls().unique()})
    if frame["id"].str.contains(_WHOLE).all():
        return frame.sort(pl.col("id").cast(pl.Int64), "id")["id"]
    return frame.sort("id")["id"]


def code_levels(columns: Sequence[pl.Series]) -> tuple[pl.Series, list[np.ndarray]]:
    """(ids (q,) String in level order, one (n,) int32 code array per column; -1 where null): columns that share
    levels."""
    ids = level_order(pl.concat([c.rename("id") for c in columns]))
    return ids, [encode_levels(c, ids) for c in columns]


def encode_levels(column: pl.Series, ids: pl.Series) -> np.ndarray:
    """(n,) int32 position of each value in `ids`, -1 where null; every other value must be among the ids."""
    if len(ids) == 0:
        return np.full(len(column), -1, np.int32)
    return column.cast(pl.Enum(ids)).to_physical().cast(pl.Int32).fill_null(-1).to_numpy().copy()


def lookup(column: pl.Series, ids: pl.Series) -> pl.Series:
    """(n,) Int32 position of each value in `ids`, null where it is null or not among them."""
    table = pl.DataFrame({"id": ids, "code": pl.int_range(0, len(ids), dtype=pl.Int32, eager=True)})
    return pl.DataFrame({"id": column}).join(table, on="id", how="left", maintain_order="left")["code"]
