"""What is estimated: the free elements of the covariance matrices, as one vector.

The matrices are those of the random terms and of each class of residuals. An element is free where its matrix is not
fixed and its two components may covary; others keep their start. So do residual variances of a class without
records.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mmgibbs.likelihood.matrices import Variances
from mmgibbs.models.covariance import CovarianceModel
from mmgibbs.models.design import Design
from mmgibbs.models.residual import ResidualModel


class Units(NamedTuple):
    """Units in which variances are near 1: standard deviations; 0 where the data give none."""

    G: list[np.ndarray | None]  # (k,) per term, None for fixed terms
    R: np.ndarray  # (classes, T)


class Element(NamedTuple):
    """A free element of a symmetric matrix, row >= column."""

    block: int
    row: int
    column: int


@dataclass(frozen=True)
class MatrixBlock:
    """Components of one matrix that may covary and are estimated."""

    term: int | None  # None: of the residuals
    residual_class: int
    name: str  # of its term, or 'residual', with the class of residuals
    components: tuple[int, ...]
    scale: np.ndarray  # (k,) standard deviations, the unit of its elements (units.py)

    def extract(self, variances: Variances) -> np.ndarray:
        """Copy the block (k, k) from the matrix that contains it."""
        return self.containing_matrix(variances)[np.ix_(self.components, self.components)]

    def assign(self, variances: Variances, matrix: np.ndarray) -> None:
        """Write (k, k) in its place."""
        self.containing_matrix(variances)[np.ix_(self.components, self.components)] = matrix

    def containing_matrix(self, variances: Variances) -> np.ndarray:
        """Return the matrix that it is a block of."""
        if self.term is None:
            return variances.R[self.residual_class]
        matrix = variances.G[self.term]
        assert matrix is not None
        return matrix

    def scaled(self, matrix: np.ndarray) -> np.ndarray:
        """Scale a block (k, k) to its units: its variances are near 1, whatever those of the traits."""
        return matrix / self.scale[:, None] / self.scale


@dataclass(frozen=True)
class Elements:
    """The vector of free elements."""

    blocks: tuple[MatrixBlock, ...]
    elements: tuple[Element, ...]

    def __len__(self) -> int:
        return len(self.elements)

    @property
    def scale(self) -> np.ndarray:
        """Unit of each element, (p,)."""
        return np.array([self.blocks[b].scale[i] * self.blocks[b].scale[j] for b, i, j in self.elements])

    def block_elements(self, block: int) -> list[int]:
        """Numbers of the elements of one block."""
        return [n for n, e in enumerate(self.elements) if e.block == block]

    def vector(self, variances: Variances) -> np.ndarray:
        """Collect the elements (p,) from the matrices."""
        blocks = [b.extract(variances) for b in self.blocks]
        return np.array([blocks[b][i, j] for b, i, j in self.elements])

    def structure_parameters(self, vector: np.ndarray) -> Mapping[int, np.ndarray]:
        """Term -> parameters of the structure of its matrix: none have any here (see structured.py)."""
        return {}

    def variances(self, vector: np.ndarray, at: Variances) -> Variances:
        """Return the matrices with these elements; all others are those of `at`."""
        out = at.copy_matrices()
        for value, (b, i, j) in zip(vector, self.elements, strict=True):
            block = self.blocks[b]
            row, column = block.components[i], block.components[j]
            matrix = block.containing_matrix(out)
            matrix[row, column] = matrix[column, row] = value
        return out


def starting_variances(covariances: Sequence[CovarianceModel | None], residual: ResidualModel) -> Variances:
    """Return the starting variances of the model."""
    G = [None if c is None else np.array(c.start, float) for c in covariances]
    return Variances(G, np.stack([np.array(m.start, float) for m in residual.matrices]))


def free_elements(
    design: Design, covariances: Sequence[CovarianceModel | None], residual: ResidualModel, units: Units
) -> Elements:
    """List the free elements of a model; a component without a unit has that of its start."""
    blocks: list[MatrixBlock] = []
    elements: list[Element] = []

    def add(
        model: CovarianceModel, unit: np.ndarray, term: int | None, residual_class: int, name: str, observed: np.ndarray
    ) -> None:
        unit = np.where(unit > 0, unit, np.sqrt(np.diag(model.start)))
        for components in () if model.fixed else model.blocks:
            known = [c for c in components if observed[c]]
            if not known:
                continue
            blocks.append(MatrixBlock(term, residual_class, name, tuple(known), unit[known]))
            for i in range(len(known)):
                elements.extend(Element(len(blocks) - 1, i, j) for j in range(i + 1))

    for number, model in enumerate(covariances):
        unit = units.G[number]
        if model is not None and unit is not None:
            add(model, unit, number, 0, design.terms[number].name, np.ones(len(unit), bool))
    for c, model in enumerate(residual.matrices):
        name = f"residual|{residual.classes[c]}" if residual.classes else "residual"
        add(model, units.R[c], None, c, name, design.patterns[design.class_of_pattern == c].any(axis=0))
    return Elements(tuple(blocks), tuple(elements))
