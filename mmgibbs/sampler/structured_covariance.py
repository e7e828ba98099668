"""G | theta of a random term whose covariance matrix has a structure (models/structures).

Everything that theta says of G is S = Theta' K^-1 Theta (k, k) and the number q of levels:

    log p(phi | theta) = -1/2 [q log|G(phi)| + tr(G(phi)^-1 S)] + log p(phi)

so the step costs the same for a hundred and for ten million animals. Compound symmetry, AR1 and ante-dependence: one
parameter after the other by slice sampling (Neal 2003). Factor-analytic matrices have conjugate conditionals given the
scores F (q, f) of u = L s + d, of which the sums F'F and F'Theta are enough. With V = (I + L' Psi^-1 L)^-1 and
B = Psi^-1 L V, F = Theta B + E, and K^-1-weighted

    E'Theta ~ MN(0, V, S),    E'E = E'Theta S^-1 Theta'E + W(q - k, V)

are drawn in place of the scores. Then the rows of L are normal, and the specific variances inverse gamma given the
auxiliary variables of their half-t priors (Huang & Wand 2013).
"""

from __future__ import annotations

from functools import partial
from typing import cast

import numpy as np

from mmgibbs.draws.generator import make_generator
from mmgibbs.draws.over_relaxation import NOISE, TOWARDS_MEAN
from mmgibbs.draws.purpose import STRUCTURE, stream
from mmgibbs.engines.base import Engine
from mmgibbs.errors import ModelError
from mmgibbs.models.structures.base import ScaledStructure, Structure, fit
from mmgibbs.models.structures.factor_analytic import FactorAnalytic
from mmgibbs.models.structures.shrunken_factors import ShrunkenFactors
from mmgibbs.posterior.draw_names import matrix_name, structure_name
from mmgibbs.posterior.parameters import Parameter
from mmgibbs.sampler.covariances import CovarianceMatrices
from mmgibbs.sampler.mixed_model import MixedModel
from mmgibbs.sampler.shrinkage import draw_shrinkage
from mmgibbs.sampler.slice import draw_each, named_lost_density

PARAMETER_LEVEL, SCALE_LEVEL = 0, 1  # of the draws of a structure, and of its interweaving
ROUNDS_OF_FACTORS = 10  # 0.1 ms each; scores and loadings determine each other where a component has little of its own


class StructuredCovariance:
    """phi | theta of one random term, and with it G."""

    def __init__(
        self, model: MixedModel, term: int, engine: Engine, matrices: CovarianceMatrices, key: tuple[int, int]
    ):
        structure = model.covariance(term).structure
        assert structure is not None, "other terms have a TermCovariance"
        self.structure, self.term, self.engine, self.matrices, self.key = structure, term, engine, matrices, key
        self.name, self.name_of_phi = matrix_name(term), structure_name(term)
        self.term_name = model.design.terms[term].name
        self.n_levels = model.design.terms[term].n_prior_levels
        self.phi = fit(structure, matrices[self.name])
        matrices[self.name] = structure.matrix(self.phi)
        component = f"{self.term_name}_component"
        self.parameters = {
            self.name: Parameter((component, component), "covariance matrix of the effects of a level"),
            self.name_of_phi: Parameter((f"{self.term_name}_parameter",), "parameters of its structure"),
        }

    def __call__(self, number: int) -> None:
        S = self.engine.quadratic_form(self.term)
        rng = make_generator(number, PARAMETER_LEVEL, stream(STRUCTURE, self.term), self.key)
        with named_lost_density(f"variances.{self.term_name}", number, self.key[1]):
            self.phi = draw_structure(self.structure, S, self.n_levels, self.phi, rng)
        self.matrices[self.name] = self.finite_matrix(number)

    def finite_matrix(self, number: int) -> np.ndarray:
        """(k, k) G; ModelError where rounding has lost it."""
        G = self.structure.matrix(self.phi)
        if not np.isfinite(G).all():
            raise ModelError(
                f"variances.{self.term_name}: no covariance matrix can be drawn at sweep {number} of chain "
                f"{self.key[1] + 1}: expected finite parameters of its structure, got {self.phi}; give a start nearer "
                f"the data or a proper prior (variances.{self.term_name}.prior: {{half_t: {{scale: ...}}}})"
            )
        return G

    def draws(self) -> dict[str, np.ndarray]:
        return {self.name: self.matrices[self.name], self.name_of_phi: self.phi}

    def state(self) -> dict[str, np.ndarray]:
        return self.draws()

    def restore(self, state: dict[str, np.ndarray]) -> None:
        self.matrices[self.name] = state[self.name].copy()
        self.phi = state[self.name_of_phi].copy()


class StructuredInterweaving:
    """The scale of each component of theta, and with it G, given theta over its scales, the rest of phi and y.

    With theta <- theta D and G <- D G D, D diagonal (one scale for all where variances are equal), the data are linear
    in D, and p(theta | G) dtheta does not change, so

        p(D | y) is proportional to  N(y; W(theta D), R)  p(phi(D))  |dphi(D)/dD|

    proposed by over-relaxation of the Gaussian part, and accepted with the ratio of the others (see interweave.py).
    """

    parameters: dict[str, Parameter] = {}

    def __init__(self, covariance: StructuredCovariance):
        # of reduced rank there is no such step (interweave.reason_not_interweaved)
        self.covariance, self.structure = covariance, cast(ScaledStructure, covariance.structure)
        k = self.structure.k
        self.elements = tuple((i, i) for i in range(k))
        self.groups = np.ones((1, k)) if self.structure.equal else np.eye(k)  # (scales, k)
        self.fact = f"interweaving_acceptance[{covariance.term_name}]"

    def __call__(self, number: int) -> dict[str, float]:
        of, structure = self.covariance, self.structure
        rng = make_generator(number, SCALE_LEVEL, stream(STRUCTURE, of.term), of.key)
        H, s = of.engine.scaling_products(of.term, self.elements)
        scale = self._propose(self.groups @ H @ self.groups.T, self.groups @ s, rng)
        accepted = scale is not None and self._accept(scale, rng)
        if accepted:
            assert scale is not None
            of.engine.transform_term(of.term, np.diag(scale))
            of.phi = structure.rescaled(of.phi, scale)
            of.matrices[of.name] = structure.matrix(of.phi)
        return {self.fact: float(accepted)}

    def _propose(self, H: np.ndarray, s: np.ndarray, rng: np.random.Generator) -> np.ndarray | None:
        """(k,) scales, from records' normal equations for their differences from 1; None where those are singular."""
        try:
            root = np.linalg.cholesky(H)
        except np.linalg.LinAlgError:
            return None
        whitened = TOWARDS_MEAN * np.linalg.solve(root, s) + NOISE * rng.standard_normal(len(s))
        scale = (1.0 + np.linalg.solve(root.T, whitened)) @ self.groups
        return scale if np.all(scale > 0) and np.isfinite(scale).all() else None

    def _accept(self, scale: np.ndarray, rng: np.random.Generator) -> bool:
        structure, phi = self.structure, self.covariance.phi
        ratio = structure.log_prior(structure.rescaled(phi, scale)) - structure.log_prior(phi)
        return bool(-rng.exponential() < ratio + structure.log_jacobian(scale))

    def draws(self) -> dict[str, np.ndarray]:
        return {}

    def state(self) -> dict[str, np.ndarray]:
        return {}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        pass


def draw_structure(
    structure: Structure, S: np.ndarray, q: int, phi: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """One draw of phi (p,) given S (k, k) of q levels."""
    if isinstance(structure, FactorAnalytic):
        for _ in range(ROUNDS_OF_FACTORS):
            drawn = _draw_factors(structure, S, q, phi, rng)
            if isinstance(structure, ShrunkenFactors):
                drawn = _draw_number(structure, S, q, phi, drawn, rng)
            phi = drawn
        return phi
    return draw_each(partial(log_density, structure, S, q), phi, rng, range(len(phi)))


def _draw_number(
    structure: ShrunkenFactors, S: np.ndarray, q: int, phi: np.ndarray, drawn: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """phi with loadings and specific variances that were drawn, and then which factors are active."""
    phi = np.append(drawn, phi[structure.n_matrix :])
    return draw_shrinkage(structure, phi, partial(log_wishart, structure, S, q), rng)


def log_density(structure: Structure, S: np.ndarray, q: int, phi: np.ndarray) -> float:
    """log p(phi | theta), up to a constant; -inf where G(phi) is singular by rounding."""
    log_likelihood = log_wishart(structure, S, q, phi)
    return log_likelihood + structure.log_prior(phi) if np.isfinite(log_likelihood) else -np.inf


def log_wishart(structure: Structure, S: np.ndarray, q: int, phi: np.ndarray) -> float:
    """log p(theta | phi), up to a constant; -inf where G(phi) is singular by rounding."""
    G = structure.matrix(phi)
    if not np.isfinite(G).all():
        return -np.inf
    sign, log_determinant = np.linalg.slogdet(G)
    if not sign > 0:
        return -np.inf
    return float(-0.5 * (q * log_determinant + np.trace(np.linalg.solve(G, S))))


def _draw_factors(
    structure: FactorAnalytic, S: np.ndarray, q: int, phi: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Loadings and specific variances, given sums of scores that are drawn from their conditional."""
    L, psi = structure.loadings(phi), structure.specific(phi)
    FF, FT = _draw_sums_of_scores(L, psi, S, q, rng)
    L = _draw_loadings(structure.prior_sd(phi), FF, FT, psi, rng)
    squares = np.diag(S) - 2 * np.sum(L * FT.T, axis=1) + np.sum((L @ FF) * L, axis=1)
    return structure.phi(L, _draw_specific(structure, squares, q, psi, rng))


def _draw_sums_of_scores(
    L: np.ndarray, psi: np.ndarray, S: np.ndarray, q: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """F'F (f, f) and F'Theta (f, k), each with K^-1 between."""
    k, f = L.shape
    V = np.linalg.inv(np.eye(f) + L.T @ (L / psi[:, None]))
    B = (L / psi[:, None]) @ V
    root_V, root_S = np.linalg.cholesky(V), np.linalg.cholesky(S)
    Z = rng.standard_normal((f, k))  # E'Theta = root_V Z root_S', so E'Theta S^-1 Theta'E = root_V Z Z' root_V'
    ET = root_V @ Z @ root_S.T
    T = np.tril(rng.standard_normal((f, f)), -1) + np.diag(np.sqrt(rng.chisquare(q - k - np.arange(f))))
    EE = root_V @ (Z @ Z.T + T @ T.T) @ root_V.T
    FT = B.T @ S + ET
    FF = B.T @ S @ B + B.T @ ET.T + ET @ B + EE
    return FF, FT


def _draw_loadings(
    sd: np.ndarray, FF: np.ndarray, FT: np.ndarray, psi: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """(k, f) rows l_j ~ N(P^-1 F'theta_j / psi_j, P^-1), P = F'F / psi_j + diag(sd_j^-2); sd (k, f)."""
    k, f = sd.shape
    P = FF / psi[:, None, None] + np.eye(f) / sd[:, :, None] ** 2
    root = np.linalg.cholesky(P)
    half = np.linalg.solve(root, (FT.T / psi[:, None])[..., None]) + rng.standard_normal((k, f, 1))
    return np.linalg.solve(np.swapaxes(root, 1, 2), half)[..., 0]


def _draw_specific(
    structure: FactorAnalytic, squares: np.ndarray, q: int, psi: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """(k,) psi_j given the sum of squares of d_j and a_j, its auxiliary variable, which is drawn before it."""
    nu, A, n = structure.nu, structure.sd_scale[: structure.n_sd], structure.n_sd
    sums, counts = (np.array([squares.sum()]), q * structure.k) if structure.equal else (squares, q)
    a = (nu / psi[:n] + 1 / A**2) / rng.standard_gamma((nu + 1) / 2, n)
    drawn = (np.maximum(sums, 0.0) / 2 + nu / a) / rng.standard_gamma((counts + nu) / 2, n)
    return np.broadcast_to(drawn, structure.k)
