"""The restricted likelihood of the variances psi, its gradient and its average information.

With the location effects theta integrated out (Harville 1974; flat fixed effects too),

    log p(y | psi) = -1/2 [ sum_r log|R_r| + sum_j (q_j log|G_j| + k_j log|K_j|) + log|C| + y'Py + (N - p) log 2 pi ]

    y'Py = sum_r e_r' R_r^-1 e_r + sum_j tr(G_j^-1 Theta_j' K_j^-1 Theta_j)        at C theta = W' R^-1 y

N observations, p fixed equations. Symmetric matrices of derivatives, d log p = tr(D dG):

    D_G = -1/2 [ q G^-1 - G^-1 (S + T) G^-1 ]            S = Theta' K^-1 Theta,  T_ab = sum kappa_lm C^-1[(l,a),(m,b)]
    D_R = -1/2 sum_p [ n_p R_p^-1 - R_p^-1 E_p R_p^-1 ]   E_p = sum_{r of p} w_r (e_r e_r' + W_r C^-1 W_r')

T and E ask for C^-1 only where C may be other than 0 (engines/direct). The average of observed and expected information
(Gilmour, Thompson & Cullis 1995; Johnson & Thompson 1995) of two elements is 1/2 f' P g, with the working variates

    f = (dV/dpsi) P y:      W_j Theta_j G^-1 E   for an element of G_j,      E R_P^-1 e_r   for one of R

E the symmetric matrix of its unit, and f'Pg = f'R^-1 g - (W'R^-1 f)' C^-1 (W'R^-1 g).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from mmgibbs.cholesky.factor import Factor
from mmgibbs.engines.direct.coefficients import Blocks, Coefficients, coefficients, factorise_inverse
from mmgibbs.engines.pcg.solver import PcgSolver
from mmgibbs.equations.base import precisions
from mmgibbs.equations.partition import in_model_order
from mmgibbs.equations.passes import add_fitted, weigh
from mmgibbs.equations.structured import structured_equations
from mmgibbs.model.design import Design
from mmgibbs.reml.elements import Elements, MatrixBlock, Variances


class Derivatives(NamedTuple):
    """Symmetric matrices D with d log p = tr(D dG) and tr(D dR)."""

    G: list[np.ndarray | None]  # (k, k) per term, None for fixed terms
    R: np.ndarray  # (classes, T, T)


class RestrictedLikelihood:
    """log p(y | psi) of a design with normal traits.

    of_terms, of_residuals: components that may covary (see coefficients).
    """

    def __init__(self, design: Design, of_terms: Sequence[Blocks | None], of_residuals: Sequence[Blocks]):
        self.design = design
        self.coefficients: Coefficients = coefficients(design, of_terms, of_residuals)
        self.equations = structured_equations(design, in_model_order(design))
        self.solver = PcgSolver(self.equations)
        self.active = self.coefficients.explicit.layout.active
        self.random = [i for i, t in enumerate(design.terms) if t.kind == "random"]
        self.inverses = {i: csr_array(_as_csr(design, i)) for i in self.random}
        counts = np.bincount(design.pattern, minlength=len(design.patterns))
        self.records_of_pattern = counts
        self.n_observations = int(counts @ design.patterns.sum(axis=1))
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

    def counted(self, block: MatrixBlock) -> int:
        """Levels, or records, that a covariance matrix is the covariance of."""
        if block.term is not None:
            return self.design.terms[block.term].n_prior_levels
        of_class = self.design.class_of_pattern == block.residual_class
        observes = self.design.patterns[:, list(block.components)].any(axis=1)
        return int(self.records_of_pattern[of_class & observes].sum())

    def at(self, variances: Variances) -> Point:
        """ModelError where C is not positive definite there."""
        return Point(self, variances)


class Point:
    """The likelihood at one psi; what derivatives need is computed when it is asked for."""

    def __init__(self, likelihood: RestrictedLikelihood, variances: Variances):
        self.likelihood, self.variances = likelihood, variances
        design, solver = likelihood.design, likelihood.solver
        self.Ginv, self.Rinv = precisions(design, variances.G, variances.R)
        solver.set_precisions(self.Ginv, self.Rinv)
        self.factor: Factor = likelihood.coefficients.factor(variances.G, variances.R)
        y = likelihood.equations.records.y
        self.theta = self._solve(solver.weighted_sums(y))
        self.e = y - self._fitted([t[:, :, None] for t in solver.split(self.theta)])[:, :, 0]
        self.squares = {i: self._squares(i) for i in likelihood.random}

    def _solve(self, b: np.ndarray) -> np.ndarray:
        """C^-1 b, b and the solution with a place for every component: (N,) or (N, m)."""
        active = self.likelihood.active
        x = np.zeros(b.shape)
        x[active] = self.factor.solve(b[active])
        return x

    def _fitted(self, thetas: list[np.ndarray]) -> np.ndarray:
        """(n, T, m) W Theta; thetas: (q, k, m) per term."""
        equations = self.likelihood.equations
        fitted = np.zeros((*equations.records.y.shape, thetas[0].shape[2]))
        for lists, theta in zip(equations.terms, thetas, strict=True):
            add_fitted(lists, np.ascontiguousarray(theta), fitted)
        return fitted

    @property
    def solutions(self) -> list[np.ndarray]:
        """(q, k) per term: BLUE and BLUP at these variances, on the scale of the equations."""
        return [t.copy() for t in self.likelihood.solver.split(self.theta)]

    def _squares(self, i: int) -> np.ndarray:
        """(k, k) Theta' K^-1 Theta"""
        theta = self.likelihood.solver.split(self.theta)[i]
        return theta.T @ (self.likelihood.inverses[i] @ theta)

    @cached_property
    def log_likelihood(self) -> float:
        """log p(y | psi), with its constant."""
        own, design = self.likelihood, self.likelihood.design
        total = self.factor.log_determinant + self.quadratic - own.constant
        for p, (n, inverse) in enumerate(zip(own.records_of_pattern, self.Rinv, strict=True)):
            observed = np.flatnonzero(design.patterns[p])
            total -= n * np.linalg.slogdet(inverse[np.ix_(observed, observed)])[1]
        for i in own.random:
            total -= design.terms[i].n_prior_levels * np.linalg.slogdet(self.Ginv[i])[1]
        return -0.5 * float(total)

    @cached_property
    def quadratic(self) -> float:
        """y'Py, as a sum of squares: nothing cancels."""
        own = self.likelihood
        weighted = self.e[:, :, None].copy()
        weigh(own.equations.records, self.Rinv, weighted)
        total = float(np.sum(self.e * weighted[:, :, 0]))
        for i, theta in enumerate(own.solver.split(self.theta)):
            squares = self.squares[i] if i in self.squares else theta.T @ theta
            total += float(np.sum(self.Ginv[i] * squares))
        return total

    @cached_property
    def selected(self) -> np.ndarray:
        """C^-1 in the places of the factor."""
        return self.likelihood.coefficients.selected_inverse(self.factor)

    @cached_property
    def derivatives(self) -> Derivatives:
        """D of each matrix."""
        own, design = self.likelihood, self.likelihood.design
        traces = own.coefficients.traces(self.selected)
        G: list[np.ndarray | None] = [None] * len(design.terms)
        for i in own.random:
            inverse = self.Ginv[i]
            q, total = design.terms[i].n_prior_levels, self.squares[i] + traces.of_terms[i]
            G[i] = -0.5 * (q * inverse - inverse @ total @ inverse)
        R = np.zeros_like(self.variances.R)
        products = self._products() + traces.of_records
        for p, inverse in enumerate(self.Rinv):
            change = own.records_of_pattern[p] * inverse - inverse @ products[p] @ inverse
            R[design.class_of_pattern[p]] -= 0.5 * change
        return Derivatives(G, R)

    def _products(self) -> np.ndarray:
        """(patterns, T, T) sum of w_r e_r e_r' over the records of each pattern."""
        records = self.likelihood.equations.records
        w = records.weight if records.weight.size else np.ones(len(records.y))
        out = np.zeros_like(self.Rinv)
        for p in range(len(out)):
            mine = records.pattern == p
            out[p] = (self.e[mine] * w[mine, None]).T @ self.e[mine]
        return out

    def gradient(self, elements: Elements) -> np.ndarray:
        """(p,) d log p / d psi"""
        D = self.derivatives
        blocks = [b.of(Variances(D.G, D.R)) for b in elements.blocks]
        return np.array([(1.0 if i == j else 2.0) * blocks[b][i, j] for b, i, j in elements.elements])

    def information(self, elements: Elements) -> np.ndarray:
        """(p, p) average information, 1/2 F' P F."""
        own = self.likelihood
        F = self.working_variates(elements)
        b = own.solver.weighted_sums(F)
        through_locations = b.T @ self._solve(b)
        weighted = F.copy()
        weigh(own.equations.records, self.Rinv, weighted)
        p = len(elements)
        direct = F.reshape(-1, p).T @ weighted.reshape(-1, p)
        total = 0.25 * (direct - through_locations)
        return total + total.T

    def working_variates(self, elements: Elements) -> np.ndarray:
        """(n, T, p) F, one column for each element."""
        own, p = self.likelihood, len(elements)
        thetas = own.solver.split(self.theta)
        columns = [np.zeros((*t.shape, p)) for t in thetas]
        weighted = self.e[:, :, None].copy()
        weigh(own.equations.records, self.Rinv, weighted)
        records, classes = own.equations.records, own.design.class_of_pattern
        if records.weight.size:
            weighted /= records.weight[:, None, None]
        of_record = classes[records.pattern]
        out = np.zeros((*self.e.shape, p))
        for number, (block, i, j) in enumerate(elements.elements):
            of = elements.blocks[block]
            a, b = of.components[i], of.components[j]
            if of.term is None:
                mine = of_record == of.residual_class
                unit = weighted[mine, :, 0]  # R_P^-1 e: V has the weight's inverse, R_r^-1 the weight
                column = np.zeros(unit.shape)
                column[:, a] = unit[:, b]
                column[:, b] = unit[:, a]
                out[mine, :, number] = column
            else:
                unit = thetas[of.term] @ self.Ginv[of.term]
                columns[of.term][:, a, number] = unit[:, b]
                columns[of.term][:, b, number] = unit[:, a]
        return out + self._fitted(columns)


def _as_csr(design: Design, i: int) -> csr_array:
    term = design.terms[i]
    indptr, indices, values = term.relationship.inverse_csr()
    return csr_array((values, indices, indptr), shape=(term.n_levels, term.n_levels))


@dataclass(frozen=True)
class Criteria:
    """AIC and BIC of a restricted likelihood, comparable between models with the same fixed effects."""

    log_likelihood: float
    parameters: int
    freedom: int

    @property
    def aic(self) -> float:
        return -2.0 * self.log_likelihood + 2.0 * self.parameters

    @property
    def bic(self) -> float:
        return -2.0 * self.log_likelihood + self.parameters * float(np.log(self.freedom))
