"""Horseshoe probit without a sampler: its posterior by importance sampling, its prior by forward draws.

NumPy and SciPy only.
"""

from __future__ import annotations

import numpy as np
from scipy import optimize, stats
from scipy.special import exp1, log_ndtr

LOG_TAU = np.linspace(-9, 6, 61)  # outside lies less than 1e-3 of the prior; the posterior of tau is far narrower


def log_horseshoe(b, tau):
    """log p(b | tau) = -log tau - log(2 pi^3)/2 + u + log E1(u), u = b^2 / (2 tau^2):
    lambda integrated out (Carvalho et al. 2010).
    """
    u = 0.5 * (b / tau) ** 2
    small = np.minimum(u, 500.0)
    exact = small + np.log(exp1(np.maximum(small, 1e-300)))
    return (
        -np.log(tau)
        - 0.5 * np.log(2 * np.pi**3)
        + np.where(u < 500, exact, -np.log(np.maximum(u, 1.0)) - 1 / np.maximum(u, 1.0))
    )


def posterior_moments(X, y, draws, rng, intercept_sd=np.inf):
    """Means of (beta, intercept, log tau, beta^2, intercept^2) and their standard errors.

    Proposals for (beta, intercept) are t with 5 degrees of freedom around the maximum of the likelihood; tau ~ C+(0, 1)
    is integrated on a grid.
    """
    n, p = X.shape
    W, sign = np.column_stack([X, np.ones(n)]), np.where(y, 1.0, -1.0)
    loss = lambda b: -log_ndtr(sign * (W @ b)).sum()
    fit = optimize.minimize(loss, np.zeros(p + 1), method="BFGS")
    proposal = stats.multivariate_t(fit.x * 0.95, 1.3 * fit.hess_inv, df=5, seed=rng)
    theta = proposal.rvs(draws)
    tau = np.exp(LOG_TAU)
    prior = np.log(2 / np.pi) + LOG_TAU - np.log1p(tau**2)  # of log tau
    joint = prior + sum(log_horseshoe(theta[:, j, None], tau) for j in range(p))  # (draws, grid)
    top = joint.max(1)
    of_tau = np.exp(joint - top[:, None])
    mass = of_tau.sum(1)
    log_weight = (
        log_ndtr(sign * (theta @ W.T)).sum(1)
        + np.log(mass)
        + top
        - proposal.logpdf(theta)
        - 0.5 * (theta[:, -1] / intercept_sd) ** 2
    )
    weight = np.exp(log_weight - log_weight.max())
    f = np.column_stack([theta, of_tau @ LOG_TAU / mass, theta**2])
    mean = weight @ f / weight.sum()
    return mean, np.sqrt((weight**2) @ (f - mean) ** 2) / weight.sum()


def prior_draws(rng, n, p, global_scale, intercept_sd, slab_scale=None, slab_df=4.0):
    """n draws of (beta (n, p), intercept, tau, lambda (n, p), c^-2) from the prior; c^-2 is 0 without a slab."""
    tau = global_scale * np.abs(rng.standard_cauchy(n))
    lam = np.abs(rng.standard_cauchy((n, p)))
    slab = np.zeros(n) if slab_scale is None else rng.gamma(slab_df / 2, 2 / (slab_df * slab_scale**2), n)
    beta = rng.standard_normal((n, p)) / np.sqrt((tau[:, None] * lam) ** -2.0 + slab[:, None])
    return beta, intercept_sd * rng.standard_normal(n), tau, lam, slab
