"""Inverse Gaussian draws by Michael, Schucany & Haas (1976), without cancellation for any mean up to infinity.

With Y = z^2 chi-square on 1 df and a = mean Y / (2 shape), the two roots of the transformation are mean/g and mean g,
g = 1 + a + sqrt(a^2 + 2 a); the smaller is taken with probability g/(1 + g). As mean -> infinity the draw tends to
shape/Y.

All from block (draw, 0): words 0 and 1 the radius of z, word 2 its angle (in the first quarter turn: the sign of z is
not needed), word 3 with the 12 bits of word 1 that the radius left over the choice of the root.
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from mmgibbs.draws.elementary import cos_sin_turns, log
from mmgibbs.draws.philox import SHIFT_20, WORD, draw_word, philox, short_uniform, uniform
from mmgibbs.pedigree.kernels import kernel


@kernel(fastmath=False, forceinline=True)
def small_root(mean, half_chi_square):
    """(mean/g, g) for shape 1, half_chi_square = Y/2; (1/Y, infinity) where the larger root is out of reach."""
    a = mean * half_chi_square
    if a > 1e17:
        return 0.5 / half_chi_square, np.inf
    g = 1.0 + (a + sqrt(a * (a + 2.0)))
    return mean / g, g


@kernel(fastmath=False, forceinline=True)
def half_chi_square_1(w0, w1, w2):
    """Half a chi-square on 1 df, -log(u) cos(pi v / 2)^2 > 0, from words w0, w1 (u) and w2 (v): 84 random bits."""
    cosine, _ = cos_sin_turns(0.25 * short_uniform(w2))
    return -log(uniform(w0, w1)) * (cosine * cosine)


@kernel(fastmath=False)
def inverse_gaussian_attempt(mean, shape, c0, c1, c2, draw, attempt, k0, k1):
    """InvGauss(mean, shape) from block (draw, attempt), both parameters valid."""
    w0, w1, w2, w3 = philox(c0, c1, c2, draw_word(draw, attempt), k0, k1)
    u = uniform(w3, (w1 << SHIFT_20) & WORD)
    x, g = small_root(mean / shape, half_chi_square_1(w0, w1, w2))
    if u * (1.0 + g) > g:
        x = x * g * g
    return shape * x


@kernel(fastmath=False)
def inverse_gaussian(mean, shape, c0, c1, c2, draw, k0, k1):
    """InvGauss(mean, shape): variance mean^3/shape. mean may be infinite: then shape / chi-square on 1 df.

    nan unless mean > 0 and 0 < shape < infinity.
    """
    if not (mean > 0.0 and shape > 0.0 and shape < np.inf):
        return np.nan
    return inverse_gaussian_attempt(mean, shape, c0, c1, c2, draw, 0, k0, k1)
