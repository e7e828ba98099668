"""Hierarchical logit by random-walk Metropolis in plain NumPy, many chains at once: an independent reference, and
grids for one group.

    y_ir ~ Bernoulli(logit^-1(x_ir beta_i)),  beta_i ~ N(Delta' z_i, V),  Delta_kj ~ N(0, s^2),  V ~ IW(nu, S)

Nothing of the package is used. V^-1 is drawn as a sum of nu + G outer products of normals, Delta as one normal vector
of q d elements.
"""

from __future__ import annotations

import numpy as np


def hierarchical_logit(x, y, groups, z, population_sd, df, scale, chains, burn_in, samples, seed):
    """Kept states of `chains` chains: beta (N, chains, G, d), population (N, chains, q, d), covariance (N, chains, d,
    d).

    x (n, d) with its constant column, z (G, q); df a whole number. Steps of each coordinate are adapted in the burn-in.
    """
    rng = np.random.default_rng(seed)
    G, q, d = len(z), z.shape[1], x.shape[1]
    member = np.eye(G)[groups]  # (n, G)
    beta, population = rng.standard_normal((chains, G, d)), np.zeros((chains, q, d))
    precision, step = np.tile(np.eye(d), (chains, 1, 1)), np.ones((G, d))
    kept = []

    def log_density(beta, mean):
        eta = np.einsum("nj,cnj->cn", x, beta[:, groups])
        away = beta - mean
        prior = -0.5 * np.einsum("cgi,cij,cgj->cg", away, precision, away)
        return (y * eta - np.logaddexp(0, eta)) @ member + prior

    for sweep in range(1, burn_in + samples + 1):
        mean = z @ population
        here = log_density(beta, mean)
        for j in range(d):
            moved = beta.copy()
            moved[:, :, j] += step[:, j] * rng.standard_normal((chains, G))
            there = log_density(moved, mean)
            accepted = np.log(rng.random((chains, G))) < there - here
            beta[accepted], here[accepted] = moved[accepted], there[accepted]
            if sweep <= burn_in:
                step[:, j] *= np.exp((accepted.mean(0) - 0.44) / sweep**0.5)
        # Delta: precision Z'Z (x) V^-1 + I/s^2 of its rows one after another
        P = (
            np.einsum("kl,cij->ckilj", z.T @ z, precision).reshape(chains, q * d, q * d)
            + np.eye(q * d) / population_sd**2
        )
        rhs = (z.T @ beta @ precision).reshape(chains, q * d)
        L = np.linalg.cholesky(P)
        noise = np.linalg.solve(np.swapaxes(L, 1, 2), rng.standard_normal((chains, q * d, 1)))[..., 0]
        population = (np.linalg.solve(P, rhs[..., None])[..., 0] + noise).reshape(chains, q, d)
        away = beta - z @ population
        root = np.linalg.cholesky(np.linalg.inv(scale + np.swapaxes(away, 1, 2) @ away))
        normals = root @ rng.standard_normal((chains, d, df + G))
        precision = normals @ np.swapaxes(normals, 1, 2)
        if sweep > burn_in:
            kept.append((beta.copy(), population, np.linalg.inv(precision)))
    return tuple(np.array(part) for part in zip(*kept, strict=True))


def grid_moments(log_density, axes):
    """Mean (k,) and covariance matrix of a density on the grid of the k axes; log_density takes (..., k) points."""
    points = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, len(axes))
    weight = log_density(points)
    weight = np.exp(weight - weight.max())
    weight /= weight.sum()
    mean = weight @ points
    away = points - mean
    return mean, away.T @ (weight[:, None] * away)
