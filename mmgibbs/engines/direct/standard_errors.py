"""Posterior standard deviations of all levels from the selected inverse: PEV, and variances of fixed levels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mmgibbs.engines.direct.coefficients import Coefficients, coefficients
from mmgibbs.engines.direct.factor import Factor
from mmgibbs.engines.direct.places import original_scale_rows
from mmgibbs.machine.memory import refuse_beyond_free
from mmgibbs.model.covariance import full_block
from mmgibbs.model.design import Design

COLUMNS = 64  # right-hand sides at once


def posterior_sd(design: Design, G: Sequence[np.ndarray | None], R: np.ndarray, used: int = 0) -> list[np.ndarray]:
    """sqrt(diag(B C^-1 B')) per term, (q, k), where B undoes the scaling of covariates; 0 for components set to 0.

    used: bytes that the solution needs besides. DeviceError where the factor and its inverse would not fit into memory,
    ModelError where C is not positive definite.
    """
    of_terms = [None if g is None else full_block(len(g)) for g in G]
    of_residuals = [full_block(design.n_traits)] * max(1, len(design.residual_classes))
    matrix = coefficients(design, of_terms, of_residuals)
    known, n = matrix.symbolic, design.n_equations
    refuse_beyond_free(
        used + known.bytes,
        f"inverting {n:,} equations for PEV",
        f"a machine with more memory, or sampler.pev_limit below {n} (PEV and reliability are then blank)",
    )
    factor = matrix.factor(G, R)
    return sd_of_factor(matrix, factor, factor.selected_inverse())


def sd_of_factor(matrix: Coefficients, factor: Factor, selected: np.ndarray) -> list[np.ndarray]:
    """sqrt(diag(B C^-1 B')) per term, (q, k), where B undoes the scaling of covariates; 0 for components set to 0.

    selected: the selected inverse of the factor. Rows of B that are not of the identity cost a solution each.
    """
    design, layout = matrix.design, matrix.explicit.layout
    active = [np.ascontiguousarray(a) for a in layout.split(layout.active)]
    variance = np.zeros(layout.size)
    variance[layout.active] = matrix.diagonal(selected)
    moved, B = original_scale_rows(design, active)
    for first in range(0, moved.size, COLUMNS):
        rows = B[first : first + COLUMNS].toarray()[:, layout.active]
        variance[moved[first : first + COLUMNS]] = np.sum(rows.T * factor.solve(np.ascontiguousarray(rows.T)), axis=0)
    return [np.sqrt(v) for v in layout.split(variance)]
