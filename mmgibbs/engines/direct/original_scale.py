"""The matrix B that brings solutions back to the user's scale."""

from __future__ import annotations

import numpy as np
import scipy

from mmgibbs.models.design import CentringShift, Design


def original_scale_rows(design: Design, active: list[np.ndarray]) -> tuple[np.ndarray, scipy.sparse.csr_array]:
    """The rows of B that differ from the identity, as (their numbers, a sparse (rows, n) matrix)."""
    B = original_scale_matrix(design, active)
    difference = scipy.sparse.csr_array(B - scipy.sparse.eye_array(B.shape[0]))
    difference.eliminate_zeros()
    rows = np.flatnonzero(np.diff(difference.indptr))
    return rows, scipy.sparse.csr_array(B[rows])


def original_scale_matrix(design: Design, active: list[np.ndarray]) -> scipy.sparse.csr_array:
    """B (n, n), found by transforming unit vectors; active: (q, k) bool per term, the components that are not 0."""
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
        rows = np.flatnonzero(moved)
        places.append(rows)
        columns.append(np.full(rows.size, bounds[term] + j))
        values.append(moved[rows])
    if not places:
        return scipy.sparse.csr_array(scipy.sparse.eye_array(n))
    of_columns = scipy.sparse.csr_array(
        scipy.sparse.coo_array(
            (np.concatenate(values), (np.concatenate(places), np.concatenate(columns))), shape=(n, n)
        )
    )
    of_untouched = np.ones(n)
    of_untouched[[bounds[term] + j for term, j in touched]] = 0.0
    return scipy.sparse.csr_array(of_columns + scipy.sparse.diags_array(of_untouched))


def _reference(design: Design, s: CentringShift) -> int:
    """The place of the reference level in its term."""
    return int(s.source_level[0]) * design.terms[s.source].n_components + s.source_components[0]
