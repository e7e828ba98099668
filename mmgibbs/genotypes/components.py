"""Principal components of the animals of a store: eigenvectors of X'X, X (p, n) scaled genotypes, which is never built.

Subspace iteration (Halko, Martinsson & Tropp 2011, SIAM Rev. 53:217): products of packed genotypes with a few vectors,
and orthonormal ones of what comes of them.
"""

from __future__ import annotations

import numpy as np

from mmgibbs.genotypes.relationship import Additive

MORE = 8  # vectors beside those that are asked for: they speed the others up
PASSES = 12


def principal_components(coded: Additive, count: int) -> tuple[np.ndarray, np.ndarray]:
    """(scores (n, count), shares (count,)): eigenvectors of X'X times the roots of its eigenvalues, and these as parts
    of the trace. The sign of a score is such that the largest is above 0; fewer than `count` where there are no more
    animals or SNPs.
    """
    store, values = coded.store, coded.values
    count = min(count, store.n_animals, store.n_snps)
    width = min(store.n_animals, store.n_snps, count + MORE)
    v = np.linalg.qr(np.random.default_rng(0).standard_normal((store.n_animals, width)))[0]
    times = lambda x: np.stack(
        [store.product(store.every, values, store.dot(store.every, values, column)) for column in x.T], axis=1
    )
    for _ in range(PASSES):
        v = np.linalg.qr(times(v))[0]
    roots, within = np.linalg.eigh(v.T @ times(v))
    order = np.argsort(-roots)[:count]
    scores = v @ within[:, order] * np.sqrt(np.maximum(roots[order], 0.0))
    largest = scores[np.argmax(np.abs(scores), axis=0), np.arange(count)]
    return scores * np.where(largest < 0, -1.0, 1.0), roots[order] / max(_trace(coded), np.finfo(float).tiny)


def _trace(coded: Additive) -> float:
    """sum over SNPs and animals of x^2."""
    known, first, second = coded.store.moments().T
    squares = second - 2 * coded.centre * first + coded.centre**2 * known
    missing = (coded.store.n_animals - known) * (coded.mean - coded.centre) ** 2
    return float(np.sum(coded.scale**2 * (squares + missing)))
