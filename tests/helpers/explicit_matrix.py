"""C and the right-hand side of the explicit equations as one matrix and one vector, for direct solvers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array, csr_array

from mmgibbs.equations.explicit.csr import ExplicitEquations


class Block(NamedTuple):
    """CSR, levels of scalar effect i by levels of scalar effect j, in model order."""

    indptr: np.ndarray  # (q_i + 1,) int64
    indices: np.ndarray  # (nnz,) int32, sorted within a row
    values: np.ndarray  # (nnz,) float64 or float32


def scalar_block(equations: ExplicitEquations, i: int, j: int) -> Block:
    """The block of scalar effects i (rows) and j (columns); no elements where it is zero at these variances."""
    row, column = equations.scalar_effects[i], equations.scalar_effects[j]
    if (i, j) not in equations.values:
        n_levels = equations.design.terms[row.term].n_levels
        return Block(np.zeros(n_levels + 1, np.int64), np.empty(0, np.int32), np.empty(0, equations.real))
    unit = equations.units[row.effect, column.effect]
    return Block(unit.indptr, unit.indices, equations.values[i, j])


def sparse_matrix(equations: ExplicitEquations) -> csr_array:
    """C (n_equations, n_equations): columns sorted, zeros left out, both triangles.

    Equations run term by term, level by level, component by component; those set to 0 have no row and no column.
    """
    number = [equation.T for equation in equations.layout.split(equations.layout.equation)]
    rows, columns, values = [], [], []
    for i, j in equations.values:
        block, row, column = scalar_block(equations, i, j), equations.scalar_effects[i], equations.scalar_effects[j]
        stored = block.values != 0.0
        rows.append(np.repeat(number[row.term][row.component], np.diff(block.indptr))[stored].astype(np.int32))
        columns.append(number[column.term][column.component][block.indices[stored]].astype(np.int32))
        values.append(block.values[stored])
    places = np.concatenate(rows), np.concatenate(columns)
    matrix = coo_array((np.concatenate(values), places), shape=(equations.n_equations,) * 2).tocsr()
    matrix.sort_indices()
    return matrix


def right_hand_side(equations: ExplicitEquations) -> np.ndarray:
    """sum_r W_r' R_r^-1 y_r, (n_equations,), at the variances in force."""
    design, by_pattern = equations.design, equations.record_precision
    y = np.where(design.patterns[design.pattern], design.y, 0.0)
    weighted = design.weight[:, None] * np.einsum("rtu,ru->rt", by_pattern[design.pattern], y)
    out = np.zeros(equations.layout.size)
    totals = equations.layout.split(out)
    effects = [effect for term in design.terms for effect in term.effects]
    for scalar in equations.scalar_effects:
        total = totals[scalar.term]
        for level, covariates in effects[scalar.effect].meetings():
            met = level >= 0
            z = 1.0 if covariates is None else covariates[met, scalar.covariate]
            total[:, scalar.component] += np.bincount(level[met], weighted[met, scalar.trait] * z, len(total))
    return out[equations.layout.active]
