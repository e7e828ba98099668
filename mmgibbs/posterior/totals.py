"""Total breeding values: what the SNPs explain, and what the pedigree explains besides.

    t_a = u_a + sum over the terms of SNP effects of x_a' a      (+ J_a b where genotypes of some are predicted)

u_a is the animal's own effect in a random term. The two trade off in the posterior, so that the deviation of t is less
than those of its parts say, and that ranks by one of them are no ranks of breeding values: t is made draw by draw.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mmgibbs.posterior.thinned import ThinnedDraws
from mmgibbs.posterior.tracked import Theta


class TotalValues(NamedTuple):
    """Animals with breeding values on one trait from SNPs and from a random term."""

    trait: int
    term: int
    component: int
    markers: tuple[int, ...]  # numbers of the terms of SNP effects
    places: np.ndarray  # (n,) int64 of the animals in the stores of those
    codes: np.ndarray  # (n,) int64 their levels of the term
    regression: tuple[int, int, np.ndarray] | None = None  # a fixed term, its component and (n,) values: J

    def evaluate(self, theta: Theta, genomic: Sequence[np.ndarray]) -> np.ndarray:
        """Compute t (n,) float64; genomic: of every term of SNP effects of the model, (animals of its store,)."""
        values = theta.levels(self.term, self.codes)[:, self.component].astype(np.float64)
        self.complete(values, theta, genomic)
        return values

    def complete(self, values: np.ndarray, theta: Theta, genomic: Sequence[np.ndarray]) -> None:
        """own (n,) float64, u before and t after."""
        for j in self.markers:
            values += genomic[j][self.places]
        if self.regression is not None:
            term, component, x = self.regression
            values += x * theta.levels(term, np.zeros(1, np.int64))[0, component]

    def of_codes(self, codes: np.ndarray) -> TotalValues:
        """Select these levels of the term, in this order; each is one of `codes`."""
        order = np.argsort(self.codes, kind="stable")
        at = order[np.searchsorted(self.codes[order], codes)]
        regression = self.regression and (*self.regression[:2], self.regression[2][at])
        return self._replace(places=self.places[at], codes=self.codes[at], regression=regression)


class KeptSlope(ThinnedDraws):
    """Kept draws of the slope of `regression`, for the draws of SNP effects that are kept."""

    def __init__(self, values: TotalValues, most: int):
        assert values.regression is not None, "asked for where there is one"
        self.term, self.component, _ = values.regression
        super().__init__(most, 1)

    def add(self, theta: Theta) -> None:
        self.add_vector(theta.levels(self.term, np.zeros(1, np.int64))[0, [self.component]])
