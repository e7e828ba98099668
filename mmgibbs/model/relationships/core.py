"""The inverse of genomic relationships from a core of the genotyped animals (Misztal 2016, Genetics 202:401).

Given the breeding values of the core (c), those of the others (n) are taken as independent of each other (the algorithm
for proven and young, APY):

    P = K_nc K_cc^-1        m_i = K_ii - p_i' K_ci        K^-1 = [K_cc^-1 0; 0 0] + [-P'; I] M^-1 [-P I]

It costs n c^2 in the place of n^3 and is the whole inverse where the core is everybody. As many animals as there are
eigenvalues that make 98 % of K carry nearly all that genotypes say.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mmgibbs.model.relationships.inverse import inverse_of


class FromCore(NamedTuple):
    """K^-1 of the whole matrix by a core."""

    values: np.ndarray  # (n, n) symmetric
    condition: float  # of K_cc
    least: float  # of the m_i: the variance that the core leaves of an animal; 0 without others


def inverse_by_core(K: np.ndarray, core: np.ndarray) -> FromCore:
    """core: positions in K. LinAlgError where K_cc has no inverse, or the core leaves nothing of another animal."""
    others = np.delete(np.arange(len(K)), core)
    of_core = inverse_of(np.ascontiguousarray(K[np.ix_(core, core)]))
    K_nc = K[np.ix_(others, core)]
    P = K_nc @ of_core.values
    left = K.diagonal()[others] - np.einsum("ij,ij->i", P, K_nc)
    if (left <= 1e-10 * K.diagonal()[others]).any():
        raise np.linalg.LinAlgError(f"the core leaves nothing of animal {int(others[np.argmin(left)]) + 1}")
    weighted = P / left[:, None]
    out = np.zeros(K.shape)
    among = of_core.values + P.T @ weighted
    out[np.ix_(core, core)] = (among + among.T) / 2
    out[np.ix_(others, core)] = -weighted
    out[np.ix_(core, others)] = -weighted.T
    out[others, others] = 1 / left
    return FromCore(out, of_core.condition, float(left.min(initial=np.inf)) if others.size else 0.0)


def size_for(K: np.ndarray, share: float) -> int:
    """How many of the largest eigenvalues of K make this share of their sum."""
    values = np.linalg.eigvalsh(K)[::-1]
    return int(np.searchsorted(np.cumsum(values), share * values.sum()) + 1)
