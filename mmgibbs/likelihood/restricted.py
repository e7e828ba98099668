"""The restricted likelihood of the variances psi and its derivatives by covariance matrices, as REML needs them.

With the location effects theta integrated out (Harville 1974; flat fixed effects too),

    log p(y | psi) = -1/2 [ sum_r log|R_r| + sum_j (q_j log|G_j| + k_j log|K_j|) + log|C| + y'Py + (N - p) log 2 pi ]

    y'Py = sum_r e_r' R_r^-1 e_r + sum_j tr(G_j^-1 Theta_j' K_j^-1 Theta_j)        at C theta = W' R^-1 y

N observations, p fixed equations. Symmetric matrices of derivatives, d log p = tr(D dG):

    D_G = -1/2 [ q G^-1 - G^-1 (S + T) G^-1 ]            S = Theta' K^-1 Theta,  T_ab = sum kappa_lm C^-1[(l,a),(m,b)]
    D_R = -1/2 sum_p [ n_p R_p^-1 - R_p^-1 E_p R_p^-1 ]   E_p = sum_{r of p} w_r (e_r e_r' + W_r C^-1 W_r')

T and E ask for C^-1 only where C may be other than 0 (coefficients.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from mmgibbs.cholesky.factor import Factor
from mmgibbs.equations.base import refuse_reduced_rank
from mmgibbs.likelihood.base import Place
from mmgibbs.likelihood.coefficients import Blocks, Coefficients, coefficients
from mmgibbs.likelihood.incidence import Incidence
from mmgibbs.likelihood.matrices import Variances
from mmgibbs.likelihood.memory import refuse_large_lists
from mmgibbs.likelihood.sparse import SparseLikelihood
from mmgibbs.likelihood.working_variates import working_effects, working_residuals
from mmgibbs.models.design import Design


class RestrictedLikelihood(SparseLikelihood):
    """log p(y | psi) of any design with normal traits.

    of_terms, of_residuals: components that may covary (see coefficients).
    """

    name = "sparse"

    def __init__(self, design: Design, of_terms: Sequence[Blocks | None], of_residuals: Sequence[Blocks]):
        refuse_large_lists(design, of_terms)
        super().__init__(design)
        refuse_reduced_rank(design)
        self.coefficients: Coefficients = coefficients(design, of_terms, of_residuals)
        self.symbolic = self.coefficients.symbolic
        self.incidence = Incidence(design)
        self.observed = design.patterns[design.pattern]
        # records of each missing pattern, and the traits that they have
        self.observations = [
            (np.flatnonzero(design.pattern == p), np.flatnonzero(seen)) for p, seen in enumerate(design.patterns)
        ]
        self.y = np.where(self.observed, design.y, 0.0)
        self.layout = self.coefficients.explicit.layout

    @cached_property
    def constant(self) -> float:
        """Of -2 log p, its sign turned."""
        constant_of_2_pi = self.freedom * float(np.log(2 * np.pi))
        return self.log_weights + self.log_determinant_of_relationships - constant_of_2_pi

    @property
    def bytes(self) -> int:
        return self.coefficients.bytes

    @property
    def description(self) -> str:
        return f"{self.design.n_equations:,} equations"

    def evaluate(self, variances: Variances) -> Point:
        """ModelError where C is not positive definite there."""
        return Point(self, variances)


class Point:
    """The likelihood at one psi; what derivatives need is computed when it is asked for."""

    def __init__(self, likelihood: RestrictedLikelihood, variances: Variances):
        self.likelihood, self.variances = likelihood, variances
        matrices = likelihood.matrices
        self.v = np.ones(matrices.size)
        self.log_determinants = matrices.invert(variances.psi, self.v)  # sum_j q_j log|G_j| + sum_p n_p log|R_p|
        if not np.isfinite(self.log_determinants):
            matrices.refuse_singular(variances)
        self.Ginv, self.Rinv = matrices.unpack(self.v)
        self.factor: Factor = likelihood.coefficients.factor_precisions(self.Ginv, self.Rinv)
        active = likelihood.layout.active
        self.theta = np.zeros(active.size)
        self.theta[active] = self.solve_equations(self._weighted_sums(likelihood.y[:, :, None]))[:, 0]
        fitted = likelihood.incidence.fit([t[:, :, None] for t in self.solutions])[:, :, 0]
        self.residuals = np.where(likelihood.observed, likelihood.y - fitted, 0.0)
        self.squares = [self._square(i) for i in range(len(likelihood.design.terms))]

    def solve_equations(self, b: np.ndarray) -> np.ndarray:
        """C^-1 b, (equations, m)."""
        return self.factor.solve(b)

    def weigh(self, e: np.ndarray) -> np.ndarray:
        """R^-1 e, (n, T, m)."""
        weight, out = self.likelihood.design.weight, np.zeros(e.shape)
        for (rows, traits), inverse in zip(self.likelihood.observations, self.Rinv, strict=True):
            at = np.ix_(rows, traits)
            block = inverse[np.ix_(traits, traits)]
            out[at] = weight[rows, None, None] * np.einsum("tu,rum->rtm", block, e[at], optimize=True)
        return out

    def _weighted_sums(self, e: np.ndarray) -> np.ndarray:
        """W' R^-1 e, (equations, m); e (n, T, m)."""
        return self.likelihood.incidence.accumulate(self.weigh(e))[self.likelihood.layout.active]

    @property
    def solutions(self) -> list[np.ndarray]:
        """(q, k) per term: BLUE and BLUP at these variances, on the scale of the equations."""
        return self.likelihood.layout.split(self.theta)

    def _square(self, i: int) -> np.ndarray:
        """(k, k) Theta' K^-1 Theta; of a fixed term Theta' Theta."""
        theta = self.solutions[i]
        return theta.T @ (self.likelihood.inverses[i] @ theta if i in self.likelihood.inverses else theta)

    @cached_property
    def log_likelihood(self) -> float:
        """log p(y | psi), with its constant."""
        changing = self.log_determinants + self.factor.log_determinant + self.quadratic
        return -0.5 * (changing - self.likelihood.constant)

    @cached_property
    def quadratic(self) -> float:
        """y'Py, as a sum of squares: nothing cancels."""
        of_records = float(np.sum(self.residuals * self.weigh(self.residuals[:, :, None])[:, :, 0]))
        return of_records + sum(float(np.sum(g * square)) for g, square in zip(self.Ginv, self.squares, strict=True))

    @cached_property
    def selected(self) -> np.ndarray:
        """C^-1 in the places of the factor."""
        return self.likelihood.coefficients.selected_inverse(self.factor)

    @property
    def inverse_diagonal(self) -> np.ndarray:
        """(equations,) the diagonal of C^-1."""
        return self.likelihood.coefficients.diagonal(self.selected)

    @cached_property
    def derivatives(self) -> Variances:
        """D of each matrix."""
        traces = self.likelihood.coefficients.traces(self.selected)
        S = [square + trace for square, trace in zip(self.squares, traces.of_terms, strict=True)]
        return self.likelihood.matrices.differentiate(self.v, S, self._products() + traces.of_records)

    def _products(self) -> np.ndarray:
        """(patterns, T, T) sum of w_r e_r e_r' over the records of each pattern."""
        design, out = self.likelihood.design, np.zeros_like(self.Rinv)
        for p in range(len(out)):
            of_pattern = design.pattern == p
            e = self.residuals[of_pattern]
            out[p] = (e * design.weight[of_pattern, None]).T @ e
        return out

    def average_information(self, places: Sequence[Place]) -> np.ndarray:
        """(p, p) 1/2 F' P F of some elements, with F'PG = F'R^-1 G - (W'R^-1 F)' C^-1 (W'R^-1 G)."""
        return self.project(self.working_variates(places))

    def project(self, F: np.ndarray) -> np.ndarray:
        """(p, p) 1/2 F' P F of working variates (n, T, p)."""
        p = F.shape[2]
        b = self._weighted_sums(F)
        total = 0.25 * (F.reshape(-1, p).T @ self.weigh(F).reshape(-1, p) - b.T @ self.solve_equations(b))
        return total + total.T

    def working_variates(self, places: Sequence[Place]) -> np.ndarray:
        """(n, T, p) F = (dV/dpsi) P y, see working_variates.py."""
        design = self.likelihood.design
        unweighted = self.weigh(self.residuals[:, :, None])[:, :, 0] / design.weight[:, None]  # R^-1 e
        units = [theta @ Ginv for theta, Ginv in zip(self.solutions, self.Ginv, strict=True)]
        residuals = working_residuals(places, unweighted, design.class_of_pattern[design.pattern])
        return residuals + self.likelihood.incidence.fit(working_effects(places, units))
