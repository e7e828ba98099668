"""The restricted likelihood of records whose residuals are correlated, without a nugget.

Residuals stand in the cells of matrices K_g, one for each trait and class g of records (models/residual.py): e_g ~
N(0, s_g K_g), with s_g the residual variance. A cell without a record has an effect of its own, a flat fixed one beside
those of the design, which takes what no record says: y is 0 there. With W of all cells and Q = blockdiag(K_g^-1 / s_g)

    log p(y | psi) = -1/2 [ sum_g (m_g log s_g + log|K_g|) + sum_j (q_j log|G_j| + k_j log|K_j|) + log|C| + y'Py
                            + (N - p) log 2 pi ]

    C = W'QW + blockdiag(K_j^-1 (x) G_j^-1),       y'Py = e'Qe + sum_j tr(G_j^-1 Theta_j' K_j^-1 Theta_j)

m_g cells; N observations and p fixed equations of the design, as the effects of empty cells leave them. Derivatives,
with E_g = e_g e_g' + W_g C^-1 W_g', of which the elements where K_g^-1 is not 0 are needed:

    by s_g      -1/2 [ m_g / s_g - tr(K_g^-1 E_g) / s_g^2 ]
    by rho_g    -1/2 [ tr(dK_g^-1 E_g) / s_g - d log|K_g^-1| ]

and working variates F = (dV/dpsi) P y: e_g / s_g, and -K_g dK_g^-1 e_g.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from scipy.sparse import block_diag, csr_array, eye_array, hstack

from mmgibbs.likelihood.base import Place, Source
from mmgibbs.likelihood.cholesky.factor import analyse
from mmgibbs.likelihood.coefficients import Blocks, factorise_inverse, fill_ones, solve_factor
from mmgibbs.likelihood.incidence import Incidence
from mmgibbs.likelihood.matrices import Variances
from mmgibbs.likelihood.sparse import SparseLikelihood, SparsePoint, mask_joined
from mmgibbs.likelihood.working_variates import working_effects
from mmgibbs.models.design import Design
from mmgibbs.models.relationships.base import Relationship


class CorrelatedLikelihood(SparseLikelihood):
    """log p(y | psi) of a design with normal traits and correlated residuals.

    of_terms: components that may covary (see coefficients).
    """

    name = "correlated residuals"

    def __init__(self, design: Design, of_terms: Sequence[Blocks | None]):
        super().__init__(design)
        self.groups = design.correlated
        sizes = [group.relationship.n_levels for group in self.groups]
        self.cuts = np.concatenate([[0], np.cumsum(sizes)])  # first cell of each group
        rows = np.concatenate([g.records * design.n_traits + g.trait for g in self.groups])
        self.cell = np.concatenate([first + g.cells for first, g in zip(self.cuts[:-1], self.groups, strict=True)])
        observation = np.full(self.n_cells, -1, np.int64)
        observation[self.cell] = rows
        self.empty = np.flatnonzero(observation < 0)
        self.rows = rows
        self.y = np.zeros(self.n_cells)
        self.y[self.cell] = design.y.ravel()[rows]
        self.W = self._make_incidence()
        # K_g^-1, whose values change with the parameters, its log-determinant, and W_g' K_g^-1 W_g
        self.correlations = [group.relationship.inverse_matrix().copy() for group in self.groups]
        self.log_determinants = [_log_determinant(group.relationship) for group in self.groups]
        self.products = [self.multiply(g, inverse) for g, inverse in enumerate(self.correlations)]
        self.joined = [mask_joined(term, blocks) for term, blocks in zip(design.terms, of_terms, strict=True)]
        self.symbolic = analyse(self._find_pattern())

    @property
    def n_cells(self) -> int:
        return int(self.cuts[-1])

    def _make_incidence(self) -> csr_array:
        """(cells, equations + empty cells)"""
        n, of_records = self.n_cells, Incidence(self.design).matrix[:, self.in_force]
        pick = csr_array((np.ones(self.rows.size), (self.cell, self.rows)), shape=(n, of_records.shape[0]))
        k = self.empty.size
        return csr_array(hstack([pick @ of_records, csr_array((np.ones(k), (self.empty, np.arange(k))), shape=(n, k))]))

    def make_prior(self, precisions: Sequence[np.ndarray]) -> csr_array:
        """blockdiag(K^-1 (x) G^-1) between the equations, and 0 for empty cells."""
        empty = csr_array((self.empty.size,) * 2)
        return csr_array(block_diag([super().make_prior(precisions), empty], format="csr"))

    def _find_pattern(self) -> csr_array:
        """The elements of C that may be other than 0."""
        W = fill_ones(self.W)
        Q = csr_array(block_diag([fill_ones(inverse) for inverse in self.correlations], format="csr"))
        prior = fill_ones(self.make_prior(self.joined))
        pattern = csr_array(W.T @ (Q @ W) + prior + eye_array(W.shape[1]))
        pattern.sort_indices()
        return fill_ones(pattern)

    def cells(self, g: int) -> slice:
        """Return the slice of the cells of a group."""
        return slice(self.cuts[g], self.cuts[g + 1])

    def multiply(self, g: int, matrix: csr_array) -> csr_array:
        """W_g' M W_g of a matrix M between the cells of a group."""
        W = self.W[self.cells(g)]
        return csr_array(W.T @ (matrix @ W))

    def renew(self, g: int, values: np.ndarray, log_determinant: float) -> None:
        """Let the elements of K_g^-1, and its log-determinant, be others."""
        self.correlations[g].data[:] = values
        self.log_determinants[g] = log_determinant
        self.products[g] = self.multiply(g, self.correlations[g])

    def _name_equation(self, number: int) -> str:
        return super()._name_equation(number) if number < self.n_equations else "a cell without a record"

    @property
    def description(self) -> str:
        return f"{self.W.shape[1]:,} equations, {self.n_cells:,} correlated residuals"

    def evaluate(self, variances: Variances) -> CorrelatedPoint:
        """ModelError where C is not positive definite there."""
        return CorrelatedPoint(self, variances)


class CorrelatedPoint(SparsePoint):
    """The likelihood at one psi; what derivatives need is computed when it is asked for."""

    likelihood: CorrelatedLikelihood

    def __init__(self, likelihood: CorrelatedLikelihood, variances: Variances):
        super().__init__(likelihood, variances)
        self._invert(variances)
        groups = likelihood.groups
        self.scales = np.array([variances.R[g.residual_class][g.trait, g.trait] for g in groups])
        without_records = np.diff(likelihood.cuts) - [g.records.size for g in groups]
        self.log_determinants += float(without_records @ np.log(self.scales)) - sum(likelihood.log_determinants)
        weights = [inverse / s for inverse, s in zip(likelihood.correlations, self.scales, strict=True)]
        C = sum(products / s for products, s in zip(likelihood.products, self.scales, strict=True))
        factor = likelihood.factor(csr_array(C), self.Ginv)
        self._solve(csr_array(block_diag(weights, format="csr")), likelihood.W, factor)

    @property
    def residuals(self) -> np.ndarray:
        """(n, T) e, records in model order; 0 where not observed."""
        out = np.zeros(self.likelihood.design.y.size)
        out[self.likelihood.rows] = self.e[self.likelihood.cell]
        return out.reshape(self.likelihood.design.y.shape)

    def solve_equations(self, b: np.ndarray) -> np.ndarray:
        """C^-1 b, (equations, m): of those of the design, whatever is in the empty cells."""
        n = self.likelihood.n_equations
        padded = np.zeros((self.likelihood.W.shape[1], *b.shape[1:]))
        padded[:n] = b
        return solve_factor(self.factor, padded)[:n]

    @cached_property
    def derivatives(self) -> Variances:
        """D of each matrix."""
        likelihood = self.likelihood
        S: list[np.ndarray | None] = [None] * len(self.squares)
        for i in likelihood.random:
            S[i] = self.squares[i] + self._trace(i)
        T = likelihood.design.n_traits
        D = likelihood.matrices.differentiate(self.v, S, np.zeros((len(likelihood.design.patterns), T, T)))
        R = np.zeros_like(D.R)
        for g, (group, s) in enumerate(zip(likelihood.groups, self.scales, strict=True)):
            cells = np.diff(likelihood.cuts)[g]
            sums = self.sum_products(g, likelihood.correlations[g], likelihood.products[g])
            R[group.residual_class, group.trait, group.trait] += -0.5 * (cells / s - sums / s**2)
        return Variances(D.G, R)

    def sum_products(self, g: int, matrix: csr_array, products: csr_array) -> float:
        """tr(M E_g) of a matrix M on the pattern of K_g^-1; products: W_g' M W_g."""
        e = self.e[self.likelihood.cells(g)]
        rows = np.repeat(np.arange(products.shape[0]), np.diff(products.indptr))
        places = self.likelihood.symbolic.locate(rows, products.indices)
        return float(e @ (matrix @ e)) + float(products.data @ self.selected[places])

    def working_variates(self, places: Sequence[Place]) -> np.ndarray:
        """(cells, p) F = (dV/dpsi) P y, see working_variates.py; e_g / s_g of a residual variance."""
        likelihood = self.likelihood
        residuals = np.zeros((likelihood.n_cells, len(places)))
        for g, (group, s) in enumerate(zip(likelihood.groups, self.scales, strict=True)):
            cells, variance = likelihood.cells(g), Place(None, group.residual_class, group.trait, group.trait)
            for number in (k for k, place in enumerate(places) if place == variance):
                residuals[cells, number] = self.e[cells] / s
        units = [theta @ Ginv for theta, Ginv in zip(self.solutions, self.Ginv, strict=True)]
        effects = np.concatenate([effect.reshape(-1, len(places)) for effect in working_effects(places, units)])
        return residuals + likelihood.W[:, : likelihood.n_equations] @ effects[likelihood.in_force]


class RenewableResidual:
    """K of one group of correlated records, whose parameters change under the likelihood.

    A point that was made at other parameters must not be asked for derivatives any more.
    """

    def __init__(self, likelihood: CorrelatedLikelihood, group: int):
        self.likelihood, self.group, self.source = likelihood, group, Source(None, group)
        self.relationship = likelihood.groups[group].relationship
        self.parameters = self.relationship.parameter_values

    def renew(self, parameters: np.ndarray) -> None:
        """Let the likelihood be that of other values of the parameters."""
        weights = self.relationship.weigh(parameters)
        self.likelihood.renew(self.group, self.relationship.fixed_matrices @ weights.values, weights.log_determinant)
        self.parameters = np.array(parameters, float)

    def _changes(self) -> list[csr_array]:
        """(P,) d K^-1 by each parameter."""
        inverse, weights = self.likelihood.correlations[self.group], self.relationship.weigh(self.parameters)
        values = weights.derivatives @ self.relationship.fixed_matrices.T
        return [csr_array((row, inverse.indices, inverse.indptr), shape=inverse.shape) for row in values]

    def gradient(self, point: CorrelatedPoint) -> np.ndarray:
        """(P,) d log p at a point of these parameters."""
        slopes = self.relationship.weigh(self.parameters).log_determinant_derivatives
        multiply = self.likelihood.multiply
        sums = np.array([point.sum_products(self.group, M, multiply(self.group, M)) for M in self._changes()])
        return -0.5 * (sums / point.scales[self.group] - slopes)

    def working_variates(self, point: CorrelatedPoint) -> np.ndarray:
        """(cells, P) (dV / d rho) P y = -K dK^-1 e."""
        likelihood = self.likelihood
        cells = likelihood.cells(self.group)
        out = np.zeros((likelihood.n_cells, len(self.parameters)))
        columns = np.column_stack([change @ point.e[cells] for change in self._changes()])
        out[cells] = -solve_factor(factorise_inverse(likelihood.correlations[self.group]), columns)
        return out


def _log_determinant(relationship: Relationship) -> float:
    """log|K^-1|"""
    if relationship.parameters:
        return relationship.weigh(relationship.parameter_values).log_determinant
    return factorise_inverse(relationship.inverse_matrix()).log_determinant
