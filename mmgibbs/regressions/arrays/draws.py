"""Draws for consecutive levels: loops over the scalar draws, compiled. Level i of a call is level first + i of the
chain.

Counter words of level i: (sweep, first + i, stream, draw 0); several uniforms or normals of one level use further
draws.
"""

from __future__ import annotations

import numpy as np

from mmgibbs.draws.exponential import exponential
from mmgibbs.draws.gamma import gamma
from mmgibbs.draws.inverse_gaussian import inverse_gaussian
from mmgibbs.draws.normal import fill_normals_range
from mmgibbs.draws.philox import draw_word, uniform_pair
from mmgibbs.draws.polya_gamma import polya_gamma
from mmgibbs.draws.truncated_normal import truncated_normal_positive
from mmgibbs.pedigree.kernels import kernel


@kernel
def uniforms(out, sweep, first, stream, seed, chain):
    """out (n, k): strictly inside (0, 1); element j is word pair j mod 2 of draw j div 2."""
    for i in range(np.uint64(out.shape[0])):
        for j in range(np.uint64(0), np.uint64(out.shape[1]), np.uint64(2)):
            word = draw_word(j >> np.uint64(1), np.uint64(0))
            u, v = uniform_pair(
                np.uint64(sweep), np.uint64(first) + i, np.uint64(stream), word, np.uint64(seed), np.uint64(chain)
            )
            out[i, j] = u
            if j + np.uint64(1) < np.uint64(out.shape[1]):
                out[i, j + np.uint64(1)] = v


@kernel
def normals(out, sweep, first, stream, seed, chain):
    """out (n, k): standard normals, k at most 512."""
    fill_normals_range(out, sweep, first, out.shape[0], stream, seed, chain)


@kernel
def exponentials(out, sweep, first, stream, seed, chain):
    """out (n,): rate 1."""
    for i in range(np.uint64(out.shape[0])):
        out[i] = exponential(
            np.uint64(sweep), np.uint64(first) + i, np.uint64(stream), np.uint64(0), np.uint64(seed), np.uint64(chain)
        )


@kernel
def gammas(out, shape, sweep, first, stream, seed, chain):
    """out (n,): Gamma(shape, rate 1)."""
    for i in range(np.uint64(out.shape[0])):
        out[i] = gamma(
            shape[i],
            np.uint64(sweep),
            np.uint64(first) + i,
            np.uint64(stream),
            np.uint64(0),
            np.uint64(seed),
            np.uint64(chain),
        )


@kernel
def inverse_gaussians(out, mean, shape, sweep, first, stream, seed, chain):
    """out (n,): InvGauss(mean, shape)."""
    for i in range(np.uint64(out.shape[0])):
        out[i] = inverse_gaussian(
            mean[i],
            shape[i],
            np.uint64(sweep),
            np.uint64(first) + i,
            np.uint64(stream),
            np.uint64(0),
            np.uint64(seed),
            np.uint64(chain),
        )


@kernel
def truncated_normals(out, mean, positive, sweep, first, stream, seed, chain):
    """out (n,): N(mean, 1) truncated to the positive side where `positive`, to the negative side elsewhere."""
    for i in range(np.uint64(out.shape[0])):
        sign = 1.0 if positive[i] else -1.0
        out[i] = sign * truncated_normal_positive(
            sign * mean[i],
            np.uint64(sweep),
            np.uint64(first) + i,
            np.uint64(stream),
            np.uint64(0),
            np.uint64(seed),
            np.uint64(chain),
        )


@kernel
def polya_gammas(out, h, z, sweep, first, stream, seed, chain):
    """out (n,): PG(h, z)."""
    for i in range(np.uint64(out.shape[0])):
        out[i] = polya_gamma(
            h[i],
            z[i],
            np.uint64(sweep),
            np.uint64(first) + i,
            np.uint64(stream),
            np.uint64(0),
            np.uint64(seed),
            np.uint64(chain),
        )
