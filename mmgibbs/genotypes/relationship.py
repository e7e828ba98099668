"""Relationships between the animals of a store from their genotypes: X'X of scaled genotypes, by blocks of SNPs.

With m_aj copies of the counted allele of SNP j in animal a, p_j its frequency and q_j = 1 - p_j (a missing genotype
counts as the mean of its SNP),

    VanRaden 1   G = Z Z' / (2 sum p q)                        z_aj = m_aj - 2 p_j
    VanRaden 2   G = mean over SNPs of z_j z_j' / (2 p_j q_j)
    dominance    D = W W' / sum (2 p q)^2                      w_aj = -2 p^2, 2 p q, -2 q^2 for 0, 1, 2 copies

(VanRaden 2008, J. Dairy Sci. 91:4414; Vitezica, Varona & Legarra 2013, Genetics 195:1223). Each is a product of one
matrix with itself, of which BLAS computes one triangle.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.linalg.blas import dsyrk, ssyrk

from mmgibbs.genotypes.on_device import DeviceMatrices
from mmgibbs.genotypes.products import CHUNK
from mmgibbs.genotypes.store import PackedGenotypes, Store
from mmgibbs.machine.memory import refuse_beyond_free

BLOCK = 4096  # SNPs whose products are added in single precision before they are added to the others in double
MATRICES = 4  # of all animals at once, until there is an inverse; measured
DOUBLE_UP_TO = 2e11  # animals^2 x SNPs: some seconds; beyond, products of a block are made in single precision


class Products(NamedTuple):
    matrix: np.ndarray  # (n, n) float64, symmetric
    arithmetic: str  # 'double', or how not


class WithChosen(NamedTuple):
    """Columns of c chosen animals of the symmetric (n, n) matrix, and the sums of the rest of it."""

    matrix: np.ndarray  # (n, c) float64
    diagonal: np.ndarray  # (n,) of the whole
    total: float  # sum of all elements of the whole
    arithmetic: str


def vanraden_1(store: Store, frequency: np.ndarray, mean: np.ndarray) -> Products:
    """frequency (p,), mean (p,): p_j and the dosage that a missing genotype counts as."""
    return products(*scaled_1(store, frequency, mean))


def vanraden_2(store: Store, frequency: np.ndarray, mean: np.ndarray) -> Products:
    """SNPs without variance at these frequencies (0 or 1) are left out of the mean."""
    return products(*scaled_2(store, frequency, mean))


def scaled_1(store: Store, frequency: np.ndarray, mean: np.ndarray) -> tuple[Additive, np.ndarray]:
    """Genotypes of which VanRaden 1 is X'X, and the SNPs."""
    scale = np.full(store.n_snps, 1 / np.sqrt(np.sum(2 * frequency * (1 - frequency))))
    return Additive(store, 2 * frequency, scale, mean), store.every


def scaled_2(store: Store, frequency: np.ndarray, mean: np.ndarray) -> tuple[Additive, np.ndarray]:
    """Genotypes of which VanRaden 2 is X'X, and the SNPs."""
    variance = 2 * frequency * (1 - frequency)
    rows = np.flatnonzero(variance > 0)
    scale = 1 / np.sqrt(np.where(variance > 0, variance, 1.0) * len(rows))
    return Additive(store, 2 * frequency, scale, mean), rows


def dominance(store: PackedGenotypes, frequency: np.ndarray, on: DeviceMatrices | None = None) -> Products:
    """Genotypes are 0, 1, 2; a missing one is 0 of the scaled ones, their expectation."""
    p, q = frequency, 1 - frequency
    of_code = np.stack([-2 * p**2, 2 * p * q, -2 * q**2, np.zeros(len(p))], axis=1)
    return products(Dominance(store, of_code / np.sqrt(np.sum((2 * p * q) ** 2))), store.every, on)


@dataclass(frozen=True)
class Additive:
    """x = scale (m - centre), all (p,); `mean` where missing."""

    store: Store
    centre: np.ndarray
    scale: np.ndarray
    mean: np.ndarray

    @cached_property
    def values(self) -> np.ndarray:
        """(p, 4) of the store."""
        return self.store.values(self.centre, self.scale, self.mean)

    def double(self, rows: np.ndarray) -> np.ndarray:
        """(rows, n) float64 x of these SNPs."""
        dosage = self.store.decode(rows).astype(np.float64)
        known = np.where(np.isnan(dosage), self.mean[rows, None], dosage)
        return self.scale[rows, None] * (known - self.centre[rows, None])


@dataclass(frozen=True)
class Dominance:
    """x by genotype, (p, 4): 0, 1, 2 copies, missing."""

    store: PackedGenotypes
    of_code: np.ndarray

    @property
    def values(self) -> np.ndarray:
        return self.of_code.astype(np.float32)

    def double(self, rows: np.ndarray) -> np.ndarray:
        dosage = self.store.decode(rows)
        return np.take_along_axis(self.of_code[rows], np.where(np.isnan(dosage), 3, dosage).astype(np.int64), axis=1)


def products(coded: Additive | Dominance, rows: np.ndarray, on: DeviceMatrices | None = None) -> Products:
    """X'X over these SNPs; on: a device, in place of the CPU.

    Memory: 8 n^2 bytes, and 4 n^2 more with blocks in single precision.
    """
    store, n = coded.store, coded.store.n_animals
    refuse_beyond_free(
        8 * MATRICES * n**2,
        f"the relationships of {n:,} genotyped animals",
        "fewer of them, a core (relationship: {kind: ..., core: ...}), or a machine with more memory",
    )
    if on is not None:
        made = on.multiply(coded, rows, n)
        fill_upper(made)  # a library need not round both triangles alike
        return Products(made, "double, on a GPU")
    double = float(n) ** 2 * len(rows) <= DOUBLE_UP_TO
    matrix = _syrk_double(coded, rows) if double else _syrk_single(coded, rows, store.n_chunks * CHUNK)
    matrix = np.ascontiguousarray(matrix[:n, :n])
    fill_upper(matrix)
    return Products(matrix, _words(double))


def cross_products(coded: Additive, rows: np.ndarray, chosen: np.ndarray) -> WithChosen:
    """X'X over these SNPs, of which only the columns of the chosen animals are made.

    Memory: 8 n c bytes twice, and the genotypes of a block.
    """
    n, c = coded.store.n_animals, len(chosen)
    double = float(n) * c * len(rows) <= DOUBLE_UP_TO
    matrix, diagonal, total = np.zeros((n, c)), np.zeros(n), 0.0
    size = max(16, int(BLOCK * min(1.0, 4096 / n))) if double else BLOCK
    for first in range(0, len(rows), size):
        block = rows[first : first + size]
        x = coded.double(block) if double else coded.store.decode(block, coded.values)
        matrix += x.T @ np.ascontiguousarray(x[:, chosen])
        diagonal += np.einsum("ja,ja->a", x, x, dtype=np.float64)
        total += float(np.sum(x.sum(axis=1, dtype=np.float64) ** 2))
    return WithChosen(matrix, diagonal, total, _words(double))


def _words(double: bool) -> str:
    return "double" if double else f"products of {BLOCK:,} SNPs in single precision, sums in double"


def _syrk_double(coded: Additive | Dominance, rows: np.ndarray) -> np.ndarray:
    """The lower triangle."""
    n = coded.store.n_animals
    total = np.zeros((n, n), order="F")
    size = max(16, int(BLOCK * min(1.0, 4096 / n)))
    for first in range(0, len(rows), size):
        total = dsyrk(1.0, coded.double(rows[first : first + size]).T, beta=1.0, c=total, lower=1, overwrite_c=1)
    return total


def _syrk_single(coded: Additive | Dominance, rows: np.ndarray, padded: int) -> np.ndarray:
    """The lower triangle; animals after the last are to be left out."""
    total, chunk_product = np.zeros((padded, padded), order="F"), np.zeros((padded, padded), np.float32, order="F")
    values = coded.values
    for first in range(0, len(rows), BLOCK):
        chosen = rows[first : first + BLOCK]
        x = np.empty((len(chosen), padded), np.float32)
        coded.store.decode_to(chosen, values, x)
        chunk_product = ssyrk(1.0, x.T, beta=0.0, c=chunk_product, lower=1, overwrite_c=1)
        total += chunk_product
    return total


def fill_upper(matrix: np.ndarray, block: int = 1024) -> None:
    """The upper triangle of a square matrix becomes its lower one, in place."""
    n = len(matrix)
    for first in range(0, n, block):
        rows = slice(first, min(n, first + block))
        square = matrix[rows, rows]
        square[:] = np.tril(square) + np.tril(square, -1).T
        matrix[rows, rows.stop :] = matrix[rows.stop :, rows].T
