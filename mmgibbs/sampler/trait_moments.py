"""What the draws say of the mean of a trait and of the variance by its fixed effects."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mmgibbs.engines.base import Engine
from mmgibbs.posterior.parameters import Parameter
from mmgibbs.posterior.trait_moments import MOMENTS, TraitMoments
from mmgibbs.sampler.markers.followed import EffectsFollowed


class TraitMomentsStep:
    """A step that draws nothing: functions of the locations, computed for the sweeps that are kept."""

    def __init__(self, moments: TraitMoments, engine: Engine, markers: Sequence[EffectsFollowed] = ()):
        self.moments, self.engine, self.markers = moments, engine, markers
        of_trait = f"{', '.join(MOMENTS)} of {moments.trait}"
        self.parameters = {moments.draws: Parameter((f"{moments.draws}_value",), of_trait)}

    def __call__(self, number: int) -> None:
        pass

    def draws(self) -> dict[str, np.ndarray]:
        """Return the draws of MOMENTS."""
        people = self.moments.population
        values = self.moments.values(people.fixed_predictor(self.engine.fetch()))
        if people.genomic is not None:
            mean, _ = people.genomic.moments([step.breeding_values() for step in self.markers])
            values[0] += mean * (people.weight @ people.genomic.genotyped)
        return {self.moments.draws: values}

    def state(self) -> dict[str, np.ndarray]:
        return {}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        pass
