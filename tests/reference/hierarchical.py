"""Moments of a density on a grid, for one group of a hierarchical regression."""

from __future__ import annotations

import numpy as np


def grid_moments(log_density, axes):
    """Mean (k,) and covariance matrix of a density on the grid of the k axes; log_density takes (..., k) points."""
    points = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, len(axes))
    weight = log_density(points)
    weight = np.exp(weight - weight.max())
    weight /= weight.sum()
    mean = weight @ points
    away = points - mean
    return mean, away.T @ (weight[:, None] * away)
