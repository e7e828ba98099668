"""Inbreeding coefficients of all animals of a pedigree.

F_i = a(s, d) / 2, half the relationship of sire and dam. With A = L D L' (L unit lower triangular, L_ij the expected share of
ancestor j's genes in i; D diagonal, MODELS.md), the relationships of one sire with everybody are

    u = A e_s:      w = D L' e_s   upwards through the ancestors of s,      u_j = (u_sire(j) + u_dam(j)) / 2 + w_j   downwards.

One pass per sire gives F for all of its progeny (Sargolzaei, Iwaisaki & Colleau 2005, J. Anim. Breed. Genet. 122:325; the
decomposition is Meuwissen & Luo 1992, Genet. Sel. Evol. 24:305). The pass downwards visits the ancestors of the sire's mates
only, each once, so the cost follows the ancestors per mating and not the size of the pedigree. Sires run in the order of their
codes: w needs F of the parents of ancestors of s, whose sires come before s.
"""

from __future__ import annotations

import numba
import numpy as np

from pedigree.errors import PedigreeError

# A parent and the state of the pass at hand. `share` is u_j; NOT_YET marks a parent whose u_j is not known yet.
_PARENT = np.dtype([("sire", np.int32), ("dam", np.int32), ("share", np.float64)])
_NOT_YET = -1.0


def inbreeding(sire: np.ndarray, dam: np.ndarray) -> np.ndarray:
    """F of each animal, (n,) float64.

    sire, dam: (n,) int32 codes, parents before progeny; -1 and codes >= n (unknown-parent groups) are unknown parents, taken as
    unrelated and not inbred. An animal may be both sire and dam (hermaphrodites), also of one progeny (selfing).
    Raises PedigreeError where a parent does not come before its progeny.
    """
    sire, dam = checked_codes(sire, dam)
    return _inbreeding(sire, dam)


def checked_codes(sire: np.ndarray, dam: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both as contiguous int32, refused where a parent's code is not below its progeny's (groups, >= n, excepted)."""
    sire, dam = (np.ascontiguousarray(p, dtype=np.int32) for p in (sire, dam))
    if sire.ndim != 1 or sire.shape != dam.shape:
        raise PedigreeError(f"sire and dam must be vectors of one length, found shapes {sire.shape} and {dam.shape}")
    bad = _first_out_of_order(sire, dam)
    if bad >= 0:
        raise PedigreeError(
            f"animal code {bad} has parent codes {sire[bad]} and {dam[bad]}: "
            "parents must come before their progeny (recode the pedigree first)"
        )
    return sire, dam


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _first_out_of_order(sire, dam):
    n = sire.size
    for i in range(n):
        if i <= sire[i] < n or i <= dam[i] < n or sire[i] < -1 or dam[i] < -1:
            return i
    return -1


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _inbreeding(sire, dam):
    n = sire.size
    F = np.zeros(n)
    number = _number_parents(sire, dam)  # 1, 2, ... for parents in the order of their codes, 0 for all others
    n_parents = 0
    for i in range(n):
        n_parents = max(n_parents, number[i])
    parent = np.zeros(n_parents + 1, _PARENT)  # parent[0] stands for unknown: share 0 for ever
    parent_F = np.zeros(n_parents + 1)

    # Progeny with both parents known, sorted by sire; one known parent means F = 0.
    start = np.zeros(n_parents + 2, np.int64)
    for i in range(n):
        s, d = sire[i], dam[i]
        ps = number[s] if 0 <= s < n else 0
        pd = number[d] if 0 <= d < n else 0
        if ps > 0 and pd > 0:
            start[ps + 1] += 1
        if number[i] > 0:
            j = parent[number[i]]
            j.sire, j.dam = ps, pd
            j.share = 0.0 if ps == 0 and pd == 0 else _NOT_YET
    for p in range(n_parents + 1):
        start[p + 1] += start[p]
    progeny = np.empty(start[n_parents + 1], np.int32)
    for i in range(n):
        s, d = sire[i], dam[i]
        if 0 <= s < n and 0 <= d < n:
            p = number[s]
            progeny[start[p]] = i
            start[p] += 1
    for p in range(n_parents, 0, -1):  # start[p] had moved to the end of p's list
        start[p] = start[p - 1]
    start[0] = 0

    stack = np.empty(2 * n_parents + 2, np.int32)
    visited = np.empty(n_parents + 1, np.int32)
    gene_share = np.zeros(n_parents + 1)  # L_sj of the sire at hand
    for s in range(1, n_parents + 1):
        if start[s] == start[s + 1]:
            continue
        n_visited = _relate_to_ancestors(s, parent, parent_F, gene_share, stack, visited)
        for at in range(start[s], start[s + 1]):
            i = progeny[at]
            d = number[dam[i]]
            if parent[d].share == _NOT_YET:
                n_visited = _relate(d, parent, stack, visited, n_visited)
            F[i] = 0.5 * parent[d].share
            if number[i] > 0:
                parent_F[number[i]] = F[i]
        for v in range(n_visited):
            j = parent[visited[v]]
            j.share = 0.0 if j.sire == 0 and j.dam == 0 else _NOT_YET
    return F


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _number_parents(sire, dam):
    n = sire.size
    number = np.zeros(n, np.int32)
    for i in range(n):
        if 0 <= sire[i] < n:
            number[sire[i]] = 1
        if 0 <= dam[i] < n:
            number[dam[i]] = 1
    count = 0
    for i in range(n):
        if number[i]:
            count += 1
            number[i] = count
    return number


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _relate_to_ancestors(s, parent, parent_F, gene_share, stack, visited):
    """u_j of s itself and all of its ancestors; `visited` lists them, each after its own parents."""
    # Founders carry share 0 as if known, so mark by gene_share here: -1 = seen.
    n_visited, top = 0, 0
    stack[0] = s
    gene_share[s] = -1.0
    while top >= 0:
        j = stack[top]
        p, q = parent[j].sire, parent[j].dam
        ready = True
        if p > 0 and gene_share[p] == 0.0:
            gene_share[p] = -1.0
            top += 1
            stack[top] = p
            ready = False
        elif q > 0 and gene_share[q] == 0.0:
            gene_share[q] = -1.0
            top += 1
            stack[top] = q
            ready = False
        if ready:
            visited[n_visited] = j
            n_visited += 1
            top -= 1
    for v in range(n_visited):
        gene_share[visited[v]] = 0.0
    gene_share[s] = 1.0
    for v in range(n_visited - 1, -1, -1):  # each before its parents
        j = visited[v]
        p, q = parent[j].sire, parent[j].dam
        half = 0.5 * gene_share[j]
        d = 1.0
        if p > 0:
            gene_share[p] += half
            d -= 0.25 * (1.0 + parent_F[p])
        if q > 0:
            gene_share[q] += half
            d -= 0.25 * (1.0 + parent_F[q])
        parent[j].share = gene_share[j] * d  # w_j
        gene_share[j] = 0.0
    for v in range(n_visited):  # each after its parents
        j = parent[visited[v]]
        j.share += 0.5 * (parent[j.sire].share + parent[j.dam].share)
    return n_visited


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _relate(x, parent, stack, visited, n_visited):
    """u_x for an animal that is no ancestor of the sire at hand, and u of those of its ancestors that are not known yet."""
    top = 0
    stack[0] = x
    while top >= 0:
        j = stack[top]
        p, q = parent[j].sire, parent[j].dam
        share_p, share_q = parent[p].share, parent[q].share
        if share_p == _NOT_YET:
            top += 1
            stack[top] = p
        elif share_q == _NOT_YET:
            top += 1
            stack[top] = q
        else:
            parent[j].share = 0.5 * (share_p + share_q)
            visited[n_visited] = j
            n_visited += 1
            top -= 1
    return n_visited
