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
from scipy.sparse import csr_array

from mmgibbs.cholesky.factor import Factor
from mmgibbs.equations.partition import model_order_partition
from mmgibbs.equations.records import add_matvec, add_transpose_matvec, weigh
from mmgibbs.equations.structured import structured_equations
from mmgibbs.errors import ModelError
from mmgibbs.likelihood.coefficients import Blocks, Coefficients, coefficients, factorise_inverse
from mmgibbs.likelihood.matrices import Variances, covariance_matrices
from mmgibbs.model.design import Design


class RestrictedLikelihood:
    """log p(y | psi) of a design with normal traits.

    of_terms, of_residuals: components that may covary (see coefficients).
    """

    def __init__(self, design: Design, of_terms: Sequence[Blocks | None], of_residuals: Sequence[Blocks]):
        self.design = design
        self.coefficients: Coefficients = coefficients(design, of_terms, of_residuals)
        self.matrices = covariance_matrices(design)
        self.equations = structured_equations(design, model_order_partition(design))
        self.layout = self.coefficients.explicit.layout
        self.random = self.matrices.random
        self.inverses = {i: _as_csr(design, i) for i in self.random}
        self.n_observations = int(self.matrices.sizes.records @ design.patterns.sum(axis=1))
        weights = design.patterns.sum(axis=1)[design.pattern] @ np.log(design.weight)
        of_relationships = sum(design.terms[i].n_components * self._log_determinant(i) for i in self.random)
        freedom = self.n_observations - self.n_fixed
        self.constant = weights + of_relationships - freedom * np.log(2 * np.pi)  # of -2 log p, its sign turned

    def _log_determinant(self, i: int) -> float:
        """log|K^-1| of the levels that have a variance."""
        levels = self.design.terms[i].n_prior_levels
        return factorise_inverse(csr_array(self.inverses[i][:levels][:, :levels])).log_determinant

    @property
    def n_fixed(self) -> int:
        """p: equations without a prior."""
        total = 0
        for term in self.design.terms:
            active = np.ones((term.n_levels, term.n_components), bool) if term.active is None else term.active
            if term.kind == "random":
                total += int(active[term.n_without_fixed_groups :].sum())
            else:
                flat = np.ones(term.n_components, bool)
                if term.prior_precision is not None:
                    flat = np.diag(term.prior_precision) == 0.0
                total += int(active[:, flat].sum())
        return total

    @property
    def freedom(self) -> int:
        """N - p"""
        return self.n_observations - self.n_fixed

    def at(self, variances: Variances) -> Point:
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
            raise ModelError("expected positive definite covariance matrices, got one that has no inverse")
        self.Ginv, self.Rinv = matrices.unpack(self.v)
        self.factor: Factor = likelihood.coefficients.factor(variances.G, variances.R)
        y = likelihood.equations.records.y
        self.theta = self.solve(self.weighted_sums(y[:, :, None]))[:, 0]
        self.e = y - self.fit([t[:, :, None] for t in self.solutions])[:, :, 0]
        self.squares = [self._square(i) for i in range(len(likelihood.design.terms))]

    def solve(self, b: np.ndarray) -> np.ndarray:
        """C^-1 b, (N, m): b and the solution have a place for every component."""
        active = self.likelihood.layout.active
        x = np.zeros(b.shape)
        x[active] = self.factor.solve(b[active])
        return x

    def weigh(self, e: np.ndarray) -> np.ndarray:
        """R^-1 e, (n, T, m)."""
        weighted = np.array(e, np.float64)
        weigh(self.likelihood.equations.records, self.Rinv, weighted)
        return weighted

    def weighted_sums(self, e: np.ndarray) -> np.ndarray:
        """W' R^-1 e, (N, m); e (n, T, m)."""
        weighted, totals = self.weigh(e), []
        for lists, shape in zip(self.likelihood.equations.terms, self.likelihood.layout.shapes, strict=True):
            totals.append(np.zeros((*shape, e.shape[2])))
            add_transpose_matvec(lists, weighted, totals[-1])
        return np.concatenate([total.reshape(-1, e.shape[2]) for total in totals])

    def fit(self, thetas: list[np.ndarray]) -> np.ndarray:
        """W Theta, (n, T, m); thetas: (q, k, m) per term."""
        equations = self.likelihood.equations
        fitted = np.zeros((*equations.records.y.shape, thetas[0].shape[2]))
        for lists, theta in zip(equations.terms, thetas, strict=True):
            add_matvec(lists, np.ascontiguousarray(theta), fitted)
        return fitted

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
        of_records = float(np.sum(self.e * self.weigh(self.e[:, :, None])[:, :, 0]))
        return of_records + sum(float(np.sum(g * square)) for g, square in zip(self.Ginv, self.squares, strict=True))

    @cached_property
    def selected(self) -> np.ndarray:
        """C^-1 in the places of the factor."""
        return self.likelihood.coefficients.selected_inverse(self.factor)

    @cached_property
    def derivatives(self) -> Variances:
        """D of each matrix."""
        traces = self.likelihood.coefficients.traces(self.selected)
        S = [square + trace for square, trace in zip(self.squares, traces.of_terms, strict=True)]
        return self.likelihood.matrices.differentiate(self.v, S, self._products() + traces.of_records)

    def _products(self) -> np.ndarray:
        """(patterns, T, T) sum of w_r e_r e_r' over the records of each pattern."""
        records = self.likelihood.equations.records
        w = records.weight if records.weight.size else np.ones(len(records.y))
        out = np.zeros_like(self.Rinv)
        for p in range(len(out)):
            mine = records.pattern == p
            out[p] = (self.e[mine] * w[mine, None]).T @ self.e[mine]
        return out


def _as_csr(design: Design, i: int) -> csr_array:
    term = design.terms[i]
    indptr, indices, values = term.relationship.inverse_csr()
    return csr_array((values, indices, indptr), shape=(term.n_levels, term.n_levels))
