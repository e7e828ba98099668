"""The boundary of the positive definite matrices: variances at 0, correlations at 1 or -1, their combinations.

In units of the data (units.py) a block G has eigenvalues; those at `FLOOR` represent 0 (below it C^-1 has too few
digits left). A direction v of such a one is *closed* where the likelihood rises beyond the boundary, v' D v < 0: steps
then keep v' (dG) v = 0, and the estimate is on the boundary.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mmgibbs.likelihood.matrices import Variances
from mmgibbs.reml.elements import Elements, MatrixBlock

FLOOR = 1e-5  # smallest eigenvalue, in units of the data
AT_FLOOR = 10 * FLOOR
CEILING = 1e4  # largest eigenvalue of a start: C has a factor
NEAREST = 0.1  # share of the smallest eigenvalue down to which a step in the matrices themselves may lead
OWN = 0.99  # share of one component in a direction from which it is that component's variance


class Closed(NamedTuple):
    """A direction in which a matrix is at its boundary."""

    block: int
    direction: np.ndarray  # (k,) in units of the data

    def row(self, elements: Elements, second: Closed) -> np.ndarray:
        """Return a (p,) with a'd = v' (dG) w for scaled changes d of the elements, w another direction of the block."""
        out, v, w = np.zeros(len(elements)), self.direction, second.direction
        for n in elements.block_elements(self.block):
            _, i, j = elements.elements[n]
            out[n] = v[i] * w[j] if i == j else v[i] * w[j] + v[j] * w[i]
        return out

    def component(self) -> int | None:
        """Return the component whose variance is 0; None where it is a combination of several."""
        largest = int(np.argmax(np.abs(self.direction)))
        return largest if self.direction[largest] ** 2 > OWN else None


def closed_directions(elements: Elements, variances: Variances, derivatives: Variances) -> list[Closed]:
    """List the closed directions of all blocks."""
    out = []
    for number, block in enumerate(elements.blocks):
        values, vectors = np.linalg.eigh(block.scaled(block.extract(variances)))
        null = vectors[:, values <= AT_FLOOR]
        slope = block.extract(derivatives) * block.scale[:, None] * block.scale
        slopes, within = np.linalg.eigh(null.T @ slope @ null)
        out += [Closed(number, v) for v in (null @ within[:, slopes < 0]).T]
    return out


def constraints(elements: Elements, closed: list[Closed]) -> np.ndarray:
    """Return rows a (m, p) with a'd = 0 for steps d in scaled elements that keep to the boundary."""
    rows = [a.row(elements, b) for n, a in enumerate(closed) for b in closed[: n + 1] if a.block == b.block]
    return np.array(rows).reshape(-1, len(elements))


def stays_inside(elements: Elements, vector: np.ndarray, at: Variances) -> bool:
    """A step to this vector leaves every eigenvalue at least a share NEAREST of the smallest one of its block."""
    destination = elements.variances(vector, at)
    return all(_smallest(b, destination) >= max(NEAREST * _smallest(b, at), AT_FLOOR) for b in elements.blocks)


def _smallest(block: MatrixBlock, variances: Variances) -> float:
    return float(np.linalg.eigvalsh(block.scaled(block.extract(variances)))[0])


def raised(elements: Elements, variances: Variances) -> Variances:
    """Raise the eigenvalues of the matrices to FLOOR, in place, and return them."""
    for block in elements.blocks:
        matrix = raise_to_floor(block.scaled(block.extract(variances))) * block.scale[:, None] * block.scale
        block.assign(variances, matrix)
    return variances


def lowered(elements: Elements, variances: Variances) -> Variances:
    """Others whose eigenvalues are lowered to CEILING."""
    out = elements.variances(elements.vector(variances), variances)
    for block in elements.blocks:
        values, vectors = np.linalg.eigh(block.scaled(block.extract(out)))
        if values[-1] > CEILING:
            matrix = (vectors * np.minimum(values, CEILING)) @ vectors.T * block.scale[:, None] * block.scale
            block.assign(out, (matrix + matrix.T) / 2)
    return out


def raise_to_floor(scaled: np.ndarray) -> np.ndarray:
    """A symmetric matrix (k, k) in units of the data, its eigenvalues raised to FLOOR."""
    values, vectors = np.linalg.eigh(scaled)
    if values[0] >= FLOOR:
        return scaled
    raised = (vectors * np.maximum(values, FLOOR)) @ vectors.T
    return (raised + raised.T) / 2
