"""From liabilities to what is seen of them: scores, and values that had not ended when the data were collected."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mmgibbs.errors import ConfigError


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
