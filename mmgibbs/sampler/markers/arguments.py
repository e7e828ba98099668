"""What the kernels of SNP effects take together."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Genotypes(NamedTuple):
    """Genotypes as they are stored (genotypes/products.py), of which the first `chunks` chunks are of animals with
    records."""

    array: np.ndarray
    values: np.ndarray  # (p, 4) float32
    chunks: int


class Products(NamedTuple):
    """X_b' W_P X_b of each block of b SNPs and each missing pattern P of the records, and R^-1 of the pattern."""

    gram: np.ndarray  # (P, blocks, b, b) float32
    Q: np.ndarray  # (P, T, T)


class Animals(NamedTuple):
    """Sums over the records of each animal, and its breeding values: s and g move with the effects."""

    D: np.ndarray  # (T, T, n)
    s: np.ndarray  # (T, n)
    g: np.ndarray  # (T, n)


class Classes(NamedTuple):
    """A mixture of K normals, or a normal for each effect: K = 0 shares, variance (1, p)."""

    variance: np.ndarray  # (K, p) or (K, 1), 0 in class 0
    log_share: np.ndarray  # (K,)


NO_CLASSES = Classes(np.empty((0, 1)), np.empty(0))  # nothing to compare a prior with


class States(NamedTuple):
    """States of a SNP on T traits: traits (K, T), those of the state first; n_traits (K,) of them.

    precision (K, T, T): B_k^-1 in the order of the traits; log_weight (K,): log pi_k - log|B_k| / 2.
    """

    traits: np.ndarray
    n_traits: np.ndarray
    precision: np.ndarray
    log_weight: np.ndarray


class SingleSites(NamedTuple):
    """Arguments of a sweep that draws one trait at a time: inverse (T, T) is G^-1, log_share (K,).

    The effects that state k leaves out are given_k a + noise_k z: given and noise (K, T, T).
    """

    inverse: np.ndarray
    given: np.ndarray
    noise: np.ndarray
    log_share: np.ndarray
