"""Compiled row work of the Polya-Gamma multinomial logit: from logits to weights, for some rows and all chains."""

from __future__ import annotations

import numpy as np

from mmgibbs.draws.elementary import exp, log
from mmgibbs.draws.polya_gamma import polya_gamma
from mmgibbs.pedigree.kernels import kernel


@kernel
def category_weights(logits, category, successes, trials, sweep, first, stream, seed, chains, omega, right):
    """Draw omega of one category and form what its regression needs; rows first ... first + m - 1 of the data.

        c_i = log(1 + sum_{k != j} exp eta_ik),  omega_i ~ PG(n_i, eta_ij - c_i),  right_i = y_ij - n_i/2 + omega_i c_i

    logits: (C, K - 1, m), the reference's, 0, left out; category: j; successes y_j, trials n: (m,); chains: (C,)
    uint64. omega, right: (C, m), written. The draw of row i has the counter (sweep, i, stream, 0).
    """
    j = np.uint64(category)
    m = np.uint64(omega.shape[1])
    largest, total = np.empty(m), np.empty(m)
    for c in range(np.uint64(omega.shape[0])):
        for i in range(m):
            largest[i] = 0.0
        for k in range(np.uint64(logits.shape[1])):
            if k != j:
                for i in range(m):
                    largest[i] = max(largest[i], logits[c, k, i])
        for i in range(m):
            total[i] = exp(-largest[i])
        for k in range(np.uint64(logits.shape[1])):
            if k != j:
                for i in range(m):
                    total[i] += exp(logits[c, k, i] - largest[i])
        for i in range(m):
            offset = largest[i] + log(total[i])
            z = logits[c, j, i] - offset
            w = polya_gamma(
                trials[i],
                z,
                np.uint64(sweep),
                np.uint64(first) + i,
                np.uint64(stream),
                np.uint64(0),
                np.uint64(seed),
                chains[c],
            )
            omega[c, i] = w
            right[c, i] = successes[i] - 0.5 * trials[i] + w * offset
