"""Sums of squares and products of residuals, with the residuals of missing traits augmented first:

e_miss | e_obs ~ N(R_mo R_oo^-1 e_obs, (R_mm - R_mo R_oo^-1 R_om) / w_r)        sum_r w_r e_r e_r'
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from mmgibbs.draws.normal import normal
from mmgibbs.draws.purpose import AUGMENT, stream
from mmgibbs.draws.small_matrices import cholesky
from mmgibbs.equations.structured import Records
from mmgibbs.models.residual import Blocks, ClassBlocks, stack_classes
from mmgibbs.pedigree.kernels import kernel

AUGMENT_STREAM = stream(AUGMENT, 0)
# (fill, noise) of `augmentation`, or None where no trait is missing; class of each pattern; number of classes
# -> (classes, T, T)
Sums = Callable[[tuple[np.ndarray, np.ndarray] | None, np.ndarray, int], np.ndarray]


class ResidualSums:
    """sum_r w_r e_r e_r' with missing residuals augmented, for one division of the traits into blocks.

    Where the residuals have classes, each has its own sum over its own records. A record counts for a block if it
    observes one of the block's traits; other records say nothing about it.
    """

    def __init__(self, records: Records, patterns: np.ndarray, blocks: Blocks | ClassBlocks):
        self.records, self.patterns, self.blocks = records, patterns, blocks
        self.by_class = expand_classes(blocks, len(patterns))
        self.has_classes = self.by_class is blocks
        self.complete = patterns.all(axis=1)
        self.is_complete = bool(self.complete.all())
        per_pattern = np.bincount(records.pattern, minlength=len(patterns))
        self.counts = count_records_per_block(per_pattern, patterns, self.by_class)  # (n_blocks,) of each class
        self.nothing = np.zeros((2, len(patterns), 0, 0))  # in place of what augments

    def __call__(
        self, e: np.ndarray, R: np.ndarray, number: int, key: tuple[int, int], sums: Sums | None = None
    ) -> tuple[np.ndarray, np.ndarray | list[np.ndarray]]:
        """Return the sums, (T, T) or (classes, T, T), and the number of records of each block.

        sums: another way to compute them, as that of a device.
        """
        missing = None if self.is_complete else augmentation(R, self.patterns, self.by_class)
        class_of_pattern, n_classes = self.by_class.class_of_pattern, len(self.by_class.of_class)
        if sums is None:
            fill, noise = self.nothing if missing is None else missing
            total = np.zeros((n_classes, *R.shape[-2:]))
            data = self.records, e, fill, noise, self.complete, class_of_pattern
            _sum_residuals(*data, total, number, AUGMENT_STREAM, key[0], key[1])
        else:
            total = sums(missing, class_of_pattern, n_classes)
        return (total, self.counts) if self.has_classes else (total[0], self.counts[0])


def expand_classes(blocks: Blocks | ClassBlocks, n_patterns: int) -> ClassBlocks:
    """Blocks of one class for all patterns, where there are no classes."""
    return blocks if isinstance(blocks, ClassBlocks) else ClassBlocks((blocks,), np.zeros(n_patterns, np.int64))


def count_records_per_block(per_pattern: np.ndarray, patterns: np.ndarray, by_class: ClassBlocks) -> list[np.ndarray]:
    """Count for each class the records that observe a trait of each block, (n_blocks,); per_pattern: (patterns,)."""
    counts_of_class = [np.where(by_class.class_of_pattern == c, per_pattern, 0) for c in range(len(by_class.of_class))]
    return [
        np.array([n[patterns[:, list(block)].any(axis=1)].sum() for block in blocks])
        for n, blocks in zip(counts_of_class, by_class.of_class, strict=True)
    ]


def augmentation(R: np.ndarray, patterns: np.ndarray, blocks: Blocks | ClassBlocks) -> tuple[np.ndarray, np.ndarray]:
    """Per pattern: `fill` (T, T) with e = fill e_obs + noise z / sqrt(w), and `noise` (T, T), a root of the conditional
    covariance, of the R of the pattern's class.

    Traits of a block without any observed trait get neither: zero rows."""
    by_class = expand_classes(blocks, len(patterns))
    numbers = block_of_trait(tuple(tuple(map(tuple, of_class)) for of_class in by_class.of_class), patterns.shape[1])
    n_patterns, T = patterns.shape
    fill, noise = np.zeros((2, n_patterns, T, T))
    work, traits = np.zeros((2, T, T)), np.empty(T, np.int64)
    all_R = np.ascontiguousarray(stack_classes(R))
    if not _augmentation(all_R, patterns, numbers, by_class.class_of_pattern, fill, noise, work, traits):
        raise np.linalg.LinAlgError("Matrix is not positive definite.")
    return fill, noise


@cache
def block_of_trait(of_class: tuple[Blocks, ...], n_traits: int) -> np.ndarray:
    """Number the block that each trait belongs to, (classes, T) int64."""
    out = np.empty((len(of_class), n_traits), np.int64)
    for c, blocks in enumerate(of_class):
        for number, block in enumerate(blocks):
            out[c, list(block)] = number
    return out


@kernel
def _augmentation(all_R, patterns, block_of_class, class_of_pattern, fill, noise, work, traits):
    """fill and noise (patterns, T, T), which come as zeros; work (2, T, T) and traits (T,) int64 are written over.

    all_R (classes, T, T), patterns (patterns, T) bool, block_of_class (classes, T) and class_of_pattern (patterns,)
    int64. False where the R of a block with a missing trait is not positive definite.
    """
    n_patterns, T = patterns.shape
    for p in range(n_patterns):
        R, block_of_trait = all_R[class_of_pattern[p]], block_of_class[class_of_pattern[p]]
        for block in range(T):
            o, n = np.int64(0), np.int64(0)  # observed traits of the block come first
            for observed in (True, False):
                for t in range(T):
                    if block_of_trait[t] == block and patterns[p, t] == observed:
                        traits[n] = t
                        n += 1
                o = n if observed else o
            if o > 0:
                for i in range(o):
                    fill[p, traits[i], traits[i]] = 1.0
                if o < n and not _given_observed(R, traits, o, n, work[0], work[1], fill[p], noise[p]):
                    return False
    return True


@kernel
def _given_observed(R, traits, o, n, A, L, fill, noise):
    """Rows of the missing traits o ... n - 1, from the factor of R of all n: with L_oo, L_mo and L_mm its parts,
    R_mo R_oo^-1 = L_mo L_oo^-1, and L_mm is a root of the conditional covariance.

    A and L (T, T) are written over; False where R is not positive definite."""
    T = A.shape[0]
    for i in range(T):
        for j in range(i + 1):  # behind the n traits: an identity, which leaves their factor as it is
            A[i, j] = R[traits[i], traits[j]] if i < n else (1.0 if i == j else 0.0)
    if not cholesky(A, L, 0.0):
        return False
    for i in range(o, n):
        row = fill[traits[i]]
        for j in range(o - 1, -1, -1):
            s = L[i, j]
            for m in range(j + 1, o):
                s -= row[traits[m]] * L[m, j]
            row[traits[j]] = s / L[j, j]
        for j in range(o, i + 1):
            noise[traits[i], traits[j]] = L[i, j]
    return True


@kernel
def _sum_residuals(records, e, fill, noise, complete, class_of_pattern, total, number, stream, seed, chain):
    """Add the sums of squares and products of residuals of each class to total (classes, T, T), zeros on entry.

    fill and noise are (patterns, T, T), or (patterns, 0, 0) where no trait is missing.
    """
    n, T, n_classes = e.shape[0], e.shape[1], total.shape[0]
    f, z = np.empty(T), np.empty(T)
    needed = np.zeros((fill.shape[0], T), np.uint8)
    for p in range(fill.shape[0]):
        for t in range(fill.shape[2]):
            for u in range(fill.shape[1]):
                if noise[p, u, t] != 0.0:
                    needed[p, t] = 1
    for r in range(np.uint64(n)):
        p, w = records.pattern[r], np.float64(records.weight[r]) if records.weight.size > 0 else 1.0
        if complete[p]:
            for t in range(T):
                f[t] = e[r, t]
        else:
            for t in range(T):  # those that are multiplied by 0 are not drawn
                z[t] = normal(number, np.int64(records.record[r]), stream, t, seed, chain) if needed[p, t] else 0.0
            for t in range(T):
                s, v = 0.0, 0.0
                for u in range(T):
                    s += noise[p, t, u] * z[u]
                    v += fill[p, t, u] * e[r, u]
                f[t] = v + s / np.sqrt(w)
        c = class_of_pattern[p]
        for t in range(T):
            for u in range(t + 1):
                total[c, t, u] += w * f[t] * f[u]
    for c in range(n_classes):
        for t in range(T):
            for u in range(t):
                total[c, u, t] = total[c, t, u]
