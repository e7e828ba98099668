"""Which columns of the fixed effects depend on the others, one trait at a time.

The largest class effect C is absorbed: its part of X'X is the diagonal D of level counts. The rest, Z, keeps the
columns that the Cholesky factor of the Schur complement

    S = Z'Z - Z'C D^-1 C'Z

takes in their order: classes in the order of the model, then covariates, then unknown-parent groups; of a class the
last level first and the reference level last. A column whose pivot is at most 1e-10 of its own sum of squares depends
on the columns before it, so that a class without further dependencies loses its reference level alone. Weights are
positive and do not change a rank, so all records count alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from mmgibbs.data.covariates import DEPENDENT

# Beyond this many columns in Z the largest effects are checked against the absorbed one alone: S would not fit.
DENSE_COLUMNS = 6000
_PANEL = 96
ROWS = 1 << 18  # records whose columns are held at a time: some 20 bytes for each effect


@dataclass(frozen=True)
class Columns:
    """The columns that one effect gives one trait: level x covariate, covariate fastest."""

    level: np.ndarray  # (n,) int32; -1: no entry in this row
    n_levels: int
    covariates: np.ndarray | None = None  # (n, m); None: the constant 1
    reference: int = 0  # level of a class that is the first to be dropped where its levels depend on other columns

    @property
    def order(self) -> np.ndarray:
        """(size,) the columns in the order in which they are kept."""
        if self.covariates is not None:
            return np.arange(self.size)
        return np.append(np.delete(np.arange(self.size), self.reference)[::-1], self.reference)

    @property
    def width(self) -> int:
        return 1 if self.covariates is None else self.covariates.shape[1]

    @property
    def size(self) -> int:
        return self.n_levels * self.width

    def first_dropped(self, among: np.ndarray) -> int:
        """Return which of these levels, (n_levels,) bool, goes first: the reference, or the first of them."""
        return self.reference if among[self.reference] else int(np.argmax(among))

    def part(self, rows: slice) -> Columns:
        """The columns of some records."""
        covariates = None if self.covariates is None else self.covariates[rows]
        return Columns(self.level[rows], self.n_levels, covariates, self.reference)


@dataclass(frozen=True)
class Rank:
    independent: list[np.ndarray]  # per effect (n_levels, m) bool
    with_records: list[np.ndarray]  # per effect (n_levels, m) bool: the column is not zero throughout
    checked_apart: tuple[int, ...]  # effects checked against the absorbed effect alone


def independent_columns(effects: Sequence[Columns], intercept: int | None = None) -> Rank:
    """The columns to keep; `effects` stand in order of preference.

    intercept: its place among the effects. Where it depends on the absorbed class it replaces a level of that class,
    the reference where that has records.
    """
    classes = [i for i, e in enumerate(effects) if e.covariates is None]
    absorbed = max(classes, key=lambda i: effects[i].n_levels, default=None)
    with_records = [_squares(e) > 0 for e in effects]
    independent: list[np.ndarray] = [np.zeros((e.n_levels, e.width), bool) for e in effects]
    rest = [i for i in range(len(effects)) if i != absorbed]
    apart: list[int] = []
    while sum(effects[i].size for i in rest) > DENSE_COLUMNS:
        apart.append(max(rest, key=lambda i: effects[i].size))
        rest.remove(apart[-1])
    counts = None
    if absorbed is not None:
        independent[absorbed] = with_records[absorbed].copy()
        counts = _squares(effects[absorbed])[:, 0]
    against = None if absorbed is None else effects[absorbed]
    if against is not None and intercept is not None and intercept != absorbed:
        against = _with_all_records(against, effects[intercept])
    for i in apart:
        independent[i] = columns_independent_of_class(effects[i], against)
    if rest:
        S, squares = _schur([effects[i] for i in rest], None if absorbed is None else effects[absorbed], counts)
        starts = np.cumsum([0] + [effects[i].size for i in rest])
        order = np.concatenate([start + effects[i].order for start, i in zip(starts, rest, strict=False)])
        keep = np.zeros(len(squares), bool)
        keep[order] = cholesky_pivots(S[np.ix_(order, order)], squares[order])
        start = 0
        for i in rest:
            independent[i] = keep[start : start + effects[i].size].reshape(effects[i].n_levels, effects[i].width)
            start += effects[i].size
    if (
        intercept is not None
        and absorbed is not None
        and intercept != absorbed
        and with_records[intercept][0, 0]
        and not independent[intercept][0, 0]
    ):
        # 1 = the sum of all levels of the absorbed class, so either may represent the other.
        independent[intercept][0, 0] = True
        independent[absorbed][effects[absorbed].first_dropped(with_records[absorbed][:, 0]), 0] = False
    return Rank(independent, with_records, tuple(sorted(apart)))


def columns_independent_of_class(effect: Columns, absorbed: Columns | None) -> np.ndarray:
    """(n_levels, m) bool for an effect too large for S: independent of the absorbed class, and within itself.

    Two classes: in each connected part of their graph the levels of both sum to the same vector, so one level of each
    part goes: the reference level, or the first. Not where a record has a level of one of them alone: the sums differ
    in it, and no level of its part depends on the others.

    Nested slopes: the columns of one level among themselves (they are centred already where their class is in the
    model).
    """
    if effect.covariates is not None:
        return _independent_within_levels(effect)
    keep = _squares(effect) > 0
    if absorbed is None:
        return keep
    met = (effect.level >= 0) & (absorbed.level >= 0)
    pairs = (effect.level[met], absorbed.level[met] + effect.n_levels)
    graph = sparse.coo_array((np.ones(met.sum(), np.int8), pairs), shape=(effect.n_levels + absorbed.n_levels,) * 2)
    _, component = connected_components(graph, directed=False)
    of_effect, of_absorbed = effect.level[~met], absorbed.level[~met]
    differs = np.zeros(len(component), bool)
    differs[component[of_effect[of_effect >= 0]]] = True
    differs[component[of_absorbed[of_absorbed >= 0] + effect.n_levels]] = True
    present = np.flatnonzero(keep[:, 0] & ~differs[component[: effect.n_levels]])
    present = present[np.argsort(present != effect.reference, kind="stable")]
    _, first = np.unique(component[present], return_index=True)
    keep[present[first], 0] = False
    return keep


def cholesky_pivots(S: np.ndarray, squares: np.ndarray, tolerance: float = DEPENDENT) -> np.ndarray:
    """(p,) bool: the columns with a pivot above tolerance * squares in a Cholesky factor that passes over the others.

    S: (p, p), overwritten. squares: (p,) sums of squares before anything was projected out.
    """
    p = len(S)
    keep = np.zeros(p, bool)
    for start in range(0, p, _PANEL):
        stop = min(start + _PANEL, p)
        panel = np.asfortranarray(S[start:, start:stop])
        for j in range(stop - start):
            if panel[j, j] > tolerance * squares[start + j]:
                keep[start + j] = True
                panel[j:, j] /= np.sqrt(panel[j, j])
                panel[j:, j + 1 :] -= np.outer(panel[j:, j], panel[j + 1 : stop - start, j])
            else:
                panel[:, j] = 0.0
        S[stop:, stop:] -= panel[stop - start :] @ panel[stop - start :].T
    return keep


def _squares(effect: Columns) -> np.ndarray:
    """(n_levels, m) float64: the sum of squares of each column."""
    met = effect.level >= 0
    level = effect.level[met]
    if effect.covariates is None:
        return np.bincount(level, minlength=effect.n_levels).astype(np.float64)[:, None]
    return np.stack(
        [np.bincount(level, weights=c[met] ** 2, minlength=effect.n_levels) for c in effect.covariates.T], axis=1
    )


def _incidence(effect: Columns) -> sparse.csr_array:
    """(n, size) float64: one row per record, its covariates at its level."""
    n, m = len(effect.level), effect.width
    met = effect.level >= 0
    indices = (np.where(met, effect.level, 0).astype(np.int64)[:, None] * m + np.arange(m)).astype(np.int32).ravel()
    values = np.where(met[:, None], 1.0 if effect.covariates is None else effect.covariates, 0.0).ravel()
    return sparse.csr_array((values, indices, np.arange(0, n * m + 1, m, dtype=np.int64)), shape=(n, effect.size))


def _schur(
    effects: Sequence[Columns], absorbed: Columns | None, counts: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """(S (p, p), squares (p,)) of the effects with `absorbed` projected out."""
    # Effects of one level are dense columns; kept apart, they need no sparse storage.
    dense = [e.n_levels == 1 and e.covariates is not None for e in effects]
    starts = np.cumsum([0] + [e.size for e in effects])
    positions = [np.arange(starts[i], starts[i + 1]) for i in range(len(effects))]
    sparse_at = np.concatenate([p for p, d in zip(positions, dense, strict=False) if not d] or [np.empty(0, np.int64)])
    dense_at = np.concatenate([p for p, d in zip(positions, dense, strict=False) if d] or [np.empty(0, np.int64)])
    S = np.zeros((starts[-1], starts[-1]))
    ZZ, cross, XX, CZ, CX = _products(effects, dense, absorbed)
    if ZZ is not None:
        S[np.ix_(sparse_at, sparse_at)] = ZZ.toarray()
    if XX is not None:
        S[np.ix_(dense_at, dense_at)] = XX
    if cross is not None:
        S[np.ix_(sparse_at, dense_at)], S[np.ix_(dense_at, sparse_at)] = cross, cross.T
    squares = S.diagonal().copy()
    if counts is not None:
        share = 1.0 / np.where(counts > 0, counts, 1.0)
        if CZ is not None:
            scaled = sparse.diags_array(share) @ CZ
            S[np.ix_(sparse_at, sparse_at)] -= (CZ.T @ scaled).toarray()
            if CX is not None:
                cross = scaled.T @ CX
                S[np.ix_(sparse_at, dense_at)] -= cross
                S[np.ix_(dense_at, sparse_at)] -= cross.T
        if CX is not None:
            S[np.ix_(dense_at, dense_at)] -= CX.T @ (share[:, None] * CX)
    return S, squares


def _products(effects: Sequence[Columns], dense: Sequence[bool], absorbed: Columns | None) -> list[Any]:
    """Z'Z, Z'X, X'X, C'Z and C'X, None where a part is missing: Z sparse, X dense, C absorbed. Records are taken ROWS
    at a time, so that what is made of them stays small."""
    out: list[Any] = [None] * 5
    for first in range(0, max(len(effects[0].level), 1), ROWS):
        chosen = slice(first, first + ROWS)
        parts = [e.part(chosen) for e in effects]
        of_rows = _products_of_rows(parts, dense, None if absorbed is None else absorbed.part(chosen))
        out = [new if old is None else old + new for old, new in zip(out, of_rows, strict=True)]
    return out


def _products_of_rows(effects: Sequence[Columns], dense: Sequence[bool], absorbed: Columns | None) -> tuple[Any, ...]:
    listed = [_incidence(e) for e, d in zip(effects, dense, strict=True) if not d]
    values = [
        np.where(e.level[:, None] >= 0, e.covariates, 0.0)
        for e, d in zip(effects, dense, strict=True)
        if d and e.covariates is not None
    ]
    Z, X = sparse.hstack(listed, format="csr") if listed else None, np.hstack(values) if values else None
    C = None if absorbed is None else _incidence(absorbed).T.tocsr()
    return (
        None if Z is None else Z.T @ Z,
        None if Z is None or X is None else Z.T @ X,
        None if X is None else X.T @ X,
        None if C is None or Z is None else C @ Z,
        None if C is None or X is None else C @ X,
    )


def _with_all_records(absorbed: Columns, intercept: Columns) -> Columns:
    """The absorbed class with one more level, of the records that have the intercept alone: 1 less all its levels."""
    class_free = (absorbed.level < 0) & (intercept.level >= 0)
    return Columns(np.where(class_free, absorbed.n_levels, absorbed.level), absorbed.n_levels + 1)


def _independent_within_levels(effect: Columns) -> np.ndarray:
    """(n_levels, m) bool: the columns of each level that do not depend on earlier columns of the same level."""
    met = effect.level >= 0
    assert effect.covariates is not None
    level, X = effect.level[met], effect.covariates[met]
    gram = np.zeros((effect.n_levels, effect.width, effect.width))
    for i in range(effect.width):
        for j in range(i + 1):
            gram[:, i, j] = gram[:, j, i] = np.bincount(level, weights=X[:, i] * X[:, j], minlength=effect.n_levels)
    squares = np.einsum("lii->li", gram).copy()
    keep = np.zeros((effect.n_levels, effect.width), bool)
    for j in range(effect.width):
        pivot = gram[:, j, j]
        keep[:, j] = pivot > DEPENDENT * squares[:, j]
        column = (
            np.where(keep[:, j], 1.0, 0.0)[:, None] * gram[:, :, j] / np.sqrt(np.where(keep[:, j], pivot, 1.0))[:, None]
        )
        gram -= column[:, :, None] * column[:, None, :]
    return keep
