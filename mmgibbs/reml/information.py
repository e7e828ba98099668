"""The gradient and the average information of the free elements.

The average of observed and expected information (Gilmour, Thompson & Cullis 1995; Johnson & Thompson 1995) of two
elements is 1/2 f' P g, with the working variates

    f = (dV/dpsi) P y:      W_j Theta_j G^-1 E   for an element of G_j,      E R_P^-1 e_r   for one of R

E the symmetric matrix of its unit, and f'Pg = f'R^-1 g - (W'R^-1 f)' C^-1 (W'R^-1 g).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mmgibbs.likelihood.restricted import Point, RestrictedLikelihood
from mmgibbs.reml.elements import Elements, MatrixBlock


def gradient(point: Point, elements: Elements) -> np.ndarray:
    """(p,) d log p / d psi"""
    blocks = [b.of(point.derivatives) for b in elements.blocks]
    return np.array([(1.0 if i == j else 2.0) * blocks[b][i, j] for b, i, j in elements.elements])


def average_information(point: Point, elements: Elements) -> np.ndarray:
    """(p, p) 1/2 F' P F, F the working variates."""
    return project(point, working_variates(point, elements))


def project(point: Point, F: np.ndarray) -> np.ndarray:
    """(p, p) 1/2 F' P F of working variates (n, T, p)."""
    p = F.shape[2]
    b = point.weighted_sums(F)
    total = 0.25 * (F.reshape(-1, p).T @ point.weigh(F).reshape(-1, p) - b.T @ point.solve(b))
    return total + total.T


def working_variates(point: Point, elements: Elements) -> np.ndarray:
    """(n, T, p) F, one column for each element."""
    records, thetas = point.likelihood.equations.records, point.solutions
    columns = [np.zeros((*theta.shape, len(elements))) for theta in thetas]
    weighted = point.weigh(point.e[:, :, None])[:, :, 0]
    if records.weight.size:  # R_P^-1 e: V has the inverse of the weight, R_r^-1 the weight
        weighted /= records.weight[:, None]
    class_of_record = point.likelihood.design.class_of_pattern[records.pattern]
    out = np.zeros((*point.e.shape, len(elements)))
    for number, (block, i, j) in enumerate(elements.elements):
        matrix = elements.blocks[block]
        a, b = matrix.components[i], matrix.components[j]
        if matrix.term is None:
            in_class = class_of_record == matrix.residual_class
            column = np.zeros((np.count_nonzero(in_class), point.e.shape[1]))
            column[:, a], column[:, b] = weighted[in_class, b], weighted[in_class, a]
            out[in_class, :, number] = column
        else:
            unit = thetas[matrix.term] @ point.Ginv[matrix.term]
            columns[matrix.term][:, a, number] = unit[:, b]
            columns[matrix.term][:, b, number] = unit[:, a]
    return out + point.fit(columns)


def degrees_of_freedom(likelihood: RestrictedLikelihood, block: MatrixBlock) -> int:
    """Levels, or records, that a covariance matrix is the covariance of."""
    design = likelihood.design
    if block.term is not None:
        return design.terms[block.term].n_prior_levels
    of_class = design.class_of_pattern == block.residual_class
    observes = design.patterns[:, list(block.components)].any(axis=1)
    return int(likelihood.matrices.sizes.records[of_class & observes].sum())


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
