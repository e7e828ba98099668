"""Sums of squares and products of residuals, with the residuals of missing traits augmented first:

e_miss | e_obs ~ N(R_mo R_oo^-1 e_obs, (R_mm - R_mo R_oo^-1 R_om) / w_r)        sum_r w_r e_r e_r'
"""

from __future__ import annotations

import numpy as np
from numba import njit

from mmgibbs.draws.normal import normal
from mmgibbs.draws.purpose import AUGMENT, stream


def residual_products(
    records, patterns, e, R, blocks, number: int, key: tuple[int, int]
) -> tuple[np.ndarray, np.ndarray]:
    """sum_r w_r e_r e_r' (T, T) with missing residuals augmented, and the records (n_blocks,) behind each block.

    A record counts for a block if it observes one of the block's traits; other records say nothing about it.
    """
    fill, noise = augmentation(R, patterns, blocks)
    total = _residual_products(
        records, e, fill, noise, patterns.all(axis=1), number, stream(AUGMENT, 0), key[0], key[1]
    )
    per_pattern = np.bincount(records.pattern, minlength=len(patterns))
    counts = np.array([per_pattern[patterns[:, list(block)].any(axis=1)].sum() for block in blocks])
    return total, counts


def augmentation(R: np.ndarray, patterns: np.ndarray, blocks) -> tuple[np.ndarray, np.ndarray]:
    """Per pattern: `fill` (T, T) with e = fill e_obs + noise z / sqrt(w), and `noise` (T, T), a root of the conditional
    covariance.

    Traits of a block without any observed trait get neither: zero rows."""
    block_of_trait = np.empty(patterns.shape[1], np.int64)
    for number, block in enumerate(blocks):
        block_of_trait[list(block)] = number
    return _augmentation(np.ascontiguousarray(R, np.float64), patterns, block_of_trait)


@njit(cache=True)
def _augmentation(R, patterns, block_of_trait):
    n_patterns, T = patterns.shape
    fill, noise = np.zeros((n_patterns, T, T)), np.zeros((n_patterns, T, T))
    for p in range(n_patterns):
        for block in range(block_of_trait.max() + 1):
            within = block_of_trait == block
            o, m = np.flatnonzero(within & patterns[p]), np.flatnonzero(within & ~patterns[p])
            if o.size == 0:
                continue
            for t in o:
                fill[p, t, t] = 1.0
            if m.size == 0:
                continue
            beta = np.linalg.solve(_part(R, o, o), _part(R, o, m))
            root = np.linalg.cholesky(_part(R, m, m) - beta.T @ _part(R, o, m))
            for i in range(m.size):
                for j in range(o.size):
                    fill[p, m[i], o[j]] = beta[j, i]
                for j in range(m.size):
                    noise[p, m[i], m[j]] = root[i, j]
    return fill, noise


@njit(cache=True)
def _part(R, rows, columns):
    out = np.empty((rows.size, columns.size))
    for i in range(rows.size):
        for j in range(columns.size):
            out[i, j] = R[rows[i], columns[j]]
    return out


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
