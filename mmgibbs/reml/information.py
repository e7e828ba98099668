"""The gradient and the average information of the free elements.

The average of observed and expected information (Gilmour, Thompson & Cullis 1995; Johnson & Thompson 1995) of two
elements is 1/2 f' P g, with the working variates

    f = (dV/dpsi) P y:      W_j Theta_j G^-1 E   for an element of G_j,      E R_P^-1 e_r   for one of R

E the symmetric matrix of its unit. The likelihood computes it (likelihood/restricted.py, likelihood/spectral.py).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mmgibbs.likelihood.base import Likelihood, LikelihoodPoint, Place
from mmgibbs.likelihood.matrices import Variances
from mmgibbs.reml.elements import Elements, MatrixBlock


def gradient(point: LikelihoodPoint, elements: Elements) -> np.ndarray:
    """Compute d log p / d psi, (p,)."""
    return differentiate_elements(point.derivatives, elements)


def differentiate_elements(derivatives: Variances, elements: Elements) -> np.ndarray:
    """Convert derivatives by whole matrices, d log p = tr(D dG), to those by the free elements, (p,)."""
    blocks = [b.extract(derivatives) for b in elements.blocks]
    return np.array([(1.0 if i == j else 2.0) * blocks[b][i, j] for b, i, j in elements.elements])


def average_information(point: LikelihoodPoint, elements: Elements) -> np.ndarray:
    """Compute the average information (p, p) of the free elements."""
    return point.average_information(element_places(elements))


def element_places(elements: Elements) -> list[Place]:
    """List the position of each free element."""
    places = []
    for number, i, j in elements.elements:
        block = elements.blocks[number]
        places.append(Place(block.term, block.residual_class, block.components[i], block.components[j]))
    return places


def degrees_of_freedom(likelihood: Likelihood, block: MatrixBlock) -> int:
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
