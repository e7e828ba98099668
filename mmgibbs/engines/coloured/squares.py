"""Sums of squares and products for the draws of covariance matrices, over all threads:

    Theta' K^-1 Theta = sum_l a_l m_l m_l'        sum_r w_r e_r e_r', missing residuals augmented (engines/augment.py)

Levels and records are taken in pieces of fixed length, and the sums of the pieces added in order, so that they do not
depend on the number of threads. A row of theta or e is one vector; normals are drawn for LANES records at once, and
only those that a pattern needs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import NamedTuple

import numpy as np
from numba import carray
from numba.extending import overload

from mmgibbs.draws.normal import fill_pairs
from mmgibbs.draws.purpose import Site
from mmgibbs.engines.coloured.gather import LANES
from mmgibbs.engines.coloured.record_rows import padded_width
from mmgibbs.equations.structured import Records
from mmgibbs.machine.intrinsics import add_multiple, positions_on_stack, prefetch, set_multiple, stack, stack_array
from mmgibbs.machine.threads import Threads
from mmgibbs.models.relationships.base import Lists
from mmgibbs.models.relationships.identity import IdentityLists
from mmgibbs.models.relationships.pedigree import PedigreeLists
from mmgibbs.pedigree.kernels import kernel

AHEAD = np.uint64(24)  # levels ahead for which memory is asked


def quadratic_of_rows(K: Lists, k_: tuple, rows: np.ndarray, threads: Threads) -> np.ndarray:
    """Theta' K^-1 Theta (k, k) for K with passes of their own; rows (q + 1, k), the last one 0."""
    k, pieces = len(k_), threads.pieces(len(rows) - 1)
    sums = np.zeros((pieces.count, k, k))
    pieces(partial(sum_squares, K, k_, rows), sums)
    return mirrored(sums.sum(axis=0))


def mirrored(lower: np.ndarray) -> np.ndarray:
    """Mirror the lower triangle to a symmetric (..., k, k)."""
    return lower if lower.shape[-1] == 1 else np.where(_lower(lower.shape[-1]), lower, np.swapaxes(lower, -1, -2))


@cache
def _lower(k: int) -> np.ndarray:
    return np.tri(k, dtype=bool)


def augmented_products(
    records: Records,
    e: np.ndarray,
    T_: tuple,
    missing: tuple[np.ndarray, np.ndarray] | None,
    class_of_pattern: np.ndarray,
    n_classes: int,
    site: Site,
    threads: Threads,
) -> np.ndarray:
    """Sum squares and products of augmented residuals, (classes, T, T).

    missing: fill and noise (patterns, T, T) of augment.augmentation, None where each record has all traits.
    """
    T, W_, pieces = len(T_), padded_width(T_), threads.pieces(len(e))
    sums = pieces.sums(n_classes * T, len(W_))
    columns = complete_records(len(class_of_pattern), T) if missing is None else columns_and_pairs(*missing)
    X_ = T_ if n_classes == 1 else ()
    kernel: Callable[..., None] = sum_augmented
    pieces(partial(kernel, records, T_, W_, X_, e, columns, class_of_pattern, site), sums)
    return mirrored(sums[:, : n_classes * T].sum(axis=0)[:, :T].reshape(n_classes, T, T))


class AugmentationColumns(NamedTuple):
    """Columns that `sum_augmented` adds to the residuals of a record, by its pattern p."""

    fill: np.ndarray  # (patterns T, W) row p T + u: what a residual of trait u adds to the T residuals
    noise: np.ndarray  # (patterns T, W) the same of normal u
    pairs: np.ndarray  # ((T + 1) // 2, patterns) are normals 2 j and 2 j + 1 needed? no rows where none are


def columns_and_pairs(fill: np.ndarray, noise: np.ndarray) -> AugmentationColumns:
    """Arrange `fill` and `noise` of `augmentation` by columns and pairs."""
    patterns, T, _ = fill.shape
    columns = np.zeros((2, patterns * T, len(padded_width((0,) * T))))
    columns[:, :, :T] = [m.transpose(0, 2, 1).reshape(-1, T) for m in (fill, noise)]
    pairs = np.zeros((T + T % 2, patterns), bool)
    pairs[:T] = noise.any(axis=1).T
    return AugmentationColumns(columns[0], columns[1], pairs[0::2] | pairs[1::2] if pairs.any() else pairs[:0])


@cache
def complete_records(patterns: int, T: int) -> AugmentationColumns:
    """Return the columns for records that observe every trait, for which nothing is drawn.

    All calls share the arrays, which are only read.
    """
    return columns_and_pairs(np.tile(np.eye(T), (patterns, 1, 1)), np.zeros((patterns, T, T)))


def square_of_level(k_, K, rows, level, m):
    """m (1, k) <- what of theta_l is its own, and its precision a_l: sum_l a_l m_l m_l' is the quadratic form."""
    raise NotImplementedError("only compiled code can call this: Numba takes its body from the overload below")


def _independent(k_, K, rows, level, m):
    set_multiple(k_, m, 0, 1.0, rows, level)
    return 1.0


def _mendelian(k_, K, rows, level, m):
    none = np.uint32(rows.shape[0] - 1)
    ahead = min(level + AHEAD, np.uint64(none) - np.uint64(1))
    prefetch(rows, min(K.sire[ahead], none))
    prefetch(rows, min(K.dam[ahead], none))
    set_multiple(k_, m, 0, 1.0, rows, level)
    add_multiple(k_, m, 0, -0.5, rows, min(K.sire[level], none))
    add_multiple(k_, m, 0, -0.5, rows, min(K.dam[level], none))
    return np.float64(K.own[level])


SQUARES = {IdentityLists: _independent, PedigreeLists: _mendelian}  # lists with passes of their own


@overload(square_of_level, jit_options={"forceinline": True, "no_cfunc_wrapper": True}, strict=False)
def _square_of_level(k_, K, rows, level, m):
    return SQUARES[K.instance_class]


@kernel
def sum_squares(K, k_, rows, size, first_piece, last_piece, sums):
    """sums[p] (k, k) float64, a part of Theta' K^-1 Theta, of the pieces first_piece ... last_piece - 1 of `size`
    levels; rows (q + 1, k), the last one 0.
    """
    # not stack_array: of two products that are added, the one that is rounded would be another, and draws would move
    m, total = carray(stack(k_, 1, 1), (1, len(k_))), carray(stack(k_, 2, 1), (len(k_), len(k_)))
    n = np.uint64(rows.shape[0] - 1)
    for p in range(np.uint64(first_piece), np.uint64(last_piece)):
        for a in range(len(k_)):
            set_multiple(k_, total, a, 1.0, sums[p], a)
        for level in range(p * np.uint64(size), min(n, (p + np.uint64(1)) * np.uint64(size))):
            precision = square_of_level(k_, K, rows, level, m)
            for a in range(len(k_)):
                add_multiple(k_, total, a, precision * m[0, a], m, 0)
        for a in range(len(k_)):
            set_multiple(k_, sums[p], a, 1.0, total, a)


@kernel
def sum_augmented(records, T_, W_, X_, e, columns, class_of_pattern, site, size, first_piece, last_piece, sums):
    """sums[p] (classes T and more, T) of the pieces first_piece ... last_piece - 1 of `size` records; they come as
    zeros.

    T_, W_ and X_: tuples of T, of T rounded up (`padded_width`) and of T again where there is one class, whose sums
    stay on the stack, mostly in registers; else (). columns: AugmentationColumns; site: Site of the draws.
    """
    pattern, weight, record = records.pattern, records.weight, records.record
    fill, noise, pairs = columns
    number, stream, seed, chain = site
    T, n = np.uint64(len(T_)), np.uint64(e.shape[0])
    z, drawn = stack_array((len(T_), 2, LANES)), stack_array((2, LANES))
    who, code = positions_on_stack((LANES,)), positions_on_stack((LANES,))
    z[:] = 0.0
    f, seen = stack_array((1, len(W_))), stack_array((1, len(T_)))
    weighted, total_of_class = weight.size > 0, stack_array((len(X_), len(W_)))
    for p in range(np.uint64(first_piece), np.uint64(last_piece)):
        for t in range(len(X_)):
            set_multiple(W_, total_of_class, t, 1.0, sums[p], t)
        total, last = total_of_class if len(X_) > 0 else sums[p], min(n, (p + np.uint64(1)) * np.uint64(size))
        for block in range(p * np.uint64(size), last, np.uint64(LANES)):
            lanes = min(np.uint64(LANES), last - block)
            for j in range(np.uint64(pairs.shape[0])):
                m = np.uint64(0)
                for lane in range(lanes):
                    who[m], code[m] = lane, record[block + lane]
                    m += np.uint64(pairs[j, pattern[block + lane]])
                fill_pairs(drawn, code, m, np.uint64(number), np.uint64(stream), j, np.uint64(seed), np.uint64(chain))
                for i in range(m):
                    z[j, 0, who[i]] = drawn[0, i]
                    z[j, 1, who[i]] = drawn[1, i]
            for lane in range(lanes):
                r = block + lane
                w, first = np.float64(weight[r]) if weighted else 1.0, np.uint64(pattern[r]) * T
                set_multiple(T_, seen, 0, 1.0, e, r)
                set_multiple(W_, f, 0, seen[0, 0], fill, first)
                for u in range(1, len(T_)):
                    add_multiple(W_, f, 0, seen[0, u], fill, first + np.uint64(u))
                if pairs.shape[0] > 0:
                    spread = 1.0 / np.sqrt(w) if weighted else 1.0
                    for u in range(len(T_)):
                        add_multiple(W_, f, 0, spread * z[u // 2, u % 2, lane], noise, first + np.uint64(u))
                first_row = np.uint64(0) if len(X_) > 0 else np.uint64(class_of_pattern[pattern[r]]) * T
                for t in range(len(T_)):
                    add_multiple(W_, total, first_row + np.uint64(t), w * f[0, t], f, 0)
        for t in range(len(X_)):
            set_multiple(W_, sums[p], t, 1.0, total_of_class, t)
