"""Adjusted means of the levels of an effect: linear functions of the location effects, with their covariance.

    mean_l = sum over parts of w_l' theta[part],      cov = K C^-1 K'   (given the variances)

of a normal trait: other class effects are averaged over their levels, covariates over the records, other random effects
are 0 (build/marginal_weights.py has the weights of classes that are nested). In sampling, mean and covariance are those
of the draws (Searle, Speed & Milliken 1980; Gilmour et al. 2004).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mmgibbs.posterior.tracked import Theta

if TYPE_CHECKING:
    import scipy.sparse as sp  # chains do without


@dataclass(frozen=True)
class Part:
    """Weights of some levels of one component of a term."""

    term: int
    component: int
    codes: np.ndarray  # (n,) int64 levels
    weights: np.ndarray | sp.csr_array  # (L, n) float64, or (1, n) where they are the same for every mean


@dataclass(frozen=True)
class EmptyMean:
    """A level whose mean the records do not determine."""

    level: str
    records: int
    reason: str


@dataclass(frozen=True)
class AdjustedMeans:
    """The means of the levels of one effect for one trait, as functions of the solutions on the user's scale."""

    effect: str
    trait: str
    levels: tuple[str, ...]  # (L,) in reporting order
    records: np.ndarray  # (L,) int64 records of the trait at each level
    parts: tuple[Part, ...]
    random: tuple[int, int] | None  # term and component of a random effect, whose levels are the means
    is_curve: bool = False  # means along a covariate
    empty: tuple[EmptyMean, ...] = ()  # levels without a mean, in reporting order
    trial: int | None = None  # the means are the trend of the plots of this trial, without a mean

    @property
    def name(self) -> str:
        """Name of the moments of the means in a chain."""
        ending = ".curve" if self.is_curve else "" if self.trial is None else f".trend.{self.trial}"
        return f"{self.effect}.{self.trait}{ending}"

    @property
    def is_of_levels(self) -> bool:
        """True if the means are those of the levels of an effect."""
        return not self.is_curve and self.trial is None

    def values(self, theta: Theta) -> np.ndarray:
        """Compute the means (L,) float64 of one draw."""
        out = np.zeros(len(self.levels))
        for part in self.parts:
            out += part.weights @ theta.levels(part.term, part.codes)[:, part.component].astype(np.float64)
        return out


@dataclass(frozen=True)
class MeansMoments:
    """Means of one effect and trait, and their covariance."""

    mean: np.ndarray  # (L,)
    covariance: np.ndarray  # (L, L)


class FollowedMeans:
    """Mean and covariance of the means over the draws of a chain, by Welford's update."""

    def __init__(self, means: AdjustedMeans):
        self.means = means
        n = len(means.levels)
        self.n_draws, self.mean, self.products = 0, np.zeros(n), np.zeros((n, n))

    def add(self, theta: Theta) -> None:
        values = self.means.values(theta)
        self.n_draws += 1
        before = values - self.mean
        self.mean = self.mean + before / self.n_draws
        self.products += np.outer(before, values - self.mean)

    def state(self) -> dict[str, np.ndarray]:
        return {"n_draws": np.array(self.n_draws), "mean": self.mean, "products": self.products}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        self.n_draws = int(state["n_draws"])
        self.mean, self.products = state["mean"].copy(), state["products"].copy()

    def pool(self, further: Sequence[FollowedMeans]) -> MeansMoments:
        """Pool all draws of all chains."""
        chains = (self, *further)
        n = sum(c.n_draws for c in chains)
        mean = np.sum([c.n_draws * c.mean for c in chains], axis=0) / n
        products = np.zeros_like(self.products)
        for c in chains:
            products += c.products + c.n_draws * np.outer(c.mean - mean, c.mean - mean)
        return MeansMoments(mean, products / max(n - 1, 1))
