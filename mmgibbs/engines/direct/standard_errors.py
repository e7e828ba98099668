"""Posterior standard deviations of all levels from the selected inverse: PEV, and variances of fixed levels."""

from __future__ import annotations

import numpy as np

from mmgibbs.engines.direct.coefficients import Coefficients
from mmgibbs.engines.direct.factor import Factor
from mmgibbs.engines.pcg.direct import original_scale_rows

COLUMNS = 64  # right-hand sides at once


def posterior_sd(coefficients: Coefficients, factor: Factor, selected: np.ndarray) -> list[np.ndarray]:
    """sqrt(diag(B C^-1 B')) per term, (q, k), where B undoes the scaling of covariates; 0 for components held at 0.

    selected: the selected inverse of the factor. Rows of B that are not of the identity cost a solution each.
    """
    design, layout = coefficients.design, coefficients.explicit.layout
    active = [np.ascontiguousarray(a) for a in layout.split(layout.active)]
    variance = np.zeros(layout.size)
    variance[layout.active] = coefficients.diagonal(selected)
    moved, B = original_scale_rows(design, active)
    for first in range(0, moved.size, COLUMNS):
        rows = B[first : first + COLUMNS][:, layout.active]
        variance[moved[first : first + COLUMNS]] = np.sum(rows.T * factor.solve(np.ascontiguousarray(rows.T)), axis=0)
    return [np.sqrt(v) for v in layout.split(variance)]
