"""Sums of squares and products of residuals, with the residuals of missing traits augmented first:

    e_miss | e_obs ~ N(R_mo R_oo^-1 e_obs, (R_mm - R_mo R_oo^-1 R_om) / w_r)        sum_r w_r e_r e_r'
"""

from __future__ import annotations

import numpy as np
from numba import njit

from mmgibbs.draws.normal import normal
from mmgibbs.draws.purpose import AUGMENT, stream


def residual_products(records, patterns, e, R, blocks, number: int, key: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """sum_r w_r e_r e_r' (T, T) with missing residuals augmented, and the records (n_blocks,) behind each block.

    A record counts for a block if it observes one of the block's traits; other records say nothing about it.
    """
    fill, noise = augmentation(R, patterns, blocks)
    total = _residual_products(records, e, fill, noise, patterns.all(axis=1), number, stream(AUGMENT, 0), key[0], key[1])
    per_pattern = np.bincount(records.pattern, minlength=len(patterns))
    counts = np.array([per_pattern[patterns[:, list(block)].any(axis=1)].sum() for block in blocks])
    return total, counts


def augmentation(R: np.ndarray, patterns: np.ndarray, blocks) -> tuple[np.ndarray, np.ndarray]:
    """Per pattern: `fill` (T, T) with e = fill e_obs + noise z / sqrt(w), and `noise` (T, T), a root of the conditional covariance.

    Traits of a block without any observed trait get neither: zero rows."""
    n_patterns, T = patterns.shape
    fill, noise = np.zeros((n_patterns, T, T)), np.zeros((n_patterns, T, T))
    for p, observed in enumerate(patterns):
        for block in blocks:
            o = [t for t in block if observed[t]]
            m = [t for t in block if not observed[t]]
            if not o:
                continue
            fill[p][o, o] = 1.0
            if m:
                beta = np.linalg.solve(R[np.ix_(o, o)], R[np.ix_(o, m)]).T
                fill[p][np.ix_(m, o)] = beta
                noise[p][np.ix_(m, m)] = np.linalg.cholesky(R[np.ix_(m, m)] - beta @ R[np.ix_(o, m)])
    return fill, noise


@njit(cache=True, nogil=True, error_model="numpy")
def _residual_products(records, e, fill, noise, complete, number, stream, seed, chain):
    n, T = e.shape
    total, f, z = np.zeros((T, T)), np.empty(T), np.empty(T)
    for r in range(np.uint64(n)):
        p, w = records.pattern[r], np.float64(records.weight[r]) if records.weight.size > 0 else 1.0
        if complete[p]:
            for t in range(T):
                f[t] = e[r, t]
        else:
            for t in range(T):
                z[t] = normal(number, np.int64(records.record[r]), stream, t, seed, chain)
            for t in range(T):
                s, v = 0.0, 0.0
                for u in range(T):
                    s += noise[p, t, u] * z[u]
                    v += fill[p, t, u] * e[r, u]
                f[t] = v + s / np.sqrt(w)
        for t in range(T):
            for u in range(t + 1):
                total[t, u] += w * f[t] * f[u]
    for t in range(T):
        for u in range(t):
            total[u, t] = total[t, u]
    return total
