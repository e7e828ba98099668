"""What the forms of the restricted likelihood share: by a sparse factor (restricted.py), and spectral (spectral.py)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from mmgibbs.errors import ModelError
from mmgibbs.likelihood.matrices import CovarianceMatrices, Variances, covariance_matrices
from mmgibbs.models.design import Design


class Place(NamedTuple):
    """An element of a covariance matrix, which is symmetric: (row, column) and (column, row) change together."""

    term: int | None  # None: of the residuals
    residual_class: int
    row: int
    column: int


class Source(NamedTuple):
    """The relationship of a random term, or the group of records (`Design.correlated`), that a parameter belongs to."""

    term: int | None
    group: int | None = None


class LikelihoodPoint(Protocol):
    """The likelihood at one psi; what derivatives need is computed when it is asked for."""

    variances: Variances

    @property
    def likelihood(self) -> Likelihood:
        """The likelihood that was evaluated."""

    @property
    def log_likelihood(self) -> float:
        """log p(y | psi), with its constant."""

    @property
    def derivatives(self) -> Variances:
        """D of each matrix, d log p = tr(D dG)."""

    @property
    def residuals(self) -> np.ndarray:
        """Residuals e (n, T), records in model order; 0 where not observed."""

    @property
    def solutions(self) -> list[np.ndarray]:
        """BLUE and BLUP at these variances, (q, k) per term, on the scale of the equations."""

    @property
    def inverse_diagonal(self) -> np.ndarray:
        """Diagonal of C^-1, (equations,)."""

    def solve_equations(self, b: np.ndarray) -> np.ndarray:
        """C^-1 b, (equations, m)."""

    def average_information(self, places: Sequence[Place]) -> np.ndarray:
        """Compute 1/2 F' P F (p, p) of p elements, F = (dV/dpsi) P y the working variates."""


class Likelihood(ABC):
    """log p(y | psi) of a design with normal traits, whichever form computes it."""

    def __init__(self, design: Design):
        self.design = design
        self.matrices: CovarianceMatrices = covariance_matrices(design)
        self.random = self.matrices.random
        self.n_observations = int(self.matrices.sizes.records @ design.patterns.sum(axis=1))

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

    @property
    def log_weights(self) -> float:
        """Sum of the log weights of the observations."""
        return float(self.design.patterns.sum(axis=1)[self.design.pattern] @ np.log(self.design.weight))

    @abstractmethod
    def evaluate(self, variances: Variances) -> LikelihoodPoint:
        """The point at some variances.

        ModelError where a matrix is not positive definite, or equations cannot be solved there.
        """

    def try_evaluate(self, variances: Variances) -> LikelihoodPoint | None:
        """Evaluate at some variances; None where this fails."""
        try:
            return self.evaluate(variances)
        except ModelError:
            return None

    def mean_diagonal(self, i: int) -> float:
        """Return the mean diagonal of K of a random term, near 1 in a pedigree.

        Some levels stand for all where K is known by its inverse alone.
        """
        relationship, n = self.design.terms[i].relationship, self.design.terms[i].n_without_fixed_groups
        if relationship.known_diagonal:
            return 1.0 if relationship.diagonal is None else float(np.mean(relationship.diagonal[:n]))
        return self._mean_unknown_diagonal(i)

    @abstractmethod
    def _mean_unknown_diagonal(self, i: int) -> float:
        """Return the mean diagonal of K of a random term that is known by its inverse alone."""

    @property
    @abstractmethod
    def description(self) -> str:
        """Description of the matrix that is worked on, for the user."""

    @property
    @abstractmethod
    def step(self) -> str:
        """The unit of `operations`, to follow a duration: 'for an iteration'."""

    @property
    @abstractmethod
    def bytes(self) -> int:
        """Bytes that an evaluation needs."""

    @property
    @abstractmethod
    def operations(self) -> float:
        """Multiplications with additions of what takes longest: a point with its derivatives, or a diagonalisation."""

    @property
    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """Facts for run.json."""
