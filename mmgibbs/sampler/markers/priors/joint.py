"""The prior that effects of a SNP on several traits have in common (model.markers.JointPriorSpec).

G ~ IW(df + n, scale + sum b_j b_j' / factor_j) given the effects, over the n SNPs with any effect, where the b of
traits that the state of a SNP leaves out are drawn given the others first. SNPs without any effect would add draws of
their b from N(0, G), which say nothing of G: they are integrated out. Shares of the states by their counts.
"""

from __future__ import annotations

import numpy as np

from mmgibbs.draws.gamma import gamma
from mmgibbs.draws.purpose import MARKER_SHARES, stream
from mmgibbs.models.covariance import CovarianceModel, full_block
from mmgibbs.models.markers import JointPriorSpec
from mmgibbs.models.priors.inverse_wishart import InverseWishart
from mmgibbs.sampler.covariances import START_SCALES, draw_covariance
from mmgibbs.sampler.interweave import CholeskyPrior, cholesky_prior
from mmgibbs.sampler.markers.priors.base import Site


class JointPrior:
    """G and the shares of the states, in one chain."""

    def __init__(self, spec: JointPriorSpec, site: Site):
        self.spec, self.site = spec, site
        scale = 1.0 if spec.fixed else START_SCALES[site.key[1] % len(START_SCALES)]
        self.G, self.pi = spec.start * scale, spec.pi.copy()
        self.in_state = np.zeros(len(spec.pi), np.int64)
        self.beside: tuple[np.ndarray, int] = np.zeros_like(self.G), 0  # products, of so many, of the same G
        self.model = CovarianceModel(
            spec.start, spec.fixed, full_block(len(spec.start)), InverseWishart(spec.df, spec.scale)
        )
        self.traits = np.argsort(~spec.states, axis=1, kind="stable").astype(np.int64)  # those of a state first
        self.n_traits = spec.states.sum(axis=1)

    @property
    def log_pi(self) -> np.ndarray:
        with np.errstate(divide="ignore"):
            return np.log(self.pi)

    def state_precisions(self) -> tuple[np.ndarray, np.ndarray]:
        """B_k^-1 (K, T, T), traits of the state first, and log pi_k - log|B_k| / 2 (K,)."""
        K, T = self.spec.states.shape
        precision, log_weight = np.zeros((K, T, T)), self.log_pi
        for k in range(K):
            own = self.traits[k, : self.n_traits[k]]
            B = self.spec.factor[k] * self.G[np.ix_(own, own)]
            precision[k, : len(own), : len(own)] = np.linalg.inv(B)
            log_weight[k] -= 0.5 * np.linalg.slogdet(B)[1]
        return precision, log_weight

    def left_out(self) -> tuple[np.ndarray, np.ndarray]:
        """given and noise (K, T, T): the b of the traits that state k leaves out are given_k a + noise_k z."""
        K, T = self.spec.states.shape
        given, noise = np.zeros((2, K, T, T))
        for k, active in enumerate(self.spec.states):
            own, rest = np.flatnonzero(active), np.flatnonzero(~active)
            if not rest.size:
                continue
            slope = np.linalg.solve(self.G[np.ix_(own, own)], self.G[np.ix_(own, rest)]).T
            given[k][np.ix_(rest, own)] = slope
            spread = self.G[np.ix_(rest, rest)] - slope @ self.G[np.ix_(own, rest)]
            noise[k][np.ix_(rest, rest)] = np.linalg.cholesky(self.spec.factor[k] * spread)
        return given, noise

    def update(self, a: np.ndarray, state: np.ndarray, z: np.ndarray, number: int) -> None:
        """G and the shares given a (p, T) and state (p,); z (p, T) standard normals for the b that are left out."""
        spec = self.spec
        self.in_state = np.bincount(state, minlength=len(spec.pi))
        if not spec.fixed:
            given, noise = self.left_out()
            products, n = self.beside[0].copy(), self.beside[1]
            for k in np.flatnonzero(spec.states.any(axis=1)):
                at = state == k
                b = a[at] + a[at] @ given[k].T + z[at] @ noise[k].T
                products += b.T @ b / spec.factor[k]
                n += len(b)
            self.G = draw_covariance(self.model, products, n, number, self.site.term, self.site.key)
        if spec.counts is not None:
            at = stream(MARKER_SHARES, self.site.term)
            each = [float(c + n) for c, n in zip(spec.counts, self.in_state, strict=True)]
            g = np.array([gamma(shape, number, k, at, 0, *self.site.key) for k, shape in enumerate(each)])
            self.pi = g / g.sum()

    @property
    def scaling(self) -> CholeskyPrior | None:
        """Prior and Jacobian of what interweaving moves; None where G is fixed."""
        if self.spec.fixed:
            return None
        if self.spec.whole:
            return cholesky_prior(self.model)
        T = len(self.G)
        nu, S = self.model.inverse_wishart(tuple(range(T)))
        places = np.arange(T, dtype=np.int64)
        return CholeskyPrior(places, places, np.full(T, T - (nu + T + 1)), S)

    @property
    def mean_variances(self) -> np.ndarray:
        """Mean variances (T,) of the prior of an effect on each trait, over the states."""
        return np.diag(self.G) * ((self.pi * self.spec.factor) @ self.spec.states)

    def draws(self) -> dict[str, np.ndarray]:
        shares = {"pi": self.pi, "in_class": self.in_state.astype(float)} if len(self.pi) > 1 else {}
        return {"covariance": self.G} | shares

    def state(self) -> dict[str, np.ndarray]:
        return {"G": self.G, "pi": self.pi, "in_state": self.in_state}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        self.G, self.pi, self.in_state = (state[name].copy() for name in ("G", "pi", "in_state"))
