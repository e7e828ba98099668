"""A user's inverse relationship matrix: rows `id1 id2 value`, one triangle or both."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
from scipy import sparse

from mmgibbs.data.levels import code_levels
from mmgibbs.data.phenotypes import clean_ids, read_any, refuse_rows, refuse_type
from mmgibbs.errors import DataError
from mmgibbs.models.relationships.user_inverse import SparseInverse
from pedigree.messages import ResultWarning
from pedigree.tables import quoted

_EQUAL = 0.01  # of their mean: sums of rows that differ by less are the same
_SOME = 20  # entries off the diagonal, both triangles, from which their signs say something
DENSE_LEVELS = 2000  # up to here a Cholesky factorisation tells whether the matrix is positive definite


def read_relationship(path: Path, term: str) -> tuple[SparseInverse, pl.Series, tuple[str, ...]]:
    """(K^-1, ids by level code, notes).

    A DataError names the row of an entry that cannot be used, and a matrix that is not positive definite.
    """
    frame, rows, name = _three_columns(path, term)
    ids, (row_codes, column_codes) = code_levels([frame["id1"], frame["id2"]])
    value = frame["value"].to_numpy()
    q = len(ids)
    low, high = (
        np.minimum(row_codes, column_codes).astype(np.int64),
        np.maximum(row_codes, column_codes).astype(np.int64),
    )
    key = low * q + high
    order = np.argsort(key, kind="stable")
    first = np.flatnonzero(np.r_[True, np.diff(key[order]) != 0])
    kept = order[first]
    # A pair that stands in both triangles, or twice, must agree with itself.
    reference = value[kept][np.searchsorted(key[kept], key)]
    differs = np.flatnonzero(np.abs(value - reference) > 1e-8 * np.maximum(np.abs(value), np.abs(reference)))
    if len(differs):
        i = differs[0]
        j = kept[np.searchsorted(key[kept], key[i])]
        raise DataError(
            f"{name} row {rows[i]}: found {value[i]:g} for the pair {ids[int(row_codes[i])]}, "
            f"{ids[int(column_codes[i])]}, "
            f"but {value[j]:g} in row {rows[j]}; needed a symmetric matrix"
        )
    low, high, value = low[kept], high[kept], value[kept]
    diagonal = np.zeros(q)
    diagonal[low[low == high]] = value[low == high]
    _check_diagonal(name, ids, diagonal)
    off = low != high
    matrix = sparse.coo_array(
        (np.r_[value, value[off]], (np.r_[low, high[off]], np.r_[high, low[off]])), shape=(q, q)
    ).tocsr()
    matrix.sort_indices()
    notes = _positive_definite(name, term, ids, matrix, low[off], high[off], value[off], diagonal)
    parts = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), matrix.data.astype(np.float64)
    return SparseInverse(*parts, source=str(path)), ids, notes


def _three_columns(path: Path, term: str) -> tuple[pl.DataFrame, np.ndarray, str]:
    frame, _, rows, name = read_any(path, header=False)
    if frame.width != 3:
        raise DataError(
            f"{name}: found {frame.width} columns; needed three, id1 id2 value (model.random.{term}.relationship)"
        )
    for i, column in enumerate(frame, 1):
        refuse_type(column, name, f"column {i} (model.random.{term}.relationship)")
    frame = frame.rename(dict(zip(frame.columns, ("id1", "id2", "value"), strict=False)))
    frame = frame.with_columns(
        clean_ids(frame["id1"], (), name).alias("id1"),
        clean_ids(frame["id2"], (), name).alias("id2"),
        pl.col("value").cast(pl.String).str.strip_chars(),
    )
    number = frame["value"].cast(pl.Float64, strict=False)
    if number[0] is None and _is_header(frame):
        frame, rows, number = frame[1:], rows[1:], number[1:]
    if len(frame) == 0:
        raise DataError(f"{name}: found no entries; needed rows id1 id2 value")
    wrong = np.flatnonzero(~number.is_finite().fill_null(False).to_numpy())
    if len(wrong):
        problems = [f"found {quoted(frame['value'][int(i)])} as the value" for i in wrong[:5]]
        raise refuse_rows(name, rows[wrong], problems, "a finite number")
    empty = np.flatnonzero(
        frame.select(pl.any_horizontal(pl.col("id1", "id2").fill_null("") == "")).to_series().to_numpy()
    )
    if len(empty):
        raise refuse_rows(name, rows[empty], ["found an empty id" for _ in empty[:5]], "two ids")
    return frame.with_columns(number.alias("value")), rows, name


def _is_header(frame: pl.DataFrame) -> bool:
    """Whether the first row, whose value is no number, has names: its ids stand in no other row."""
    ids = pl.concat([frame["id1"][1:], frame["id2"][1:].alias("id1")])
    return not any((ids == frame[column][0]).any() for column in ("id1", "id2"))


def _check_diagonal(name: str, ids: pl.Series, diagonal: np.ndarray) -> None:
    wrong = np.flatnonzero(diagonal <= 0)
    if len(wrong):
        i = int(wrong[0])
        entry = f"{diagonal[i]:g}" if diagonal[i] else "no entry"
        more = f" ({len(wrong)} such ids in all)" if len(wrong) > 1 else ""
        raise DataError(
            f"{name}: found {entry} on the diagonal for id {quoted(ids[i])}{more}; needed a positive value for every "
            "id (an inverse relationship matrix is positive definite)"
        )


def _positive_definite(
    name: str,
    term: str,
    ids: pl.Series,
    matrix: sparse.csr_array,
    low: np.ndarray,
    high: np.ndarray,
    value: np.ndarray,
    diagonal: np.ndarray,
) -> tuple[str, ...]:
    wide = np.flatnonzero(value**2 >= diagonal[low] * diagonal[high])
    if len(wide):
        i = wide[0]
        raise DataError(
            f"{name}: found {value[i]:g} for the pair {ids[int(low[i])]}, {ids[int(high[i])]}, which their "
            "diagonal values do not allow; needed a positive definite matrix"
        )
    if matrix.shape[0] > DENSE_LEVELS:
        checked = "only its pairs of levels were checked, not whether it is positive definite as a whole"
        return (ResultWarning(f"{term}: {name} has {matrix.shape[0]} levels; {checked}"),)
    try:
        np.linalg.cholesky(matrix.toarray())
    except np.linalg.LinAlgError:
        least = np.linalg.eigvalsh(matrix.toarray())[0]
        raise DataError(
            f"{name}: found a matrix with the eigenvalue {least:.3g}; needed a positive definite one "
            f"(model.random.{term}.relationship)"
        ) from None
    return ()


def not_inverted(file: Path, term: str, inverse: SparseInverse) -> list[str]:
    """A warning of a matrix that looks like K itself: -(K^-1)_ij / sqrt((K^-1)_ii (K^-1)_jj) is the correlation of i
    and j given all other levels, and among relatives not all of these are negative.

    They may be in the inverse of a genomic matrix, which is full and has nearly the same sum in each row: genotypes
    were centred, and something was added to the diagonal.
    """
    size = len(inverse.indptr) - 1
    rows = np.repeat(np.arange(size), np.diff(inverse.indptr))
    off = inverse.values[rows != inverse.indices]
    if np.count_nonzero(off) < _SOME or (off < 0).any():
        return []
    sums = np.bincount(rows, inverse.values, size)
    if np.count_nonzero(off) == size * (size - 1) and np.ptp(sums) < _EQUAL * sums.mean():
        return []
    return [
        f"{term}: {file.name} has no negative value off the diagonal, as most inverses of relationship matrices have; "
        f"model.random.{term}.relationship is the inverse: is this the matrix itself?"
    ]
