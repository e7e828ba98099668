"""A^-1 of a pedigree in parts, some chosen animals (2) and the others (1), and the inverse of the chosen ones' A.

    A^-1 = [A^11 A^12; A^21 A^22]          A22^-1 = A^22 - A^21 (A^11)^-1 A^12

A^11 is sparse and so is its factor; A22^-1 is dense in general (Strandén & Mäntysaari 2014). This module needs SciPy.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mmgibbs.pedigree.relationship import Relatives, a_inverse_csr, mendelian_variance, relatives
from mmgibbs.pedigree.relationship_products import with_ancestors

COLUMNS = 64  # right-hand sides at once


@dataclass(frozen=True)
class Partitioned:
    """Animals by code; products with the parts of A^-1."""

    others: np.ndarray  # (n1,) int64
    chosen: np.ndarray  # (n2,) int64
    across: Any  # A^21, (n2, n1) sparse
    among: Any  # A^22, (n2, n2) sparse
    factor: Any  # of A^11 = P' L D L' P (SuperLU); None where there are no others
    root: Any  # L D^1/2, sparse
    place: np.ndarray  # (n1,) row of `root` for each of the others

    def solve(self, b: np.ndarray) -> np.ndarray:
        """(A^11)^-1 b of b (n1,) or (n1, k)."""
        return b.copy() if self.factor is None else self.factor.solve(np.ascontiguousarray(b))

    def root_times(self, z: np.ndarray) -> np.ndarray:
        """C z with C C' = A^11: of normals z, noise of that covariance."""
        return z.copy() if self.factor is None else (self.root @ z)[self.place]


def partitioned(kin: Relatives, animals: np.ndarray) -> Partitioned:
    """animals: codes, in the order in which they are chosen. Metafounders are all to be among them, and the parts are
    then those of the matrix without Gamma^-1.
    """
    from scipy.sparse import csc_array, diags_array
    from scipy.sparse.linalg import splu

    chosen = np.asarray(animals, np.int64)
    not_chosen = np.delete(np.arange(kin.n_levels), chosen)
    assert not not_chosen.size or not_chosen[-1] < kin.n_animals, "what is not chosen are animals"
    inverse = a_inverse_csr(kin)
    of_chosen = inverse[chosen]
    across, among = of_chosen[:, not_chosen].tocsr(), of_chosen[:, chosen].tocsr()
    if not not_chosen.size:
        return Partitioned(not_chosen, chosen, across, among, None, None, not_chosen)
    options = {"SymmetricMode": True}
    factor = splu(
        csc_array(inverse[not_chosen][:, not_chosen]),
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.0,
        options=options,
    )
    root = factor.L @ diags_array(np.sqrt(factor.U.diagonal()))
    return Partitioned(not_chosen, chosen, across, among, factor, root, factor.perm_r)


def inverse_among(kin: Relatives, animals: np.ndarray) -> np.ndarray:
    """A22^-1 of chosen animals, (m, m) float64: the others that are no ancestors of theirs leave it as it is."""
    parts = _restrict_to_ancestors(kin, animals)
    out = parts.among.toarray()
    for columns, solved in _solutions(parts):
        out[:, columns] -= parts.across @ solved
    return (out + out.T) / 2


@dataclass(frozen=True)
class SubsetInverse:
    """A22^-1 of chosen animals as products with vectors, from the sparse parts of A^-1: it is never formed.

        A22^-1 x = A^22 x - A^21 (A^11)^-1 A^12 x

    Between processes go the pedigree and the animals; the factor of A^11 is made where it is first needed.
    """

    kin: Relatives
    animals: np.ndarray  # (m,) codes

    def __getstate__(self) -> dict[str, Any]:
        return {"kin": self.kin, "animals": self.animals}

    @cached_property
    def _parts(self) -> Partitioned:
        return _restrict_to_ancestors(self.kin, self.animals)

    @cached_property
    def _down(self) -> Any:
        return self._parts.across.T.tocsr()

    def times(self, x: np.ndarray) -> np.ndarray:
        """A22^-1 x, of x (m,) or (m, k)."""
        parts = self._parts
        return parts.among @ x - parts.across @ parts.solve(self._down @ x)

    @cached_property
    def diagonal(self) -> np.ndarray:
        """(m,) float64, by as many solutions as there are animals, some at a time."""
        parts = self._parts
        out, across = parts.among.diagonal(), parts.across
        for columns, solved in _solutions(parts):
            out[columns] -= across[columns].multiply(solved.T).sum(axis=1)
        return out


def _restrict_to_ancestors(kin: Relatives, animals: np.ndarray) -> Partitioned:
    """Partition A^-1 of the pedigree of the chosen animals and their ancestors alone."""
    chosen = np.asarray(animals, np.int64)
    small, number = restricted(kin if np.any(chosen >= kin.n_animals) else drop_groups(kin), chosen)
    return partitioned(small, number[chosen])


def _solutions(parts: Partitioned) -> Iterator[tuple[slice, np.ndarray]]:
    """Columns of (A^11)^-1 A^12, some at a time."""
    down = parts.across.T.tocsc()
    for first in range(0, parts.chosen.size, COLUMNS):
        columns = slice(first, first + COLUMNS)
        yield columns, parts.solve(down[:, columns].toarray())


def drop_groups(kin: Relatives) -> Relatives:
    """The pedigree in which a parent of an unknown-parent group is an unknown parent."""
    if not kin.n_groups:
        return kin
    n = kin.n_animals
    sire, dam = (np.where(parent < n, parent, -1).astype(np.int32) for parent in (kin.sire, kin.dam))
    more = 1 / kin.dinv - mendelian_variance(sire, dam, kin.inbreeding)
    return relatives(sire, dam, kin.inbreeding, within=more)


def restricted(kin: Relatives, animals: np.ndarray) -> tuple[Relatives, np.ndarray]:
    """The pedigree of these animals, their ancestors and all metafounders, and the (q,) level in it of each level, -1
    of those left out.
    """
    n, g, animals = kin.n_animals, kin.n_groups, np.asarray(animals, np.int64)
    keep = with_ancestors(kin.sire, kin.dam, animals[animals < n])
    n_kept = int(np.count_nonzero(keep))
    number = np.where(keep, np.cumsum(keep) - 1, -1)
    number = np.concatenate([number, n_kept + np.arange(g), [-1]]).astype(np.int32)  # -1, an unknown parent, stays so
    sire, dam = number[kin.sire[keep]], number[kin.dam[keep]]
    F = kin.inbreeding[keep]
    more = 1 / kin.dinv[keep] - mendelian_variance(sire, dam, F)  # of metafounders or selfing
    return relatives(sire, dam, F, g, False, more), number[:-1]
