"""Total breeding values of genotyped animals, draw by draw: what the SNPs explain and what the pedigree explains.

    t_a = u_a + sum over the terms of SNP effects of x_a' a      (+ J_a b where genotypes of some are predicted)

u_a is the animal's own effect in a random term. The two trade off in the posterior, so that the deviation of t is less
than those of its parts say: it is accumulated from the draws of t.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mmgibbs.posterior.moments import Moments, MomentsOfLocations
from mmgibbs.posterior.tracked import Theta
from mmgibbs.sampler.markers.effects import EffectsFollowed
from mmgibbs.sampler.mixed_model import TotalValues


class FollowedTotals(MomentsOfLocations):
    """Moments of t of the animals that are genotyped and levels of the random term."""

    def __init__(self, values: TotalValues, steps: Sequence[EffectsFollowed], n_draws: int, n_batches: int):
        self.values, self.steps = values, steps
        super().__init__([(values.codes.size, 1)], n_draws, n_batches)

    def add(self, theta: Theta) -> None:
        own = theta.levels(self.values.term, self.values.codes)[:, self.values.component].astype(np.float64)
        for step in self.steps:
            own += step.breeding_values()[self.values.places]
        if self.values.regression is not None:
            term, component, x = self.values.regression
            own += x * theta.levels(term, np.zeros(1, np.int64))[0, component]
        self.moments.add([own[:, None]])

    def __getstate__(self) -> dict[str, Moments]:
        return {"moments": self.moments}  # the steps stay with their chain
