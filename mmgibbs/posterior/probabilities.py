"""The probability of each category for every animal, or its expected count: means over the draws, none of them stored.

An animal with the effect u_i of its own, under the average fixed part mu of the records, in one draw:

    categories   P(k) = Phi((t_k - mu - u_i) / sqrt v) - Phi((t_{k-1} - mu - u_i) / sqrt v)
    counts       E(y) = exp(mu + u_i + v / 2)           at an exposure of 1

v is all variance but that of the animal's own effect: of a sire model, P is that of a progeny. The mean over draws of
such a function is not the function of the means: Phi of the mean liability is too far from 1/2.

Where SNPs have effects on these animals, u_i holds the genomic value too, and v is without its variance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from mmgibbs.models.families import Response
from mmgibbs.posterior.moments import Moments, PooledMoments, pool
from mmgibbs.posterior.totals import TotalValues
from mmgibbs.posterior.tracked import HostTheta


@dataclass(frozen=True)
class Probabilities:
    """Levels whose probabilities are followed, and the draws that these follow from."""

    trait: str
    family: type[Response]
    labels: tuple[str, ...]  # (K,) of the categories, from low to high; none: counts
    term: int | None  # of the animals' own effect; None: of SNPs alone, the levels are the animals of a store
    component: int
    n_levels: int
    liability: str  # draws of observed_scale.OF_LIABILITY
    thresholds: str  # draws (K - 2,) of the free thresholds, where there are some
    markers: tuple[int, ...] = ()  # terms of SNP effects of these animals
    places: np.ndarray | None = None  # (n_levels,) int64 in their stores; -1: not genotyped
    total: TotalValues | None = None  # where genotypes are predicted: the levels are its animals, by their totals

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that are reported: of two categories the probability of the higher one."""
        labels = self.labels[1:] if len(self.labels) == 2 else self.labels
        return tuple(f"probability[{label}]" for label in labels) or ("expected_count",)

    @property
    def nbytes(self) -> int:
        """Bytes that one chain keeps."""
        return self.n_levels * len(self.columns) * 4 * 8

    def evaluate(self, effects: np.ndarray, of_liability: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
        """Compute the probabilities (q, columns) in one draw.

        effects: own (q,), of_liability as OF_LIABILITY (and OF_GENOMIC, whose mean is that of animals with own genomic
        values of 0), thresholds (K - 2,).
        """
        mean, v = of_liability[4 if self.markers else 0], of_liability[3]
        if not self.labels:
            return self.family.expect(mean + effects, v)[:, None]
        below = np.zeros((len(effects), len(self.labels) + 1))  # of each threshold, from -inf to inf
        below[:, -1] = 1.0
        for k, t in enumerate([0.0, *thresholds], 1):
            below[:, k] = scipy.special.ndtr((t - mean - effects) / np.sqrt(v))
        return np.diff(below)[:, -len(self.columns) :]


class ProbabilitiesOfLevels:
    """Moments of the probabilities of one chain. `n_draws`, `n_batches`: as for moments.Moments."""

    def __init__(self, asked: Probabilities, n_draws: int, n_batches: int):
        self.asked = asked
        self.moments = Moments([(asked.n_levels, len(asked.columns))], n_draws, n_batches)

    def add(self, theta: HostTheta) -> None:
        drawn, asked = theta.parameters, self.asked
        thresholds = drawn.get(asked.thresholds, np.empty(0))
        self.moments.add([asked.evaluate(self.level_effects(theta), drawn[asked.liability], thresholds)])

    def level_effects(self, theta: HostTheta) -> np.ndarray:
        """Return the effects (q,) in this draw."""
        assert self.asked.term is not None, "SNP effects alone are another class"
        return theta.arrays()[self.asked.term][:, self.asked.component]

    def state(self) -> dict[str, np.ndarray]:
        return self.moments.state()

    def restore(self, state: dict[str, np.ndarray]) -> None:
        self.moments = Moments.from_state(state)

    def pool(self, further: Sequence[ProbabilitiesOfLevels]) -> PooledMoments:
        """Pool the chains into one array (q, columns)."""
        return pool([self.moments, *(o.moments for o in further)])
