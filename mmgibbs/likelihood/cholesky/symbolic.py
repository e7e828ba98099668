"""A symbolic factor: where the elements of L stand, for all matrices of one pattern."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from mmgibbs.pedigree.kernels import kernel

MIN_PIVOT = 1e-12  # of the diagonal element: an exactly singular matrix leaves a pivot of rounding there, not 0


class SymbolicFactor(Protocol):
    """The pattern of L of n equations, and what is computed on it. `values` (elements,) float64 holds C, then L."""

    @property
    def order(self) -> np.ndarray:
        """Equation that is eliminated at each step, (n,) int64."""

    @property
    def step(self) -> np.ndarray:
        """Step at which each equation is eliminated, (n,) int64."""

    @property
    def elements(self) -> int:
        """Stored elements of L."""

    @property
    def nonzeros(self) -> int:
        """Elements of the lower triangle of L, stored zeros included."""

    @property
    def flops(self) -> int:
        """Multiplications and additions of one factorisation."""

    @property
    def bytes(self) -> int:
        """Bytes of the pattern, a factor, a selected inverse and the work arrays to make them."""

    @property
    def diagonal(self) -> np.ndarray:
        """Index in `values` of the diagonal of each equation, (n,) int64."""

    def locate(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Find the index in `values` of elements (row, column), or their mirror images, (m,) int64; equation -1: -1."""

    def factorise(self, values: np.ndarray) -> int:
        """C in `values` becomes L. -1, or the step whose pivot is not above MIN_PIVOT times the diagonal of C."""

    def log_determinant(self, values: np.ndarray) -> float:
        """Compute log|C|."""

    def solve(self, values: np.ndarray, x: np.ndarray) -> None:
        """x (n, m) <- C^-1 x in place, rows in the order of elimination."""

    def selected_inverse(self, values: np.ndarray) -> np.ndarray:
        """Compute C^-1 where L has elements, (elements,)."""


@kernel
def locate_elements(rows, columns, step, diagonal, block, row_ptr, row_lists, start, stride):
    """Find the index of each element (row, column), or its mirror image, of a factor, (m,) int64; equation -1: -1.

    step (n,) of each equation; diagonal (n,) index of the diagonal of each step. Column j has the rows of list
    block[j], row_lists[row_ptr[b] : row_ptr[b + 1]], ascending; the element in row number r of the list has index
    start[j] + stride[j] r.
    """
    out = np.full(rows.size, -1, np.int64)
    for e in range(rows.size):
        if rows[e] < 0 or columns[e] < 0:
            continue
        i, j = step[rows[e]], step[columns[e]]
        if i < j:
            i, j = j, i
        if i == j:
            out[e] = diagonal[i]
            continue
        low, high = row_ptr[block[j]], row_ptr[block[j] + 1] - 1
        while low < high:  # bisection: the pattern has every element that is asked for
            middle = (low + high) // 2
            if row_lists[middle] < i:
                low = middle + 1
            else:
                high = middle
        out[e] = start[j] + stride[j] * (low - row_ptr[block[j]])
    return out
