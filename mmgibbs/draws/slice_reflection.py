"""Over-relaxed draws of truncated normals: reflection within a slice (Neal 2003).

Given x ~ N(0, 1) between low and high, a height below its density is drawn. The x' with a density above it are

    max(low, -r) <= x' <= min(high, r),      r^2 = x^2 - 2 log u,   u uniform on (0, 1)

Given the height x is uniform there, and so is x' = left + right - x, the point on the other side of the middle: the
truncated normal stays. No quantile is needed, and ends far out lose no digit.
"""

from __future__ import annotations

from math import sqrt

from mmgibbs.draws.elementary import log
from mmgibbs.pedigree.kernels import kernel


@kernel(fastmath=False, forceinline=True)
def reflect_in_slice(x, low, high, u):
    """x' in [low, high], either end possibly infinite, given x in it and u uniform on (0, 1)."""
    r = sqrt(x * x - 2.0 * log(u))
    return min(max(max(low, -r) + (min(high, r) - x), low), high)
