"""The elimination tree of a pattern, and the lengths of the columns of L (Liu 1990)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy

from mmgibbs.likelihood.cholesky.ordering import minimum_degree
from mmgibbs.pedigree.kernels import kernel


class Elimination(NamedTuple):
    """The elimination of n equations, in a postorder of the tree. Rows and columns are numbered in that order."""

    order: np.ndarray  # (n,) int64 the equation that is eliminated at each step
    indptr: np.ndarray  # (n + 1,) int64 the pattern in that order, both triangles
    indices: np.ndarray
    parent: np.ndarray  # (n,) int64 of each column in the tree, -1: none
    counts: np.ndarray  # (n,) int64 elements of each column of L, the diagonal included

    @property
    def nonzeros(self) -> int:
        """Elements of L."""
        return int(self.counts.sum())

    @property
    def flops(self) -> int:
        """Multiplications and additions of one factorisation: the squares of the columns' lengths."""
        return int((self.counts.astype(float) ** 2).sum())


def eliminate(pattern: scipy.sparse.csr_array, last: np.ndarray | None = None) -> Elimination:
    """The elimination of a symmetric pattern by minimum degree.

    pattern: (n, n) with a full diagonal, both triangles; its values are not read. last: equations that are eliminated
    after all others, in this order. Equations of one subtree are brought together, which changes no fill.
    """
    if last is None:
        order = minimum_degree(pattern)
    else:
        first = np.setdiff1d(np.arange(pattern.shape[0]), last)
        order = np.concatenate([first[minimum_degree(pattern[first][:, first])], last])
    parent = elimination_tree(*permute(pattern, order))
    after = postorder(parent)
    order = order[after]
    indptr, indices = permute(pattern, order)
    parent = np.where(parent[after] < 0, -1, invert_order(after)[parent[after]])
    return Elimination(order, indptr, indices, parent, column_counts(indptr, indices, parent))


def invert_order(order: np.ndarray) -> np.ndarray:
    """Return the step at which each equation is eliminated, (n,) int64."""
    steps = np.empty(order.size, np.int64)
    steps[order] = np.arange(order.size)
    return steps


def permute(pattern: scipy.sparse.csr_array, order: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """indptr and indices of the pattern with its rows and columns in this order."""
    permuted = pattern[order][:, order]
    return permuted.indptr.astype(np.int64), permuted.indices.astype(np.int64)


@kernel(error_model="python")
def elimination_tree(indptr, indices):
    """Find the parent of each column, (n,), -1 for a root: the first row below its diagonal in L."""
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
    """Order the columns (n,), each after all below it in the tree, subtrees in one piece."""
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
    """Count the elements of each column of L, (n,), the diagonal included.

    Each row walks up the tree from its own elements.
    """
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
