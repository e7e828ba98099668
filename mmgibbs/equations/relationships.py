"""The three kinds of K^-1 as compiled kernels see them, with one function per operation, chosen by the kind's type.

    weight(K, l)                       kappa_ll
    times_row(K, l, Theta, out)        out = sum_m kappa_lm theta_m           (m = l included)
    quadratic(K, Theta, out)           out = Theta' K^-1 Theta

Levels are in sweep order. A kernel that takes `K` is compiled once for each kind, so it holds no `if pedigree`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numba.extending import overload

UNKNOWN = np.uint32(0xFFFFFFFF)  # no such parent


class IdentityLists(NamedTuple):
    """K = I."""

    n_levels: int


class PedigreeLists(NamedTuple):
    """A^-1 (or the QP matrix with unknown-parent groups) as parents and progeny; nothing else is stored.

    With m_l = theta_l - (theta_sire + theta_dam)/2:   Theta' A^-1 Theta = sum_l own_l m_l m_l'.
    """

    sire: np.ndarray  # (q,) uint32 level of the sire or of its unknown-parent group; UNKNOWN
    dam: np.ndarray  # (q,) uint32
    own: np.ndarray  # (q,) a_l = 1/d_l of an animal; 1 for a random group, 0 for a fixed one
    diagonal: np.ndarray  # (q,) kappa_ll
    progeny_ptr: np.ndarray  # (q + 1,) uint64
    progeny: np.ndarray  # (m,) uint32
    mate: np.ndarray  # (m,) uint32 the progeny's other parent; UNKNOWN
    progeny_own: np.ndarray  # (m,) a of the progeny


class SparseLists(NamedTuple):
    """A user's K^-1 in CSR, both triangles and the diagonal."""

    indptr: np.ndarray  # (q + 1,) uint64
    indices: np.ndarray  # (nnz,) uint32
    values: np.ndarray  # (nnz,)
    diagonal: np.ndarray  # (q,)


def relationship_lists(kind, order: np.ndarray, real) -> NamedTuple:
    """The lists of a relationship with levels in sweep order.

    kind   design.Identity | design.SparseInverse | pedigree.relationship.Relatives
    order  (q,) model-order level at each sweep position
    real   dtype of stored values
    """
    natural = bool(np.array_equal(order, np.arange(order.size)))
    if hasattr(kind, "progeny_ptr"):
        return _pedigree_lists(kind, order, natural, real)
    if hasattr(kind, "indptr"):
        return _sparse_lists(kind, order, natural, real)
    return IdentityLists(int(order.size))


def _positions(order: np.ndarray) -> np.ndarray:
    """(q,) sweep position of each model-order level."""
    position = np.empty(order.size, np.uint32)
    position[order] = np.arange(order.size, dtype=np.uint32)
    return position


def _pedigree_lists(kind, order, natural, real) -> PedigreeLists:
    n, q = kind.n_animals, kind.n_levels
    own = np.full(q, 1.0 if kind.random_groups else 0.0)
    own[:n] = kind.dinv
    parents = []
    for parent in (kind.sire, kind.dam):
        full = np.full(q, -1, np.int32)
        full[:n] = parent
        parents.append(full)
    sire, dam = parents
    ptr, progeny, mate = kind.progeny_ptr, kind.progeny, kind.mate
    if not natural:
        position = _positions(order)
        counts = np.diff(ptr)[order]
        new_ptr = np.concatenate([[0], np.cumsum(counts)])
        gather = np.repeat(ptr[:-1][order] - new_ptr[:-1], counts) + np.arange(new_ptr[-1])
        ptr, progeny, mate = new_ptr, progeny[gather], mate[gather]
        sire, dam = sire[order], dam[order]
    progeny_own = own[progeny].astype(real)
    if not natural:
        renumber = np.append(position, UNKNOWN)  # index -1 is the last element: unknown stays unknown
        sire, dam, progeny, mate = renumber[sire], renumber[dam], renumber[progeny], renumber[mate]
        own = own[order]
    diagonal = kind.diagonal if natural else kind.diagonal[order]
    return PedigreeLists(
        *(np.ascontiguousarray(parent).view(np.uint32) for parent in (sire, dam)),
        own.astype(real),
        diagonal.astype(real),
        np.ascontiguousarray(ptr).astype(np.uint64),
        np.ascontiguousarray(progeny).view(np.uint32),
        np.ascontiguousarray(mate).view(np.uint32),
        progeny_own,
    )


def _sparse_lists(kind, order, natural, real) -> SparseLists:
    from scipy.sparse import csr_array

    matrix = csr_array((kind.values, kind.indices, kind.indptr), shape=(order.size, order.size))
    if not natural:
        matrix = matrix[order][:, order]
        matrix.sort_indices()
    return SparseLists(
        matrix.indptr.astype(np.uint64),
        matrix.indices.astype(np.uint32),
        matrix.data.astype(real),
        matrix.diagonal().astype(real),
    )


# One function per operation. The bodies below are compiled by Numba; the plain names exist to be overloaded.


def weight(K, level):
    """kappa_ll."""
    raise NotImplementedError("the body is compiled: see the overload below")


def times_row(K, level, theta, out):
    """out[c] = sum_m kappa_lm theta[m, c], m = l included; out (k,) float64 is overwritten."""
    raise NotImplementedError("the body is compiled: see the overload below")


def quadratic(K, theta, out):
    """out = Theta' K^-1 Theta; (k, k) float64, overwritten."""
    raise NotImplementedError("the body is compiled: see the overload below")


@overload(weight, inline="always")
def _weight(K, level):
    if K.instance_class is IdentityLists:
        return lambda K, level: 1.0
    return lambda K, level: np.float64(K.diagonal[level])


def _identity_row(K, level, theta, out):
    for c in range(out.size):
        out[c] = theta[level, c]


def _pedigree_row(K, level, theta, out):
    k = out.size
    own, diagonal = np.float64(K.own[level]), np.float64(K.diagonal[level])
    for c in range(k):
        out[c] = diagonal * theta[level, c]
    for parent in (K.sire[level], K.dam[level]):
        if parent != UNKNOWN:
            for c in range(k):
                out[c] -= 0.5 * own * theta[parent, c]
    for j in range(K.progeny_ptr[level], K.progeny_ptr[level + np.uint64(1)]):
        a, calf, mate = np.float64(K.progeny_own[j]), K.progeny[j], K.mate[j]
        for c in range(k):
            out[c] -= 0.5 * a * theta[calf, c]
        # A group that stands for both parents is its own mate: that part is in the diagonal already.
        if mate != UNKNOWN and mate != level:
            for c in range(k):
                out[c] += 0.25 * a * theta[mate, c]


def _sparse_row(K, level, theta, out):
    out[:] = 0.0
    for j in range(K.indptr[level], K.indptr[level + np.uint64(1)]):
        for c in range(out.size):
            out[c] += np.float64(K.values[j]) * theta[K.indices[j], c]


@overload(times_row, jit_options={"forceinline": True})
def _times_row(K, level, theta, out):
    return {IdentityLists: _identity_row, PedigreeLists: _pedigree_row, SparseLists: _sparse_row}[K.instance_class]


def _pedigree_quadratic(K, theta, out):
    q, k = theta.shape
    m = np.empty(k)
    out[:] = 0.0
    for level in range(np.uint64(q)):
        for c in range(k):
            m[c] = theta[level, c]
        for parent in (K.sire[level], K.dam[level]):
            if parent != UNKNOWN:
                for c in range(k):
                    m[c] -= 0.5 * theta[parent, c]
        for a in range(k):
            for b in range(a + 1):
                out[a, b] += K.own[level] * m[a] * m[b]
    _mirror(out)


def _row_quadratic(K, theta, out):
    q, k = theta.shape
    row = np.empty(k)
    out[:] = 0.0
    for level in range(np.uint64(q)):
        times_row(K, level, theta, row)
        for a in range(k):
            for b in range(a + 1):
                out[a, b] += row[a] * theta[level, b]
    _mirror(out)


@njit(cache=True, nogil=True)
def _mirror(out):
    for a in range(out.shape[0]):
        for b in range(a):
            out[b, a] = out[a, b]


@overload(quadratic)
def _quadratic(K, theta, out):
    return _pedigree_quadratic if K.instance_class is PedigreeLists else _row_quadratic


@njit(cache=True, nogil=True, error_model="numpy")
def quadratic_form(K, theta):
    """Theta' K^-1 Theta, (k, k) float64, for Theta (q, k) in sweep order."""
    out = np.empty((theta.shape[1], theta.shape[1]))
    quadratic(K, theta, out)
    return out
