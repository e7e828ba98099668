"""The likelihood about one point, and steps to the maximum of that: in the matrices, and in factors of them.

With G = B B' and B <- B + d every step leads to a matrix that is positive semi-definite, also at its boundary, where
components have no variance or are correlated fully and steps in G itself lead nowhere. To second order

    log p  ~  g'J d + tr(D d d') - 1/2 (J d)' AI (J d)        J d: the change B d' + d B' in the free elements

of which the negative part of D is kept, so that the step is that to a maximum. It is damped by mu M,

    M_ij = q/2 tr(G^-1 E_i G^-1 E_j)        in each block of each matrix

the information that the location effects themselves would have: as mu grows the step turns into a short one of EM.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mmgibbs.likelihood.base import LikelihoodPoint
from mmgibbs.likelihood.matrices import Variances
from mmgibbs.reml.boundary import Closed, closed_directions, constraints, raise_to_floor
from mmgibbs.reml.elements import Elements
from mmgibbs.reml.information import average_information, degrees_of_freedom, gradient

UNDETERMINED = 1e-10  # eigenvalue of the information, relative to the largest, below which the data say nothing


@dataclass(frozen=True)
class Quadratic:
    """The likelihood about one point: gradient and information in scaled elements, on the directions left open."""

    gradient: np.ndarray  # (p,)
    information: np.ndarray  # (p, p)
    closed: tuple[Closed, ...]
    complete: np.ndarray  # (p, p) M
    open: np.ndarray  # (p, m) orthonormal directions
    inverse: np.ndarray  # (m, m) of the information there; 0 in undetermined directions
    undetermined: np.ndarray  # (p, u) directions of which the data say nothing

    @property
    def step(self) -> np.ndarray:
        """Step to the maximum, (p,)."""
        return self.open @ (self.inverse @ (self.open.T @ self.gradient))

    @property
    def distance(self) -> float:
        """Distance to the maximum, in standard errors."""
        return float(np.sqrt(max(self.gradient @ self.step, 0.0)))

    @property
    def covariance(self) -> np.ndarray:
        """Covariance matrix (p, p) of the estimates, in scaled elements."""
        return self.open @ self.inverse @ self.open.T


def quadratic(point: LikelihoodPoint, elements: Elements) -> Quadratic:
    """Approximate the log likelihood by a quadratic at a point."""
    scale = elements.scale
    slope = gradient(point, elements) * scale
    information = average_information(point, elements) * scale[:, None] * scale
    closed = closed_directions(elements, point.variances, point.derivatives)
    open_ = _null_space(constraints(elements, closed))
    values, vectors = np.linalg.eigh(open_.T @ information @ open_)
    known = values > UNDETERMINED * max(values.max(initial=0.0), np.finfo(float).tiny)
    inverse = (vectors[:, known] / values[known]) @ vectors[:, known].T
    complete = _complete_information(point, elements)
    return Quadratic(slope, information, tuple(closed), complete, open_, inverse, open_ @ vectors[:, ~known])


def _null_space(rows: np.ndarray) -> np.ndarray:
    """Find orthonormal directions d (p, p - rank) with rows d = 0."""
    if not len(rows):
        return np.eye(rows.shape[1])
    _, values, directions = np.linalg.svd(rows)
    rank = int(np.sum(values > 1e-10 * values[0]))
    return directions[rank:].T


def _complete_information(point: LikelihoodPoint, elements: Elements) -> np.ndarray:
    """Compute M (p, p) in scaled elements."""
    out = np.zeros((len(elements), len(elements)))
    for number, block in enumerate(elements.blocks):
        numbers = elements.block_elements(number)
        inverse = np.linalg.inv(block.scaled(block.extract(point.variances)))
        i, j = np.array([elements.elements[n][1:] for n in numbers]).T
        twice = np.where(i == j, 1.0, 2.0)  # tr(A E_i A E_j), E with one element or two
        products = inverse[np.ix_(i, i)] * inverse[np.ix_(j, j)] + inverse[np.ix_(i, j)] * inverse[np.ix_(j, i)]
        trace = products * np.outer(twice, twice) / 2
        out[np.ix_(numbers, numbers)] = 0.5 * degrees_of_freedom(point.likelihood, block) * trace
    return out


def factor_step(
    elements: Elements, at: Variances, derivatives: Variances, about: Quadratic, mu: float
) -> tuple[Variances, float]:
    """The matrices that a step in their factors leads to, and the rise that it promises."""
    sizes = [len(b.components) ** 2 for b in elements.blocks]
    first = np.cumsum([0, *sizes])
    J, curvature = np.zeros((len(elements), first[-1])), np.zeros((first[-1], first[-1]))
    factors = []
    for number, block in enumerate(elements.blocks):
        mine = slice(first[number], first[number + 1])
        values, vectors = np.linalg.eigh(block.scaled(block.extract(at)))
        B = vectors * np.sqrt(np.maximum(values, 0.0))
        for shut in about.closed:
            if shut.block == number:  # and stays so
                B -= np.outer(shut.direction, shut.direction @ B)
        factors.append(B)
        k = len(B)
        for n in elements.block_elements(number):
            _, i, j = elements.elements[n]
            change = np.zeros((k, k))
            change[i] += B[j]
            change[j] += B[i] if i != j else B[j]
            J[n, mine] = change.ravel()
        slopes, directions = np.linalg.eigh(block.extract(derivatives) * block.scale[:, None] * block.scale)
        falling = (directions * np.maximum(-slopes, 0.0)) @ directions.T
        curvature[mine, mine] = 2.0 * np.kron(falling, np.eye(k))
    gradient = J.T @ about.gradient
    values, vectors = np.linalg.eigh(J.T @ (about.information + mu * about.complete) @ J + curvature)
    known = values > UNDETERMINED * values.max(initial=0.0)
    step = vectors[:, known] @ ((vectors[:, known].T @ gradient) / values[known])
    out = at.copy_matrices()
    for number, (block, B) in enumerate(zip(elements.blocks, factors, strict=True)):
        moved = B + step[first[number] : first[number + 1]].reshape(B.shape)
        matrix = raise_to_floor(moved @ moved.T) * block.scale[:, None] * block.scale
        block.assign(out, matrix)
    return out, 0.5 * float(gradient @ step)
