"""Slice sampling (Neal 2003) by shrinkage alone, for chains side by side.

The current point is 0, the bracket (low, high) around it lies at a place drawn before; a point is drawn in the bracket,
accepted where its log density is above the level, and else becomes the end of the bracket on its side of 0.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mmgibbs.regressions.arrays.base import Arrays
from mmgibbs.regressions.protocol import Array, Keys

LogDensity = Callable[[Array, np.ndarray], Array]  # of points (a,) of the chains numbered (a,)
MAX_TRIES = 127  # a bracket that has shrunk so often has no length left: the chain stays


def shrink(
    value: LogDensity, level: Array, low: Array, high: Array, uniforms: Array, arrays: Arrays
) -> tuple[Array, Array]:
    """(point (C,), tries (C,)). value(points (a,), active (a,)): log densities of the chains numbered `active`.

    level, low, high: (C,), the ends overwritten; uniforms: (C, tries at most).
    """
    xp = arrays.xp
    point, tries = xp.zeros(len(level)), xp.zeros(len(level))
    active = np.arange(len(level))
    for k in range(uniforms.shape[1]):
        candidate = low[active] + (high - low)[active] * uniforms[active, k]
        inside = value(candidate, active) > level[active]
        point[active] = xp.where(inside, candidate, 0.0)
        low[active] = xp.where(candidate < 0, candidate, low[active])
        high[active] = xp.where(candidate < 0, high[active], candidate)
        tries[active] += 1
        active = active[~arrays.fetch(inside)]
        if not active.size:
            break
    return point, tries


def slice_step(
    value: LogDensity, width: float, keys: Keys, sweep: int, stream: int, arrays: Arrays
) -> tuple[Array, Array]:
    """(point (C,), tries (C,)): one slice step from 0 within a bracket of this width;
    the counters of `stream` are its own.
    """
    C = len(keys)
    u = arrays.uniforms(keys, sweep, stream, 1, MAX_TRIES + 2).reshape(C, -1)
    low = -width * u[:, 1]
    level = value(arrays.xp.zeros(C), np.arange(C)) + arrays.xp.log(u[:, 0])
    return shrink(value, level, low, low + width, u[:, 2:], arrays)
