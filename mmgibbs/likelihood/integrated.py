"""log p(y | psi), the location effects theta integrated out, by one compiled pass for each psi (all variances).

    log p = -1/2 [ sum_p n_p log|R_p| + sum_j q_j log|G_j| + log|C| + y'R^-1 y - b' C^-1 b ] + constant,   b = W'R^-1 y

C is written into the places of its factor (lists.py), which is renewed, and L w = b is solved: b'C^-1 b is the sum of
w_i^2 / D_i. Given the factor theta is drawn exactly,

    theta = L'^-1 (D^-1 w + D^-1/2 z)  ~  N(C^-1 b, C^-1)          z independent normals

with nothing factorised or solved anew but L'. Derivatives by the elements of G^-1 and R^-1 ask for C^-1 on the pattern
of C: with t = C^-1 b,

    d log p / dC_ij = -1/2 (C^-1_ij + t_i t_j) (twice off the diagonal),       d log p / db = t

y is taken less a fit by the flat fixed effects, which changes nothing but the constant and digits that would cancel.
Everything is float64. Where a residual variance is next to nothing, the pivots of C and the difference of squares
cancel to rounding; log p is -inf there, as soon as

    eps (y'R^-1 y + sum_i C_ii / D_i (1 + w_i^2 / D_i))  >  MAX_ROUNDING_ERROR

the left side being what rounding may have changed in the squares, in log D_i and, by D_i, in w_i^2 / D_i.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from mmgibbs.likelihood.cholesky.columns import Columns, factorise_columns, selected_columns, solve_lower, solve_upper
from mmgibbs.likelihood.cholesky.symbolic import MIN_PIVOT
from mmgibbs.likelihood.coefficients import Coefficients
from mmgibbs.likelihood.incidence import Incidence
from mmgibbs.likelihood.lists import Lists, list_C, list_right_hand_side, square_records
from mmgibbs.likelihood.matrices import covariance_matrices, invert_matrices
from mmgibbs.models.design import Design
from mmgibbs.pedigree.kernels import kernel

EPSILON = np.finfo(np.float64).eps
MAX_ROUNDING_ERROR = 1e-2  # of log p to rounding


class Work(NamedTuple):
    """Work arrays of one evaluation: the factor at one psi. The next evaluation overwrites them."""

    v: np.ndarray  # (coefficients,)
    values: np.ndarray  # (elements,) L and D
    filled: np.ndarray  # (n,) uint64
    y: np.ndarray  # (n,)
    reciprocal: np.ndarray  # (n,) 1 / D
    w: np.ndarray  # (n,) L^-1 b


class IntegratedLikelihood:
    """Likelihood of a design with normal traits.

    psi: G of each random term, row by row, one after another; then R of each class.

    coefficients: its pattern, by columns. Two psi are known at a time: the one that `evaluate` was called with last,
    and the one that was `kept`.
    """

    def __init__(self, coefficients: Coefficients):
        self.coefficients = coefficients
        self.design = design = coefficients.design
        known = coefficients.symbolic
        assert isinstance(known, Columns)
        self.columns = known
        self.lists = known.column_ptr, known.row_of, known.row_ptr, known.column_of
        self.matrices = covariance_matrices(design)
        self.lists_of_C = list_C(self.coefficients, self.matrices)
        y = np.where(design.patterns[design.pattern], design.y, 0.0)
        self.centre = np.zeros(known.order.size)  # by place: what the fixed effects that y is taken less are
        self._take(y)
        n = known.order.size
        both = [
            Work(np.empty(self.matrices.size), np.empty(known.elements), np.empty(n, np.uint64), np.empty(n),
                 np.empty(n), np.empty(n))
            for _ in range(2)
        ]  # fmt: skip
        self.last, self.kept = both
        self._centre(y)

    @property
    def bytes(self) -> int:
        """Bytes of the pattern, the lists and two factors."""
        lists = sum(array.nbytes for sums in (self.lists_of_C, self.lists_of_b) for array in sums)
        return lists + self.columns.bytes + 8 * self.columns.elements

    @cached_property
    def column_numbers(self) -> np.ndarray:
        """(elements below the diagonal,) uint32 the columns that they stand in."""
        counts = np.diff(self.columns.column_ptr).astype(np.int64)
        return np.repeat(np.arange(counts.size, dtype=np.uint32), counts)

    def _take(self, y: np.ndarray) -> None:
        self.lists_of_b: Lists = list_right_hand_side(self.coefficients, self.matrices, y)
        self.squares_by_pattern = square_records(self.design, y)

    def evaluate(self, psi: np.ndarray) -> float:
        """log p(y | psi) up to a constant; -inf where a matrix is not positive definite, or digits are lost."""
        sums = self.lists_of_C, self.lists_of_b, self.squares_by_pattern
        return float(_evaluate(psi, self.matrices.sizes, sums, self.columns, self.last))

    def _centre(self, y: np.ndarray) -> None:
        """Take y less what the flat fixed effects fit where every variance is that of the trait."""
        design, layout = self.design, self.coefficients.explicit.layout
        if not np.isfinite(self.evaluate(_variances_of_traits(design, self.matrices.random, y))):
            return
        theta, flat = self._solved(np.zeros(self.centre.size)), self._flat()
        places = self.columns.step[flat]
        self.centre[places] = theta[places]
        thetas = np.zeros(layout.size)
        thetas[np.flatnonzero(layout.active)[flat]] = theta[places]
        fitted = Incidence(design).fit([theta[:, :, None] for theta in layout.split(thetas)])[:, :, 0]
        self._take(np.where(design.patterns[design.pattern], y - fitted, 0.0))

    def _flat(self) -> np.ndarray:
        """Equations of fixed effects under flat priors."""
        of_term = [t.kind == "fixed" and t.prior_precision is None for t in self.design.terms]
        flat = np.repeat(of_term, [t.n_levels * t.n_components for t in self.design.terms])
        return np.flatnonzero(flat[self.coefficients.explicit.layout.active])

    def keep(self) -> None:
        """The psi of the last call of `evaluate` is the one that draws are made at."""
        self.last, self.kept = self.kept, self.last

    def draw(self, z: np.ndarray) -> np.ndarray:
        """theta (n,) at the psi that was kept, equations in their own order; z (n,) normals in that order."""
        self.last, self.kept = self.kept, self.last
        theta = self._solved(z[self.columns.order]) + self.centre
        self.last, self.kept = self.kept, self.last
        return theta[self.columns.step]

    def _solved(self, z: np.ndarray) -> np.ndarray:
        """L'^-1 (D^-1 w + D^-1/2 z) by place, of the last psi."""
        x = self.last.w * self.last.reciprocal + np.sqrt(self.last.reciprocal) * z
        solve_upper(self.columns.column_ptr, self.columns.row_of, self.last.values, x)
        return x

    def gradient(self, kept: bool = False) -> tuple[list[np.ndarray], np.ndarray]:
        """Symmetric D with d log p = tr(D dG) for each random term, and (classes, T, T) of R, at the last psi, or the
        one that was kept."""
        if kept:
            self.last, self.kept = self.kept, self.last
            out = self.gradient()
            self.last, self.kept = self.kept, self.last
            return out
        t = self._solved(np.zeros(self.centre.size))
        selected = np.empty(self.columns.elements)
        selected_columns(*self.lists, self.last.values, selected)
        slope = np.zeros(self.matrices.size)
        _slopes_of_C(self.lists_of_C, self.column_numbers, self.columns.row_of, selected, t, slope)
        _slopes_of_b(self.lists_of_b, t, slope)
        return self._differentiate(slope)

    def _differentiate(self, slope: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
        """Convert slopes by elements of G^-1 and R_p^-1 to derivatives by G and R."""
        by_term, by_pattern = self.matrices.unpack(-2.0 * slope)
        S = [(D + D.T) / 2 for D in by_term]
        S_of_records = (by_pattern + by_pattern.transpose(0, 2, 1)) / 2 + self.squares_by_pattern
        D = self.matrices.differentiate(self.last.v, S, S_of_records)
        return [g for g in D.G if g is not None], D.R


def _variances_of_traits(design: Design, random: Sequence[int], y: np.ndarray) -> np.ndarray:
    """psi of diagonal matrices, each variance that of the records of its trait."""
    observed = design.patterns[design.pattern]
    of_trait = np.array([np.var(y[seen, t]) if seen.any() else 0.0 for t, seen in enumerate(observed.T)])
    of_trait[of_trait == 0.0] = 1.0
    G = [np.diag(of_trait[design.terms[i].component_trait]).ravel() for i in random]
    return np.concatenate([*G, *[np.diag(of_trait).ravel()] * max(1, len(design.residual_classes))])


@kernel
def _evaluate(psi, matrices, sums, columns, work):
    """log p(y | psi) up to a constant, or -inf. sums: of C, b and y'R^-1 y; columns: of the factor; work: see Work."""
    lists_of_C, lists_of_b, squares_by_pattern = sums
    v, values, filled, y, reciprocal, w = work
    column_ptr, row_of = columns.column_ptr, columns.row_of
    total = invert_matrices(psi, matrices, v)
    if not np.isfinite(total):
        return -np.inf
    values[:] = 0.0
    accumulate(lists_of_C, v, values)
    w[:] = 0.0
    accumulate(lists_of_b, v, w)
    lists = column_ptr, row_of, columns.row_ptr, columns.column_of, columns.run_length
    below = row_of.size
    diagonal = values[below:].copy()
    if factorise_columns(*lists, values, filled, y, reciprocal, MIN_PIVOT) >= 0:
        return -np.inf
    solve_lower(column_ptr, row_of, values, w)
    lost = 0.0
    for i in range(w.size):
        square = w[i] * w[i] * reciprocal[i]
        total += np.log(values[below + i]) - square
        lost += diagonal[i] * reciprocal[i] * (1.0 + square)
    first = v.size - squares_by_pattern.size
    squares = squares_by_pattern.ravel()
    for e in range(squares.size):
        total += v[first + e] * squares[e]
        lost += abs(v[first + e] * squares[e])
    return -0.5 * total if EPSILON * lost <= MAX_ROUNDING_ERROR else -np.inf


@kernel
def accumulate(sums, v, out):
    """out[place] = sum of numbers times coefficients."""
    for e in range(sums.place.size):
        total = 0.0
        for m in range(sums.first[e], sums.first[e + 1]):
            total += sums.number[m] * v[sums.coefficient[m]]
        out[sums.place[e]] = total


@kernel
def _slopes_of_C(sums, column, row_of, selected, t, out):
    """out[c] += sum over the contributions of c of number * d log p / dC_e."""
    below = row_of.size
    for e in range(sums.place.size):
        place = sums.place[e]
        if place < below:
            slope = -(selected[place] + t[row_of[place]] * t[column[place]])
        else:
            slope = -0.5 * (selected[place] + t[place - below] * t[place - below])
        for m in range(sums.first[e], sums.first[e + 1]):
            out[sums.coefficient[m]] += sums.number[m] * slope


@kernel
def _slopes_of_b(sums, t, out):
    for e in range(sums.place.size):
        for m in range(sums.first[e], sums.first[e + 1]):
            out[sums.coefficient[m]] += sums.number[m] * t[sums.place[e]]
