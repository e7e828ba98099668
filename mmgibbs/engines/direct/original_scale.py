"""The matrix B that brings solutions back to the user's scale."""

from __future__ import annotations

import numpy as np
import scipy

from mmgibbs.model.design import CentringShift, Design


def original_scale_rows(design: Design, active: list[np.ndarray]) -> tuple[np.ndarray, scipy.sparse.csr_array]:
    """The rows of B that differ from the identity, as (their numbers, a sparse (rows, n) matrix);
    found by transforming unit vectors.
    """
    every = {r.term for r in design.rescale} | {s.source for s in design.shifts}
    touched = sorted(
        {(term, j) for term in every for j in range(active[term].size)}
        | {(s.source, _reference(design, s)) for s in design.base}
    )
    bounds = np.cumsum([0] + [a.size for a in active])
    n = int(bounds[-1])
    zero = np.concatenate([z.ravel() for z in design.to_original_scale([np.zeros(a.shape) for a in active])])
    places: list[np.ndarray] = []
    columns: list[np.ndarray] = []
    values: list[np.ndarray] = []
    for term, j in touched:
        unit = [np.zeros(a.shape) for a in active]
        unit[term].reshape(-1)[j] = 1.0
        moved = np.concatenate([m.ravel() for m in design.to_original_scale(unit)]) - zero
        other = np.flatnonzero(moved)
        places.append(other)
        columns.append(np.full(other.size, bounds[term] + j))
        values.append(moved[other])
    if not places:
        return np.empty(0, np.int64), scipy.sparse.csr_array((0, n))
    of_columns = scipy.sparse.csr_array(
        scipy.sparse.coo_array(
            (np.concatenate(values), (np.concatenate(places), np.concatenate(columns))), shape=(n, n)
        )
    )
    own = np.ones(n)
    own[[bounds[term] + j for term, j in touched]] = 0.0
    B = scipy.sparse.csr_array(of_columns + scipy.sparse.diags_array(own))
    rows = np.array([row for row in range(n) if not _is_unit(B, row)], np.int64)
    return rows, scipy.sparse.csr_array(B[rows])


def _reference(design: Design, s: CentringShift) -> int:
    """The place of the reference level in its term."""
    return int(s.source_level[0]) * design.terms[s.source].n_components + s.source_components[0]


def _is_unit(B: scipy.sparse.csr_array, row: int) -> bool:
    """A row of the identity."""
    first, last = B.indptr[row], B.indptr[row + 1]
    indices, values = B.indices[first:last], B.data[first:last]
    return bool(np.any(indices == row) and np.all(np.where(indices == row, values == 1.0, values == 0.0)))
