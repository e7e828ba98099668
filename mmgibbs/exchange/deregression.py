"""Deregressed proofs: what records of an animal and its progeny say of it, without its parents (Garrick, Taylor &
Fernando 2009).

An EBV is regressed towards the parent average. With lambda = (1 - h2) / h2, PA the average of the parents and d the
Mendelian variance in units of the additive one, the equations of PA and of animal i were

    [ X_PA + lambda (1/v + 1/d)     -lambda/d      ] [ PA  ]   [ y_PA ]
    [       -lambda/d           X_i + lambda/d     ] [ g_i ] = [ y_i  ]         v the variance of PA

X: information as a number of records. The prediction error variances of PA and g_i are those of the inverse times
lambda, which gives both diagonal elements, so X_i; then y_i (neither depends on v), and

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
class _ParentAverage:
    """PA in the two equations of each animal: the average of its parents, or the one that is known."""

    ebv: np.ndarray  # (n,)
    share: np.ndarray  # (n,) of it in the mean of the animal: 1 of an average, 1/2 of one parent
    errors: np.ndarray  # (n,) prediction error variances, as those of Evaluated
    mendelian: np.ndarray  # (n,) d


def deregress(evaluated: Evaluated, heritability: float) -> Deregressed:
    """Deregress EBVs of which the parents are among the animals, or unknown."""
    ratio = (1.0 - heritability) / heritability
    average, has_parents = _average_parents(evaluated), (evaluated.sire >= 0) | (evaluated.dam >= 0)
    reliability, ebv = evaluated.reliability, evaluated.ebv
    with np.errstate(divide="ignore", invalid="ignore"):
        information = ratio * reliability / (1.0 - reliability)
        sums = (information + ratio) * ebv
        pair_information, pair_sums = _solve_pair(average, evaluated, ratio)
        information = np.where(has_parents, pair_information, information)
        sums = np.where(has_parents, pair_sums, sums)
        reliability = information / (information + ratio)
        is_informed = reliability >= MIN_RELIABILITY
        proof = np.where(is_informed, sums / information, np.nan)
    parent_average = np.where(has_parents, average.ebv * average.share, 0.0)
    reliability, information = (np.where(is_informed, values, np.nan) for values in (reliability, information))
    return Deregressed(proof, reliability, information, parent_average)


def _average_parents(evaluated: Evaluated) -> _ParentAverage:
    sire, dam, F = evaluated.sire, evaluated.dam, evaluated.inbreeding
    both, known = (sire >= 0) & (dam >= 0), np.where(sire >= 0, sire, dam)
    ebv = np.where(both, (evaluated.ebv[sire] + evaluated.ebv[dam]) / 2, evaluated.ebv[known])
    errors = np.where(both, (evaluated.errors[sire] + evaluated.errors[dam]) / 4, evaluated.errors[known])
    mendelian = np.where(both, (2.0 - F[sire] - F[dam]) / 4, (3.0 - F[known]) / 4)
    return _ParentAverage(ebv, np.where(both, 1.0, 0.5), errors, mendelian)


def _solve_pair(average: _ParentAverage, evaluated: Evaluated, ratio: float) -> tuple[np.ndarray, np.ndarray]:
    """(X_i, y_i), each (n,), by the matrix [a b; b c] of the equations: b and the diagonal of its inverse are known.

    c / (a c - b^2) = e_PA / lambda  and  a / (a c - b^2) = e_i / lambda  for the prediction error variances e, so that
    c / a = e_PA / e_i, and a is the positive root of a quadratic equation.
    """
    first, second = average.errors / ratio, evaluated.errors / ratio
    off = -ratio * average.share / average.mendelian
    a = (1.0 + np.sqrt(1.0 + 4.0 * first * second * off**2)) / (2.0 * first)
    c = a * first / second
    information = c - ratio / average.mendelian
    return information, off * average.ebv + c * evaluated.ebv


def weigh(reliability: np.ndarray, heritability: float, unexplained: float) -> np.ndarray:
    """Weights of deregressed proofs; unexplained: share of the genetic variance that markers do not explain."""
    return (1.0 - heritability) / ((unexplained + (1.0 - reliability) / reliability) * heritability)
