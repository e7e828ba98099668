"""Standard exponentials by inversion: -log U, from 1.1e-16 to 36.7."""

from __future__ import annotations

from mmgibbs.draws.elementary import log
from mmgibbs.draws.philox import draw_word, uniform_pair
from mmgibbs.pedigree.kernels import kernel


@kernel(fastmath=False)
def exponential_pair(c0, c1, c2, draw, k0, k1):
    """Draw two independent Exp(rate 1) from block (draw, 0) of the site (sweep c0, level c1, stream c2)."""
    u, v = uniform_pair(c0, c1, c2, draw_word(draw, 0), k0, k1)
    return -log(u), -log(v)


@kernel(fastmath=False)
def exponential(c0, c1, c2, draw, k0, k1):
    """Exp(rate 1): the first of exponential_pair."""
    return exponential_pair(c0, c1, c2, draw, k0, k1)[0]
