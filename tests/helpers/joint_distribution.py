"""Draws from the joint distribution of parameters and data: what Geweke's test and simulation-based calibration compare
a sampler with.

    G_g ~ IW(nu_g, S_g)    R ~ IW(nu_e, S_e)    Theta_g ~ MN(0, K_g (x) G_g)    b ~ N(0, prior precision^-1)    y_r ~
    N(W_r theta, R / w_r)

NumPy and the tabular relationship matrix only: nothing of the sampler under test. Fixed terms need a `prior_precision`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from reference import dense
from scipy.stats import invwishart


@dataclass(frozen=True)
class Joint:
    """design: its `y` says what is observed, its values do not matter. priors:
    (df, scale) per term, None for fixed ones.
    """

    design: object
    priors: tuple
    residual_prior: tuple

    @cached_property
    def incidence(self) -> list[np.ndarray]:
        return [dense.incidence(t, self.design.n_traits) for t in self.design.terms]

    @cached_property
    def _roots(self) -> list[np.ndarray]:
        """Per random term a root of K (q, q), per fixed term of the prior covariance of a level (k, k)."""
        out = []
        for term in self.design.terms:
            precision = dense.relationship_inverse(term) if term.kind == "random" else term.prior_precision
            out.append(np.linalg.cholesky(np.linalg.inv(precision)))
        return out

    def draw(self, rng, n: int):
        """n draws: theta, one (n, q, k) per term; G, one (n, k, k) or None per term; R (n, T, T);
        y (n, records, T), every trait.
        """
        G = [None if p is None else covariance_draws(rng, n, *p) for p in self.priors]
        R = covariance_draws(rng, n, *self.residual_prior)
        theta = []
        for term, root, g in zip(self.design.terms, self._roots, G, strict=True):
            z = rng.standard_normal((n, term.n_levels, term.n_components))
            theta.append(z @ root.T if g is None else root @ z @ np.swapaxes(np.linalg.cholesky(g), 1, 2))
        noise = rng.standard_normal((n, *self.design.y.shape)) @ np.swapaxes(np.linalg.cholesky(R), 1, 2)
        y = noise / np.sqrt(self.design.weight)[:, None]
        for W, t in zip(self.incidence, theta, strict=True):
            y += np.einsum("rti,ni->nrt", W, t.reshape(n, -1))
        return theta, G, R, y

    def with_records(self, y: np.ndarray):
        """The design with these records, missing where it was missing."""
        return replace(self.design, y=np.where(np.isnan(self.design.y), np.nan, y))


def covariance_draws(rng, n: int, df: float, scale) -> np.ndarray:
    """(n, k, k) draws of IW(df, scale)."""
    k = len(scale)
    return np.reshape(invwishart.rvs(df, scale, size=n, random_state=rng), (n, k, k))
