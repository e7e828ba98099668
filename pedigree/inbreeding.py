"""Inbreeding coefficients of all animals of a pedigree.

F_i = a(s, d) / 2, half the relationship of sire and dam. With A = L D L' (L unit lower triangular, L_ij the expected
share of ancestor j's genes in i; D diagonal), the relationships of one sire with everybody are

    u = A e_s:   w = D L' e_s  upwards through the ancestors of s,   u_j = (u_sire(j) + u_dam(j)) / 2 + w_j  downwards.

One pass per sire gives F for all of its progeny (Sargolzaei, Iwaisaki & Colleau 2005, J. Anim. Breed. Genet. 122:325;
the decomposition is Meuwissen & Luo 1992, Genet. Sel. Evol. 24:305). The pass downwards visits the ancestors of the
sire's mates only, each once, so the cost follows the ancestors per mating and not the size of the pedigree. They are
listed generation by generation, which needs neither a queue nor a sort, and lets the processor fetch many at once.
Sires run generation by generation: w needs F of the parents of ancestors of s, whose sires come in earlier
generations.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mmgibbs.pedigree.errors import PedigreeError
from mmgibbs.pedigree.kernels import kernel

# A parent and the state of the pass at hand in 16 bytes: `share` is u_j or, where that is not known, one of two
# marks. Founders that are no ancestors of the sire at hand have share 0.
_PARENT = np.dtype([("sire", np.int32), ("dam", np.int32), ("share", np.float64)])
_NOT_YET, _LISTED = -8.0, -16.0  # no share: relationships, those of metafounders among them, are above -2
NO_GAMMA = np.empty((0, 0))


def inbreeding(sire: np.ndarray, dam: np.ndarray) -> np.ndarray:
    """F of each animal, (n,) float64.

    sire, dam: (n,) int32 codes, parents before progeny; -1 and codes >= n (unknown-parent groups) are unknown parents,
    taken as unrelated and not inbred. An animal may be both sire and dam (hermaphrodites), also of one progeny
    (selfing). Raises PedigreeError where a parent does not come before its progeny.
    """
    sire, dam = checked_codes(sire, dam)
    F = np.zeros(sire.size)
    _inbreeding(sire, dam, F, 0, np.empty(0), np.empty(0), NO_GAMMA)
    return F


def inbreeding_with_metafounders(sire: np.ndarray, dam: np.ndarray, gamma: np.ndarray) -> np.ndarray:
    """F of each animal, A_ii - 1, (n,) float64, where metafounders represent unknown parents (see metafounders.py).

    Codes as in `inbreeding`, but n .. n + m - 1 are the metafounders, whose relationships gamma holds, (m, m) float64;
    -1 is still an unrelated parent that is not inbred. An animal with parents of little related populations may have
    F below 0: that is relative to the base which gamma refers to. Raises PedigreeError for codes above n + m - 1.
    """
    sire, dam = checked_codes(sire, dam)
    n, m = sire.size, len(gamma)
    highest = int(max(sire.max(initial=-1), dam.max(initial=-1)))
    if highest >= n + m:
        raise PedigreeError(f"found parent code {highest}: codes run to {n + m - 1} ({n} animals, {m} metafounders)")
    sires, dams = (np.concatenate([np.full(m, -1), _metafounders_first(p, n, m)]).astype(np.int32) for p in (sire, dam))
    F = np.concatenate([np.diag(gamma) - 1.0, np.zeros(n)])
    _inbreeding(sires, dams, F, m, np.empty(0), np.empty(0), np.ascontiguousarray(gamma, np.float64))
    return F[m:].copy()


def _metafounders_first(parent: np.ndarray, n: int, m: int) -> np.ndarray:
    return np.where(parent >= n, parent - n, np.where(parent >= 0, parent + m, -1))


def inbreeding_with_selfing(sire: np.ndarray, dam: np.ndarray, lost: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """F of each plant after its generations of selfing, and what they add to its Mendelian variance; (n,) float64 both.

    lost: (n,) float64, 1 - 1/2^g with g generations of selfing after the cross. Codes as in `inbreeding`; with F0 the
    inbreeding of the cross, F = F0 + (1 - F0) lost, and F - F0 is what is added (see selfing.py).
    """
    sire, dam = checked_codes(sire, dam)
    F, within = np.zeros(sire.size), np.zeros(sire.size)
    _inbreeding(sire, dam, F, 0, np.ascontiguousarray(lost, np.float64), within, NO_GAMMA)
    return F, within


def continue_inbreeding(sire: np.ndarray, dam: np.ndarray, F: np.ndarray, first: int) -> None:
    """F of animals first, first + 1, ... in place, where F[:first] is known: a year's calves without starting all over.

    Codes as in `inbreeding`, not checked again; F: (n,) float64.
    """
    _inbreeding(sire, dam, F, first, np.empty(0), np.empty(0), NO_GAMMA)


def checked_codes(sire: np.ndarray, dam: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return both as contiguous int32; refuse a parent's code that is not below its progeny's.

    Codes of groups, >= n, are excepted.
    """
    sire, dam = (np.ascontiguousarray(p, dtype=np.int32) for p in (sire, dam))
    if sire.ndim != 1 or sire.shape != dam.shape:
        raise PedigreeError(f"sire and dam must be vectors of one length, found shapes {sire.shape} and {dam.shape}")
    row = np.arange(sire.size, dtype=np.int32)
    wrong = np.zeros(sire.size, bool)
    for parent in (sire, dam):
        wrong |= (parent < -1) | ((parent >= row) & (parent < sire.size))
    if wrong.any():
        bad = int(np.argmax(wrong))
        raise PedigreeError(
            f"animal code {bad} has parent codes {sire[bad]} and {dam[bad]}: "
            "parents must come before their progeny (recode the pedigree first)"
        )
    return sire, dam


class Matings(NamedTuple):
    """The calves of each sire: those of sire s are start[s] ... start[s + 1] - 1."""

    start: np.ndarray  # (n_parents + 2,)
    calf: np.ndarray
    mate: np.ndarray  # number of the dam
    as_parent: np.ndarray  # number of the calf itself, 0 without progeny


class Listed(NamedTuple):
    """Ancestors of a sire and of his mates, by generation: order[begin[g]:end[g]], the mates' from middle[g] on."""

    order: np.ndarray  # (n_parents + 1,) int32
    middle: np.ndarray
    end: np.ndarray
    gene_share: np.ndarray  # (n_parents + 1,) L_sj of the sire at hand, 0 between sires
    from_metafounders: np.ndarray  # (m,) what that adds up to of each metafounder


def _inbreeding(
    sire: np.ndarray,
    dam: np.ndarray,
    F: np.ndarray,
    first: int,
    lost: np.ndarray,
    within: np.ndarray,
    gamma: np.ndarray,
) -> None:
    """Compute inbreeding.

    Metafounders, with (m, m) gamma, are animals 0 .. m - 1, F[:m] is given, and `first` is at least m.
    """
    number, animal, begin = _numbered_parents(sire, dam)
    n_parents = animal.size - 1
    generation = np.zeros(animal.size, np.int32)
    generation[1:] = np.repeat(np.arange(begin.size - 1, dtype=np.int32), np.diff(begin))
    parent = np.zeros(animal.size, _PARENT)  # 0 is the unknown one, whose share is 0 for ever
    parent["share"][generation > 0] = _NOT_YET
    for side, code in (("sire", sire), ("dam", dam)):
        of_parents = code[animal[1:]]
        known = (of_parents >= 0) & (of_parents < sire.size)
        parent[side][1:][known] = number[of_parents[known]]
    parent_F = np.zeros(n_parents + 1)
    known = animal[1:] < first
    parent_F[1:][known] = F[animal[1:][known]]
    matings = Matings(*_matings(sire, dam, number, n_parents, first))
    F[first:] = 0.0
    parent_within = np.zeros(n_parents + 1)  # the Mendelian variance of a parent's own generations of selfing
    if lost.size > 0:  # of the cross: 0, until its parents are known to be related
        F[:] = within[:] = lost
        parent_F[1:] = parent_within[1:] = lost[animal[1:]]
    order, shares = np.empty(n_parents + 1, np.int32), np.zeros(n_parents + 1)
    listed = Listed(order, begin[:-1].copy(), begin[:-1].copy(), shares, np.zeros(len(gamma)))
    _relate_mates(
        matings, lost, F, within, parent, parent_F, parent_within, generation, begin, number, gamma, listed
    )  # fmt: skip


@kernel
def _relate_mates(
    matings, lost, F, within, parent, parent_F, parent_within, generation, begin, number, gamma, listed
):  # fmt: skip
    """F of the calves of each sire, one pass for each."""
    start, calf, mate, as_parent = matings.start, matings.calf, matings.mate, matings.as_parent
    list_, middle, end = listed.order, listed.middle, listed.end
    gene_share, from_metafounders = listed.gene_share, listed.from_metafounders
    selfing = lost.size > 0
    for s in range(1, start.size - 1):
        if start[s] == start[s + 1]:
            continue
        latest = _relate_ancestors(
            s, parent, parent_F, parent_within, generation, gene_share, list_, begin, end, number, gamma,
            from_metafounders,
        )  # fmt: skip
        for g in range(latest + 1):
            middle[g] = end[g]
        for at in range(start[s], start[s + 1]):
            latest = max(latest, _list_once(mate[at], parent, generation, list_, end))
        _relate_listed(latest, parent, generation, list_, middle, end)
        for at in range(start[s], start[s + 1]):
            f = 0.5 * parent[mate[at]].share
            i, p = calf[at], as_parent[at]
            F[i] = f
            if p > 0:
                parent_F[p] = f
            if selfing:
                within[i] = (1.0 - f) * lost[i]
                F[i] += within[i]
                if p > 0:
                    parent_F[p] = F[i]
                    parent_within[p] = within[i]
        for g in range(latest + 1):
            for v in range(begin[g], end[g]):
                parent[list_[v]].share = _NOT_YET if g > 0 else 0.0
            middle[g] = end[g] = begin[g]


def _numbered_parents(sire: np.ndarray, dam: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Numbers 1, 2, ... for animals with progeny, by generation and, within it, by maternal line.

    Maternal families then lie together, and with them what one sire's mates have in common. Returns number, (n,)
    int32, 0 without progeny; animal, the reverse; begin, the first number of each generation. Parents are in an
    earlier generation.
    """
    n = sire.size
    number, generation, line = np.zeros(n, np.int32), np.zeros(n, np.int32), np.empty(n, np.int32)
    last = _generations(sire, dam, number, generation, line)
    n_parents = int(np.count_nonzero(number))
    animal, begin = np.zeros(n_parents + 1, np.int32), np.zeros(last + 2, np.int64)
    _number(line, generation, number, animal, begin, np.zeros(n + 1, np.int64), np.empty(n_parents, np.int32))
    begin[1:] = begin[:-1]  # each had moved to the next generation's
    begin[0] = 1
    return number, animal, begin


@kernel
def _generations(sire, dam, number, generation, line):
    """Marks the parents in `number`, 0 before, generation too; returns the last generation."""
    n, last = sire.size, np.int64(0)
    for i in range(n):
        s, d = sire[i], dam[i]
        if 0 <= s < n:
            generation[i] = generation[s] + 1
            number[s] = 1
        line[i] = i
        if 0 <= d < n:
            generation[i] = max(generation[i], generation[d] + 1)
            number[d] = 1
            line[i] = line[d]
        last = max(last, np.int64(generation[i]))
    return last


@kernel
def _number(line, generation, number, animal, begin, at_line, by_line):
    """Sort the parents by line and then by generation, by two counting sorts.

    begin (0 before, as at_line) becomes the end of each generation.
    """
    n = line.size
    for i in range(n):
        at_line[line[i] + 1] += number[i]
        begin[generation[i] + 1] += number[i]
    for i in range(n):
        at_line[i + 1] += at_line[i]
    for i in range(n):
        if number[i]:
            by_line[at_line[line[i]]] = i
            at_line[line[i]] += 1
    begin[0] = 1
    for g in range(begin.size - 1):
        begin[g + 1] += begin[g]
    for v in range(by_line.size):
        i = by_line[v]
        number[i] = begin[generation[i]]
        animal[number[i]] = i
        begin[generation[i]] += 1


def _matings(
    sire: np.ndarray, dam: np.ndarray, number: np.ndarray, n_parents: int, first: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Animals from `first` on with both parents known, by the number of their sire.

    number: (n,) int32 of `_numbered_parents`. start, (n_parents + 2,) int64: those of sire s are start[s] ...
    start[s + 1] - 1 of calf, its code, mate, the number of its dam, and as_parent, its own; int32.
    """
    s, d = sire[first:], dam[first:]
    both = (s >= 0) & (s < sire.size) & (d >= 0) & (d < sire.size)
    start = np.zeros(n_parents + 2, np.int64)
    start[1:] = np.cumsum(np.bincount(number[s[both]], minlength=n_parents + 1))
    calf, mate, as_parent = (np.empty(int(start[-1]), np.int32) for _ in range(3))
    _fill_matings(sire, dam, number, first, start[:-1].copy(), calf, mate, as_parent)
    return start, calf, mate, as_parent


@kernel
def _fill_matings(sire, dam, number, first, at, calf, mate, as_parent):
    n = sire.size
    for i in range(first, n):
        if 0 <= sire[i] < n and 0 <= dam[i] < n:
            s = number[sire[i]]
            calf[at[s]], mate[at[s]], as_parent[at[s]] = i, number[dam[i]], number[i]
            at[s] += 1


@kernel
def _relate_ancestors(
    s, parent, parent_F, parent_within, generation, gene_share, list_, begin, end, number, gamma, from_metafounders
):
    """u_j of s and of all of its ancestors, which are listed, and of every metafounder: gamma times their shares of s;
    returns the generation of s.
    """
    n_metafounders = from_metafounders.size  # animals 0, 1, ..., whose numbers are 0 without progeny
    last = np.int64(generation[s])
    list_[end[last]] = s
    end[last] += 1
    gene_share[s] = 1.0
    for g in range(last, -1, -1):
        if g == 0:
            for k in range(n_metafounders):
                from_metafounders[k] = gene_share[number[k]]
        for v in range(begin[g], end[g]):
            j = list_[v]
            d = 1.0 + parent_within[j]
            for side in range(2):
                p = parent[j].sire if side == 0 else parent[j].dam
                if p > 0:
                    if gene_share[p] == 0.0:
                        list_[end[generation[p]]] = p
                        end[generation[p]] += 1
                    gene_share[p] += 0.5 * gene_share[j]
                    d -= 0.25 * (1.0 + parent_F[p])
            parent[j].share = gene_share[j] * d  # w_j
            gene_share[j] = 0.0
    for k in range(n_metafounders):
        share = 0.0
        for metafounder in range(n_metafounders):
            share += gamma[k, metafounder] * from_metafounders[metafounder]
        if number[k] > 0:
            parent[number[k]].share = share
    for g in range(last + 1):
        for v in range(begin[g], end[g]):
            _add_half_of_parents(parent, list_[v])
    return last


@kernel
def _list_once(j, parent, generation, list_, end):
    """List j unless its share is known or it is listed already; returns its generation."""
    if parent[j].share != _NOT_YET:
        return np.int64(0)
    parent[j].share = _LISTED
    g = np.int64(generation[j])
    list_[end[g]] = j
    end[g] += 1
    return g


@kernel
def _relate_listed(latest, parent, generation, list_, middle, end):
    """u_j of the listed animals, no ancestors of the sire at hand (w_j = 0), after listing their ancestors."""
    for g in range(latest, 0, -1):
        for v in range(middle[g], end[g]):
            j = list_[v]
            _list_once(parent[j].sire, parent, generation, list_, end)
            _list_once(parent[j].dam, parent, generation, list_, end)
    for g in range(1, latest + 1):
        for v in range(middle[g], end[g]):
            parent[list_[v]].share = 0.0
            _add_half_of_parents(parent, list_[v])


@kernel
def _add_half_of_parents(parent, j):
    """u_j = w_j + (u_sire(j) + u_dam(j)) / 2, w_j in the place of u_j before."""
    parent[j].share += 0.5 * (parent[parent[j].sire].share + parent[parent[j].dam].share)
