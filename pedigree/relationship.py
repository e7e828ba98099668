"""The additive relationship matrix A and its inverse, from parents alone.

With m_i = u_i - (u_sire(i) + u_dam(i)) / 2 the Mendelian sampling of animal i (an unknown parent drops out) and 1/d_i
its precision,

    u' A^-1 u = sum_i m_i^2 / d_i,        d_i = 1 - sum over known parents p of (1 + F_p) / 4

so d = 1/2 - (F_s + F_d)/4 with both parents known, 3/4 - F_p/4 with one, 1 with none (Henderson 1976, Quaas 1976).
Each animal adds 1/d to (i, i), -1/(2d) to (i, parent) and 1/(4d) to (parent, parent). Unknown-parent groups take the
place of missing parents (Quaas & Pollak 1981, Westell et al. 1988): they enter m_i as a parent does and leave d_i
alone. Of parents with F near 1 next to nothing is left to vary, and A is nearly singular: d counts as at least
MIN_MENDELIAN_VARIANCE, which changes A by less than a millionth. This module needs NumPy and Numba only.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from mmgibbs.pedigree.errors import PedigreeError
from mmgibbs.pedigree.inbreeding import checked_codes
from mmgibbs.pedigree.kernels import kernel

if TYPE_CHECKING:
    from scipy.sparse import csr_array

# A factor of A^-1 loses eps / d of the variances of parents, and A gains that much of d: both are about 1e-8 here.
MIN_MENDELIAN_VARIANCE = 1e-8


@dataclass(frozen=True)
class Relatives:
    """The structured A^-1: what the row of one animal needs from its relatives. `relatives` builds it.

    Levels are the n animals, parents before progeny, then the unknown-parent groups n .. n + n_groups - 1; q = n +
    n_groups. Row l of A^-1 (the QP matrix with groups) times x is

        diagonal[l] x_l - dinv[l] (x_sire + x_dam) / 2  +  sum over e of dinv[j_e] (x_mate_e / 4 - x_j_e / 2),

    where e runs over the entries of l in the lists and j_e = progeny[e]. A missing relative contributes nothing, nor
    does a mate that is l itself (the diagonal has it). A progeny whose two parents are the same level (a group; a
    selfed plant) is in the list of that level twice. 1/d, the lists of progeny and the diagonal are computed when they
    are first used, and then kept: 40 bytes an animal.

    Attributes
    ----------
    sire, dam : ndarray of int32, shape (n,)
        Codes of the parents; -1 is unknown, n and above are unknown-parent groups.
    inbreeding : ndarray of float64, shape (n,)
        Coefficients of inbreeding F.
    n_groups : int
        Number of unknown-parent groups.
    random_groups : bool
        Whether group effects have variance 1 in units of the additive variance.
    within : ndarray of float64, shape (n,), or None
        Addition to the Mendelian variances, of generations of selfing.
    """

    sire: np.ndarray  # (n,) int32; -1: unknown; >= n: unknown-parent group
    dam: np.ndarray  # (n,) int32
    inbreeding: np.ndarray  # (n,) float64, F
    n_groups: int
    random_groups: bool
    within: np.ndarray | None = None  # (n,) float64, what is added to the Mendelian variances; see `relatives`

    @cached_property
    def dinv(self) -> np.ndarray:
        """1/d, (n,) float64, the precision of Mendelian sampling."""
        return self.made_dinv()

    def made_dinv(self) -> np.ndarray:
        """Compute 1/d again, without keeping it.

        Returns
        -------
        ndarray of float64, shape (n,)
            Precisions of Mendelian sampling.
        """
        d = mendelian_variance(self.sire, self.dam, self.inbreeding)
        return 1.0 / np.maximum(d if self.within is None else d + self.within, MIN_MENDELIAN_VARIANCE)

    @property
    def progeny_ptr(self) -> np.ndarray:
        """(q + 1,) int64: level l has the entries progeny_ptr[l] .. progeny_ptr[l + 1] - 1."""
        return self._lists[0]

    @property
    def progeny(self) -> np.ndarray:
        """Progeny of every level, int32, ascending within a level."""
        return self._lists[1]

    @property
    def mate(self) -> np.ndarray:
        """Other parent of each progeny, int32; -1 is unknown."""
        return self._lists[2]

    @property
    def n_entries(self) -> int:
        """Number of entries in the lists of progeny."""
        return sum(int(np.count_nonzero(parent >= 0)) for parent in (self.sire, self.dam))

    @cached_property
    def _lists(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        q = self.n_levels
        ptr, entries = np.empty(q + 1, np.int64), (np.empty(self.n_entries, np.int32) for _ in range(2))
        progeny, mate = entries
        list_progeny(self.sire, self.dam, np.append(np.arange(q, dtype=np.int32), np.int32(-1)), ptr, progeny, mate)
        return ptr, progeny, mate

    @cached_property
    def diagonal(self) -> np.ndarray:
        """Diagonal of A^-1, (q,) float64, plus 1 in the rows of random groups."""
        return self.made_diagonal(self.dinv)

    def made_diagonal(self, dinv: np.ndarray) -> np.ndarray:
        """Compute the diagonal again, without keeping it.

        Parameters
        ----------
        dinv : ndarray of float64, shape (n,)
            Precisions 1/d of Mendelian sampling.

        Returns
        -------
        ndarray of float64, shape (q,)
            Diagonal of A^-1.
        """
        out = np.zeros(self.n_levels)
        _add_diagonal(self.sire, self.dam, dinv, out)
        if self.random_groups:
            out[self.n_animals :] += 1.0
        return out

    @property
    def n_animals(self) -> int:
        """Number of animals n."""
        return self.sire.size

    @property
    def n_levels(self) -> int:
        """Number of levels q = n + n_groups."""
        return self.sire.size + self.n_groups


def relatives(
    sire: np.ndarray,
    dam: np.ndarray,
    inbreeding: np.ndarray | None = None,
    n_groups: int = 0,
    random_groups: bool = False,
    within: np.ndarray | None = None,
) -> Relatives:
    """Build the structured A^-1 of a pedigree.

    The coefficients of inbreeding are copied, as 1/d is computed from them later; codes are kept as they are.

    Parameters
    ----------
    sire, dam : ndarray of int32, shape (n,)
        Codes of the parents, parents first; -1 is unknown, n .. n + n_groups - 1 are unknown-parent groups.
    inbreeding : ndarray of float64, shape (n,), default None
        Coefficients of inbreeding from `mmgibbs.pedigree.inbreeding.inbreeding`. None ignores inbreeding (F = 0).
    n_groups : int, default 0
        Number of unknown-parent groups.
    random_groups : bool, default False
        Give group effects variance 1 in units of the additive variance, which adds the identity to their rows. Without
        it all rows sum to zero.
    within : ndarray of float64, shape (n,), default None
        What generations of selfing after the cross add to the Mendelian variances (`mmgibbs.pedigree.selfing`).

    Returns
    -------
    Relatives
        The structured A^-1.

    Raises
    ------
    PedigreeError
        Codes are out of order or range, or a Mendelian variance would be negative (a parent with F above 1).

    References
    ----------
    .. [1] Henderson, C. R. (1976). A simple method for computing the inverse of a numerator relationship matrix used in
        prediction of breeding values. Biometrics 32, 69-83.
    .. [2] Quaas, R. L. (1976). Computing the diagonal elements and inverse of a large numerator relationship matrix.
        Biometrics 32, 949-953.

    Examples
    --------
    >>> import numpy as np
    >>> from mmgibbs.pedigree import a_inverse_csr, relatives
    >>> sire, dam = np.array([-1, -1, 0], np.int32), np.array([-1, -1, 1], np.int32)
    >>> a_inverse_csr(relatives(sire, dam)).toarray().tolist()
    [[1.5, 0.5, -1.0], [0.5, 1.5, -1.0], [-1.0, -1.0, 2.0]]
    """
    sire, dam = checked_codes(sire, dam)
    n = sire.size
    q = n + n_groups
    for parent in (sire, dam):
        if n and parent.max() >= q:
            i = int(np.argmax(parent))
            raise PedigreeError(
                f"animal code {i} has parent code {parent[i]}: codes run to {q - 1} ({n} animals and {n_groups} groups)"
            )
    F = np.zeros(n) if inbreeding is None else np.array(inbreeding, dtype=np.float64, order="C")
    within = None if within is None else np.array(within, dtype=np.float64, order="C")
    if F.shape != (n,):
        raise PedigreeError(f"inbreeding must have one value for each of {n} animals, found shape {F.shape}")
    d = mendelian_variance(sire, dam, F) if within is None else mendelian_variance(sire, dam, F) + within
    bad = ~(d > -MIN_MENDELIAN_VARIANCE)  # NaN too; rounding of F near 1 is far above it
    if bad.any():
        i = int(np.argmax(bad))
        of_parents = " and ".join(f"F = {F[p]:g} (code {p})" for p in (sire[i], dam[i]) if 0 <= p < n)
        raise PedigreeError(
            f"animal code {i}: the inbreeding of its parents, {of_parents}, makes its Mendelian sampling variance "
            f"{d[i]:g}; expected F of 1 at most"
        )
    return Relatives(sire, dam, F, int(n_groups), bool(random_groups), within)


def mendelian_variance(sire: np.ndarray, dam: np.ndarray, F: np.ndarray) -> np.ndarray:
    """Compute d, (m,) float64: the Mendelian sampling variances in units of the additive variance.

    d_i = 1 - sum over known parents p of (1 + F_p) / 4. sire, dam: (m,) int32 codes of the parents of all or some
    animals, F: (n,) of all; -1 and codes >= n are unknown parents.
    """
    d, F = np.ones(sire.size), np.asarray(F, np.float64)
    for parent in (sire, dam):
        known = (parent >= 0) & (parent < F.size)
        d[known] -= 0.25 * (1.0 + F[parent[known]])
    return d


@kernel
def _add_diagonal(sire, dam, dinv, diagonal):
    for i in range(sire.size):
        s, d, a = sire[i], dam[i], dinv[i]
        diagonal[i] += a
        quarter = 0.25 * a if s != d else 0.5 * a
        if s >= 0:
            diagonal[s] += quarter
        if d >= 0:
            diagonal[d] += quarter


def list_progeny(
    sire: np.ndarray, dam: np.ndarray, place: np.ndarray, ptr: np.ndarray, progeny: np.ndarray, mate: np.ndarray
) -> None:
    """Write the lists of progeny with levels renumbered.

    ptr (q + 1,), progeny and mate (entries,), whole numbers of any type, are written. sire, dam: (n,) int32 codes, -1
    unknown. place (q + 1,): the new number of each level, and last the code of an unknown mate. The entries of a level
    keep the order of the pedigree.
    """
    _list_progeny(sire, dam, place, ptr, progeny, mate)


@kernel
def _list_progeny(sire, dam, place, ptr, progeny, mate):
    """Write the lists. Meanwhile ptr[l + 1] is where the next entry of level l goes."""
    q, unit = place.size - 1, ptr.dtype.type(1)
    ptr[:] = 0
    for i in range(sire.size):
        for p in (sire[i], dam[i]):
            if p >= 0:
                ptr[place[p] + 1] += unit
    before = ptr[0]
    for level in range(1, q + 1):
        entries = ptr[level]
        ptr[level] = before
        before += entries
    for i in range(sire.size):
        for p, second_parent in ((sire[i], dam[i]), (dam[i], sire[i])):
            if p >= 0:
                at = ptr[place[p] + 1]
                progeny[at], mate[at] = place[i], place[second_parent if second_parent >= 0 else q]
                ptr[place[p] + 1] = at + unit


def a_inverse_csr(relatives: Relatives) -> csr_array:
    """Build A^-1 (the QP matrix with groups) as a sparse matrix.

    Parameters
    ----------
    relatives : Relatives
        The structured A^-1.

    Returns
    -------
    scipy.sparse.csr_array of float64, shape (q, q)
        Both triangles, columns sorted within a row.

    Examples
    --------
    >>> import numpy as np
    >>> from mmgibbs.pedigree import a_inverse_csr, relatives
    >>> unrelated = np.array([-1, -1], np.int32)
    >>> a_inverse_csr(relatives(unrelated, unrelated)).toarray().tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    import scipy.sparse

    r, n, q = relatives, relatives.n_animals, relatives.n_levels
    animal = np.arange(n, dtype=np.int32)
    rows, columns, values = [np.arange(q, dtype=np.int32)], [np.arange(q, dtype=np.int32)], [r.diagonal]
    for parent in (r.sire, r.dam):
        known = parent >= 0
        i, p, a = animal[known], parent[known], -0.5 * r.dinv[known]
        rows += [i, p]
        columns += [p, i]
        values += [a, a]
    pair = (r.sire >= 0) & (r.dam >= 0) & (r.sire != r.dam)
    s, d, a = r.sire[pair], r.dam[pair], 0.25 * r.dinv[pair]
    rows += [s, d]
    columns += [d, s]
    values += [a, a]
    parts = (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns)))
    matrix = scipy.sparse.coo_array(parts, shape=(q, q)).tocsr()  # adds what falls on one place
    matrix.sort_indices()
    return matrix


def a_inverse_triplets(relatives: Relatives) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """List the elements of A^-1: both triangles, each element once, sorted by row and column.

    Parameters
    ----------
    relatives : Relatives
        The structured A^-1.

    Returns
    -------
    row, column : ndarray of int32
        Places of the elements.
    value : ndarray of float64
        The elements.

    Examples
    --------
    >>> import numpy as np
    >>> from mmgibbs.pedigree import a_inverse_triplets, relatives
    >>> sire, dam = np.array([-1, 0], np.int32), np.array([-1, -1], np.int32)
    >>> row, column, value = a_inverse_triplets(relatives(sire, dam))
    >>> row.tolist(), column.tolist()
    ([0, 0, 1, 1], [0, 1, 0, 1])
    """
    matrix = a_inverse_csr(relatives)
    row = np.repeat(np.arange(relatives.n_levels, dtype=np.int32), np.diff(matrix.indptr))
    return row, matrix.indices.astype(np.int32, copy=False), matrix.data


def a_inverse_times(relatives: Relatives, x: np.ndarray) -> np.ndarray:
    """Multiply A^-1 by vectors, from parents and 1/d, without the matrix.

    Parameters
    ----------
    relatives : Relatives
        The structured A^-1.
    x : ndarray, shape (q,) or (q, k)
        Vectors.

    Returns
    -------
    ndarray of float64, shape of x
        A^-1 x.

    Examples
    --------
    >>> import numpy as np
    >>> from mmgibbs.pedigree import a_inverse_times, relatives
    >>> sire, dam = np.array([-1, -1, 0], np.int32), np.array([-1, -1, 1], np.int32)
    >>> a_inverse_times(relatives(sire, dam), np.array([0.0, 0.0, 1.0])).tolist()
    [-1.0, -1.0, 2.0]
    """
    columns, kin = as_columns(x, relatives.n_levels), relatives
    out = np.zeros(columns.shape)
    _add_a_inverse_times(kin.sire, kin.dam, kin.dinv, columns, out)
    if kin.random_groups:
        out[kin.n_animals :] += columns[kin.n_animals :]
    return out.reshape(np.shape(x))


def as_columns(x: np.ndarray, q: int) -> np.ndarray:
    """Return x (q,) or (q, k) as (q, k) float64; ValueError for another shape."""
    x = np.asarray(x)
    if x.ndim not in (1, 2) or x.shape[0] != q:
        raise ValueError(f"needed a vector or a matrix with {q} rows, found shape {x.shape}")
    return np.ascontiguousarray(x, dtype=np.float64).reshape(q, -1)


@kernel
def _add_a_inverse_times(sire, dam, dinv, x, out):
    """Add a (x_i - x_sire / 2 - x_dam / 2) to the row of each animal, and -1/2 of it to those of its parents."""
    for i in range(sire.size):
        s, d, a = sire[i], dam[i], dinv[i]
        for c in range(x.shape[1]):
            m = x[i, c]
            if s >= 0:
                m -= 0.5 * x[s, c]
            if d >= 0:
                m -= 0.5 * x[d, c]
            out[i, c] += a * m
            if s >= 0:
                out[s, c] -= 0.5 * a * m
            if d >= 0:
                out[d, c] -= 0.5 * a * m


def quadratic_form(relatives: Relatives, theta: np.ndarray) -> np.ndarray:
    """Compute Theta' A^-1 Theta = sum_i m_i m_i' / d_i, plus theta_g theta_g' for each random group.

    Parameters
    ----------
    relatives : Relatives
        The structured A^-1.
    theta : ndarray of float64 or float32, shape (q, k)
        Values of the levels.

    Returns
    -------
    ndarray of float64, shape (k, k)
        The quadratic form.

    Raises
    ------
    ValueError
        `theta` is no matrix with a row for each level.

    Examples
    --------
    >>> import numpy as np
    >>> from mmgibbs.pedigree import quadratic_form, relatives
    >>> sire, dam = np.array([-1, -1, 0], np.int32), np.array([-1, -1, 1], np.int32)
    >>> quadratic_form(relatives(sire, dam), np.array([[1.0], [1.0], [2.0]])).tolist()
    [[4.0]]
    """
    theta = np.asarray(theta)
    if theta.ndim != 2 or theta.shape[0] != relatives.n_levels:
        raise ValueError(f"needed a matrix with {relatives.n_levels} rows, found shape {theta.shape}")
    theta = np.ascontiguousarray(theta)
    out = _quadratic_form(relatives.sire, relatives.dam, relatives.dinv, theta)
    if relatives.random_groups:
        groups = theta[relatives.n_animals :].astype(np.float64)
        out += groups.T @ groups
    return out


@kernel
def _quadratic_form(sire, dam, dinv, theta):
    n, k = sire.size, theta.shape[1]
    out = np.zeros((k, k))
    m = np.empty(k)
    for i in range(n):
        s, d = sire[i], dam[i]
        for c in range(k):
            m[c] = theta[i, c]
        if s >= 0:
            for c in range(k):
                m[c] -= 0.5 * theta[s, c]
        if d >= 0:
            for c in range(k):
                m[c] -= 0.5 * theta[d, c]
        for c in range(k):
            am = dinv[i] * m[c]
            for b in range(c + 1):
                out[c, b] += am * m[b]
    for c in range(k):
        for b in range(c):
            out[b, c] = out[c, b]
    return out
