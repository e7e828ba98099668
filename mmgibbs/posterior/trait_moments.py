"""Mean of a trait, variance of its fixed effects, and its additive variance in units of the mean, draw by draw.

With eta_i the fixed part of record i, and means and variances over the records of the trait,

    mean       = mean eta_i (with the genomic values of genotyped animals, where SNPs have effects)
    fixed_var  = var eta_i, the variance by fixed effects among the records (de Villemereuil et al. 2018)
    cv_a       = 100 sqrt(V_A) / mean, the coefficient of additive genetic variation in per cent (Houle 1992)
    i_a        = V_A / mean^2, the evolvability: the expected response to selection, as a share of the mean, where
                 fitness is proportional to the trait (Houle 1992; Hansen, Pelabon & Houle 2011)

V_A is the numerator of h2. cv_a and i_a divide by the mean, which has a meaning on a ratio scale alone: they are given
where every record is above 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from mmgibbs.posterior.observed_scale import Population

MOMENTS = ("mean", "fixed_var")  # of a draw, in this order


@dataclass(frozen=True)
class TraitMoments:
    """Moments of one trait that are computed in every kept draw."""

    trait: str
    draws: str  # what the draws (2,) of MOMENTS are called
    population: Population  # the records of the trait, equal ones joined
    is_ratio_scale: bool  # every record is above 0

    def values(self, eta: np.ndarray) -> np.ndarray:
        """Compute the moments (2,) of eta (rows,), the fixed part on the scale of the sampler."""
        weight = self.population.weight
        mean = weight @ eta
        return np.array([mean + self.population.origin, weight @ (eta - mean) ** 2])

    def note(self, additive: np.ndarray | None) -> str:
        """Why there is no CV_A; '' where there is."""
        absent = f"so there is no cv_a[{self.trait}], nor i_a[{self.trait}]"
        if additive is None:
            return f"{self.trait}: there is no single additive variance, {absent}"
        if not self.is_ratio_scale:
            return f"{self.trait}: some records are 0 or less, and its mean is no unit for a variance, {absent}"
        return ""

    def named(self, draws: Mapping[str, np.ndarray], additive: np.ndarray | None) -> dict[str, np.ndarray]:
        """Parameter -> (chains, draws). additive: V_A, None where the trait has none."""
        if self.draws not in draws:
            return {}
        mean, fixed = (draws[self.draws][..., j] for j in range(len(MOMENTS)))
        out = {f"mean[{self.trait}]": mean, f"fixed_var[{self.trait}]": fixed}
        if additive is not None and self.is_ratio_scale:
            out[f"cv_a[{self.trait}]"] = 100 * np.sqrt(additive) / mean
            out[f"i_a[{self.trait}]"] = additive / mean**2
        return out
