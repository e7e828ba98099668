"""G = L L' of reduced rank given the records (models/structures/reduced_rank.py), f factors of k components.

With theta_l = L s_l, s ~ MN(0, K (x) I) (q, f) and normal loadings, var(L_cj) = sd_c^2, two moves:

1. Another basis of the factors, L <- L Q and s_l <- Q^-1 s_l, which leaves theta as it is (Liu & Sabatti 2000). With
   A = QQ', S = sum kappa_lm s_l s_m' and N = L' diag(sd^-2) L the density of A is proportional to

       |A|^(-(q - k + f + 1)/2) exp(-tr(S A^-1)/2) exp(-tr(A N)/2)

   proposed as IW(q - k, S), and accepted with the ratio of the last factor.
2. L given the scores and all else: the records are linear in it, so it is normal (engines: `loading_products`).
   theta = s L' follows, and e.
"""

from __future__ import annotations

import numpy as np

from mmgibbs.draws.generator import make_generator
from mmgibbs.draws.purpose import STRUCTURE, stream
from mmgibbs.engines.base import HostState
from mmgibbs.models.structures.reduced_rank import ReducedRank
from mmgibbs.sampler.slice import named_lost_density
from mmgibbs.sampler.structured_covariance import PARAMETER_LEVEL, StructuredCovariance


class ReducedRankCovariance(StructuredCovariance):
    """L of one random term, and with it G and theta, given the scores of its levels."""

    engine: HostState
    structure: ReducedRank

    def __call__(self, number: int) -> None:
        structure, engine, term = self.structure, self.engine, self.term
        rng = make_generator(number, PARAMETER_LEVEL, stream(STRUCTURE, term), self.key)
        L = structure.loadings(self.phi)
        to_scores = np.linalg.pinv(L)
        scores = engine.theta[term].astype(np.float64) @ to_scores.T
        S = to_scores @ engine.quadratic_form(term) @ to_scores.T
        Q = draw_basis(structure, L, S, self.n_levels, rng)
        if Q is not None:
            L, scores = L @ Q, np.linalg.solve(Q, scores.T).T
        elements = tuple((c, j) for c in range(structure.k) for j in range(structure.factors))
        H, s = engine.loading_products(term, np.ascontiguousarray(scores), elements)
        with named_lost_density(f"variances.{self.term_name}", number, self.key[1]):
            precision = np.repeat(structure.loading_sd**-2.0, structure.factors)
            L = draw_given_records(L.ravel(), precision, H, s, rng).reshape(L.shape)
        engine.move_term(term, scores @ L.T)
        self.phi = L.ravel()
        self.matrices[self.name] = self.finite_matrix(number)


def draw_basis(
    structure: ReducedRank, L: np.ndarray, S: np.ndarray, q: int, rng: np.random.Generator
) -> np.ndarray | None:
    """Draw (f, f) lower triangular Q, by a Metropolis step; None where it stays as it is.

    L (k, f), S (f, f) of q levels. With too few levels for a proposal it always stays.
    """
    k, f = L.shape
    if q - k <= f - 1:
        return None
    T = np.tril(rng.standard_normal((f, f)), -1) + np.diag(np.sqrt(rng.chisquare(q - k - np.arange(f))))
    log_u = -rng.exponential()
    try:
        root = np.linalg.cholesky(S)
    except np.linalg.LinAlgError:
        return None
    factor = np.linalg.solve(T, root.T).T  # A = root (T T')^-1 root'
    A = factor @ factor.T
    N = L.T @ (L / structure.loading_sd[:, None] ** 2)
    return np.linalg.cholesky(A) if log_u < -0.5 * float(np.sum((A - np.eye(f)) * N)) else None


def draw_given_records(
    at: np.ndarray, precision: np.ndarray, H: np.ndarray, s: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Draw x (p,) ~ N(P^-1 (s + H at), P^-1), P = H + diag(precision).

    H (p, p) and s (p,) are the normal equations of the records for changes from `at` (p,); precision (p,) is that of
    the prior N(0, 1 / precision).
    """
    P = H + np.diag(precision)
    root = np.linalg.cholesky(P)
    half = np.linalg.solve(root, s + H @ at) + rng.standard_normal(s.size)
    return np.asarray(np.linalg.solve(root.T, half))
