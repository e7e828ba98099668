"""The order in which equations are eliminated, and the elimination tree (Liu 1990), and where a row stands in a list:
what all forms of the factor need.

Minimum degree (Liu 1985; that of SuperLU), then a postorder of the tree.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy

from pedigree.kernels import kernel

MANY = 50_000  # equations from which the densest come last; below, an order takes no time, and draws keep their bits


class Elimination(NamedTuple):
    """Of a symmetric pattern with a full diagonal, n equations."""

    order: np.ndarray  # (n,) int64 the equation at each place of the factor
    indptr: np.ndarray  # (n + 1,) int64 the pattern in that order, both triangles
    indices: np.ndarray
    tree: np.ndarray  # (n,) int64 parent of each place, -1: none
    counts: np.ndarray  # (n,) int64 elements of each column of L, the diagonal included

    @property
    def nonzeros(self) -> int:
        """Elements of L."""
        return int(self.counts.sum())

    @property
    def flops(self) -> int:
        """Multiplications and additions of one factorisation: the squares of the columns' lengths."""
        return int((self.counts.astype(float) ** 2).sum())


def elimination(pattern: scipy.sparse.csr_array, order: np.ndarray | None = None) -> Elimination:
    """pattern: (n, n) symmetric with a full diagonal, both triangles; its values are not read. order: (n,) int64, that
    of minimum degree where None."""
    order = minimum_degree(pattern) if order is None else order
    after = postorder(elimination_tree(*_permuted(pattern, order)))
    order = order[after]
    indptr, indices = _permuted(pattern, order)
    tree = elimination_tree(indptr, indices)
    return Elimination(order, indptr, indices, tree, column_counts(indptr, indices, tree))


def minimum_degree(pattern: scipy.sparse.csr_array) -> np.ndarray:
    """(n,) int64 the equations in the order of their elimination: minimum degree on the pattern.

    Of many equations those that meet more than sqrt(n) others (sex, age, large contemporary groups) come last, as they
    would anyhow: to look for it at each step is most of the time that an order takes (Amestoy, Davis & Duff 1996).
    """
    n = pattern.shape[0]
    met = np.diff(pattern.indptr)
    dense = met > np.sqrt(n)
    if n < MANY or not dense.any():
        return _minimum_degree(pattern)
    others, last = np.flatnonzero(~dense), np.flatnonzero(dense)
    return np.concatenate(
        [others[_minimum_degree(pattern[others][:, others])], last[np.argsort(met[last], kind="stable")]]
    )


def _minimum_degree(pattern: scipy.sparse.csr_array) -> np.ndarray:
    """SuperLU orders before it factorises; asked for a factor without fill, it does little else. The values that it
    sees make any pivot on the diagonal a good one.
    """
    from scipy.sparse.linalg import spilu

    n = pattern.shape[0]
    if n <= 1:
        return np.zeros(n, np.int64)
    row = np.repeat(np.arange(n), np.diff(pattern.indptr))
    heavy = np.diff(pattern.indptr).astype(float) + 1.0
    values = np.where(row == pattern.indices, heavy[row], -1.0)
    matrix = scipy.sparse.csc_array(
        (values, pattern.indices.astype(np.int32), pattern.indptr.astype(np.int32)), shape=(n, n)
    )  # symmetric: rows are columns
    lu = spilu(
        matrix,
        drop_tol=1.0,
        fill_factor=1.0,
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )
    return np.argsort(lu.perm_c).astype(np.int64)


def _permuted(pattern: scipy.sparse.csr_array, order: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """indptr and indices of the pattern with its rows and columns in this order."""
    moved = pattern[order][:, order]
    return moved.indptr.astype(np.int64), moved.indices.astype(np.int64)


@kernel(error_model="python")
def elimination_tree(indptr, indices):
    """(n,) parent of each column, -1 for a root: the first row below its diagonal in L (Liu 1990)."""
    n = indptr.size - 1
    parent, ancestor = np.full(n, -1, np.int64), np.full(n, -1, np.int64)
    for i in range(n):
        for e in range(indptr[i], indptr[i + 1]):
            k = indices[e]
            while k != -1 and k < i:
                above = ancestor[k]
                ancestor[k] = i
                if above == -1:
                    parent[k] = i
                k = above
    return parent


@kernel(error_model="python")
def postorder(parent):
    """(n,) the columns, each after all below it in the tree, subtrees in one piece."""
    n = parent.size
    child, sibling = np.full(n, -1, np.int64), np.full(n, -1, np.int64)
    for k in range(n - 1, -1, -1):
        if parent[k] >= 0:
            sibling[k] = child[parent[k]]
            child[parent[k]] = k
    out, stack, done = np.empty(n, np.int64), np.empty(n, np.int64), 0
    for start in range(n):
        if parent[start] >= 0:
            continue
        top, stack[0] = 1, start
        while top > 0:
            k = stack[top - 1]
            if child[k] >= 0:
                stack[top] = child[k]
                top += 1
                child[k] = sibling[child[k]]
            else:
                out[done] = k
                done += 1
                top -= 1
    return out


@kernel(error_model="python")
def column_counts(indptr, indices, parent):
    """(n,) elements of each column of L, the diagonal included: each row walks up the tree from its own elements."""
    n = parent.size
    counts, seen = np.ones(n, np.int64), np.full(n, -1, np.int64)
    for i in range(n):
        seen[i] = i
        for e in range(indptr[i], indptr[i + 1]):
            k = indices[e]
            while k < i and seen[k] != i:
                seen[k] = i
                counts[k] += 1
                k = parent[k]
    return counts


@kernel
def place_in_list(rows, first, last, row):
    """The place of `row` in rows (.., ascending) from `first` to last - 1, which have it: by bisection."""
    low, high = first, last - 1
    while low < high:
        middle = (low + high) // 2
        if rows[middle] < row:
            low = middle + 1
        else:
            high = middle
    return low
