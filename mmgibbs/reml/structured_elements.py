"""The parameters phi of structured covariance matrices in the place of their elements, and where REML starts them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mmgibbs.likelihood.matrices import Variances
from mmgibbs.models.covariance import CovarianceModel
from mmgibbs.models.structures.base import SMALLEST_SHARE, Structure
from mmgibbs.models.structures.unstructured import Unstructured
from mmgibbs.reml.elements import Elements, MatrixBlock


@dataclass(frozen=True)
class StructuredElements:
    """The parameters phi of all matrices that are estimated, in the place of their elements."""

    elements: Elements
    structures: tuple[Structure, ...]  # of each block of the elements
    phi: np.ndarray  # (p,) where they are now

    def __len__(self) -> int:
        return len(self.phi)

    def list_blocks(self) -> Iterator[tuple[MatrixBlock, Structure, slice]]:
        """List each block with its structure and the slice of phi that holds its parameters."""
        first = 0
        for block, structure in zip(self.elements.blocks, self.structures, strict=True):
            size = len(structure.free)
            yield block, structure, slice(first, first + size)
            first += size

    @property
    def free(self) -> np.ndarray:
        """Mask (p,) of the parameters that move."""
        return np.concatenate([structure.free for structure in self.structures])

    @property
    def scale(self) -> np.ndarray:
        """Unit of each parameter, (p,)."""
        return np.concatenate([s.units(b.scale) for s, b in zip(self.structures, self.elements.blocks, strict=True)])

    @property
    def lower(self) -> np.ndarray:
        """Lower bounds (p,)."""
        blocks = zip(self.structures, self.elements.blocks, strict=True)
        return np.concatenate([s.lower_bounds(b.scale) for s, b in blocks])

    def list_factors(self) -> Iterator[tuple[MatrixBlock, int, np.ndarray]]:
        """List each common factor: its block, its number from 0, and the positions of its free loadings in phi."""
        for block, structure, places in self.list_blocks():
            for j, of_factor in enumerate(structure.factor_places):
                yield block, j, places.start + of_factor

    def curvature(self, derivatives: Variances) -> np.ndarray:
        """Compute -2 D (p, p) between the loadings of each factor, in units."""
        out, scale = np.zeros((len(self), len(self))), self.scale
        for block, j, places in self.list_factors():
            D = block.extract(derivatives)[j:, j:]
            out[np.ix_(places, places)] = -2.0 * D * scale[places][:, None] * scale[places]
        return out

    def find_vanishing(self, phi: np.ndarray, score: np.ndarray) -> np.ndarray:
        """Mark loadings (p,) of factors that are as small as they may be, and whose growth lowers the likelihood.

        score: in units.
        """
        out, values = np.zeros(len(phi), bool), phi / self.scale
        for _, _, places in self.list_factors():
            is_small = np.sqrt(np.mean(values[places] ** 2)) <= SMALLEST_SHARE
            out[places] = is_small and float(score[places] @ values[places]) <= 0
        return out

    @property
    def upper(self) -> np.ndarray:
        """Upper bounds (p,)."""
        return np.concatenate([structure.upper_bounds() for structure in self.structures])

    def variances(self, phi: np.ndarray, at: Variances) -> Variances:
        """Return the matrices at phi; those that are not estimated are those of `at`."""
        out, factors = at.copy_matrices(), {}
        for block, structure, places in self.list_blocks():
            block.assign(out, structure.matrix(phi[places]))
            if block.term is not None and structure.n_specific_factors:
                factors[block.term] = structure.common_factors(phi[places])
        return out._replace(factors=factors)

    def jacobian(self, phi: np.ndarray) -> np.ndarray:
        """Compute d psi / d phi, (elements, p)."""
        out = np.zeros((len(self.elements), len(phi)))
        for number, (_, structure, places) in enumerate(self.list_blocks()):
            D = structure.derivatives(phi[places])
            for n in self.elements.block_elements(number):
                _, i, j = self.elements.elements[n]
                out[n, places] = D[:, i, j]
        return out

    def structure_parameters(self, phi: np.ndarray) -> Mapping[int, np.ndarray]:
        """Term -> the parameters of its structure."""
        return {
            block.term: phi[places]
            for block, structure, places in self.list_blocks()
            if block.term is not None and structure.is_structured
        }


def structured_elements(
    elements: Elements, covariances: Sequence[CovarianceModel | None], start: Variances
) -> StructuredElements:
    """The parameters of a model, and where they start."""
    structures: list[Structure] = []
    for block in elements.blocks:
        covariance = None if block.term is None else covariances[block.term]
        structure = None if covariance is None else covariance.structure
        structures.append(structure or Unstructured(len(block.components)))
    starts = [s.fit(b.extract(start)) for s, b in zip(structures, elements.blocks, strict=True)]
    made = StructuredElements(elements, tuple(structures), np.concatenate(starts))
    return StructuredElements(elements, made.structures, np.clip(made.phi, made.lower, made.upper))
