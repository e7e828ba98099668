"""Standard normals by Box & Muller (1958): two from each Philox block, with neither rejection nor libm.

    z0 = sqrt(-2 log u) cos(2 pi v),   z1 = sqrt(-2 log u) sin(2 pi v)

Normal j of a site (sweep c0, level c1, stream c2) is element j mod 2 of the block with draw index j div 2 and attempt
0. Beyond 512 normals the draw index begins again at 0, with attempt 1, 2, ... (`normal`); rows of normals have at most
512. The largest possible |z| is 8.57.
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from mmgibbs.draws.elementary import cos_sin_turns, log
from mmgibbs.draws.philox import draw_word, uniform_pair
from mmgibbs.pedigree.kernels import kernel

MAX_NORMALS = 512
_CHUNK = 256


@kernel(fastmath=False, forceinline=True)
def box_muller(u, v):
    """Turn independent uniforms u and v inside (0, 1) into two standard normals; float64. Box & Muller (1958)."""
    radius = sqrt(-2.0 * log(u))
    c, s = cos_sin_turns(v)
    return radius * c, radius * s


@kernel(fastmath=False)
def normal(c0, c1, c2, j, k0, k1):
    """Standard normal j of the site, j < 2^33: element j mod 2 of block j div 2.

    A site that draws anything else, too, has 512.
    """
    c0, c1, c2, k0, k1 = np.uint64(c0), np.uint64(c1), np.uint64(c2), np.uint64(k0), np.uint64(k1)  # one form of Philox
    j = np.uint64(j)
    word = draw_word((j >> np.uint64(1)) & np.uint64(255), j >> np.uint64(9))
    u, v = uniform_pair(c0, c1, c2, word, k0, k1)
    z0, z1 = box_muller(u, v)
    return z1 if j & np.uint64(1) else z0


@kernel(fastmath=False)
def fill_pairs(z, level, n, c0, c2, draw, k0, k1):
    """z[:, i] = the two normals of block `draw` of level[i], i < n: z (2, >= n) float64, level (>= n,) whole numbers.

    Rows of z are contiguous, so that it vectorises. Two loops with short chains of operations overlap better than one
    with a long chain.
    """
    first, second, word = z[0], z[1], draw_word(np.uint64(draw), np.uint64(0))
    for i in range(n):
        first[i], second[i] = uniform_pair(c0, np.uint64(level[i]), c2, word, k0, k1)
    for i in range(n):
        first[i], second[i] = box_muller(first[i], second[i])


@kernel(fastmath=False)
def _fill_rows(out, start, level, z, n, c0, c2, k0, k1):
    """Rows start..start + n - 1 of `out` from the levels in the buffer."""
    k = np.uint64(out.shape[1])
    for j in range(np.uint64(0), k, np.uint64(2)):
        fill_pairs(z, level, n, c0, c2, j >> np.uint64(1), k0, k1)
        if j + np.uint64(1) < k:
            for i in range(n):
                out[start + i, j] = z[0, i]
                out[start + i, j + np.uint64(1)] = z[1, i]
        else:
            for i in range(n):
                out[start + i, j] = z[0, i]


@kernel(fastmath=False)
def fill_normals(out, c0, levels, c2, k0, k1):
    """out[i, j] = normal j of levels[i].

    out: (>= m, k) float64, C order, k <= 512; rows from m on are left alone.
    levels: (m,) int32 or int64, in model order.
    ValueError where `out` has fewer rows than there are levels or more than 512 columns.
    """
    m = np.uint64(levels.shape[0])
    _check_size(out, m)
    level, z = np.empty(_CHUNK, np.uint64), np.empty((2, _CHUNK))
    for start in range(np.uint64(0), m, np.uint64(_CHUNK)):
        n = min(np.uint64(_CHUNK), m - start)
        for i in range(n):
            level[i] = np.uint64(levels[start + i])
        _fill_rows(out, start, level, z, n, np.uint64(c0), np.uint64(c2), np.uint64(k0), np.uint64(k1))


@kernel(fastmath=False)
def fill_normals_transposed(out, c0, levels, c2, k0, k1):
    """out[j, i] = normal j of levels[i]: fill_normals turned over, for levels side by side.

    out: (even number of rows, >= m) float64, C order. levels: (m,) int32 or int64, in model order.
    """
    m, two = np.uint64(levels.shape[0]), np.uint64(2)
    c0, c2, k0, k1 = np.uint64(c0), np.uint64(c2), np.uint64(k0), np.uint64(k1)
    for j in range(np.uint64(0), np.uint64(out.shape[0]), two):
        fill_pairs(out[j : j + two], levels, m, c0, c2, j >> np.uint64(1), k0, k1)


@kernel(fastmath=False)
def fill_normals_range(out, c0, first, m, c2, k0, k1):
    """out[i, j] = normal j of level first + i, i < m: fill_normals for consecutive levels."""
    m = np.uint64(m)
    _check_size(out, m)
    level, z = np.empty(_CHUNK, np.uint64), np.empty((2, _CHUNK))
    for start in range(np.uint64(0), m, np.uint64(_CHUNK)):
        n = min(np.uint64(_CHUNK), m - start)
        for i in range(n):
            level[i] = np.uint64(first) + start + i
        _fill_rows(out, start, level, z, n, np.uint64(c0), np.uint64(c2), np.uint64(k0), np.uint64(k1))


@kernel(fastmath=False)
def _check_size(out, m):
    if np.uint64(out.shape[0]) < m or out.shape[1] > MAX_NORMALS:
        raise ValueError("normals of a site: `out` needs a row for each level and at most 512 columns")
