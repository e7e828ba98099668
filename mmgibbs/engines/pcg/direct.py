"""Posterior covariance by a direct inverse of C, for as many equations as fit:
PEV of random levels, variances of fixed effects.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy.linalg import lapack

from mmgibbs.equations.explicit.csr import explicit_equations
from mmgibbs.errors import ModelError
from mmgibbs.model.design import Design
from mmgibbs.model.labels import component_labels


def posterior_sd(design: Design, G: Sequence[np.ndarray | None], R: np.ndarray) -> list[np.ndarray]:
    """sqrt(diag(B C^-1 B')) per term, (q, k), where B undoes the scaling of covariates; 0 for components held at 0.

    Memory: two dense matrices of n_equations^2 float64.
    """
    equations = explicit_equations(design)
    equations.set_variances(G, R)
    covariance = dense_inverse(equations.matrix().toarray(), lambda number: equation_name(design, number))
    active = [np.ones((t.n_levels, t.n_components), bool) if t.active is None else t.active for t in design.terms]
    flat = np.flatnonzero(np.concatenate([a.ravel() for a in active]))
    variance = np.zeros(sum(a.size for a in active))
    variance[flat] = np.diag(covariance)
    moved, B = original_scale_rows(design, active)
    if moved.size:
        full = np.zeros((moved.size, flat.size))
        full[:] = B[:, flat]
        variance[moved] = np.einsum("ij,ij->i", full @ covariance, full)
    bounds = np.cumsum([0] + [a.size for a in active])
    return [np.sqrt(variance[i:j]).reshape(a.shape) for i, j, a in zip(bounds[:-1], bounds[1:], active, strict=True)]


def dense_inverse(C: np.ndarray, name: Callable[[int], str] = "equation {}".format) -> np.ndarray:
    """C^-1 by Cholesky (LAPACK potrf, potri); ModelError where C is not positive definite, which names the equation by
    its number from 0.
    """
    factor, failed = lapack.dpotrf(C, lower=1, overwrite_a=1)
    if failed == 0:
        inverse, failed = lapack.dpotri(factor, lower=1, overwrite_c=1)
    if failed:
        raise ModelError(
            f"the mixed-model equations are not positive definite, first at {name(failed - 1)}: the variances "
            "differ too much, or effects cannot be "
            "told apart; needed other variances or fewer effects"
        )
    lower = np.tril(inverse)
    return lower + np.tril(lower, -1).T


def equation_name(design: Design, number: int) -> str:
    """An equation in force by its number from 0, in model order: 'effect herd (weight), level number 2 of 7'."""
    for term in design.terms:
        active = np.ones((term.n_levels, term.n_components), bool) if term.active is None else term.active
        places = np.flatnonzero(active)
        if number < places.size:
            level, component = divmod(int(places[number]), term.n_components)
            return (
                f"effect {term.name} ({component_labels(term, design.traits)[component]}), level number "
                f"{level + 1} of {term.n_levels}"
            )
        number -= places.size
    raise IndexError(number)


def original_scale_rows(design: Design, active: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The rows of B that differ from the identity, as (their numbers, (rows, n) matrix);
    found by transforming unit vectors.
    """
    touched = {r.term for r in design.rescale} | {s.source for s in design.shifts}
    bounds = np.cumsum([0] + [a.size for a in active])
    if not touched:
        return np.empty(0, np.int64), np.empty((0, bounds[-1]))
    zero = design.to_original_scale([np.zeros(a.shape) for a in active])
    columns, values = [], []
    for term in sorted(touched):
        for j in range(active[term].size):
            unit = [np.zeros(a.shape) for a in active]
            unit[term].reshape(-1)[j] = 1.0
            moved = design.to_original_scale(unit)
            columns.append(bounds[term] + j)
            values.append(np.concatenate([(m - z).ravel() for m, z in zip(moved, zero, strict=True)]))
    of_columns = np.array(values)  # (columns, n): B[:, column]
    identity = np.zeros_like(of_columns)
    identity[np.arange(len(columns)), columns] = 1.0
    rows = np.flatnonzero(np.any(of_columns != identity, axis=0))
    B = np.zeros((rows.size, bounds[-1]))
    B[np.arange(rows.size), rows] = 1.0
    B[:, columns] = of_columns[:, rows].T
    return rows, B
