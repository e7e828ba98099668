"""Probabilities of categories of animals whose own effect is, or has, a genomic value."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mmgibbs.posterior.probabilities import Probabilities, ProbabilitiesOfLevels
from mmgibbs.posterior.tracked import HostTheta
from mmgibbs.sampler.markers.followed import EffectsFollowed


class ProbabilitiesWithMarkers(ProbabilitiesOfLevels):
    """The own effect of an animal is that of the random term, if there is one, and its genomic values, if it is
    genotyped. steps: of every term of SNP effects of the model.
    """

    def __init__(self, asked: Probabilities, steps: Sequence[EffectsFollowed], n_draws: int, n_batches: int):
        super().__init__(asked, n_draws, n_batches)
        self.steps = steps

    def level_effects(self, theta: HostTheta) -> np.ndarray:
        asked = self.asked
        if asked.total is not None:
            return asked.total.evaluate(theta, [step.breeding_values() for step in self.steps])
        assert asked.places is not None, "it has SNP effects"
        own = np.zeros(asked.n_levels) if asked.term is None else super().level_effects(theta)
        for step in (self.steps[j] for j in asked.markers):
            own = own + np.where(asked.places >= 0, step.breeding_values()[asked.places], 0.0)
        return own

    def __getstate__(self) -> dict[str, object]:
        return {"asked": self.asked, "moments": self.moments}  # the steps stay with their chain
