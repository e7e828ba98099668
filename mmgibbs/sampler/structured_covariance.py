"""G | theta of a random term whose covariance matrix has a structure (models/structures).

Everything that theta says of G is S = Theta' K^-1 Theta (k, k) and the number q of levels:

    log p(phi | theta) = -1/2 [q log|G(phi)| + tr(G(phi)^-1 S)] + log p(phi)

so the step costs the same for a hundred and for ten million animals. A structure draws phi by conditionals of its own
(`Structure.draw`), or one parameter after the other is drawn by slice sampling (Neal 2003).
"""

from __future__ import annotations

from functools import partial

import numpy as np

from mmgibbs.draws.generator import make_generator
from mmgibbs.draws.over_relaxation import NOISE, TOWARDS_MEAN
from mmgibbs.draws.purpose import STRUCTURE, stream
from mmgibbs.engines.base import Engine
from mmgibbs.errors import ModelError
from mmgibbs.models.structures.base import Structure
from mmgibbs.posterior.draw_names import matrix_name, structure_name
from mmgibbs.posterior.parameters import Parameter
from mmgibbs.sampler.covariances import CovarianceMatrices
from mmgibbs.sampler.mixed_model import MixedModel
from mmgibbs.sampler.slice import draw_each, named_lost_density

PARAMETER_LEVEL, SCALE_LEVEL = 0, 1  # of the draws of a structure, and of its interweaving


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
        self.phi = structure.fit(matrices[self.name])
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
        """Return G (k, k); ModelError where rounding has lost it."""
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
        self.covariance, self.structure = covariance, covariance.structure
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
        """Propose scales (k,).

        They are from records' normal equations for their differences from 1; None where those are singular.
        """
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
    """Draw phi (p,) given S (k, k) of q levels."""
    drawn = structure.draw(S, q, phi, rng)
    return draw_each(partial(structure.log_density, S, q), phi, rng, range(len(phi))) if drawn is None else drawn
