"""Blocks of SNPs: the products within one, and the right-hand sides of its SNPs while effects are drawn in sequence.

The products within a block are kept by missing pattern P, G_P = X_b' W_P X_b with W_P the sums of weights of an
animal's records of that pattern: C_j = sum_P (G_P)_jj Q_P, and missing traits cost no more than their patterns.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mmgibbs.genotypes.store import Store
from mmgibbs.pedigree.kernels import kernel

BLOCK = 64


def gram_blocks(store: Store, values: np.ndarray, weight: np.ndarray, size: int = BLOCK) -> np.ndarray:
    """Compute X_b' diag(w) X_b of each block of SNPs, (blocks, size, size) float32; weight (n,) of each animal.

    The last block is filled up with 0. One pass over the genotypes, decoded block by block: p n size / 2 products.
    """
    p = store.n_snps
    out = np.zeros((-(-p // size), size, size), np.float32)
    said = np.flatnonzero(weight)
    n = int(said[-1]) + 1 if said.size else 0
    w = weight[:n].astype(np.float32)
    for block, first in enumerate(range(0, p, size)):
        X = store.decode(store.every[first : first + size], values)[:, :n]
        b = len(X)
        out[block, :b, :b] = (X * w) @ X.T
    return out


class Block(NamedTuple):
    """Arrays of the current block that the threads of a sweep share."""

    r: np.ndarray  # (T, size) right-hand sides
    changes: np.ndarray  # (T, size) of the effects
    moved: np.ndarray  # (animals,) X Delta of a trait
    log_ratio: np.ndarray  # (1,) of the sums of weights under two priors, over the SNPs so far


def make_block(traits: int, animals: int, size: int, real: np.dtype) -> Block:
    """Room for blocks of `size` SNPs."""
    return Block(np.empty((traits, size)), np.empty((traits, size)), np.empty(animals, real), np.zeros(1))


class Snps(NamedTuple):
    """The SNPs first ... first + size - 1, which are block `number`."""

    number: int
    first: int
    size: int
    is_backward: bool


@kernel(forceinline=True)
def place_of_turn(size, turn, is_backward):
    """Place in its block of the SNP that is drawn in this turn."""
    return size - 1 - turn if is_backward else turn


@kernel(forceinline=True)
def update_right_hand_sides(r, gram, step, j, size, is_backward):
    """r of the SNPs that are drawn after SNP j, whose effect moved by `step` over the factor of gram."""
    begin, stop = (0, j) if is_backward else (j + 1, size)
    for snp in range(begin, stop):
        r[snp] -= gram[j, snp] * step


@kernel
def make_equations(grams, Q, block, j, r, a, C, q):
    """C (T, T) and q (T,) of SNP j of a block, whose effects are a (T,)."""
    T = a.size
    for t in range(T):
        q[t] = r[t, j]
        for o in range(T):
            C[t, o] = 0.0
            for P in range(grams.shape[0]):
                C[t, o] += grams[P, block, j, j] * Q[P, t, o]
            q[t] += C[t, o] * a[o]


@kernel
def change_effects(grams, Q, snps, j, a, new, changes, r):
    """Set the effects a (T,) of SNP j to `new`, and update the right-hand sides of the SNPs drawn after it."""
    T, is_changed = a.size, False
    for t in range(T):
        changes[t, j] = new[t] - a[t]
        a[t] = new[t]
        is_changed = is_changed or changes[t, j] != 0.0
    if not is_changed:
        return
    for P in range(grams.shape[0]):
        for t in range(T):
            step = 0.0
            for o in range(T):
                step += Q[P, t, o] * changes[o, j]
            if step != 0.0:
                update_right_hand_sides(r[t], grams[P, snps.number], step, j, snps.size, snps.is_backward)
