"""Lists of relationships whose parameters are sampled: new coefficients are written into the lists that sweeps read.

K^-1 = sum_m f_m(parameters) M_m (models/relationships/base.py), so Theta' K^-1 Theta is a sum of Theta' M_m Theta,
which one pass gives for all values of the parameters.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mmgibbs.equations.structured import StructuredEquations
from mmgibbs.models.relationships.user_inverse import SparseInverse, SparseLists


def copy_renewable_lists(equations: StructuredEquations) -> StructuredEquations:
    """Copy the equations, with lists of their own wherever they are renewed: chains may share all others."""
    free = [term.relationship.has_free_parameters for term in equations.design.terms]
    if not any(free):
        return equations
    lists = tuple(
        _copy(own) if is_free and isinstance(own, SparseLists) else own
        for own, is_free in zip(equations.relationships, free, strict=True)
    )
    return replace(equations, relationships=lists)


def _copy(lists: SparseLists) -> SparseLists:
    return lists._replace(values=lists.values.copy(), diagonal=lists.diagonal.copy())


class RenewableLists:
    """The lists of one random term, in sweep order."""

    def __init__(self, equations: StructuredEquations, term: int):
        self.kind = equations.design.terms[term].relationship
        lists = equations.relationships[term]
        assert isinstance(lists, SparseLists) and isinstance(self.kind, SparseInverse)
        self.lists = lists
        # which element of `fixed_matrices` stands where in the lists
        numbered = replace(self.kind, values=np.arange(self.kind.values.size, dtype=np.float64))
        order = equations.terms[term].code.astype(np.int64)
        element = numbered.lists(order, np.dtype(np.float64)).values.astype(np.int64)
        self.matrices = self.kind.fixed_matrices[element]
        self.transposed = self.matrices.T.tocsr()
        ptr = lists.indptr.astype(np.int64)
        self.row = np.repeat(np.arange(order.size), ptr[1:] - ptr[:-1])
        self.column = lists.indices.astype(np.int64)
        self.on_diagonal = np.flatnonzero(self.row == self.column)

    def renew(self, parameters: np.ndarray) -> None:
        """Write K^-1 at these parameters."""
        values = self.matrices @ self.kind.weigh(parameters).values
        self.lists.values[:] = values
        self.lists.diagonal[:] = values[self.on_diagonal]

    def sum_products(self, theta: np.ndarray) -> np.ndarray:
        """Compute Theta' M_m Theta (M, k, k), of theta (q, k) in sweep order."""
        k = theta.shape[1]
        out = np.empty((self.matrices.shape[1], k, k))
        left, right = theta[self.row], theta[self.column]
        for a in range(k):
            for b in range(k):
                out[:, a, b] = self.transposed @ (left[:, a] * right[:, b])
        return out
