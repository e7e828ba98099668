"""Ridge regression (RR-BLUP): every effect from one normal."""

from __future__ import annotations

import numpy as np

from mmgibbs.sampler.markers.priors.base import Effects, Normals
from mmgibbs.sampler.markers.priors.common import CommonVariance


class Ridge(CommonVariance):
    """a_j ~ N(0, v)."""

    n_classes = 1

    def conditional(self) -> Normals:
        return Normals(np.full(self.p, self.v))

    def update(self, effects: Effects, number: int) -> None:
        self.draw_variance(float(effects.a @ effects.a), self.p, number)
