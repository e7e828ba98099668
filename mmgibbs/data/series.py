"""Distinct values of a covariate within each level of a class: times of animals, the points of a curve."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl

from mmgibbs.data.levels import code_levels
from mmgibbs.data.phenotypes import Phenotypes


class Series(NamedTuple):
    """The distinct values of each class, rising."""

    within: np.ndarray  # (m,) int64 class of each
    values: np.ndarray  # (m,)
    gap: np.ndarray  # (m,) distance to the value before of the same class; 0: the first
    number: np.ndarray  # (n,) int64 value of each record; -1: none


def code_classes(
    phenotypes: Phenotypes, column: str | None, path: str, is_needed: np.ndarray
) -> tuple[np.ndarray, pl.Series]:
    """(n,) int64 class of each record, and the names of classes; without a column all are of one, whose name is ''."""
    if column is None:
        return np.zeros(len(phenotypes), np.int64), pl.Series("id", [""])
    text = phenotypes.text(column, path)
    names, (codes,) = code_levels([text.to_frame("id").select(pl.when(pl.Series(is_needed)).then("id"))["id"]])
    return codes.astype(np.int64), names


def find_series(phenotypes: Phenotypes, column: str, path: str, rows: np.ndarray, group: np.ndarray) -> Series:
    """The distinct values of a column in these records; group: (n,) class of each record of the table."""
    values = phenotypes.numbers(column, path)[rows]
    pairs, number = np.unique(np.column_stack([group[rows], values]), axis=0, return_inverse=True)
    within = pairs[:, 0].astype(np.int64)
    gap = np.where(np.diff(within, prepend=-1) == 0, np.diff(pairs[:, 1], prepend=0.0), 0.0)
    level = np.full(len(phenotypes), -1, np.int64)
    level[rows] = number.ravel()
    return Series(within, pairs[:, 1], gap, level)
