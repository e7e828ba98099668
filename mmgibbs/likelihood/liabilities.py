"""log p(l | psi) of liabilities l that change from sweep to sweep, the location effects integrated out.

The factor of C stays while psi does: other liabilities need b = W'R^-1 l and L w = b alone. Of a trait in categories
the scale of l is integrated out too. Where l and the thresholds (t_1 = 0) are multiplied by g the categories stay, and
with Q = l'Pl = l'R^-1 l - b'C^-1 b (Liu & Sabatti 2000)

    p(g | psi, l) ~ g^(M - 1) exp(-g^2 Q / 2),   M = n + K - 2        n records, K categories, flat thresholds
    p(psi | direction of l) ~ p(psi) |V|^(-1/2) Q^(-M/2)              log|V| as in integrated.py

so that psi is drawn given the direction of l, then g^2 ~ chi-square(M) / Q: a joint draw of psi and the length of l.

The derivatives of Q by the elements v of G^-1 and R^-1 at one psi, the *reference*, whose factor is kept,

    dQ/dv_c = sum over the contributions of c: number t_i t_j (C), -2 number t_i (b), w_r l_r^2 (R^-1),   t = C^-1 b

summarise l: E[psi | l] is near linear in them (sampler/marginal/regression.py).
"""

from __future__ import annotations

import numpy as np

from mmgibbs.likelihood.cholesky.columns import solve_lower, solve_upper
from mmgibbs.likelihood.coefficients import Coefficients
from mmgibbs.likelihood.integrated import IntegratedLikelihood, accumulate
from mmgibbs.likelihood.lists import list_records
from mmgibbs.pedigree.kernels import kernel


class LiabilityLikelihood(IntegratedLikelihood):
    """Likelihood of a design with one trait.

    position (n,): where a record of the design stands among the liabilities; power: M, 0 where the scale is not
    integrated out.
    """

    def __init__(self, coefficients: Coefficients, position: np.ndarray, power: float):
        self.position, self.power = position, power
        self.log_determinants, self.kept_log_determinants = 0.0, 0.0  # log|V| at the last psi, and at the kept one
        super().__init__(coefficients)
        self.n_summary = self.matrices.size - 1

    def _take(self, y: np.ndarray) -> None:
        """Lists for liabilities that change, filled with y (n, 1), records of the design."""
        design = self.design
        self.lists_of_b, self.record_lists = list_records(self.coefficients, self.matrices, self.position)
        self.squares_by_pattern = np.zeros((len(design.patterns), 1, 1))
        is_observed = design.patterns[design.pattern, 0]
        self.weight, self.pattern, liabilities = np.empty(len(y)), np.empty(len(y), np.int64), np.empty_like(y)
        self.weight[self.position] = np.where(is_observed, design.weight, 0.0)
        self.pattern[self.position], liabilities[self.position] = design.pattern, y
        self.fill(liabilities)

    def _centre(self, y: np.ndarray) -> None:
        """Leave liabilities as they are: they are near 0."""

    def fill(self, liabilities: np.ndarray) -> None:
        """Let `evaluate` read other liabilities (n, 1)."""
        fill_lists(
            self.record_lists, liabilities, self.weight, self.pattern, self.lists_of_b.number, self.squares_by_pattern
        )

    def evaluate(self, psi: np.ndarray) -> float:
        """log p(l | psi), or of the direction of l, up to a constant; -inf as in the base class."""
        value = super().evaluate(psi)
        if not np.isfinite(value):
            return value
        work = self.last
        Q = float(sum_squares(self.squares_by_pattern, work.v, work.w, work.reciprocal))
        if not Q > 0.0:  # rounding
            return -np.inf
        self.log_determinants = -2.0 * value - Q
        return self._log_density(self.log_determinants, Q)

    def keep(self) -> None:
        super().keep()
        self.log_determinants, self.kept_log_determinants = self.kept_log_determinants, self.log_determinants

    def take(self, liabilities: np.ndarray) -> float:
        """Other liabilities (n, 1): log p at the psi that was kept, whose factor serves on."""
        self.fill(liabilities)
        kept, columns = self.kept, self.columns
        solve_again(self.lists_of_b, kept.v, columns.column_ptr, columns.row_of, kept.values, kept.w)
        return self._log_density(self.kept_log_determinants, self.kept_squares())

    def kept_squares(self) -> float:
        """Q at the psi that was kept."""
        return float(sum_squares(self.squares_by_pattern, self.kept.v, self.kept.w, self.kept.reciprocal))

    def scale(self, g: float) -> None:
        """The liabilities are multiplied by g: the draws of theta follow."""
        self.kept.w[:] *= g

    def take_reference(self) -> None:
        """The psi of the last call of `evaluate` is the reference from now on."""
        last = self.last
        self._reference = last.v.copy(), last.values.copy(), last.reciprocal.copy()

    def summarise(self) -> np.ndarray:
        """(n_summary,) dQ/dv at the reference; divided by Q there where the scale of l is integrated out."""
        v, values, reciprocal = self._reference
        slopes, columns = np.zeros(v.size), self.columns
        sums = self.lists_of_C, self.lists_of_b, self.squares_by_pattern
        pattern = columns.column_ptr, columns.row_of, self.column_numbers
        Q = differentiate_squares(sums, v, values, reciprocal, *pattern, slopes)
        return slopes[1:] / Q if self.power else slopes[1:]

    def _log_density(self, log_determinants: float, Q: float) -> float:
        return -0.5 * log_determinants - (0.5 * self.power * float(np.log(Q)) if self.power else 0.5 * Q)


@kernel
def fill_lists(record_lists, liabilities, weight, pattern, number, squares):
    """The numbers of W'R^-1 l, and sum_r w_r l_r^2 (patterns, 1, 1) of each missing pattern, in place."""
    number[:] = 0.0
    for i in range(record_lists.target.size):
        number[record_lists.target[i]] += record_lists.factor[i] * liabilities[record_lists.record[i], 0]
    squares[:] = 0.0
    for r in range(weight.size):
        if weight[r] > 0.0:
            squares[pattern[r], 0, 0] += weight[r] * liabilities[r, 0] * liabilities[r, 0]


@kernel
def solve_again(lists_of_b, v, column_ptr, row_of, values, w):
    """w = L^-1 b, in place, with a factor that is known."""
    w[:] = 0.0
    accumulate(lists_of_b, v, w)
    solve_lower(column_ptr, row_of, values, w)


@kernel
def sum_squares(squares_by_pattern, v, w, reciprocal):
    """Q = l'R^-1 l - b'C^-1 b."""
    squares, first, total = squares_by_pattern.ravel(), v.size - squares_by_pattern.size, 0.0
    for e in range(squares.size):
        total += v[first + e] * squares[e]
    for i in range(w.size):
        total -= w[i] * w[i] * reciprocal[i]
    return total


@kernel
def differentiate_squares(sums, v, values, reciprocal, column_ptr, row_of, column, out):
    """out[c] += dQ/dv_c at a psi whose factor is known. Returns Q."""
    lists_of_C, lists_of_b, squares_by_pattern = sums
    t = np.empty(reciprocal.size)
    solve_again(lists_of_b, v, column_ptr, row_of, values, t)
    Q = sum_squares(squares_by_pattern, v, t, reciprocal)
    for i in range(t.size):
        t[i] *= reciprocal[i]
    solve_upper(column_ptr, row_of, values, t)
    below = row_of.size
    for e in range(lists_of_C.place.size):
        place = lists_of_C.place[e]
        if place < below:
            product = 2.0 * t[row_of[place]] * t[column[place]]
        else:
            product = t[place - below] * t[place - below]
        for m in range(lists_of_C.first[e], lists_of_C.first[e + 1]):
            out[lists_of_C.coefficient[m]] += lists_of_C.number[m] * product
    for e in range(lists_of_b.place.size):
        for m in range(lists_of_b.first[e], lists_of_b.first[e + 1]):
            out[lists_of_b.coefficient[m]] -= 2.0 * lists_of_b.number[m] * t[lists_of_b.place[e]]
    squares = squares_by_pattern.ravel()
    first = v.size - squares.size
    for e in range(squares.size):
        out[first + e] += squares[e]
    return Q
