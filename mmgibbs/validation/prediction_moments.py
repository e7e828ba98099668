"""Running moments of predictions, and what their Monte Carlo error adds to the variance over records."""

from __future__ import annotations

import numpy as np

from mmgibbs.posterior.moments import Moments, batches_per_chain, pool


def make_moments(size: int, n_draws: int) -> Moments:
    """Make the moments of (size, 1) values and of their (1, 1) mean."""
    return Moments([(size, 1), (1, 1)], n_draws, batches_per_chain(n_draws, 1))


def means_and_noise(moments: Moments) -> tuple[tuple[np.ndarray, float], float]:
    """((size,) means, mean of the values), and what Monte Carlo error adds to the variance of the means over them:
    the mean of its squares less that of their common mean. 0 where it is unknown.
    """
    pooled = pool([moments])
    mcse_of_each, common = pooled.mcse
    noise = float((mcse_of_each**2).mean() - common[0, 0] ** 2)
    return (pooled.mean[0][:, 0], float(pooled.mean[1][0, 0])), max(noise, 0.0) if np.isfinite(noise) else 0.0
