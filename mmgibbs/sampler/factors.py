"""Factor-analytic G = L L' + Psi given records and scores (models/structures/factor_analytic.py).

Where most cells of levels by components have no records, theta is drawn there from its prior, and G given theta
(structured_covariance.py) hardly moves. So loadings and specific variances are drawn once more, given

    F = Theta B + E,  E ~ MN(0, K, V),  B = Psi^-1 L V,  V = (I + L' Psi^-1 L)^-1       scores (q, f), given theta
    Z = (Theta - F L') Psi^-1/2                                                         standardised specific effects

theta_lc = f_l' l_c + z_lc sd_c is linear in (l_c, sd_c), and so are the records (engines: `loading_products`). Loadings
are normal; a half-t sd_c of nu degrees of freedom and scale A_c is half-normal given its variance lambda_c,

    sd_c | lambda_c ~ N(0, lambda_c),    lambda_c | sd_c ~ inverse gamma((nu + 1)/2, (nu A_c^2 + sd_c^2)/2)

so that all are drawn from one normal distribution (interweaving: Yu & Meng 2011, JCGS 20:531). The sign of sd_c goes to
z_c. theta follows, and e.
"""

from __future__ import annotations

import numpy as np

from mmgibbs.draws.generator import make_generator
from mmgibbs.draws.purpose import STRUCTURE, stream
from mmgibbs.models.structures.factor_analytic import FactorAnalytic
from mmgibbs.sampler.mixed_model import MixedModel
from mmgibbs.sampler.reduced_rank import draw_given_records
from mmgibbs.sampler.slice import named_lost_density
from mmgibbs.sampler.structured_covariance import SCALE_LEVEL, StructuredCovariance, StructuredInterweaving


class FactorInterweaving(StructuredInterweaving):
    """L and Psi of one random term, and with them G and theta, given the scores of its levels."""

    structure: FactorAnalytic

    def __init__(self, covariance: StructuredCovariance, model: MixedModel):
        super().__init__(covariance)
        k, f = self.structure.k, self.structure.factors
        self.relationship = model.design.terms[covariance.term].relationship
        self.elements = tuple((c, j) for c in range(k) for j in (*range(f), f + c))  # of [L, diag(sd)]
        # They are `merged` times what is drawn: the loadings row by row, then each sd, or that of all components.
        loadings, sd = np.eye(k * f).reshape(k, f, k * f), self.groups.T[:, None]
        self.merged = np.zeros((k, f + 1, k * f + sd.shape[-1]))
        self.merged[:, :f, : k * f], self.merged[:, f:, k * f :] = loadings, sd
        self.merged = self.merged.reshape(k * (f + 1), -1)

    def __call__(self, number: int) -> dict[str, float]:
        of, structure = self.covariance, self.structure
        rng = make_generator(number, SCALE_LEVEL, stream(STRUCTURE, of.term), of.key)
        L, psi = structure.common_factors(of.phi)
        sd = np.sqrt(psi)
        F, Z = self.draw_scores(L, psi, rng)
        H, s = of.engine.loading_products(of.term, np.concatenate([F, Z], axis=1), self.elements)
        A, at = self.merged, np.append(L.ravel(), sd[: structure.n_sd])
        precision = np.append(structure.prior_sd(of.phi).ravel() ** -2.0, structure.draw_precision_of_sd(psi, rng))
        with named_lost_density(f"variances.{of.term_name}", number, of.key[1]):
            drawn = draw_given_records(at, precision, A.T @ H @ A, A.T @ s, rng)
        L, sd = np.split((A @ drawn).reshape(structure.k, -1), [structure.factors], axis=1)
        of.engine.move_term(of.term, F @ L.T + Z * sd.T)
        of.phi = structure.with_factors(of.phi, L, sd[:, 0] ** 2)
        of.matrices[of.name] = of.finite_matrix(number)
        return {}

    def draw_scores(self, L: np.ndarray, psi: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Draw F (q, f) given theta, and compute Z (q, k), levels in sweep order."""
        engine, term = self.covariance.engine, self.covariance.term
        theta = engine.theta[term].astype(np.float64)
        V = np.linalg.inv(np.eye(L.shape[1]) + L.T @ (L / psi[:, None]))
        normals = rng.standard_normal((len(theta), len(V)))
        E = self.relationship.draw(normals)[engine.equations.terms[term].code] @ np.linalg.cholesky(V).T
        F = theta @ (L / psi[:, None]) @ V + E
        return F, (theta - F @ L.T) / np.sqrt(psi)


def can_draw_scores(model: MixedModel, term: int) -> bool:
    """Return whether scores of the levels of a term can be drawn given its effects."""
    structure, of = model.covariance(term).structure, model.design.terms[term]
    K = of.relationship
    has_factors = structure is not None and structure.n_specific_factors > 0
    return has_factors and K.can_draw and not (K.has_free_parameters or of.groups_fixed or of.active is not None)
