"""Monte Carlo results against exact ones, judged in Monte Carlo standard errors with the number of comparisons
accounted for.

With m comparisons and B >= 100 batches, z_j = (mean of the batches - exact) / (their standard deviation / sqrt(B)), and
two things must hold:

    max |z_j|     below the two-sided t quantile, B - 1 degrees of freedom, at a false alarm of 1e-3 / m      (one
    number is wrong)
    mean z_j^2    in the central 1 - 1e-3 band of chi-square(d) / d, times (B - 1)/(B - 3)                      (all are
    a little wrong)

d is the number of independent comparisons that m correlated ones amount to, m^2 / tr(P^2) with P the correlation of the
batch means (Satterthwaite). Batches are stretches of a chain much longer than its autocorrelation time, or independent
chains.

A standard deviation is compared through its square: the mean of (x - exact mean)^2 has the exact variance for its
expectation, and the batch means of these squared deviations give its Monte Carlo standard error.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

FALSE_ALARM = 1e-3
MIN_BATCHES = 100


@dataclass(frozen=True, repr=False)
class Comparison:
    z: np.ndarray  # (m,)
    limit: float  # of the largest |z|
    mean_square: float  # of z
    band: tuple[float, float]  # of the mean square
    independent: float  # comparisons that the m correlated ones amount to

    @property
    def agrees(self) -> bool:
        return bool(self.largest < self.limit and self.band[0] < self.mean_square < self.band[1])

    @property
    def largest(self) -> float:
        return float(np.abs(self.z).max())

    def __repr__(self) -> str:
        return (
            f"{self.z.size} comparisons ({self.independent:.1f} independent): largest |z| {self.largest:.2f} at "
            f"{int(np.abs(self.z).argmax())} "
            f"(limit {self.limit:.2f}), mean z^2 {self.mean_square:.2f} (band {self.band[0]:.2f} to {self.band[1]:.2f})"
        )


def batches(draws: np.ndarray, n: int = MIN_BATCHES) -> np.ndarray:
    """(n, m) means of n consecutive stretches of one chain, draws (N, ...);
    of several chains (C, N, ...), about n / C stretches each.
    """
    length = len(draws) // n
    assert length > 0, f"{len(draws)} draws make no {n} batches"
    return draws[: n * length].reshape(n, length, -1).mean(axis=1)


def chain_batches(draws: np.ndarray, n: int = MIN_BATCHES) -> np.ndarray:
    """The same for several chains side by side, draws (C, N, ...): n batches over all of them."""
    each = -(-n // len(draws))
    return np.concatenate([batches(d, each) for d in draws])


def compare(means: np.ndarray, exact, exact_error=0.0) -> Comparison:
    """Batch means (B, m) against m exact values; `exact_error`: their own standard errors where they were simulated."""
    B, m = means.shape
    assert B >= MIN_BATCHES, f"{B} batches, needed {MIN_BATCHES}"
    spread = means.std(axis=0, ddof=1)
    assert np.all(spread > 0), f"comparison {int(np.argmin(spread))} never moves"
    z = (means.mean(axis=0) - np.ravel(exact)) / np.hypot(spread / np.sqrt(B), exact_error)
    limit = stats.t.isf(FALSE_ALARM / m / 2, B - 1)
    d = independent_comparisons((means - means.mean(axis=0)) / spread)
    low, high = (stats.chi2.ppf(p, d) / d * (B - 1) / (B - 3) for p in (FALSE_ALARM / 2, 1 - FALSE_ALARM / 2))
    return Comparison(z, float(limit), float(np.mean(z**2)), (float(low), float(high)), d)


def independent_comparisons(standardised: np.ndarray) -> float:
    """m^2 / tr(P^2) from (B, m) standardised batch means; what chance correlations of B batches add to tr(P^2) is taken
    off.
    """
    B, m = standardised.shape
    gram = standardised @ standardised.T / (B - 1)
    squares = float(np.sum(gram**2)) - (m * m - m) / (B - 1)
    return float(m * m / np.clip(squares, m, m * m))


def with_squares(draws: np.ndarray, mean) -> np.ndarray:
    """(N, ..., 2 m): draws and squared deviations from their exact mean (m,), side by side:
    compare with `mean_and_variance`.
    """
    return np.concatenate([draws, (draws - mean) ** 2], axis=-1)


def mean_and_variance(mean, sd) -> np.ndarray:
    return np.concatenate([np.ravel(mean), np.ravel(sd) ** 2])
