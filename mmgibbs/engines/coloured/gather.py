"""What LANES levels side by side take from their relatives and records, and give back to their records, as passes over
flat lists.

The progeny of neighbouring levels follow one another in memory, and so do their visits. A pass over all of a group's
entries meets no end of a short list, which no processor foresees; memory is asked for AHEAD entries before it is
needed. An entry adds to the sum of its level:

    sum <- goes_on sum + term of the entry        goes_on: 1, or 0 for the first entry of a level

and a byte per entry says which lane (the lower seven bits) and whether it continues (the eighth). `k_` and `T_` are
tuples of zeros whose length the compiler sees; unsigned positions first ... last - 1 are those of the group's entries.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba.extending import overload

from mmgibbs.equations.relationships import times_row
from mmgibbs.equations.structured import TermLists
from mmgibbs.machine.intrinsics import add_multiple, prefetch, set_multiple, stack_array
from mmgibbs.models.relationships.base import UNKNOWN, Lists
from mmgibbs.models.relationships.pedigree import PedigreeLists
from mmgibbs.pedigree.kernels import kernel

LANES = 128  # levels side by side: what is done once per group costs little, and the group's numbers stay in the cache
AHEAD = 48  # entries: some microseconds, and not more than the L1 cache can hold
LANE, GOES_ON = np.uint8(LANES - 1), np.uint8(7)
ONE = np.uint64(1)


class LaneLists(NamedTuple):
    """Lists that the passes need in addition to those of a term."""

    visit_lane: np.ndarray  # (v,) uint8
    visit_code: np.ndarray  # (v,) unsigned: pattern x effects + effect
    progeny_lane: np.ndarray  # (m,) uint8; empty without a pedigree
    mate: np.ndarray  # (m,) uint32 as in PedigreeLists, but UNKNOWN where it is the level itself


def lane_lists(term: TermLists, K: Lists, pattern: np.ndarray, ranges: list[tuple[int, int]]) -> LaneLists:
    """Build the lists of lanes of a term whose levels are swept in these ranges, each of which begins with lane 0."""
    n_effects, effect = term.effect_first.size - 1, term.visit_effect if term.visit_effect.size else np.uint8(0)
    codes = (int(pattern.max(initial=0)) + 1) * n_effects
    code = (
        pattern[term.visit_record].astype(np.min_scalar_type(codes)) * np.min_scalar_type(codes).type(n_effects)
        + effect
    )
    byte = _bytes_of_levels(term.visit_ptr.size - 1, ranges)
    visit_lane = _bytes_of_entries(term.visit_ptr, byte)
    if type(K) not in FLAT_PASSES:
        return LaneLists(visit_lane, code, np.empty(0, np.uint8), np.empty(0, np.uint32))
    assert isinstance(K, PedigreeLists)
    counts: np.ndarray = np.diff(K.progeny_ptr.astype(np.int64))
    level = np.repeat(np.arange(K.sire.size, dtype=np.uint32), counts)
    own_mate = K.mate == level  # a group that represents both parents: that part is in the diagonal
    mate = np.where(own_mate, UNKNOWN, K.mate) if own_mate.any() else K.mate
    return LaneLists(visit_lane, code, _bytes_of_entries(K.progeny_ptr, byte), mate)


def _bytes_of_levels(q: int, ranges: list[tuple[int, int]]) -> np.ndarray:
    """Return (q,) uint8 the byte of an entry that continues the sum of a level; 0 for levels outside of the ranges."""
    byte = np.zeros(q, np.uint8)
    for first, last in ranges:
        byte[first:last] = np.resize(np.arange(LANES, 2 * LANES, dtype=np.uint8), last - first)
    return byte


def _bytes_of_entries(ptr: np.ndarray, byte_of_level: np.ndarray) -> np.ndarray:
    """Return (entries,) uint8 the bytes of the entries of lists that begin at ptr (q + 1,) uint64.

    byte_of_level (q,): of `_bytes_of_levels`.
    """
    at = ptr.view(np.int64)
    byte = np.repeat(byte_of_level, np.diff(at))
    byte[at[:-1][at[1:] > at[:-1]]] &= LANE  # the first of each level
    return byte


def codes_to_rows(term: TermLists, Rinv: np.ndarray) -> np.ndarray:
    """Return the rows (codes T, k) by which residuals are added to rhs.

    Row code T + t holds what e_rt times w_r adds to rhs, column t of W_r' R_r^-1, for a record met through one effect.
    """
    n_effects, T, k = term.effect_first.size - 1, Rinv.shape[1], term.trait.size
    if n_effects == 1:
        return np.ascontiguousarray(Rinv[:, term.trait, :].transpose(0, 2, 1)).reshape(-1, k)
    out = np.zeros((len(Rinv), n_effects, T, k))
    for effect in range(n_effects):
        for c in range(term.effect_first[effect], term.effect_first[effect + 1]):
            out[:, effect, :, c] = Rinv[:, term.trait[c], :]
    return out.reshape(-1, k)


@kernel
def gather_residuals(k_, T_, record, code, lane_of, weight, e, rows, first, last, sums):
    """sums[lane] = sum over the visits first ... last - 1 of the level of W_r' R_r^-1 e_r; sums (LANES, k) float64.

    record (v,) uint32, code (v,) and lane_of (v,) uint8: of each visit; weight (n,) or empty; e (n, T); rows (codes T,
    k) of `codes_to_rows`.
    """
    increment, total = stack_array((1, len(k_))), stack_array((1, len(k_)))
    for c in range(len(k_)):
        total[0, c] = 0.0
    T, weighted, end = np.uint64(len(T_)), weight.size > 0, np.uint64(record.size) - ONE
    for v in range(first, last):
        prefetch(e, record[min(v + np.uint64(AHEAD), end)])
        r, row, byte = record[v], np.uint64(code[v]) * T, lane_of[v]
        w = np.float64(weight[r]) if weighted else 1.0
        set_multiple(k_, increment, 0, w * e[r, 0], rows, row)
        for t in range(1, len(T_)):
            add_multiple(k_, increment, 0, w * e[r, t], rows, row + np.uint64(t))
        add_multiple(k_, increment, 0, np.float64(byte >> GOES_ON), total, 0)
        set_multiple(k_, total, 0, 1.0, increment, 0)
        set_multiple(k_, sums, byte & LANE, 1.0, increment, 0)


@kernel
def scatter_increments(T_, record, effect, lane_of, e, first, last, moves):
    """e_r -= moves[effect LANES + lane] for the visits first ... last - 1: e (n, T) in place, moves (effects LANES, T);
    record (v,) uint32, effect (v,) uint8 or empty, lane_of (v,) uint8.
    """
    several = effect.size > 0
    for v in range(first, last):
        block = np.uint64(effect[v]) * np.uint64(LANES) if several else np.uint64(0)
        add_multiple(T_, e, record[v], -1.0, moves, block + np.uint64(lane_of[v] & LANE))


def gather_relatives(k_, K, lists, theta, first, n, parents, progeny):
    """parents[lane] + progeny[lane] = sum_m kappa_lm theta_m for levels l = first ... first + n - 1, m = l included;
    progeny comes as zeros.

    theta (q + 1, k): its last row is 0 and represents unknown parents."""
    raise NotImplementedError("only compiled code can call this: Numba takes its body from the overload below")


@overload(gather_relatives, jit_options={"forceinline": True, "no_cfunc_wrapper": True})
def _gather_relatives(k_, K, lists, theta, first, n, parents, progeny):
    return FLAT_PASSES.get(K.instance_class, _row_by_row)


def _row_by_row(k_, K, lists, theta, first, n, parents, progeny):
    for lane in range(n):
        times_row(K, first + lane, theta, parents[lane])


def _family(k_, K, lists, theta, first, n, parents, progeny):
    _add_parents(k_, K.sire, K.dam, K.own, K.diagonal, theta, first, n, parents)
    last = K.progeny_ptr[first + n]
    _progeny(k_, K.progeny, lists.mate, K.progeny_own, lists.progeny_lane, theta, K.progeny_ptr[first], last, progeny)


@kernel
def _add_parents(k_, sire, dam, mendelian, diagonal, theta, first, n, out):
    """out[lane] = kappa_ll theta_l - (theta_sire + theta_dam) a_l / 2."""
    none = np.uint32(theta.shape[0] - 1)
    for lane in range(n):
        level = first + lane
        ahead = min(level + np.uint64(AHEAD), np.uint64(none) - ONE)
        prefetch(theta, min(sire[ahead], none))
        prefetch(theta, min(dam[ahead], none))
        half = 0.5 * np.float64(mendelian[level])
        set_multiple(k_, out, lane, diagonal[level], theta, level)
        add_multiple(k_, out, lane, -half, theta, min(sire[level], none))
        add_multiple(k_, out, lane, -half, theta, min(dam[level], none))


@kernel
def _progeny(k_, calf, mate, calf_own, lane_of, theta, first, last, sums):
    """sums[lane] = sum over calves of a_calf (theta_mate / 4 - theta_calf / 2)."""
    increment, total = stack_array((1, len(k_))), stack_array((1, len(k_)))
    for c in range(len(k_)):
        total[0, c] = 0.0
    none, end = np.uint32(theta.shape[0] - 1), np.uint64(calf.size) - ONE
    for j in range(first, last):
        ahead = min(j + np.uint64(AHEAD), end)
        prefetch(theta, calf[ahead])
        prefetch(theta, min(mate[ahead], none))
        half, byte = 0.5 * np.float64(calf_own[j]), lane_of[j]
        set_multiple(k_, increment, 0, 0.5 * half, theta, min(mate[j], none))
        add_multiple(k_, increment, 0, -half, theta, calf[j])
        add_multiple(k_, increment, 0, np.float64(byte >> GOES_ON), total, 0)
        set_multiple(k_, total, 0, 1.0, increment, 0)
        set_multiple(k_, sums, byte & LANE, 1.0, increment, 0)


FLAT_PASSES = {PedigreeLists: _family}  # lists of relatives with passes of their own; others go row by row
