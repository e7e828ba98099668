"""Best linear unbiased prediction by the covariances of the records, without equations of effects."""

import numpy as np


def blup(K, recorded, y, residual):
    """(u, PEV) of effects with covariances K and records about one mean: K Z' P y."""
    covariance = K[:, recorded]
    P = np.linalg.inv(covariance[recorded] + residual * np.eye(len(y)))
    P -= np.outer(P.sum(axis=1), P.sum(axis=0)) / P.sum()
    return covariance @ P @ y, np.diag(K - covariance @ P @ covariance.T)
