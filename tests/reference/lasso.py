"""The Bayesian lasso once more: exactly for orthogonal predictors, and by the three-block sampler in plain NumPy."""

from __future__ import annotations

import numpy as np
from scipy.special import log_ndtr


def orthogonal_moments(b, rest: float, n: int, a: float, scale: float, r: float, delta: float) -> np.ndarray:
    """Posterior means of beta, beta^2 (p each), sigma^2 and lambda^2 for centred columns with X'X = I.

    b = X'y (p,); rest = y'y - b'b; sigma^2 ~ IG(a, scale), lambda^2 ~ Gamma(r, rate delta). Given sigma and lambda the
    t_j = beta_j / sigma are independent with densities proportional to exp(-(m_j - t)^2/2 - lambda |t|), m = b/sigma:
    normal pieces on either side of 0, integrated in closed form. sigma^2 and lambda^2 are summed over a grid.
    """
    log_s2, log_l2 = np.meshgrid(np.linspace(-7, 9, 481), np.linspace(-16, 9, 501), indexing="ij")
    s, lam = np.exp(log_s2 / 2), np.exp(log_l2 / 2)
    weight = -(a + (n - 1) / 2) * log_s2 - (scale + rest / 2) / s**2 + r * log_l2 - delta * lam**2  # d log s2, d log l2
    first, second = [], []
    for one in b:
        m = one / s
        log_side, mean, square = [], [], []
        for sign in (1, -1):
            mu = sign * m - lam  # t = sign u, u > 0: a normal(mu, 1) piece
            log_mass = 0.5 * mu**2 - 0.5 * m**2 + log_ndtr(mu)
            hazard = np.exp(-0.5 * mu**2 - 0.5 * np.log(2 * np.pi) - log_ndtr(mu))
            log_side.append(log_mass)
            mean.append(sign * (mu + hazard))
            square.append(1 + mu * (mu + hazard))
        top = np.logaddexp(*log_side)
        share = np.exp(np.array(log_side) - top)
        first.append(s * (share * np.array(mean)).sum(0))
        second.append(s**2 * (share * np.array(square)).sum(0))
        weight = weight + np.log(lam) + top
    p = np.exp(weight - weight.max())
    edge = max(p[0].max(), p[-1].max(), p[:, 0].max(), p[:, -1].max())
    assert edge < 1e-6, "the grid is too small"
    return np.array([(p * v).sum() / p.sum() for v in (*first, *second, s**2, lam**2)])


def three_blocks(
    X, y, chains: int, burn_in: int, samples: int, a: float, scale: float, r: float, delta: float, seed: int
) -> np.ndarray:
    """(chains, samples, p + 2) draws of beta, sigma^2, lambda^2: beta | sigma^2, then sigma^2 | beta, then tau and
    lambda (Park & Casella).

    X centred; y is centred here. NumPy's own generators; A^-1 is formed outright.
    """
    rng = np.random.default_rng(seed)
    (n, p), y = X.shape, y - y.mean()
    G, g = X.T @ X, X.T @ y
    tau2, s2, l2 = np.ones((chains, p)), np.full(chains, y.var()), np.full(chains, r / delta)
    kept = np.empty((chains, samples, p + 2))
    for sweep in range(-burn_in, samples):
        V = np.linalg.inv(G + np.eye(p) / tau2[:, None, :])
        root = np.linalg.cholesky((V + V.swapaxes(1, 2)) / 2)
        beta = V @ g + np.sqrt(s2)[:, None] * np.einsum("cij,cj->ci", root, rng.standard_normal((chains, p)))
        squares = ((y - beta @ X.T) ** 2).sum(1) + (beta**2 / tau2).sum(1)
        s2 = (scale + squares / 2) / rng.gamma(a + (n - 1 + p) / 2, size=chains)
        tau2 = 1 / rng.wald(np.sqrt(l2 * s2)[:, None] / np.abs(beta), l2[:, None])
        l2 = rng.gamma(r + p, size=chains) / (delta + tau2.sum(1) / 2)
        if sweep >= 0:
            kept[:, sweep] = np.column_stack([beta, s2, l2])
    return kept
