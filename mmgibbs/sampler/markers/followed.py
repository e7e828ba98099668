"""What is followed of SNP effects over the draws: moments, kept draws, probabilities of states."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from mmgibbs.models.markers import Markers
from mmgibbs.posterior.moments import Moments, MomentsOfLocations
from mmgibbs.posterior.thinned import ThinnedDraws
from mmgibbs.sampler.markers.effects import MarkerEffects
from mmgibbs.sampler.markers.joint import JointMarkerEffects


class EffectsFollowed(Protocol):
    """Effects of a term on one trait, as they are now: what is followed of them."""

    markers: Markers

    @property
    def a(self) -> np.ndarray:
        """Effects of the SNPs, (p,)."""

    @property
    def chances(self) -> np.ndarray:
        """Probability (p, classes) of each class given all else."""

    def breeding_values(self) -> np.ndarray:
        """Return the breeding values (animals,) of every animal of the store."""


def collect_effects(steps: Sequence[object]) -> list[EffectsFollowed]:
    """The effects of each term of the design among the steps of a sweep, in the order of the terms."""
    found: list[EffectsFollowed] = []
    for step in steps:
        if isinstance(step, MarkerEffects):
            found.append(step)
        if isinstance(step, JointMarkerEffects):
            found += step.on_traits
    return found


class FollowedMarkers(MomentsOfLocations):
    """Moments of effects, breeding values and, Rao-Blackwellised, of the probability of each class."""

    def __init__(self, step: EffectsFollowed, n_draws: int, n_batches: int):
        self.step = step
        m = step.markers
        shapes = [(m.n_snps, 1), (m.genotypes.n_animals, 1), step.chances.shape]
        super().__init__(shapes, n_draws, n_batches)

    def add(self, _theta: object) -> None:
        step = self.step
        self.moments.add([step.a[:, None], step.breeding_values()[:, None], step.chances.astype(np.float64)])

    def __getstate__(self) -> dict[str, Moments]:
        return {"moments": self.moments}  # the step stays with its chain


class KeptEffects(ThinnedDraws):
    """Kept draws of the effects, on the scale of the analysis."""

    def __init__(self, step: EffectsFollowed, most: int):
        self.step: EffectsFollowed | None = step
        super().__init__(most, step.markers.n_snps)

    def add(self, _theta: object) -> None:
        assert self.step is not None, "of a chain at work"
        self.add_vector(self.step.a)

    def __getstate__(self) -> dict[str, object]:
        return self.__dict__ | {"step": None}  # which stays with its chain


class FollowedStates(MomentsOfLocations):
    """Moments of the probability of each state of every SNP, Rao-Blackwellised."""

    def __init__(self, step: JointMarkerEffects, n_draws: int, n_batches: int):
        self.step = step
        super().__init__([step.chances.shape], n_draws, n_batches)

    def add(self, _theta: object) -> None:
        self.moments.add([self.step.chances.astype(np.float64)])

    def __getstate__(self) -> dict[str, Moments]:
        return {"moments": self.moments}  # the step stays with its chain
