"""A pedigree: K = A, the additive relationship matrix, by its parents and progeny (see pedigree/relationship.py).

With m_l = theta_l - (theta_sire + theta_dam) / 2 and a_l = 1/d_l the precision of Mendelian sampling,

    Theta' A^-1 Theta = sum_l a_l m_l m_l'          A^-1 = B' B,  (B z)_l = sqrt(a_l) (z_l - (z_sire + z_dam) / 2)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from mmgibbs.models.relationships.base import UNKNOWN, JointLevels, Lists, Relationship
from mmgibbs.pedigree.kernels import kernel
from mmgibbs.pedigree.partitioned import inverse_among
from mmgibbs.pedigree.relationship import Relatives, a_inverse_csr, list_progeny
from mmgibbs.pedigree.relationship_products import a_times_relatives, relationship_block

# Below this Mendelian variance rounding leaves iterations no digits of the residual that they stop at, and draws of one
# animal after another take 1 / d sweeps to move a line and its progeny together.
MIN_ITERATED_VARIANCE = 1e-4
INBRED_LINES = JointLevels(
    "breeding values of inbred lines",
    "progeny of parents with F near 1 are nearly the mean of these, with whom they have to be drawn all at once",
    "a pedigree with fewer generations of inbreeding (F of parents below 0.9998)",
)


class PedigreeLists(NamedTuple):
    """A^-1 (or the QP matrix with unknown-parent groups) as parents and progeny; nothing else is stored."""

    sire: np.ndarray  # (q,) uint32 level of the sire or of its unknown-parent group; UNKNOWN
    dam: np.ndarray  # (q,) uint32
    own: np.ndarray  # (q,) a_l = 1/d_l of an animal; 1 for a random group, 0 for a fixed one
    diagonal: np.ndarray  # (q,) kappa_ll
    progeny_ptr: np.ndarray  # (q + 1,) uint64
    progeny: np.ndarray  # (m,) uint32
    mate: np.ndarray  # (m,) uint32 the progeny's other parent; UNKNOWN
    progeny_own: np.ndarray  # (m,) a of the progeny

    @staticmethod
    def weight(K: PedigreeLists, level: int) -> float:
        return np.float64(K.diagonal[level])

    @staticmethod
    def times_row(K: PedigreeLists, level: int, theta: np.ndarray, out: np.ndarray) -> None:
        k = out.size
        dinv, diagonal = np.float64(K.own[level]), np.float64(K.diagonal[level])
        for c in range(k):
            out[c] = diagonal * theta[level, c]
        for parent in (K.sire[level], K.dam[level]):
            if parent != UNKNOWN:
                for c in range(k):
                    out[c] -= 0.5 * dinv * theta[parent, c]
        for j in range(K.progeny_ptr[level], K.progeny_ptr[level + np.uint64(1)]):
            a, calf, mate = np.float64(K.progeny_own[j]), K.progeny[j], K.mate[j]
            for c in range(k):
                out[c] -= 0.5 * a * theta[calf, c]
            # A group that represents both parents is its own mate: that part is in the diagonal already.
            if mate != UNKNOWN and mate != level:
                for c in range(k):
                    out[c] += 0.25 * a * theta[mate, c]

    @staticmethod
    def quadratic(K: PedigreeLists, theta: np.ndarray, out: np.ndarray) -> None:
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
        for a in range(k):
            for b in range(a):
                out[b, a] = out[a, b]

    @staticmethod
    def cuda() -> str:
        return "mmgibbs::Pedigree"

    @property
    def relative_ptr(self) -> np.ndarray:
        return self.progeny_ptr

    def bytes_per_sweep(self, row: int) -> int:
        parents = np.count_nonzero(self.sire != UNKNOWN) + np.count_nonzero(self.dam != UNKNOWN)
        rows = parents + self.progeny.size + np.count_nonzero(self.mate != UNKNOWN)
        lists = (self.sire, self.dam, self.own, self.diagonal, self.progeny, self.mate, self.progeny_own)
        return sum(a.nbytes for a in lists) + 4 * self.progeny_ptr.size + int(rows) * row


@dataclass(frozen=True)
class Pedigree(Relationship):
    """K = A of a pedigree without unknown-parent groups."""

    relatives: Relatives

    words = "pedigree"
    symbol = "A"
    of_pedigree = True
    sentence = "related by the pedigree"

    @property
    def n_levels(self) -> int:
        return self.relatives.n_levels

    @cached_property
    def has_inbred_lines(self) -> bool:
        """Parents are so inbred that next to nothing of their progeny's breeding values is left to vary."""
        return bool(self.relatives.made_dinv().max(initial=1.0) > 1.0 / MIN_ITERATED_VARIANCE)

    @property
    def log_determinant(self) -> float | None:
        """Sum of log 1/d: B is a product of a triangular matrix with 1 on its diagonal and D^-1/2."""
        return float(np.log(self.relatives.made_dinv()).sum())

    @property
    def joint_levels(self) -> JointLevels | None:
        return INBRED_LINES if self.has_inbred_lines else None

    @property
    def stiff_part(self) -> str:
        return INBRED_LINES.what if self.has_inbred_lines else ""

    def submatrix(self, animals: np.ndarray) -> np.ndarray:
        """A22, (m, m) relationships of chosen animals (codes) with each other."""
        return relationship_block(self.relatives.sire, self.relatives.dam, self.relatives.inbreeding, animals)

    def inverse_among(self, animals: np.ndarray) -> np.ndarray:
        """A22^-1, (m, m)."""
        return inverse_among(self.relatives, animals)

    def lists(self, order: np.ndarray, real: np.dtype) -> PedigreeLists:
        kin, q = self.relatives, self.n_levels
        place = np.empty(q + 1, np.uint32)  # sweep position of each model-order level
        place[order] = np.arange(q, dtype=np.uint32)
        place[q] = UNKNOWN  # index -1 is the last element: unknown stays unknown
        ptr = np.empty(q + 1, np.uint64)
        progeny, mate = np.empty(kin.n_entries, np.uint32), np.empty(kin.n_entries, np.uint32)
        list_progeny(kin.sire, kin.dam, place, ptr, progeny, mate)
        dinv, dinv_of_levels = kin.made_dinv(), np.full(q, 1.0 if kin.random_groups else 0.0, real)
        dinv_of_levels[place[: kin.n_animals]] = dinv
        sire, dam = (np.full(q, UNKNOWN) for _ in range(2))
        sire[place[: kin.n_animals]], dam[place[: kin.n_animals]] = place[kin.sire], place[kin.dam]
        return PedigreeLists(
            sire,
            dam,
            dinv_of_levels,
            kin.made_diagonal(dinv).astype(real)[order],
            ptr,
            progeny,
            mate,
            dinv_of_levels[progeny],
        )

    def list_bytes(self, real: int) -> int:
        return self.n_levels * (16 + 2 * real) + self.relatives.n_entries * (8 + real)

    def inverse_csr(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        matrix = a_inverse_csr(self.relatives)
        return matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), matrix.data

    def edges(self) -> list[tuple[np.ndarray, np.ndarray]]:
        kind = self.relatives
        animal = np.arange(kind.n_animals, dtype=np.int32)
        return [(animal, kind.sire), (animal, kind.dam), (kind.sire, kind.dam)]

    def nearest_relative(self) -> np.ndarray:
        """Return the dam of each animal: daughters stay in the herd that they are born in."""
        kin = self.relatives
        dams = np.full(self.n_levels, -1, np.int32)
        dams[: kin.n_animals] = np.where(kin.dam < kin.n_animals, kin.dam, -1)  # groups of unknown dams are no herds
        return dams

    def noise(self, lists: Lists, code: np.ndarray, who: str) -> Callable[[np.ndarray], np.ndarray]:
        return lambda z: mendelian_noise(lists, z)

    def draw(self, z: np.ndarray) -> np.ndarray:
        """L D^1/2 z with A = L D L': parents' average plus Mendelian sampling; groups are what z says."""
        from scipy.sparse import coo_array, eye_array
        from scipy.sparse.linalg import spsolve_triangular

        kin = self.relatives
        n, g = kin.n_animals, kin.n_groups
        place = lambda code: (code + g) % (n + g)  # groups before animals, so that parents stand before progeny
        average = [np.flatnonzero(parent >= 0) for parent in (kin.sire, kin.dam)]
        rows = place(np.concatenate(average))
        columns = place(np.concatenate([p[known] for p, known in zip((kin.sire, kin.dam), average, strict=True)]))
        L_inverse = eye_array(n + g) - coo_array((np.full(rows.size, 0.5), (rows, columns)), shape=(n + g, n + g))
        spread = np.concatenate([np.ones(g), 1 / np.sqrt(kin.dinv)])
        order = place(np.arange(n + g))
        ordered = np.empty(z.shape)
        ordered[order] = z
        return spsolve_triangular(L_inverse.tocsr(), spread[:, None] * ordered, lower=True, unit_diagonal=True)[order]

    def times(self, x: np.ndarray) -> np.ndarray:
        """A x by one pass up and one pass down the pedigree."""
        out, n = np.zeros(x.shape), self.relatives.n_animals
        out[:n] = a_times_relatives(self.relatives, np.ascontiguousarray(x[:n]))
        return out

    def spread(self, levels: np.ndarray) -> float:
        """1 + Fbar - 2 fbar, animals' relationships with themselves included in the mean."""
        kin = self.relatives
        ones = np.zeros(kin.n_animals)
        ones[levels] = 1.0
        return float(1 + kin.inbreeding[levels].mean() - a_times_relatives(kin, ones)[levels].mean() / levels.size)


@kernel
def mendelian_noise(K, z):
    """B' Z of A^-1 (or the QP matrix): an animal gathers its own and its progeny's sqrt(a).

    z and the result (q, k) float64.
    """
    q, k = z.shape
    out = np.empty((q, k))
    for level in range(np.uint64(q)):
        sd = np.sqrt(np.float64(K.own[level]))
        for c in range(k):
            out[level, c] = sd * z[level, c]
        for j in range(K.progeny_ptr[level], K.progeny_ptr[level + np.uint64(1)]):
            half = 0.5 * np.sqrt(np.float64(K.progeny_own[j]))
            for c in range(k):
                out[level, c] -= half * z[K.progeny[j], c]
    return out
