"""The animals behind simulated records that are not weights: recorded parents, breeding values, contemporary groups.

From liabilities to what is seen of them: scores, and values that had not ended when the data were collected.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from mmgibbs.errors import ConfigError
from mmgibbs.pedigree.simulate import Population, simulate_pedigree
from mmgibbs.simulation import arguments
from mmgibbs.simulation.simulate import DAM_UNRECORDED, FIRST_YEAR, SIRE_UNRECORDED

# Bulls of artificial insemination with some 50 calves each: records in categories say little one by one.
BREEDING = Population(
    first_year=FIRST_YEAR, ai_share=0.6, ai_calves_per_bull=50.0, ai_popularity_sd=0.6, cows_per_bull=20
)


@dataclass(frozen=True)
class Herd:
    """n animals in birth order. Codes are positions; -1 is unknown."""

    sire: np.ndarray  # (n,) int32, as recorded
    dam: np.ndarray  # (n,) int32
    birth_year: np.ndarray  # (n,) int32
    sex: np.ndarray  # (n,) int8, 0 female, 1 male
    herd: np.ndarray  # (n,) int32
    u: np.ndarray  # (n, k) float64 true breeding values

    @property
    def n_animals(self) -> int:
        return self.sire.size


def breed(n_animals: int, seed: int, years: int, G: np.ndarray, stream: int) -> tuple[Herd, np.random.Generator]:
    """A population with breeding values N(0, A (x) G), and the generator of what happens in it (independent streams).

    Raises ConfigError where the arguments make no population."""
    n_animals, seed, years = arguments.population(n_animals, seed, years)
    try:
        animals = simulate_pedigree(n_animals, seed, replace(BREEDING, years=years), G)
    except ValueError as error:
        raise ConfigError(f"no population: {error}") from None
    assert animals.breeding_values is not None, "there are some where G is given"
    rng = np.random.default_rng([seed, stream])
    sire, dam = animals.sire.copy(), animals.dam.copy()
    sire[rng.random(n_animals) < SIRE_UNRECORDED] = -1
    dam[rng.random(n_animals) < DAM_UNRECORDED] = -1
    herd = Herd(sire, dam, animals.birth, animals.sex, animals.herd, animals.breeding_values)
    return herd, rng


def herd_years(
    rng: np.random.Generator, herd: np.ndarray, year: np.ndarray, covariance: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(names (r,) 'H1-2003', effects (r, T) ~ N(0, covariance)) of the herd and year of each record."""
    width = len(str(int(herd.max(initial=0)) + 1))
    names = np.array([f"H{h + 1:0{width}d}-{y}" for h, y in zip(herd.tolist(), year.tolist(), strict=True)])
    present, group = np.unique(names, return_inverse=True)
    effects = rng.standard_normal((present.size, len(covariance))) @ np.linalg.cholesky(covariance).T
    return names, effects[group]


def cut_points(location: np.ndarray, sd: float, shares: Sequence[float]) -> np.ndarray:
    """(K - 1,) where liabilities N(location_r, sd^2) are cut so that K categories have these expected shares.

    location: (n,) fixed part of each record; shares: (K,) above 0, summing to 1. The cuts c_k solve

        mean over r of Phi((c_k - location_r) / sd) = shares_1 + ... + shares_k
    """
    from scipy.optimize import brentq
    from scipy.special import ndtr

    low, high = float(location.min()) - 40.0 * sd, float(location.max()) + 40.0 * sd
    below = np.cumsum(np.asarray(shares, float))[:-1] / np.sum(shares)
    return np.array([brentq(lambda c, p: float(ndtr((c - location) / sd).mean() - p), low, high, (p,)) for p in below])


def cut_categories(liability: np.ndarray, thresholds: np.ndarray, labels: Sequence[str], trait: str) -> np.ndarray:
    """(n,) label of each liability (n,), between thresholds (K - 1,); ConfigError where a category stays empty."""
    code = np.searchsorted(thresholds, liability)
    count = np.bincount(code, minlength=len(labels))
    if not count.all():
        empty = labels[int(np.argmin(count))]
        raise ConfigError(
            f"{trait}: found no record of '{empty}' among {liability.size} records, needed some in every category: "
            "more animals, or categories that are not so rare"
        )
    return np.array(labels)[code]


def censor_days(days: np.ndarray, watched: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(days seen (n,) int64, ended (n,) bool): whole days, at least 1, cut off where the watch ends (censored).

    days: (n,) true; watched: (n,) days from the start of each record to the collection of the data, at least 1.
    """
    whole_days = np.maximum(np.ceil(days), 1.0)
    ended = whole_days <= watched
    return np.where(ended, whole_days, watched).astype(np.int64), ended
