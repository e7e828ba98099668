"""p values as -log10 p, exact however small they are."""

from __future__ import annotations

import numpy as np
from scipy import special

LOG_10 = float(np.log(10.0))


def log_p_of_z(z: np.ndarray) -> np.ndarray:
    """-log10 of the two-sided p value of a normal."""
    return -(np.log(2.0) + special.log_ndtr(-np.abs(z))) / LOG_10
