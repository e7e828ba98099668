"""The shape of p(x | l) where l changes from sweep to sweep: normal about a linear regression, learnt from draws.

    x | l  ~  N(c + B'(f - m), V),      f a summary of l that has few elements, m its mean

By least squares from the sums of products of z = (1, f, x) over draws, with elements of f in standard deviations and
RIDGE added to their correlation matrix, which may be singular.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mmgibbs.sampler.marginal.moves import Shape

RIDGE = 1e-3  # in correlations
MIN_RELATIVE_SD = 1e-9  # of an element of f that varies
MIN_DRAWS = 10  # for each element of z that varies
TINY = 1e-8  # added to variances of x


class Regression(NamedTuple):
    """Regression of x on f."""

    center: np.ndarray  # (p,) c
    slope: np.ndarray  # (f, p) B
    mean: np.ndarray  # (f,) m
    root: np.ndarray  # (p, p) of V

    def predict(self, summary: np.ndarray) -> Shape:
        """The shape given f."""
        return Shape(self.center + (summary - self.mean) @ self.slope, self.root)


def add_products(sums: np.ndarray, summary: np.ndarray, x: np.ndarray) -> None:
    """Add one draw to the sums (1 + f + p, 1 + f + p) of products of z, in place."""
    z = np.concatenate([[1.0], summary, x])
    sums += np.outer(z, z)


def learn_regression(sums: np.ndarray, p: int) -> Regression | None:
    """The regression of p elements of x; None of too few draws."""
    n = sums[0, 0]
    mean = sums[0, 1:] / max(n, 1.0)
    covariance = sums[1:, 1:] / max(n, 1.0) - np.outer(mean, mean)
    n_summary = len(mean) - p
    sd = np.sqrt(np.maximum(np.diag(covariance)[:n_summary], 0.0))
    varying = np.flatnonzero(sd > MIN_RELATIVE_SD * np.abs(mean[:n_summary]))
    if n < MIN_DRAWS * (1 + varying.size + p):
        return None
    of_x = covariance[n_summary:, n_summary:]
    correlation = covariance[np.ix_(varying, varying)] / np.outer(sd[varying], sd[varying])
    crossed = covariance[varying, n_summary:] / sd[varying, None]
    standardised = np.linalg.solve(correlation + RIDGE * np.eye(varying.size), crossed)
    V = of_x - standardised.T @ crossed - crossed.T @ standardised + standardised.T @ correlation @ standardised
    V = V * n / (n - varying.size - 1.0) + TINY * np.eye(p)
    slope = np.zeros((n_summary, p))
    slope[varying] = standardised / sd[varying, None]
    return Regression(mean[n_summary:], slope, mean[:n_summary], np.linalg.cholesky(V))
