"""Working variates f_k = V_k P y of the average information, V_k = dV/dpsi_k for an element of a covariance matrix.

f_r = W_r (Theta_j G^-1 E)      of an element of G_j          E: 1 in the two places of the element, 0 elsewhere
f_r = E R_P^-1 e_r              of an element of R, for the records r of its class
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mmgibbs.likelihood.base import Place


def working_effects(places: Sequence[Place], units: Sequence[np.ndarray]) -> list[np.ndarray]:
    """(q, k, m) per term: Theta_j G^-1 E of m elements, 0 for those of other matrices; units: Theta_j G^-1 (q, k)."""
    effects = [np.zeros((*unit.shape, len(places))) for unit in units]
    for number, (term, _, a, b) in enumerate(places):
        if term is not None:
            effects[term][:, a, number] = units[term][:, b]
            effects[term][:, b, number] = units[term][:, a]
    return effects


def working_residuals(places: Sequence[Place], weighted: np.ndarray, class_of_record: np.ndarray) -> np.ndarray:
    """(n, T, m) E R_P^-1 e_r of m elements, 0 for those of other matrices; weighted: R_P^-1 e_r (n, T)."""
    residuals = np.zeros((*weighted.shape, len(places)))
    for number, (term, residual_class, a, b) in enumerate(places):
        if term is None:
            in_class = class_of_record == residual_class
            residuals[in_class, a, number] = weighted[in_class, b]
            residuals[in_class, b, number] = weighted[in_class, a]
    return residuals
