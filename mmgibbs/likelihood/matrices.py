"""The covariance matrices of a design in its likelihood: inverses, log-determinants, derivatives.

The *coefficients* v hold the elements of all inverses,

    v = (1; G_j^-1, row by row, of each random term j; R_p^-1 of each missing pattern p)

With S the symmetric matrix by which log|C| + y'Py depends on an inverse, d (log|C| + y'Py) = tr(S_j dG_j^-1), and q_j
levels of a term, n_p records of a pattern, the derivatives of the log likelihood, d log p = tr(D dG), are

    D_G = -1/2 [ q G^-1 - G^-1 S G^-1 ]            D_R = -1/2 sum_p [ n_p R_p^-1 - R_p^-1 S_p R_p^-1 ]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mmgibbs.draws.small_matrices import SINGULAR, cholesky
from mmgibbs.errors import ModelError
from mmgibbs.models.design import Design
from mmgibbs.models.structures.base import CommonFactors
from mmgibbs.models.terms import Term
from mmgibbs.pedigree.kernels import kernel


class Variances(NamedTuple):
    """The covariance matrices at one point, or the derivatives by each of them."""

    G: list[np.ndarray | None]  # (k, k) per term, None for fixed terms
    R: np.ndarray  # (classes, T, T); one class where all records share one matrix
    factors: Mapping[int, CommonFactors] | None = None  # term -> L and Psi, where its G is given as L L' + Psi

    def copy_matrices(self) -> Variances:
        """Copy the matrices, but no factors, to arrays that may be written to."""
        return Variances([None if g is None else g.copy() for g in self.G], self.R.copy())

    @property
    def psi(self) -> np.ndarray:
        """The elements of G of each random term, row by row, one after another; then those of R of each class."""
        return np.concatenate([*(np.ravel(g) for g in self.G if g is not None), np.ravel(self.R)])


class MatrixSizes(NamedTuple):
    """Sizes of the covariance matrices, as kernels read them."""

    sizes: np.ndarray  # (m,) int64 components of each random term
    levels: np.ndarray  # (m,) float64 q
    observed: np.ndarray  # (patterns, T) bool
    records: np.ndarray  # (patterns,) float64
    class_of_pattern: np.ndarray  # (patterns,) int64


@dataclass(frozen=True)
class CovarianceMatrices:
    """Positions of elements of G^-1 and R^-1 among the coefficients v (size,), and functions of them."""

    design: Design
    random: tuple[int, ...]  # numbers of the random terms
    first_of_term: tuple[int, ...]  # the first coefficient of each term; -1: a fixed one
    first_of_records: int
    size: int
    sizes: MatrixSizes

    def locate_inverse_G(self, term: Term, number: int, a: int, b: int) -> tuple[int, float]:
        """(coefficient, number) of the prior precision of components a and b: of a fixed term it is known."""
        if term.kind == "random":
            return self.first_of_term[number] + a * term.n_components + b, 1.0
        return 0, 0.0 if term.prior_precision is None else float(term.prior_precision[a, b])

    def locate_inverse_R(self, pattern: np.ndarray, t: int, u: int) -> np.ndarray:
        """The coefficients of R_p^-1[t, u]."""
        T = self.design.n_traits
        return self.first_of_records + (pattern.astype(np.int64) * T + t) * T + u

    def invert(self, psi: np.ndarray, v: np.ndarray) -> float:
        """v from psi; sum_j q_j log|G_j| + sum_p n_p log|R_p|, inf where a matrix is not positive definite."""
        return float(invert_matrices(psi, self.sizes, v))

    def find_singular(self, variances: Variances) -> str | None:
        """The name of the first matrix that is not positive definite, 'genetic' or 'residual|class'; None: all are."""
        design = self.design
        matrices = [(design.terms[i].name, variances.G[i]) for i in self.random]
        for pattern, number in zip(design.patterns, design.class_of_pattern, strict=True):
            name = f"residual|{design.residual_classes[number]}" if design.residual_classes else "residual"
            matrices.append((name, variances.R[number][np.ix_(pattern, pattern)]))
        for name, matrix in matrices:
            assert matrix is not None
            A = np.ascontiguousarray(matrix, np.float64)
            if not np.isfinite(A).all() or not cholesky(A, np.zeros(A.shape), SINGULAR):
                return name
        return None

    def refuse_singular(self, variances: Variances) -> None:
        """ModelError, which names the matrix, where one is not positive definite."""
        name = self.find_singular(variances)
        if name is not None:
            raise ModelError(
                f"variances.{name}: expected a positive definite covariance matrix, got one in which what a component "
                f"has beside the others is not above {SINGULAR:.0e} of its variance; needed correlations further from "
                "1 and -1, or fewer effects"
            )

    def unpack(self, v: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
        """Views of G^-1 per term (of a fixed one its prior precision), and of R_p^-1 (patterns, T, T)."""
        terms = [self._unpack_term(v, i, term) for i, term in enumerate(self.design.terms)]
        T = self.design.n_traits
        return terms, v[self.first_of_records :].reshape(-1, T, T)

    def _unpack_term(self, v: np.ndarray, i: int, term: Term) -> np.ndarray:
        k, first = term.n_components, self.first_of_term[i]
        if term.kind == "random":
            return v[first : first + k * k].reshape(k, k)
        return np.zeros((k, k)) if term.prior_precision is None else np.asarray(term.prior_precision, np.float64)

    def differentiate(self, v: np.ndarray, S: Sequence[np.ndarray | None], S_of_records: np.ndarray) -> Variances:
        """D of each matrix; S (k, k) per random term, S_of_records (patterns, T, T)."""
        inverse_G, inverse_R = self.unpack(v)
        G: list[np.ndarray | None] = [None] * len(inverse_G)
        for i, q in zip(self.random, self.sizes.levels, strict=True):
            G[i] = -0.5 * (q * inverse_G[i] - inverse_G[i] @ S[i] @ inverse_G[i])
        R = np.zeros((max(1, len(self.design.residual_classes)), *inverse_R.shape[1:]))
        patterns = zip(self.sizes.class_of_pattern, self.sizes.records, inverse_R, S_of_records, strict=True)
        for residual_class, n, inverse, S_p in patterns:
            R[residual_class] += -0.5 * (n * inverse - inverse @ S_p @ inverse)
        return Variances(G, R)


def covariance_matrices(design: Design) -> CovarianceMatrices:
    """Locate the covariance matrices of the random terms and the residuals of a design."""
    first, first_of_term = 1, []
    for term in design.terms:
        first_of_term.append(first if term.kind == "random" else -1)
        first += term.n_components**2 if term.kind == "random" else 0
    random = tuple(i for i, term in enumerate(design.terms) if term.kind == "random")
    sizes = MatrixSizes(
        np.array([design.terms[i].n_components for i in random], np.int64),
        np.array([design.terms[i].n_prior_levels for i in random], np.float64),
        np.ascontiguousarray(design.patterns),
        np.bincount(design.pattern, minlength=len(design.patterns)).astype(float),
        np.ascontiguousarray(design.class_of_pattern, np.int64),
    )
    size = first + len(design.patterns) * design.n_traits**2
    return CovarianceMatrices(design, random, tuple(first_of_term), first, size, sizes)


@kernel
def invert_matrices(psi, matrices, v):
    """v from psi; sum_j q_j log|G_j| + sum_p n_p log|R_p|, or inf where one is not positive definite."""
    v[0], total, at, out = 1.0, 0.0, 0, 1
    for j in range(matrices.sizes.size):
        k = matrices.sizes[j]
        inverse = v[out : out + k * k].reshape((k, k))
        total += matrices.levels[j] * _invert(psi[at : at + k * k].reshape((k, k)), inverse)
        at, out = at + k * k, out + k * k
    patterns, T = matrices.observed.shape
    for p in range(patterns):
        first = at + matrices.class_of_pattern[p] * T * T
        R = psi[first : first + T * T].reshape((T, T))
        m = 0
        for t in range(T):
            m += matrices.observed[p, t]
        block, inverse = np.empty((m, m)), np.empty((m, m))
        m = 0
        for t in range(T):
            if matrices.observed[p, t]:
                n = 0
                for u in range(T):
                    if matrices.observed[p, u]:
                        block[m, n] = R[t, u]
                        n += 1
                m += 1
        total += matrices.records[p] * _invert(block, inverse)
        m = 0
        for t in range(T):
            n = 0
            for u in range(T):
                both = matrices.observed[p, t] and matrices.observed[p, u]
                v[out] = inverse[m, n] if both else 0.0
                n += matrices.observed[p, u]
                out += 1
            m += matrices.observed[p, t]
    return total


@kernel
def _invert(A, out):
    """out = A^-1 (k, k), exactly symmetric; log|A|, or inf where A is not positive definite."""
    k = A.shape[0]
    L, X = np.zeros((k, k)), np.zeros((k, k))
    if not cholesky(A, L, SINGULAR):
        return np.inf
    total = 0.0
    for i in range(k):
        total += 2.0 * np.log(L[i, i])
        X[i, i] = 1.0 / L[i, i]
        for j in range(i):
            s = 0.0
            for m in range(j, i):
                s -= L[i, m] * X[m, j]
            X[i, j] = s / L[i, i]
    for i in range(k):
        for j in range(i + 1):
            s = 0.0
            for m in range(i, k):
                s += X[m, i] * X[m, j]
            out[i, j] = s
            out[j, i] = s
    return total
