"""One of K classes of a SNP from the logarithms of their weights, and the probability of each."""

from __future__ import annotations

import numpy as np

from mmgibbs.draws.elementary import exp
from mmgibbs.pedigree.kernels import kernel

NO_CLASS = -1


@kernel(forceinline=True)
def choose(weight, u, chances):
    """A class k with probability proportional to exp(weight_k), by a uniform u: P(k) to chances (K,).

    weight (K,) logarithms, which are replaced by weights of which the largest is 1. NO_CLASS where one of them is not a
    number or infinite, or all are -infinity: then no class has a probability.
    """
    K, top, total = weight.size, -np.inf, 0.0
    for k in range(K):
        if weight[k] > top:
            top = weight[k]
    for k in range(K):
        weight[k] = exp(weight[k] - top)
        total += weight[k]
    for k in range(K):
        chances[k] = weight[k] / total
    if not (0.0 < total < np.inf):
        return NO_CLASS
    remaining, chosen = u * total, K - 1
    for k in range(K - 1):
        remaining -= weight[k]
        if remaining < 0.0:
            chosen = k
            break
    return chosen
