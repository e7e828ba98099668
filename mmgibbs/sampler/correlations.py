"""Parameters rho of a relationship K and G of its term, drawn together: rho with G integrated out, then G given rho.

With S(rho) = Theta' K^-1(rho) Theta, q levels, k components and G ~ IW(nu_b, S_b) in each block,

    p(rho | Theta)  is proportional to  p(rho) |K(rho)|^(-k/2) prod_b |S_b + S(rho)_bb|^(-(nu_b + q)/2)

or, where G is fixed or has a structure, given G to p(rho) |K|^(-k/2) exp(-tr(G^-1 S(rho))/2); p(rho) is uniform
between the bounds. S(rho) is a combination of fixed sums (equations/renewable.py), so a value of rho costs the same for
any number of levels. Each parameter is drawn in turn by slice sampling (Neal 2003) within its bounds. G is then drawn
independently of what it was, where rho was drawn as if it were not known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count

import numpy as np

from mmgibbs.draws.philox import draw_word, uniform_pair
from mmgibbs.draws.purpose import CORRELATION, stream
from mmgibbs.engines.base import HostState
from mmgibbs.models.covariance import CovarianceModel
from mmgibbs.models.relationships.base import Weights
from mmgibbs.posterior.draw_names import relationship_name
from mmgibbs.posterior.parameters import Parameter
from mmgibbs.sampler.covariances import CovarianceMatrices, TermCovariance, draw_covariance
from mmgibbs.sampler.mixed_model import MixedModel
from mmgibbs.sampler.slice import finite_height, named_lost_density, shrink_component
from mmgibbs.sampler.structured_covariance import StructuredCovariance

# Chains start apart, in z = atanh(rho).
START_STEPS = (0.0, 0.5, -0.5, 0.25, -0.25)


class _Correlations:
    """rho of one random term, as the engine has it."""

    def __init__(self, model: MixedModel, term: int, engine: HostState, key: tuple[int, int]):
        self.relationship, self.term, self.engine, self.key = model.design.terms[term].relationship, term, engine, key
        self.name, self.term_name = relationship_name(term), model.design.terms[term].name
        self.parameter = Parameter(
            (f"{self.name}_parameter",), "parameters of the relationship of the levels of a term"
        )
        low, high = self.relationship.parameter_bounds.T
        step = START_STEPS[key[1] % len(START_STEPS)]
        self.take(np.clip(np.tanh(np.arctanh(self.relationship.parameter_values) + step), low, high))

    def take(self, rho: np.ndarray) -> None:
        """Take these parameters and set the lists of the engine to them."""
        self.rho = rho
        self.engine.relationship_parameters.renew(self.term, rho)

    def draw(self, density: _Density, number: int) -> None:
        """rho | Theta"""
        site = number, stream(CORRELATION, self.term)
        with named_lost_density(f"variances.{self.term_name}", number, self.key[1]):
            rho = slice_parameters(density, self.rho, self.relationship.parameter_bounds, *site, self.key)
        self.take(rho)


class CorrelationsAndCovariance(TermCovariance):
    """rho and G of one random term."""

    engine: HostState

    def __init__(
        self, model: MixedModel, term: int, engine: HostState, matrices: CovarianceMatrices, key: tuple[int, int]
    ):
        super().__init__(model, term, engine, matrices, key)
        self.correlations = _Correlations(model, term, engine, key)
        self.parameters = self.parameters | {self.correlations.name: self.correlations.parameter}

    def __call__(self, number: int) -> None:
        correlations = self.correlations
        prior = self.matrices.prior(self.name, self.covariance)
        sums = self.engine.relationship_parameters.sum_products(self.term)
        G = self.matrices[self.name] if prior.fixed else None
        density = _Density(correlations.relationship.weigh, sums, prior, self.n_levels, G)
        correlations.draw(density, number)
        if self.is_sampled:
            products = density.products(correlations.rho)
            self.matrices[self.name] = draw_covariance(prior, products, self.n_levels, number, self.term, self.key)

    def draws(self) -> dict[str, np.ndarray]:
        return super().draws() | {self.correlations.name: self.correlations.rho}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        super().restore(state)
        self.correlations.take(state[self.correlations.name].copy())


class CorrelationsAndStructure(StructuredCovariance):
    """rho of one random term given G, then the structured G given rho."""

    engine: HostState

    def __init__(
        self, model: MixedModel, term: int, engine: HostState, matrices: CovarianceMatrices, key: tuple[int, int]
    ):
        super().__init__(model, term, engine, matrices, key)
        self.covariance = model.covariance(term)
        self.correlations = _Correlations(model, term, engine, key)
        self.parameters = self.parameters | {self.correlations.name: self.correlations.parameter}

    def __call__(self, number: int) -> None:
        sums, weigh = self.engine.relationship_parameters.sum_products(self.term), self.correlations.relationship.weigh
        G = self.matrices[self.name]
        self.correlations.draw(_Density(weigh, sums, self.covariance, self.n_levels, G), number)
        super().__call__(number)

    def draws(self) -> dict[str, np.ndarray]:
        return super().draws() | {self.correlations.name: self.correlations.rho}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        super().restore(state)
        self.correlations.take(state[self.correlations.name].copy())


class _Density:
    """log p(rho | Theta) up to a constant; given G where there is one, otherwise with G integrated out."""

    def __init__(
        self,
        weigh: Callable[[np.ndarray], Weights],
        sums: np.ndarray,
        prior: CovarianceModel,
        n_levels: int,
        G: np.ndarray | None,
    ):
        self.weigh, self.sums, self.prior, self.n_levels = weigh, sums, prior, n_levels
        self.inverse = None if G is None else np.linalg.inv(G)

    def products(self, rho: np.ndarray) -> np.ndarray:
        """Compute (k, k) S(rho)."""
        return self._combine(self.weigh(rho))

    def _combine(self, weights: Weights) -> np.ndarray:
        return np.einsum("m,mab->ab", weights.values, self.sums)

    def __call__(self, rho: np.ndarray) -> float:
        weights = self.weigh(rho)
        S = self._combine(weights)
        out = 0.5 * len(S) * weights.log_determinant
        if self.inverse is not None:
            return float(out - 0.5 * np.sum(self.inverse * S))
        for block in self.prior.blocks:
            nu, scale = self.prior.inverse_wishart(block)
            sign, log_determinant = np.linalg.slogdet(scale + S[np.ix_(block, block)])
            if not sign > 0:
                return -np.inf
            out -= 0.5 * (nu + self.n_levels) * log_determinant
        return float(out)


def slice_parameters(
    density: Callable[[np.ndarray], float],
    rho: np.ndarray,
    bounds: np.ndarray,
    number: int,
    stream_: int,
    key: tuple[int, int],
) -> np.ndarray:
    """Draw each parameter in turn, by slices that shrink from its bounds."""
    for p in range(rho.size):
        u, _ = uniform_pair(number, p, stream_, draw_word(0, 0), *key)
        attempts = count(1)
        low, high = bounds[p]

        def propose(low: float, high: float, p: int = p, attempts: Iterator[int] = attempts) -> float:
            v, _ = uniform_pair(number, p, stream_, draw_word(0, next(attempts)), *key)
            return low + v * (high - low)

        height = finite_height(density(rho)) + np.log(u)
        rho = shrink_component(density, rho, p, height, low, high, propose)
    return rho
