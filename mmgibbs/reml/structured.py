"""REML where covariance matrices have a structure: the parameters phi are free, and all matrices functions of them.

With J = d psi / d phi, psi the elements of the matrices, score and average information of phi are J'g and J'AI J.
Steps are damped as by Levenberg and Marquardt,

    phi <- phi + (J'AI J + mu diag(J'AI J))^-1 J'g

with mu raised until the likelihood rises. Variances are logarithms in phi, so that every step gives positive definite
matrices; one that goes to 0 (a Heywood case, where it is a specific variance) stops at a lower bound and stays there as
long as the likelihood falls inwards. Matrices without a structure are functions of their Cholesky factors.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mmgibbs.likelihood.base import Likelihood, LikelihoodPoint
from mmgibbs.likelihood.matrices import Variances
from mmgibbs.models.covariance import CovarianceModel
from mmgibbs.models.structures.base import Structure, fit
from mmgibbs.models.structures.unstructured import Unstructured
from mmgibbs.reml.elements import Elements, MatrixBlock
from mmgibbs.reml.information import average_information, gradient
from mmgibbs.reml.maximise import Watch

FIRST_DAMPING, LEAST_DAMPING, MOST_DAMPING = 1e-3, 1e-9, 1e8
UNDETERMINED = 1e-9  # eigenvalue of the scaled information below which the data say nothing
ROUNDING = 1e-12  # of a log likelihood


@dataclass(frozen=True)
class StructuredElements:
    """The parameters phi of all matrices that are estimated, in the place of their elements."""

    elements: Elements
    structures: tuple[Structure | Unstructured, ...]  # of each block of the elements
    phi: np.ndarray  # (p,) where they are now

    def __len__(self) -> int:
        return len(self.phi)

    def list_blocks(self) -> Iterator[tuple[MatrixBlock, Structure | Unstructured, slice]]:
        """Each block, its structure, and where its parameters are in phi."""
        first = 0
        for block, structure in zip(self.elements.blocks, self.structures, strict=True):
            size = len(structure.free)
            yield block, structure, slice(first, first + size)
            first += size

    @property
    def free(self) -> np.ndarray:
        """(p,) bool: parameters that move."""
        return np.concatenate([structure.free for structure in self.structures])

    @property
    def scale(self) -> np.ndarray:
        """(p,) the unit of each parameter."""
        return np.concatenate([s.units(b.scale) for s, b in zip(self.structures, self.elements.blocks, strict=True)])

    @property
    def lower(self) -> np.ndarray:
        """(p,) lower bounds."""
        blocks = zip(self.structures, self.elements.blocks, strict=True)
        return np.concatenate([s.lower_bounds(b.scale) for s, b in blocks])

    def variances(self, phi: np.ndarray, at: Variances) -> Variances:
        """The matrices at phi; those that are not estimated are those of `at`."""
        out = at.copy_matrices()
        for block, structure, places in self.list_blocks():
            block.assign(out, structure.matrix(phi[places]))
        return out

    def jacobian(self, phi: np.ndarray) -> np.ndarray:
        """(elements, p) d psi / d phi."""
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
            if block.term is not None and not isinstance(structure, Unstructured)
        }


@dataclass(frozen=True)
class StructuredMaximum:
    """Where the iteration ended."""

    point: LikelihoodPoint
    parameters: StructuredElements
    covariance: np.ndarray  # (p, p) of phi; 0 for parameters at their bounds
    undetermined: np.ndarray  # (p, u) directions, in units, of which the data say nothing
    at_bound: np.ndarray  # (p,) bool
    distance: float  # to the maximum, in standard errors
    converged: bool
    log_likelihoods: tuple[float, ...]
    stopped: bool

    @property
    def iterations(self) -> int:
        return len(self.log_likelihoods) - 1

    @property
    def n_estimated(self) -> int:
        return int(self.parameters.free.sum() - self.at_bound.sum() - self.undetermined.shape[1])


def structured_elements(
    elements: Elements, covariances: Sequence[CovarianceModel | None], start: Variances
) -> StructuredElements:
    """The parameters of a model, and where they start."""
    structures: list[Structure | Unstructured] = []
    starts = []
    for block in elements.blocks:
        covariance = None if block.term is None else covariances[block.term]
        matrix = block.extract(start)
        structure = None if covariance is None else covariance.structure
        if structure is None:
            unstructured = Unstructured(len(block.components))
            structures.append(unstructured)
            starts.append(unstructured.parameters(matrix))
        else:
            structures.append(structure)
            starts.append(fit(structure, matrix))
    made = StructuredElements(elements, tuple(structures), np.concatenate(starts))
    return StructuredElements(elements, made.structures, np.maximum(made.phi, made.lower))


def maximise_structured(
    likelihood: Likelihood,
    parameters: StructuredElements,
    start: Variances,
    tolerance: float,
    max_iterations: int,
    watch: Watch | None = None,
) -> StructuredMaximum:
    """ModelError where C is not positive definite at the start."""
    phi, damping, stopped = parameters.phi, FIRST_DAMPING, False
    point = likelihood.evaluate(parameters.variances(phi, start))
    history = [point.log_likelihood]
    for iteration in range(max_iterations + 1):
        about = _about(point, parameters, phi)
        converged = about.distance <= tolerance
        stopped = watch is not None and watch(iteration, point, about.distance)
        if converged or stopped or iteration == max_iterations:
            break
        following = None
        while following is None and damping <= MOST_DAMPING:
            candidate = np.maximum(phi + about.step(damping), parameters.lower)
            following = _find_higher(likelihood, parameters.variances(candidate, start), point)
            damping = max(damping / 10, LEAST_DAMPING) if following is not None else damping * 10
        if following is None:  # rounding hides the last steps
            converged = about.distance <= 100 * tolerance
            break
        point, phi = following, candidate
        history.append(point.log_likelihood)
    moved = StructuredElements(parameters.elements, parameters.structures, phi)
    return StructuredMaximum(
        point,
        moved,
        about.covariance,
        about.undetermined,
        about.at_bound,
        about.distance,
        converged,
        tuple(history),
        stopped,
    )


@dataclass(frozen=True)
class _About:
    """Score and average information of phi at one point, in units."""

    scale: np.ndarray  # (p,)
    score: np.ndarray  # (p,)
    information: np.ndarray  # (p, p)
    open: np.ndarray  # (p,) bool: parameters that move
    at_bound: np.ndarray  # (p,) bool
    vectors: np.ndarray  # (m, m) of the information of the open ones, its diagonal 1
    values: np.ndarray  # (m,)

    @property
    def _diagonal(self) -> np.ndarray:
        return _root_of_diagonal(self.information[np.ix_(self.open, self.open)])

    @property
    def distance(self) -> float:
        known = self.values > UNDETERMINED
        projected = self.vectors[:, known].T @ (self.score[self.open] / self._diagonal)
        return float(np.sqrt(np.sum(projected**2 / self.values[known])))

    def step(self, damping: float) -> np.ndarray:
        """(p,)"""
        d = self._diagonal
        known = self.values > UNDETERMINED
        projected = self.vectors[:, known].T @ (self.score[self.open] / d) / (self.values[known] + damping)
        out = np.zeros(len(self.score))
        out[self.open] = self.vectors[:, known] @ projected / d
        return out * self.scale

    @property
    def covariance(self) -> np.ndarray:
        """(p, p)"""
        known = self.values > UNDETERMINED
        V = self.vectors[:, known] / self._diagonal[:, None]
        out = np.zeros_like(self.information)
        out[np.ix_(self.open, self.open)] = (V / self.values[known]) @ V.T
        return out * self.scale[:, None] * self.scale

    @property
    def undetermined(self) -> np.ndarray:
        """(p, u)"""
        out = np.zeros((len(self.score), int(np.sum(self.values <= UNDETERMINED))))
        out[self.open] = self.vectors[:, self.values <= UNDETERMINED] / self._diagonal[:, None]
        return out / np.maximum(np.linalg.norm(out, axis=0), np.finfo(float).tiny)


def _about(point: LikelihoodPoint, parameters: StructuredElements, phi: np.ndarray) -> _About:
    scale = parameters.scale
    J = parameters.jacobian(phi) * scale
    score = J.T @ gradient(point, parameters.elements)
    information = J.T @ average_information(point, parameters.elements) @ J
    at_bound = (phi <= parameters.lower) & (score <= 0)
    is_open = parameters.free & ~at_bound
    inner = information[np.ix_(is_open, is_open)]
    d = _root_of_diagonal(inner)
    values, vectors = np.linalg.eigh(inner / d[:, None] / d)
    return _About(scale, score, information, is_open, at_bound, vectors, values)


def _root_of_diagonal(information: np.ndarray) -> np.ndarray:
    diagonal = np.diag(information)
    return np.sqrt(np.maximum(diagonal, 1e-12 * diagonal.max(initial=np.finfo(float).tiny)))


def _find_higher(likelihood: Likelihood, variances: Variances, before: LikelihoodPoint) -> LikelihoodPoint | None:
    """The point there, if the likelihood is higher."""
    point = likelihood.try_evaluate(variances)
    rounding = ROUNDING * max(1.0, abs(before.log_likelihood))
    return point if point is not None and point.log_likelihood > before.log_likelihood + rounding else None
