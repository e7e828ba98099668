"""Random error contrasts of the records of each trait: what no flat effect of the model changes.

    g = z - X (X'X)^- X'z,      z normals (n, m),      X the columns of the flat effects on the trait

X has the fixed effects without a prior, and Z Q where unknown-parent groups have none.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from mmgibbs.models.design import Design
from mmgibbs.models.terms import Term

MAX_DENSE = 1e9  # n f^2 up to which X is orthonormalised as a dense matrix: tenths of a second
MAX_ELEMENTS = 1e8  # elements of X times contrasts up to which X is projected out at all: about a minute
NEGLIGIBLE = 1e-9  # what may be left of X'g, relative to columns and contrasts
SMALLEST = 1e-12  # eigenvalue of X'X relative to the largest, below which a column depends on the others
ROUNDS = 3  # of least squares, each on what the one before has left


class Contrasts(NamedTuple):
    """Contrasts of one trait."""

    rows: np.ndarray  # (n,) records that have the trait, of those that are looked at
    z: np.ndarray  # (n,) normals, before X is projected out
    g: np.ndarray  # (n, m)


def draw_contrasts(design: Design, records: np.ndarray, m: int) -> list[Contrasts] | None:
    """Draw contrasts of each trait from these records; None where X is too large, or lsmr does not converge.

    The result is None where X is too large for a basis, or where its least squares by lsmr do not converge.
    """
    out = []
    for trait in range(design.n_traits):
        rows = records[design.patterns[design.pattern[records], trait]]
        z = np.random.Generator(np.random.Philox(key=trait)).standard_normal((rows.size, m))
        g = _remove_projection(build_flat_columns(design, trait, rows), z)
        if g is None:
            return None
        if np.linalg.norm(g) <= NEGLIGIBLE * np.linalg.norm(z):  # the flat effects fit every record
            g = np.zeros(z.shape)
        out.append(Contrasts(rows, z[:, 0], g))
    return out


def build_flat_columns(design: Design, trait: int, rows: np.ndarray) -> sparse.csc_array:
    """X (n, f) of these records, columns that are 0 left out, those that are not of length 1."""
    blocks = [columns for term in design.terms for columns in _build_columns(term, trait, rows)]
    if not blocks:
        return sparse.csc_array((rows.size, 0))
    X = sparse.csc_array(sparse.hstack(blocks, format="csc"))
    lengths = np.sqrt(np.asarray(X.multiply(X).sum(axis=0)).ravel())
    kept = np.flatnonzero(lengths > 0)
    return sparse.csc_array(X[:, kept] @ sparse.diags_array(1.0 / lengths[kept]))


def mask_flat_components(term: Term) -> np.ndarray:
    """(k,) bool: components whose levels have no prior at all."""
    if term.kind == "random":
        return np.zeros(term.n_components, bool)
    if term.prior_precision is None:
        return np.ones(term.n_components, bool)
    return np.diag(term.prior_precision) == 0.0


def _build_columns(term: Term, trait: int, rows: np.ndarray) -> list[sparse.csr_array]:
    flat, of_trait = mask_flat_components(term), term.component_trait == trait
    active = np.ones((term.n_levels, term.n_components), bool) if term.active is None else term.active
    out = [
        build_incidence(term, c, rows)[:, np.flatnonzero(active[:, c])]
        for c in np.flatnonzero(of_trait & flat).tolist()
        if active[:, c].any()
    ]
    if term.kind == "random" and term.groups_fixed and term.n_groups:
        Q = term.relationship.group_shares().astype(np.float64)
        for c in np.flatnonzero(of_trait).tolist():
            groups = np.flatnonzero(active[-term.n_groups :, c])
            out.append(sparse.csr_array(build_incidence(term, c, rows) @ Q[:, groups]))
    return out


def build_incidence(term: Term, component: int, rows: np.ndarray) -> sparse.csr_array:
    """(n, q) of one component: the covariate of each record at its level."""
    effect = term.effects[term.component_effect[component]]
    first = term.component_regressor[component] - int(
        np.flatnonzero(term.regressor_effect == term.component_effect[component])[0]
    )
    record, level, values = [], [], []
    for of_record, covariates in effect.meetings():
        met = np.flatnonzero(of_record[rows] >= 0)
        record.append(met)
        level.append(of_record[rows[met]])
        values.append(np.ones(met.size) if covariates is None else covariates[rows[met], first])
    entries = np.concatenate(values), (np.concatenate(record), np.concatenate(level))
    return sparse.csr_array(entries, shape=(rows.size, term.n_levels))


def _remove_projection(X: sparse.csc_array, z: np.ndarray) -> np.ndarray | None:
    n, f = X.shape
    if f == 0 or n == 0:
        return z
    if float(n) * f * min(n, f) <= MAX_DENSE:
        return _project_out_by_basis(X.toarray(), z)
    if float(X.nnz) * z.shape[1] > MAX_ELEMENTS:
        return None
    return _project_out_by_lsmr(X, z)


def _project_out_by_basis(X: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Project out X by an orthonormal basis, applied again to what rounding leaves."""
    values, vectors = np.linalg.eigh(X.T @ X)
    kept = values > SMALLEST * values[-1]
    Q = X @ (vectors[:, kept] / np.sqrt(values[kept]))
    for _ in range(ROUNDS):
        z = z - Q @ (Q.T @ z)
    return z


def _project_out_by_lsmr(X: sparse.csc_array, z: np.ndarray) -> np.ndarray | None:
    """Project out X by lsmr, which takes columns that depend on each other."""
    from scipy.sparse.linalg import lsmr

    g = np.empty(z.shape)
    for j, column in enumerate(z.T):
        length = float(np.linalg.norm(column))
        for _ in range(ROUNDS):
            column = column - X @ lsmr(X, column, atol=1e-14, btol=1e-14, conlim=0.0, maxiter=500)[0]
            if np.abs(X.T @ column).max() <= NEGLIGIBLE * length:
                break
        else:
            return None
        g[:, j] = column
    return g
