"""Covariance of linear functions of the solutions at given variances, by the factor of C."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import scipy.sparse as sp

from mmgibbs.engines.direct.original_scale import original_scale_matrix
from mmgibbs.equations.base import layout
from mmgibbs.likelihood.coefficients import Coefficients, joined_coefficients
from mmgibbs.likelihood.correlated import CorrelatedLikelihood
from mmgibbs.likelihood.matrices import Variances
from mmgibbs.likelihood.scores import ScoresLikelihood
from mmgibbs.machine.memory import refuse_beyond_free
from mmgibbs.models.covariance import covarying_blocks, join_all
from mmgibbs.models.design import Design
from mmgibbs.models.residual import stack_classes

COLUMNS = 64  # right-hand sides at once
FEWER_MEANS = "fewer effects in output.means, or none"


def form_covariances(design: Design, variances: Variances, forms: Sequence[sp.csr_array]) -> list[np.ndarray]:
    """K C^-1 K' of each K (L, places), whose columns are those of the solutions on the user's scale, in model order.

    C is that of the mixed-model equations at these variances. DeviceError where its factor does not fit.
    """
    G, R = variances.G, variances.R
    matrix: CorrelatedLikelihood | ScoresLikelihood | Coefficients
    if design.correlated:
        matrix = CorrelatedLikelihood(design, join_all(G))
    elif design.n_scores or variances.factors:
        n_factors = {i: factors.loadings.shape[1] for i, factors in (variances.factors or {}).items()}
        matrix = ScoresLikelihood(design, [None if g is None else covarying_blocks(g) for g in G], n_factors)
    else:
        matrix = joined_coefficients(design, G, advice=FEWER_MEANS)
    most = max((K.shape[0] for K in forms), default=0)
    of_factor = matrix.bytes if isinstance(matrix, Coefficients) else matrix.symbolic.bytes
    needed = of_factor + 8 * most * (most + 2 * COLUMNS)
    refuse_beyond_free(needed, "covariances of adjusted means (output.means)", FEWER_MEANS)
    solve: Callable[[np.ndarray], np.ndarray]
    if isinstance(matrix, (CorrelatedLikelihood, ScoresLikelihood)):
        solve = matrix.evaluate(variances._replace(R=stack_classes(R))).solve_equations
    else:
        solve = matrix.factor(G, R).solve
    places = layout(design)
    active = [np.ascontiguousarray(a) for a in places.split(places.active)]
    B = original_scale_matrix(design, active)
    out = []
    for K in forms:
        rows = sp.csr_array(K @ B)[:, places.active]
        covariance = np.empty((K.shape[0], K.shape[0]))
        for first in range(0, K.shape[0], COLUMNS):
            columns = rows[first : first + COLUMNS].toarray().T
            covariance[:, first : first + COLUMNS] = rows @ solve(np.ascontiguousarray(columns))
        out.append((covariance + covariance.T) / 2)
    return out
