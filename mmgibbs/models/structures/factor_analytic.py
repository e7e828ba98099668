"""Factor-analytic covariance: G = L L' + Psi, k components, f common factors (Smith, Cullis & Thompson 2001).

    u = L s + d,    s ~ N(0, I_f),    d ~ N(0, Psi)

Loadings are determined up to a rotation: REML holds those above the diagonal of L at 0, Gibbs moves all of them, and
both report them after rotation to principal axes. Priors: loadings are normal about 0, sqrt(Psi_jj) is half-t.

Conditionals are conjugate given the scores F (q, f) of u = L s + d, of which the sums F'F and F'Theta are enough. With
S = Theta' K^-1 Theta (k, k), V = (I + L' Psi^-1 L)^-1 and B = Psi^-1 L V, F = Theta B + E, and K^-1-weighted

    E'Theta ~ MN(0, V, S),    E'E = E'Theta S^-1 Theta'E + W(q - k, V)

are drawn in place of the scores. Then the rows of L are normal, and the specific variances inverse gamma given the
auxiliary variables of their half-t priors (Huang & Wand 2013).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from mmgibbs.errors import ModelError
from mmgibbs.models.structures.base import (
    FULL,
    SMALLEST_SHARE,
    CommonFactors,
    StructureContext,
    StructureForm,
    StructureKeys,
    log_half_t,
)
from mmgibbs.models.structures.loadings import (
    WithLoadings,
    count_loadings,
    differentiate_products,
    lower_triangle,
    name_loadings,
    principal_axes,
)

START_SPECIFIC = 0.1  # share of a variance that is specific at least in a start
ROUNDS_OF_FACTORS = 10  # 0.1 ms each; scores and loadings determine each other where a component has little of its own


@dataclass(frozen=True)
class FactorAnalytic(WithLoadings):
    """Common factors beside specific effects.

    phi = (loadings, row by row; log sd of the specific effects, one for each component or one for all).
    """

    kind: ClassVar[str] = "factor_analytic"
    meaning: ClassVar[str] = "few common factors and a specific variance of each component"
    key_names: ClassVar[frozenset[str]] = frozenset({"factors", "variances", "loading_sd"})
    can_draw_factors: ClassVar[bool] = True

    k: int
    factors: int
    equal: bool
    sd_scale: np.ndarray  # (k,) scale of the half-t prior of the specific standard deviations
    loading_sd: np.ndarray  # (k,) prior standard deviation of the loadings of each component
    nu: float = 2.0

    @classmethod
    def build(cls, section: StructureKeys, context: StructureContext) -> FactorAnalytic:
        from mmgibbs.models.structures.shrunken_factors import ShrunkenFactors, max_active_factors  # a subclass

        k, equal = len(context.sd), section.variances == "equal"
        kind, factors = cls, section.factors or 1
        if section.factors == "auto":
            kind, factors = ShrunkenFactors, max_active_factors(k) + 1
        size = context.sd if section.loading_sd is None else section.loading_sd * context.sd
        structure = kind(k, int(factors), equal, context.sd_scale, size, context.nu)
        n_levels, name = context.term.n_prior_levels, context.term.name
        if n_levels < k + structure.factors:
            raise ModelError(
                f"variances.{name}.structure: expected at least {k + structure.factors} levels of {name} for "
                f"{structure.factors} factors of {k} components, got {n_levels}; take fewer components, or structure: "
                "compound_symmetry"
            )
        return structure

    @classmethod
    def describe(cls, section: Mapping[str, Any]) -> str:
        factors = section.get("factors") or 1
        if factors == "auto":
            return "factor-analytic with a number of factors drawn"
        return f"factor-analytic with {factors} factor{'' if factors == 1 else 's'}"

    @classmethod
    def simplify(cls, form: StructureForm) -> StructureForm:
        return StructureForm(FULL, form.k) if form.factors >= form.k - 1 else super().simplify(form)

    @classmethod
    def count_parameters(cls, form: StructureForm) -> int:
        return count_loadings(form) + form.n_variances

    @property
    def n_sd(self) -> int:
        return 1 if self.equal else self.k

    @property
    def free(self) -> np.ndarray:
        """Loadings on and below the diagonal of L, and all specific variances."""
        return np.append(np.tri(self.k, self.factors, dtype=bool).ravel(), np.ones(self.n_sd, bool))

    def specific(self, phi: np.ndarray) -> np.ndarray:
        """Compute the diagonal (..., k) of Psi."""
        psi = np.exp(2 * phi[..., self.n_loadings : self.n_loadings + self.n_sd])
        return np.broadcast_to(psi, (*phi.shape[:-1], self.k))

    def phi(self, L: np.ndarray, psi: np.ndarray) -> np.ndarray:
        """Join loadings (k, f) and specific variances (k,) to the parameters (p,)."""
        return np.append(L.ravel(), 0.5 * np.log(psi[: self.n_sd]))

    def with_factors(self, phi: np.ndarray, L: np.ndarray, psi: np.ndarray) -> np.ndarray:
        """Return the parameters (p,) with other loadings (k, f) and specific variances (k,)."""
        return np.append(self.phi(L, psi), phi[self.n_loadings + self.n_sd :])

    @property
    def n_specific_factors(self) -> int:
        return self.factors

    def common_factors(self, phi: np.ndarray) -> CommonFactors:
        return CommonFactors(self.loadings(phi), self.specific(phi))

    def matrix(self, phi: np.ndarray) -> np.ndarray:
        L, psi = self.common_factors(phi)
        return L @ L.T + np.diag(psi)

    def derivatives(self, phi: np.ndarray) -> np.ndarray:
        psi = self.specific(phi)
        out = np.zeros((len(phi), self.k, self.k))
        out[: self.n_loadings] = differentiate_products(self.loadings(phi))
        for i in range(self.k):
            out[self.n_loadings + (0 if self.equal else i), i, i] += 2 * psi[i]
        return out

    def prior_sd(self, phi: np.ndarray) -> np.ndarray:
        """Return the prior standard deviation (k, f) of each loading."""
        return np.repeat(self.loading_sd[:, None], self.factors, axis=1)

    def start(self, C: np.ndarray) -> np.ndarray:
        """Start from the leading eigenvectors of C, rotated so that nothing is above the diagonal of L."""
        values, vectors = np.linalg.eigh(C)
        order = np.argsort(values)[::-1][: self.factors]
        common = np.maximum(values[order] - values[order].min() * 0.5, 0.05 * values.max())
        L = lower_triangle(vectors[:, order] * np.sqrt(common))
        psi = np.maximum(np.diag(C) - np.sum(L**2, axis=1), START_SPECIFIC * np.diag(C))
        return self.phi(L, np.full(self.k, psi.mean()) if self.equal else psi)

    def rescaled(self, phi: np.ndarray, scale: np.ndarray) -> np.ndarray:
        return self.phi(self.loadings(phi) * scale[:, None], self.specific(phi) * scale**2)

    def log_jacobian(self, scale: np.ndarray) -> float:
        """Compute log |d phi / d scale|: each loading of component j is multiplied by scale_j."""
        return float(self.factors * np.sum(np.log(scale)) - np.sum(np.log(scale[: self.n_sd])))

    def log_prior(self, phi: np.ndarray) -> float:
        of_loadings = -0.5 * np.sum((self.loadings(phi) / self.loading_sd[:, None]) ** 2)
        return float(of_loadings) + log_half_t(phi[self.n_loadings :], self.nu, self.sd_scale[: self.n_sd])

    def units(self, sd: np.ndarray) -> np.ndarray:
        return np.append(np.repeat(sd, self.factors), np.ones(self.n_sd))

    def bounded_names(self, labels: tuple[str, ...]) -> Sequence[str]:
        return [*[""] * self.n_loadings, *(f"specific[{label}]" for label in labels[: self.n_sd])]

    def lower_bounds(self, sd: np.ndarray) -> np.ndarray:
        of_sd = np.log(SMALLEST_SHARE * sd[: self.n_sd])
        return np.append(np.full(self.n_loadings, -np.inf), of_sd)

    def named(self, phi: np.ndarray, labels: tuple[str, ...]) -> Mapping[str, np.ndarray]:
        """Compute loadings on principal axes, specific variances, and shares of variances that the factors explain."""
        L, psi = principal_axes(self.loadings(phi)), self.specific(phi)
        common = np.sum(L**2, axis=-1)
        of_loadings = name_loadings(L, np.sum(common + psi, axis=-1), labels)
        out = {name: values for name, values in of_loadings.items() if name.startswith("loading")}
        out |= {f"specific[{label}]": psi[..., i] for i, label in enumerate(labels)}
        out |= {f"explained[{label}]": (common / (common + psi))[..., i] for i, label in enumerate(labels)}
        return out | of_loadings

    def draw(self, S: np.ndarray, q: int, phi: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        for _ in range(ROUNDS_OF_FACTORS):
            phi = self.draw_round(S, q, phi, rng)
        return phi

    def draw_round(self, S: np.ndarray, q: int, phi: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Draw loadings and specific variances given sums of scores, which are drawn from their conditional."""
        L, psi = self.loadings(phi), self.specific(phi)
        FF, FT = _draw_sums_of_scores(L, psi, S, q, rng)
        L = _draw_loadings(self.prior_sd(phi), FF, FT, psi, rng)
        squares = np.diag(S) - 2 * np.sum(L * FT.T, axis=1) + np.sum((L @ FF) * L, axis=1)
        return self.with_factors(phi, L, self._draw_specific(squares, q, psi, rng))

    def draw_precision_of_sd(self, psi: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Draw 1 / lambda (n_sd,) given psi (k,), where sd_j ~ N(0, lambda_j) is half-t when lambda_j is not given."""
        sums = self.nu * self.sd_scale**2 + psi
        return 2.0 * rng.standard_gamma((self.nu + 1) / 2, self.n_sd) / sums[: self.n_sd]

    def _draw_specific(self, squares: np.ndarray, q: int, psi: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Draw psi (k,) given the sum of squares of each d_j, after the auxiliary variable a_j of its prior."""
        nu, A, n = self.nu, self.sd_scale[: self.n_sd], self.n_sd
        sums, counts = (np.array([squares.sum()]), q * self.k) if self.equal else (squares, q)
        a = (nu / psi[:n] + 1 / A**2) / rng.standard_gamma((nu + 1) / 2, n)
        drawn = (np.maximum(sums, 0.0) / 2 + nu / a) / rng.standard_gamma((counts + nu) / 2, n)
        return np.broadcast_to(drawn, self.k)


def _draw_sums_of_scores(
    L: np.ndarray, psi: np.ndarray, S: np.ndarray, q: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Draw F'F (f, f) and F'Theta (f, k), each with K^-1 between."""
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
    """Draw loadings (k, f): l_j ~ N(P^-1 F'theta_j / psi_j, P^-1), P = F'F / psi_j + diag(sd_j^-2); sd (k, f)."""
    k, f = sd.shape
    P = FF / psi[:, None, None] + np.eye(f) / sd[:, :, None] ** 2
    root = np.linalg.cholesky(P)
    half = np.linalg.solve(root, (FT.T / psi[:, None])[..., None]) + rng.standard_normal((k, f, 1))
    return np.linalg.solve(np.swapaxes(root, 1, 2), half)[..., 0]
