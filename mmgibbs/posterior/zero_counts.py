"""Monte Carlo standard errors of probabilities of what the draws have never seen, or have seen without exception.

An event that did not happen in N draws has batch means that are all 0, and a standard error of 0 or nearly so: the
draws say that it is rare, not how rare. Of n independent draws without it, the probability has the posterior
Beta(1/2, n + 1/2) under Jeffreys' prior (Brown, Cai & DasGupta 2001, Stat. Sci. 16:101), with the standard deviation

    sqrt( (n + 1/2) / (2 (n + 1)^2 (n + 2)) ),   about 0.7 / n

and its upper 95 % limit is near 3 / n, the rule of three (Hanley & Lippman-Hand 1983, JAMA 249:1743). This is the least
standard error of such a probability. n is the number of effective draws.
"""

from __future__ import annotations

import numpy as np

MIN_DRAWS = 0.5  # expected to have an event, below which none has it
MIN_SD_OF_MOVING = 0.1  # of the draws of a probability that is neither always near 0 nor always near 1


def zero_count_error(n: np.ndarray | float) -> np.ndarray:
    """Standard deviation of a probability after none in n independent draws."""
    n = np.asarray(n, np.float64)
    return np.sqrt((n + 0.5) / (2 * (n + 1) ** 2 * (n + 2)))


def raise_errors_of_unseen(
    mean: np.ndarray, mcse: np.ndarray, n_draws: int, effective: np.ndarray | float
) -> np.ndarray:
    """MCSE of probabilities, at least `zero_count_error` where no draw has the event, or its opposite.

    mean: probabilities, over n_draws draws; where it is an average of conditional probabilities, n_draws x mean draws
    are expected to have the event, and less than half a draw is none. effective: effective draws. NaN stays NaN.
    """
    rarer = np.minimum(mean, 1 - mean)
    return np.where(rarer * n_draws < MIN_DRAWS, np.maximum(mcse, zero_count_error(effective)), mcse)


def effective_draws(sd: np.ndarray, ess: np.ndarray, n_draws: int, n_batches: int) -> float:
    """Effective draws of related probabilities: the median of those that move, else the number of batches."""
    moving = ess[(sd >= MIN_SD_OF_MOVING) & np.isfinite(ess)]
    n = float(np.median(moving)) if moving.size else float(n_batches)
    return min(n, float(n_draws))
