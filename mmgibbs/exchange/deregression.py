"""Deregressed proofs: what records of an animal and its progeny say of it, without its parents (Garrick, Taylor &
Fernando 2009).

An EBV is regressed towards the parent average. With lambda = (1 - h2) / h2, PA the average of the parents and d the
Mendelian variance in units of the additive one, the equations of PA and of animal i were

    [ X_PA + lambda (1/v + 1/d)     -lambda/d      ] [ PA  ]   [ y_PA ]
    [       -lambda/d           X_i + lambda/d     ] [ g_i ] = [ y_i  ]         v the variance of PA

X: information as a number of records. The prediction error variances of PA and g_i are those of the inverse times
lambda, which gives X_PA and X_i; then y_i, and

    deregressed proof = y_i / X_i        reliability = X_i / (X_i + lambda)

    weight = (1 - h2) / [ (c + (1 - reliability) / reliability) h2 ]      c the share that markers do not explain

With F = 0 these are the formulas of the paper: v = d = 1/2. The errors of the parents are taken as uncorrelated, as
there. Of an animal with one known parent this parent takes the place of PA (v = 1 + F, d = 3/4 - F/4, and half of it in
the mean); without parents X_i = lambda r / (1 - r) for the reliability r, and the proof is the EBV divided by r.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

MIN_RELIABILITY = 1e-3  # of a deregressed proof: with less an animal has next to no information of its own


@dataclass(frozen=True)
class Evaluated:
    """EBVs of n animals for one trait, in units of the trait; parents by their number, -1: unknown."""

    sire: np.ndarray  # (n,) int64
    dam: np.ndarray  # (n,) int64
    ebv: np.ndarray  # (n,)
    reliability: np.ndarray  # (n,)
    inbreeding: np.ndarray  # (n,)

    @property
    def errors(self) -> np.ndarray:
        """(n,) prediction error variances in units of the additive variance."""
        return (1.0 - self.reliability) * (1.0 + self.inbreeding)


@dataclass(frozen=True)
class Deregressed:
    """Of the same animals; NaN where there is no information beyond the parents."""

    proof: np.ndarray  # (n,)
    reliability: np.ndarray  # (n,)
    information: np.ndarray  # (n,) X_i
    parent_average: np.ndarray  # (n,) 0 without known parents


@dataclass(frozen=True)
class _Above:
    """What stands above an animal in its two equations: the average of its parents, or the one that is known."""

    mean: np.ndarray  # (n,) predicted
    share: np.ndarray  # (n,) of it in the mean of the animal: 1 of an average, 1/2 of one parent
    variance: np.ndarray  # (n,) v
    errors: np.ndarray  # (n,)
    mendelian: np.ndarray  # (n,) d


def deregress(evaluated: Evaluated, heritability: float) -> Deregressed:
    """Deregress EBVs of which the parents are among the animals, or unknown."""
    ratio = (1.0 - heritability) / heritability
    above, has_parents = _find_above(evaluated), (evaluated.sire >= 0) | (evaluated.dam >= 0)
    reliability, ebv = evaluated.reliability, evaluated.ebv
    with np.errstate(divide="ignore", invalid="ignore"):
        information = ratio * reliability / (1.0 - reliability)
        sums = (information + ratio) * ebv
        of_both, sums_of_both = _solve_pair(above, evaluated, ratio)
        information = np.where(has_parents, of_both, information)
        sums = np.where(has_parents, sums_of_both, sums)
        reliability = information / (information + ratio)
        enough = reliability >= MIN_RELIABILITY
        proof = np.where(enough, sums / information, np.nan)
    parent_average = np.where(has_parents, above.mean * above.share, 0.0)
    return Deregressed(
        proof, np.where(enough, reliability, np.nan), np.where(enough, information, np.nan), parent_average
    )


def _find_above(evaluated: Evaluated) -> _Above:
    sire, dam, F = evaluated.sire, evaluated.dam, evaluated.inbreeding
    both, one = (sire >= 0) & (dam >= 0), np.where(sire >= 0, sire, dam)
    mean = np.where(both, (evaluated.ebv[sire] + evaluated.ebv[dam]) / 2, evaluated.ebv[one])
    errors = np.where(both, (evaluated.errors[sire] + evaluated.errors[dam]) / 4, evaluated.errors[one])
    # var((s + d) / 2), with 2 F_i their relationship
    variance = np.where(both, (2.0 + F[sire] + F[dam] + 4.0 * F) / 4, 1.0 + F[one])
    mendelian = np.where(both, (2.0 - F[sire] - F[dam]) / 4, (3.0 - F[one]) / 4)
    return _Above(mean, np.where(both, 1.0, 0.5), variance, errors, mendelian)


def _solve_pair(above: _Above, evaluated: Evaluated, ratio: float) -> tuple[np.ndarray, np.ndarray]:
    """(X_i, y_i): the diagonal [a, c] of a 2 x 2 matrix with off-diagonal b, whose inverse has a known diagonal.

    c / a is that of the errors, and a the positive root of  c / (a c - b^2) = errors / lambda.
    """
    first, second = above.errors / ratio, evaluated.errors / ratio
    off = -ratio * above.share / above.mendelian
    a = (1.0 + np.sqrt(1.0 + 4.0 * first * second * off**2)) / (2.0 * first)
    c = a * first / second
    information = c - ratio / above.mendelian
    return information, off * above.mean + c * evaluated.ebv


def weigh(reliability: np.ndarray, heritability: float, unexplained: float) -> np.ndarray:
    """Weights of deregressed proofs; unexplained: share of the genetic variance that markers do not explain."""
    return (1.0 - heritability) / ((unexplained + (1.0 - reliability) / reliability) * heritability)
