"""Total breeding values (posterior/totals.py), draw by draw: their moments, and ranks of candidates by them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mmgibbs.posterior.decisions import DecisionCounts, Decisions
from mmgibbs.posterior.moments import Moments, MomentsOfLocations
from mmgibbs.posterior.totals import TotalValues
from mmgibbs.posterior.tracked import Theta
from mmgibbs.sampler.markers.followed import EffectsFollowed


class FollowedTotals(MomentsOfLocations):
    """Moments of t of the animals that are genotyped and levels of the random term.

    steps: of every term of SNP effects of the model.
    """

    def __init__(self, values: TotalValues, steps: Sequence[EffectsFollowed], n_draws: int, n_batches: int):
        self.values, self.steps = values, steps
        super().__init__([(values.codes.size, 1)], n_draws, n_batches)

    def add(self, theta: Theta) -> None:
        own = self.values.evaluate(theta, [step.breeding_values() for step in self.steps])
        self.moments.add([own[:, None]])

    def __getstate__(self) -> dict[str, Moments]:
        return {"moments": self.moments}  # the steps stay with their chain


class DecisionsWithMarkers(DecisionCounts):
    """Candidates ranked by their total breeding values; steps as above."""

    def __init__(self, asked: Decisions, steps: Sequence[EffectsFollowed], n_draws: int, n_batches: int, term: int = 0):
        super().__init__(asked, n_draws, n_batches, term)
        self.steps = steps

    def levels(self, theta: Theta) -> np.ndarray:
        rows = super().levels(theta).astype(np.float64)
        genomic = [step.breeding_values() for step in self.steps]
        for total in self.asked.totals:
            total.complete(rows[:, total.component], theta, genomic)
        return rows

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in self.__dict__.items() if name != "steps"}  # they stay with their chain
