"""Between which values a parameter can lie: where the density of its draws ends."""

from __future__ import annotations

import numpy as np

SHARES = ("h2", "ratio", "h2_observed", "incidence", "pi")  # of a whole
OF_ANY_SIGN = ("beta", "intercept", "population", "cov", "effect_cov")  # though all of their draws may be above 0
MATRIX = "covariance"  # of a regression, with variances on its diagonal


def bounds(name: str, draws: np.ndarray) -> tuple[float | None, float | None]:
    """(floor, ceiling) of a parameter of the summary, None where there is none.

    Correlations lie from -1 to 1, shares from 0 to 1. What else has no draw below 0 is taken for a variance or a scale,
    but for coefficients and covariances. A bound that a draw is beyond is none: with a negative covariance of direct
    and maternal effects a share may be above 1.
    """
    kind, _, inside = name.removesuffix("]").partition("[")
    kind = kind.rpartition(".")[2]
    lowest, highest = draws.min(), draws.max()
    if kind.endswith("corr") or kind == "rho":
        return _kept(-1.0, 1.0, lowest, highest)
    if kind in SHARES:
        return _kept(0.0, 1.0, lowest, highest)
    if kind in OF_ANY_SIGN or (kind == MATRIX and not _is_diagonal(inside)):
        return None, None
    return _kept(0.0, None, lowest, highest)


def _kept(floor: float, ceiling: float | None, lowest: float, highest: float) -> tuple[float | None, float | None]:
    return floor if lowest >= floor else None, ceiling if ceiling is not None and highest <= ceiling else None


def _is_diagonal(inside: str) -> bool:
    """'a,a', or 'difficult,dam_age,difficult,dam_age'."""
    labels = inside.split(",")
    return labels[: len(labels) // 2] == labels[len(labels) // 2 :]
