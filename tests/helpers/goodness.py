"""How well draws fit: probability integral transforms, and moments in units of their standard errors."""

import numpy as np
from scipy import stats


def transform_z(u):
    """(z_KS, z_mean, z_square) of (n,) values that should be U(0, 1), each about standard normal in its upper tail.

    Kolmogorov-Smirnov's p as a normal deviate, the mean of u, and the mean of (u - 1/2)^2.
    """
    u = np.asarray(u)
    assert np.all((u >= 0) & (u <= 1)), "not a probability: a draw outside its range, or a wrong oracle"
    n = u.size
    ks = stats.norm.isf(max(stats.kstest(u, "uniform").pvalue, 1e-300))
    centred = u - 0.5
    return np.array([ks, centred.mean() * np.sqrt(12 * n), ((centred**2).mean() - 1 / 12) * np.sqrt(180 * n)])


def moment_z(x, mean, variance):
    """(z_mean, z_variance) of (n,) draws that should have these moments (the fourth moment is the sample's own)."""
    n = x.size
    squares = (x - mean) ** 2
    return np.array(
        [(x.mean() - mean) / np.sqrt(variance / n), (squares.mean() - variance) / (squares.std() / np.sqrt(n))]
    )


def agree(z):
    """True where the largest |z| of all these comparisons is below the normal quantile at 1e-3 over their number."""
    z = np.abs(np.concatenate([np.ravel(part) for part in z]))
    assert np.all(np.isfinite(z))
    return bool(z.max() < stats.norm.isf(0.5e-3 / z.size))
