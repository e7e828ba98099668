"""Restricted likelihoods by a sparse factor of C with a pattern that does not change (see the package).

C s = W_s'Q y,   e = y - W_s s,   y'Py = e'Qe + sum_j tr(P_j S_j),   S_j = s_j' K_j^-1 s_j
F'PG = F'QG - (W_s'QF)' C^-1 W_s'QG          of working variates, for the average information
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.sparse import block_diag, coo_array, csr_array, eye_array, kron, sparray, tril

from mmgibbs.equations.base import layout
from mmgibbs.likelihood.base import Likelihood, Place
from mmgibbs.likelihood.cholesky.factor import Factor, NotPositiveDefiniteError, factorise
from mmgibbs.likelihood.cholesky.symbolic import SymbolicFactor
from mmgibbs.likelihood.coefficients import Blocks, equation_name, factorise_inverse, refuse_equation, solve_factor
from mmgibbs.likelihood.matrices import Variances
from mmgibbs.machine.threads import blas_threads
from mmgibbs.models.design import Design
from mmgibbs.models.terms import Term

LEVELS_LOOKED_AT = 32  # whose diagonal element of K is solved for, where it is not known
OPERATIONS_OF_POINT = 4.0  # of a factor and its selected inverse, in those of the factor


class PriorBlock(NamedTuple):
    """Where C takes the prior of the equations a and b of the levels of a term.

    Only one of two symmetric elements is listed.
    """

    term: int
    a: int
    b: int
    kappa: np.ndarray  # (m,) elements of K^-1
    times: np.ndarray  # (m,) how often each stands in K^-1 (x) P, of a symmetric block once or twice
    places: np.ndarray  # (m,) in the factor


class SparseLikelihood(Likelihood):
    """log p(y | psi) by a factor of C with a pattern that does not change."""

    name: ClassVar[str]  # in run.json
    symbolic: SymbolicFactor
    y: np.ndarray  # (observations,)
    joined: list[np.ndarray]  # (size, size) per term: 1 for equations of a level that P joins (of `prior_blocks`)

    def __init__(self, design: Design, of_scores: Mapping[int, int] | None = None):
        """of_scores: term -> equations of each of its levels, where they are not its components."""
        super().__init__(design)
        of_scores = of_scores or {}
        self.layout = layout(design)
        self.inverses = {i: design.terms[i].relationship.inverse_matrix() for i in self.random}
        self.sizes = [of_scores.get(i, term.n_components) for i, term in enumerate(design.terms)]
        masks = [
            np.ones((term.n_levels, of_scores[i]), bool) if i in of_scores else mask
            for i, (term, mask) in enumerate(zip(design.terms, self.layout.split(self.layout.active), strict=True))
        ]
        self.in_force = np.flatnonzero(np.concatenate([mask.ravel() for mask in masks]))

    @property
    def n_equations(self) -> int:
        """Number of equations of the terms of the design."""
        return self.in_force.size

    def split(self, x: np.ndarray) -> list[np.ndarray]:
        """(q, size) per term of values of the equations, 0 where there is none."""
        shapes = [(term.n_levels, size) for term, size in zip(self.design.terms, self.sizes, strict=True)]
        ends = np.cumsum([n * size for n, size in shapes])
        every = np.zeros(ends[-1], x.dtype)
        every[self.in_force] = x[: self.n_equations]
        return [part.reshape(shape) for part, shape in zip(np.split(every, ends[:-1]), shapes, strict=True)]

    @cached_property
    def equations(self) -> list[np.ndarray]:
        """(q, size) int64 per term the number of each equation; -1 where set to 0."""
        return [numbers - 1 for numbers in self.split(np.arange(1, self.n_equations + 1))]

    def make_prior(self, precisions: Sequence[np.ndarray]) -> csr_array:
        """blockdiag(K^-1 (x) P) between the equations of the terms."""
        relationships = [self.inverses.get(i, eye_array(t.n_levels)) for i, t in enumerate(self.design.terms)]
        return self.take_in_force([kron(K, P, format="csr") for K, P in zip(relationships, precisions, strict=True)])

    def take_in_force(self, blocks: Sequence[sparray]) -> csr_array:
        """(equations, equations) with a block for each term; blocks: (q size, q size) of all equations."""
        return csr_array(csr_array(block_diag(blocks, format="csr"))[self.in_force][:, self.in_force])

    @cached_property
    def prior_blocks(self) -> list[PriorBlock]:
        """The places in C of the prior of each pair of joined equations, and K^-1 as it is now."""
        out = []
        for i, (term, numbers) in enumerate(zip(self.design.terms, self.equations, strict=True)):
            every = coo_array(self.inverses.get(i, eye_array(term.n_levels)))
            below = coo_array(tril(every))
            twice = 2.0 - (below.row == below.col)
            for a, b in zip(*np.nonzero(np.tril(self.joined[i])), strict=True):
                K, times = (below, twice) if a == b else (every, np.ones(every.nnz))
                places = self.symbolic.locate(numbers[K.row, a], numbers[K.col, b])
                known = places >= 0
                kappa, times, places = (x if known.all() else x[known] for x in (K.data, times, places))
                out.append(PriorBlock(i, int(a), int(b), kappa, times, places))
        return out

    def factor(self, products: csr_array, precisions: Sequence[np.ndarray]) -> Factor:
        """Factor C = W_s'Q W_s + blockdiag(K^-1 (x) P); products: W_s'Q W_s.

        ModelError, which names the equation, where C is not positive definite.
        """
        below = coo_array(products)
        is_below = below.row >= below.col
        values = np.zeros(self.symbolic.elements)
        values[self.symbolic.locate(below.row[is_below], below.col[is_below])] = below.data[is_below]
        for block in self.prior_blocks:
            values[block.places] += precisions[block.term][block.a, block.b] * block.kappa
        try:
            with blas_threads(1):
                return factorise(self.symbolic, values)
        except NotPositiveDefiniteError as error:
            raise refuse_equation(self._name_equation(error.equation)) from None

    def _name_equation(self, number: int) -> str:
        return equation_name(self.design, number)

    @cached_property
    def log_determinant_of_relationships(self) -> float:
        """sum_j k_j log|K_j^-1| of random terms, each of the levels that have a variance; k_j: of `sizes`."""
        return sum(self.sizes[i] * self._log_determinant(i) for i in self.random)

    def _log_determinant(self, i: int) -> float:
        known = self.design.terms[i].relationship.log_determinant
        if known is not None:
            return known
        n = self.design.terms[i].n_prior_levels
        return factorise_inverse(csr_array(self.inverses[i][:n][:, :n])).log_determinant

    @cached_property
    def constant(self) -> float:
        """The part of 2 log p that does not depend on variances."""
        return self.log_weights + self.log_determinant_of_relationships - self.freedom * float(np.log(2 * np.pi))

    def _mean_unknown_diagonal(self, i: int) -> float:
        n = self.design.terms[i].n_without_fixed_groups
        levels = np.unique(np.linspace(0, n - 1, LEVELS_LOOKED_AT).astype(int))
        columns, place = np.zeros((n, levels.size)), np.arange(levels.size)
        columns[levels, place] = 1.0
        factor = factorise_inverse(csr_array(self.inverses[i][:n][:, :n]))
        return float(np.mean(solve_factor(factor, columns)[levels, place]))

    @property
    def step(self) -> str:
        return "for an iteration"

    @property
    def description(self) -> str:
        return f"{self.n_equations:,} equations"

    @property
    def bytes(self) -> int:
        return self.symbolic.bytes

    @property
    def operations(self) -> float:
        return OPERATIONS_OF_POINT * self.symbolic.flops

    @property
    def facts(self) -> dict[str, Any]:
        return {
            "likelihood": self.name,
            "factor_nonzeros": self.symbolic.nonzeros,
            "factor_operations": self.symbolic.flops,
            "factor_bytes": self.bytes,
        }


def mask_joined(term: Term, blocks: Blocks | None) -> np.ndarray:
    """(k, k) 1 where G^-1 may be other than 0; of a fixed term where its prior precision is."""
    mask = np.zeros((term.n_components,) * 2)
    if term.kind == "fixed":
        return mask if term.prior_precision is None else (np.asarray(term.prior_precision) != 0).astype(float)
    for block in blocks or ():
        mask[np.ix_(block, block)] = 1.0
    return mask


class SparsePoint(ABC):
    """The likelihood at one psi; what derivatives need is computed when it is asked for.

    A form inverts the covariance matrices (`_invert`), then has Q, W_s and the factor of C for `_solve`.
    """

    likelihood: SparseLikelihood
    precisions: Sequence[np.ndarray]  # P per term, where they are not G^-1

    def __init__(self, likelihood: SparseLikelihood, variances: Variances):
        self.likelihood, self.variances = likelihood, variances

    def _invert(self, variances: Variances) -> np.ndarray:
        """R_p^-1 (patterns, T, T); ModelError, which names the matrix, where one is not positive definite."""
        matrices = self.likelihood.matrices
        self.v = np.ones(matrices.size)
        self.log_determinants = matrices.invert(variances.psi, self.v)  # sum_j q_j log|G_j| + sum_p n_p log|R_p|
        if not np.isfinite(self.log_determinants):
            matrices.refuse_singular(variances)
        self.Ginv, inverse_R = matrices.unpack(self.v)
        self.precisions = self.Ginv
        return inverse_R

    def _solve(self, weights: csr_array, W: csr_array, factor: Factor) -> None:
        """Take Q (observations, observations), W_s (observations, equations) and the factor of C."""
        self.weights, self.W, self.factor = weights, W, factor
        self.solved = solve_factor(factor, self._weighted_sums(self.likelihood.y))
        self.e = self.likelihood.y - W @ self.solved

    def _weighted_sums(self, x: np.ndarray) -> np.ndarray:
        """W_s'Q x; x (observations, ...)."""
        return np.ascontiguousarray(self.W.T @ (self.weights @ x))

    @property
    def effects(self) -> list[np.ndarray]:
        """(q, size) per term: theta, or scores."""
        return self.likelihood.split(self.solved)

    @property
    def solutions(self) -> list[np.ndarray]:
        """(q, k) per term: BLUE and BLUP at these variances, on the scale of the equations."""
        return self.effects

    def solve_equations(self, b: np.ndarray) -> np.ndarray:
        """C^-1 b, (equations, m)."""
        return solve_factor(self.factor, b)

    @cached_property
    def log_likelihood(self) -> float:
        """log p(y | psi), with its constant."""
        changing = self.log_determinants + self.factor.log_determinant + self.quadratic
        return -0.5 * (changing - self.likelihood.constant)

    @cached_property
    def quadratic(self) -> float:
        """y'Py, as a sum of squares: nothing cancels."""
        of_terms = zip(self.precisions, self.squares, strict=True)
        return float(self.e @ (self.weights @ self.e)) + sum(float(np.sum(P * square)) for P, square in of_terms)

    @cached_property
    def squares(self) -> list[np.ndarray]:
        """S per term; of a fixed one Theta' Theta."""
        inverses = self.likelihood.inverses
        return [t.T @ (inverses[i] @ t if i in inverses else t) for i, t in enumerate(self.effects)]

    @cached_property
    def selected(self) -> np.ndarray:
        """C^-1 in the places of the factor."""
        with blas_threads(1):
            return self.factor.selected_inverse()

    def select(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Elements of C^-1 where C may be other than 0; 0 for equation -1."""
        places = self.likelihood.symbolic.locate(rows, columns)
        return np.where(places >= 0, self.selected[places], 0.0)

    @property
    def inverse_diagonal(self) -> np.ndarray:
        """(equations of the design,) the diagonal of C^-1."""
        return self.selected[self.likelihood.symbolic.diagonal][: self.likelihood.n_equations]

    def _trace(self, i: int) -> np.ndarray:
        """(size, size) sum_lm kappa_lm C^-1[(l, a), (m, b)] of a random term, for equations that its prior joins."""
        out = np.zeros((self.likelihood.sizes[i],) * 2)
        for term, a, b, kappa, times, places in self.likelihood.prior_blocks:
            if term == i:
                out[a, b] = out[b, a] = (kappa * times) @ self.selected[places]
        return out

    def average_information(self, places: Sequence[Place]) -> np.ndarray:
        """(p, p) 1/2 F' P F of some elements."""
        return self.project(self.working_variates(places))

    def project(self, F: np.ndarray) -> np.ndarray:
        """(p, p) 1/2 F' P F of working variates (observations, p)."""
        b = self._weighted_sums(F)
        total = 0.25 * (F.T @ (self.weights @ F) - b.T @ solve_factor(self.factor, b))
        return np.asarray(total + total.T)

    @abstractmethod
    def working_variates(self, places: Sequence[Place]) -> np.ndarray:
        """(observations, p) F = (dV/dpsi) P y, see working_variates.py."""
