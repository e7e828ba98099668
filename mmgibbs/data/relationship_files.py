"""Relationship matrices that a user gives: Gamma of metafounders, and inverses as rows `id1 id2 value`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from scipy import sparse

from mmgibbs.data.animal_ids import explain_respelled
from mmgibbs.data.genotypes.prepare import PreparedGenotypes
from mmgibbs.data.levels import code_levels
from mmgibbs.data.phenotypes import SHOWN, cells_as_text, clean_ids, read_any, refuse_rows, refuse_type
from mmgibbs.errors import DataError
from mmgibbs.models.relationships.user_inverse import SparseInverse
from mmgibbs.pedigree.errors import PedigreeError
from mmgibbs.pedigree.inbreeding import inbreeding
from mmgibbs.pedigree.messages import ResultWarning
from mmgibbs.pedigree.metafounders import checked_gamma, estimated_gamma
from mmgibbs.pedigree.tables import quoted

if TYPE_CHECKING:
    from mmgibbs.config.tables import Data
    from mmgibbs.data.relationships import Kin


GAMMA = "data.groups.gamma"


def with_gamma(kin: Kin, data: Data, genotypes: PreparedGenotypes | None) -> Kin:
    """The pedigree with Gamma where its groups are metafounders; DataError where there can be none."""
    if data.groups is None or data.groups.effect != "metafounders":
        return kin
    names, given = kin.pedigree.groups, data.groups.gamma
    if not names:
        raise DataError(  # groups in place of parents are there, or the pedigree is refused
            f"{kin.pedigree.name}: no animal has an unknown parent and a value in column '{data.groups.column}'; "
            "needed some for data.groups.effect: metafounders"
        )
    try:
        if isinstance(given, Path):
            gamma = checked_gamma(read_gamma(given, names))
        elif isinstance(given, float):
            gamma = checked_gamma(given * np.eye(len(names)))
        else:
            assert genotypes is not None, "checked with the analysis"
            gamma = checked_gamma(_from_genotypes(kin, genotypes))
    except PedigreeError as error:
        which = ", ".join(f"{i + 1} is {name}" for i, name in enumerate(names[:10]))
        if given == "genotypes":
            raise DataError(
                f"{GAMMA}: as estimated from the genotypes of {len(genotypes.animals) if genotypes else 0:,} animals, "
                f"{error} ({which}). For a population with few genotyped descendants the error of the estimate is "
                "larger than the estimate; needed more of them, fewer and larger populations, or gamma: a number or a "
                "table"
            ) from None
        raise DataError(f"{GAMMA}: {error} ({which})") from None
    return replace(kin, gamma=gamma)


def read_gamma(path: Path, names: tuple[str, ...]) -> np.ndarray:
    """(m, m) from a table of three columns, two metafounders and their relationship; each pair once, or twice alike."""
    frame, _, rows, name = read_any(path, header=False)
    if frame.width != 3:
        raise DataError(
            f"{name}: found {frame.width} columns; needed two metafounders and their relationship ({GAMMA})"
        )
    frame = frame.with_columns(cells_as_text(frame.to_series(2), name))
    if len(frame) and frame.to_series(2).head(1).cast(pl.Float64, strict=False)[0] is None:
        frame, rows = frame[1:], rows[1:]  # the first line is a header
    first, second = (clean_ids(frame.to_series(i), (), name) for i in (0, 1))
    value = frame.to_series(2).cast(pl.Float64, strict=False)
    wrong = np.flatnonzero((~value.is_finite()).fill_null(True).to_numpy())
    if wrong.size:
        problems = [f"found {quoted(frame.to_series(2)[int(i)])} as the relationship" for i in wrong[:SHOWN]]
        raise refuse_rows(name, rows[wrong], problems, "a number")
    at = {n: i for i, n in enumerate(names)}
    out = np.full((len(names), len(names)), np.nan)
    for row, a, b, v in zip(rows, first, second, value, strict=True):
        if a not in at or b not in at:
            continue  # of a population that this pedigree does not have
        for i, j in ((at[a], at[b]), (at[b], at[a])):
            if not np.isnan(out[i, j]) and abs(out[i, j] - v) > 1e-9:
                raise DataError(f"{name} row {row}: found {v:g} for {a} and {b}, and {out[i, j]:g} in another row")
            out[i, j] = v
    absent = np.argwhere(np.isnan(out))
    if absent.size:
        i, j = absent[0]
        in_table = pl.concat([first.rename("id"), second.rename("id")]).drop_nulls()
        hint = explain_respelled(in_table.filter(~in_table.is_in(list(names))), pl.Series(names), "the pedigree")
        raise DataError(
            f"{name}: found no relationship of {names[i]} and {names[j]}; needed one for each pair of metafounders of "
            f"the pedigree, and of each with itself ({GAMMA})" + ("" if hint is None else f"\n{hint}")
        )
    return out


def _from_genotypes(kin: Kin, genotypes: PreparedGenotypes) -> np.ndarray:
    """Estimate by generalised least squares, from the genotyped animals that the pedigree knows."""
    read, ids = kin.pedigree, genotypes.animals["animal"]
    codes = read.codes(ids)
    known = ids.filter(codes.is_not_null())
    store = genotypes.packed(known)
    zero = np.zeros(store.n_snps)
    M = store.decode(store.every, store.values(zero, mean=genotypes.mean)).T
    F = inbreeding(read.sire, read.dam)
    return estimated_gamma(read.sire, read.dam, F, len(read.groups), codes.drop_nulls().to_numpy().astype(np.int64), M)


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
    """Check whether the first row, whose value is no number, has names: its ids are in no other row."""
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
