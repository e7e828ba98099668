"""Genotypes of n chosen animals at p SNPs, in a chosen order, in memory or as a file mapped into memory.

A store is an array of SNPs, each a row of chunks of 128 animals (`mmgibbs.genotypes.products` has the layouts), and
what its kind makes of it:

    PackedGenotypes   2 bits each: 0, 1, 2 copies of the counted allele, or missing
    FixedGenotypes    8 bits each, for dosages between 0 and 2: within 1/254 = 0.004 of the dosage; 0, 1, 2 exactly
    RealGenotypes     float32, as they were read

Every kind does the same things, on numbers x[j, a] = scale_j (m[j, a] - centre_j), where m is the dosage, or mean_j
where it is missing. The file is a .npy; a store that is sent to another process goes as its path, so that chains share
one copy in memory.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import ClassVar, Protocol

import numpy as np

from mmgibbs.genotypes.products import CHUNK, MISSING, MISSING_FIXED, WORDS, add_rows, dot_rows
from mmgibbs.pedigree.kernels import kernel

STEPS = 127  # codes of fixed point for one copy of the allele
BLOCK = 256  # SNPs that are stored or decoded at a time


class GenotypeSource(Protocol):
    """Genotypes as a file has them: `codes` 0, 1, 2, 3 = missing, or real-valued `dosages`."""

    @property
    def n_animals(self) -> int: ...

    @property
    def n_snps(self) -> int: ...

    @property
    def real_valued(self) -> bool: ...

    def block(self, first: int, stop: int) -> np.ndarray:
        """(stop - first, n_animals) of SNPs first .. stop - 1: uint8 codes, or float32 dosages, NaN = missing."""


class Store(ABC):
    """Genotypes of n animals at p SNPs. `array` (p, chunks, ..) is read only where it is mapped from a file."""

    kind: ClassVar[str]  # what the file of a run calls it
    dtype: ClassVar[type]
    width: ClassVar[int]  # numbers of a chunk
    _one: ClassVar[np.ndarray]  # (4,) float32 values with x = 1, and 0 where missing

    def __init__(self, array: np.ndarray, n_animals: int):
        assert array.dtype == self.dtype and array.shape[1:] == (count_chunks(n_animals), self.width)
        self.array, self.n_animals = array, n_animals

    @property
    def n_snps(self) -> int:
        return self.array.shape[0]

    @property
    def n_chunks(self) -> int:
        return self.array.shape[1]

    @property
    def every(self) -> np.ndarray:
        """(p,) int64 the number of each row."""
        return np.arange(self.n_snps)

    def padded(self, v: np.ndarray) -> np.ndarray:
        """(128 chunks,) the vector over animals, float32 or float64, with 0 after its end."""
        out = np.zeros(self.n_chunks * CHUNK, v.dtype)
        out[: self.n_animals] = v
        return out

    def values(self, centre: np.ndarray, scale: np.ndarray | None = None, mean: np.ndarray | None = None) -> np.ndarray:
        """(p, 4) float32 for `dot_rows` and `add_rows`: x = scale (m - centre), all (p,).

        mean: the dosage that a missing genotype counts as; without, it is the centre, so that x = 0. Where mean and
        centre differ, the places after the last animal are not 0 either.
        """
        out = self._known_values(centre, np.ones(self.n_snps) if scale is None else np.asarray(scale, np.float64))
        if mean is not None:
            out[:, MISSING] = (1.0 if scale is None else scale) * (np.asarray(mean) - centre)
        return out.astype(np.float32)

    def as_read(self) -> np.ndarray:
        """(p, 4) float32: x is the dosage, NaN where missing."""
        return self.values(np.zeros(self.n_snps), mean=np.full(self.n_snps, np.nan))

    def known(self) -> np.ndarray:
        """(p, 4) float32: x is 1, and 0 where missing."""
        return np.tile(self._one, (self.n_snps, 1))

    def missing(self) -> np.ndarray:
        """(p, 4) float32: x is 1 where missing, else 0."""
        out = np.zeros((self.n_snps, 4), np.float32)
        out[:, MISSING] = 1.0
        return out

    @abstractmethod
    def _known_values(self, centre: np.ndarray, scale: np.ndarray) -> np.ndarray:
        """(p, 4) float64 `values` with 0 where missing."""

    def dot(self, rows: np.ndarray, values: np.ndarray, v: np.ndarray) -> np.ndarray:
        """(m,) float64: sum_a x[rows_i, a] v[a], in the precision of v (n,)."""
        out = np.zeros(len(rows))
        dot_rows(self.array, rows, values, self.padded(v), 0, self.n_chunks, out)
        return out

    def __reduce__(self) -> tuple:
        if isinstance(self.array, np.memmap) and isinstance(self.array.filename, (str, Path)):
            return open_store, (Path(self.array.filename), self.n_animals)
        return type(self), (self.array, self.n_animals)

    def product(self, rows: np.ndarray, values: np.ndarray, by: np.ndarray) -> np.ndarray:
        """(n,) in the precision of `by` (m,): sum_i by[i] x[rows_i, a], for instance breeding values from effects."""
        out = np.zeros(self.n_chunks * CHUNK, by.dtype)
        add_rows(self.array, rows, values, by, 0, self.n_chunks, out)
        return out[: self.n_animals]

    def decode(self, rows: np.ndarray, values: np.ndarray | None = None) -> np.ndarray:
        """(m, n) float32 x of these SNPs; without values the dosages, NaN where missing."""
        out = np.empty((len(rows), self.n_chunks * CHUNK), np.float32)
        self.decode_to(rows, self.as_read() if values is None else values, out)
        return out[:, : self.n_animals]

    def decode_to(self, rows: np.ndarray, values: np.ndarray, out: np.ndarray) -> None:
        """Decode as `decode`, into (m, 128 chunks) float32, of which the first n of a row count."""
        out[:] = 0.0
        unit = np.ones(1, np.float32)
        for i in range(len(rows)):
            add_rows(self.array, rows[i : i + 1], values, unit, 0, self.n_chunks, out[i])

    @abstractmethod
    def moments(self, weights: np.ndarray | None = None) -> np.ndarray:
        """(p, 3) float64: sums of w, w m and w m^2 over the animals whose genotype m is known.

        weights: (n,) w; 1 without. With centre c, x'Dx = S2 - 2 c S1 + c^2 S0 and x'D1 = S1 - c S0.
        """

    @classmethod
    @abstractmethod
    def pack(cls, block: np.ndarray, animals: np.ndarray, out: np.ndarray) -> None:
        """Columns `animals` of a block (m, N) of a source, in this order, into rows `out` of an array of this kind."""


class PackedGenotypes(Store):
    """2 bits a genotype."""

    kind, dtype, width = "packed", np.uint32, WORDS
    _one = np.array([1, 1, 1, 0], np.float32)

    def _known_values(self, centre: np.ndarray, scale: np.ndarray) -> np.ndarray:
        out = (np.arange(4, dtype=np.float64) - np.asarray(centre, np.float64)[:, None]) * scale[:, None]
        out[:, MISSING] = 0.0
        return out

    def moments(self, weights: np.ndarray | None = None) -> np.ndarray:
        v = np.ones(self.n_animals, np.float32) if weights is None else np.asarray(weights, np.float64)
        powers = np.array([[1, 1, 1, 0], [0, 1, 2, 0], [0, 1, 4, 0]], np.float32)
        sums = [self.dot(self.every, np.tile(of_code, (self.n_snps, 1)), v) for of_code in powers]
        return np.stack(sums, axis=1)

    def counts(self) -> np.ndarray:
        """(p, 4) int64 animals with 0, 1, 2 copies, and with a missing genotype."""
        known, first, second = self.moments().T
        two = (second - first) / 2
        heterozygous = first - 2 * two
        return np.stack([known - heterozygous - two, heterozygous, two, self.n_animals - known], axis=1).astype(
            np.int64
        )

    def codes(self, first: int, stop: int) -> np.ndarray:
        """(stop - first, n) uint8 0, 1, 2, 3 = missing."""
        out = np.empty((stop - first, self.n_animals), np.uint8)
        _unpack_codes(self.array[first:stop], out)
        return out

    @classmethod
    def pack(cls, block: np.ndarray, animals: np.ndarray, out: np.ndarray) -> None:
        assert block.dtype == np.uint8, "dosages need more than 2 bits"
        _pack_codes(block, animals, out)


class FixedGenotypes(Store):
    """8 bits a genotype: code = round(127 dosage), 255 missing."""

    kind, dtype, width = "fixed", np.uint8, CHUNK
    _one = np.array([0, 1, 0, 0], np.float32)

    def _known_values(self, centre: np.ndarray, scale: np.ndarray) -> np.ndarray:
        return _line(centre, scale, 1 / STEPS)

    def moments(self, weights: np.ndarray | None = None) -> np.ndarray:
        return _moments(self, weights)

    @classmethod
    def pack(cls, block: np.ndarray, animals: np.ndarray, out: np.ndarray) -> None:
        chosen = dosages(block)[:, animals]
        missing = np.isnan(chosen)
        codes = np.rint(np.where(missing, 0, chosen) * STEPS).astype(np.uint8)
        _fill(out, np.where(missing, np.uint8(MISSING_FIXED), codes), MISSING_FIXED)


class RealGenotypes(Store):
    """float32 a genotype, NaN missing."""

    kind, dtype, width = "real", np.float32, CHUNK
    _one = np.array([0, 1, 0, 0], np.float32)

    def _known_values(self, centre: np.ndarray, scale: np.ndarray) -> np.ndarray:
        return _line(centre, scale, 1.0)

    def moments(self, weights: np.ndarray | None = None) -> np.ndarray:
        return _moments(self, weights)

    @classmethod
    def pack(cls, block: np.ndarray, animals: np.ndarray, out: np.ndarray) -> None:
        _fill(out, dosages(block)[:, animals], np.nan)


class PackedSource(GenotypeSource):
    """A store of 2 bits a genotype as a source for others."""

    real_valued = False

    def __init__(self, store: PackedGenotypes):
        self.store = store

    @property
    def n_animals(self) -> int:
        return self.store.n_animals

    @property
    def n_snps(self) -> int:
        return self.store.n_snps

    def block(self, first: int, stop: int) -> np.ndarray:
        return self.store.codes(first, stop)


KINDS: dict[str, type[Store]] = {kind.kind: kind for kind in (PackedGenotypes, FixedGenotypes, RealGenotypes)}


def count_chunks(n_animals: int) -> int:
    return -(-n_animals // CHUNK)


def dosages(block: np.ndarray) -> np.ndarray:
    """A block of a source as float32 dosages, NaN = missing."""
    if block.dtype == np.float32:
        return block
    return np.array([0, 1, 2, np.nan], np.float32)[block]


def store_genotypes(
    source: GenotypeSource,
    animals: np.ndarray,
    snps: np.ndarray,
    path: Path | None = None,
    kind: type[Store] | None = None,
) -> Store:
    """The genotypes of these animals and SNPs (int64, positions in the source), in this order.

    path: the .npy file to write and map; without, the store is in memory. kind: packed for codes, 8 bits for dosages.
    """
    kind = kind or (FixedGenotypes if source.real_valued else PackedGenotypes)
    shape = (len(snps), count_chunks(len(animals)), kind.width)
    array = np.empty(shape, kind.dtype) if path is None else np.lib.format.open_memmap(path, "w+", kind.dtype, shape)
    order = np.argsort(snps, kind="stable")
    for first in range(0, source.n_snps, BLOCK):
        begin, end = np.searchsorted(snps[order], [first, first + BLOCK])
        if begin == end:
            continue
        block = source.block(first, min(first + BLOCK, source.n_snps))
        rows = np.empty((end - begin, *shape[1:]), kind.dtype)
        kind.pack(block[snps[order[begin:end]] - first], animals, rows)
        array[order[begin:end]] = rows
    if path is None:
        return kind(array, len(animals))
    assert isinstance(array, np.memmap)
    array.flush()
    return open_store(path, len(animals))


def open_store(path: Path, n_animals: int) -> Store:
    """The store in a file of `store_genotypes`, mapped into memory, read only."""
    array = np.load(path, mmap_mode="r")
    kind = next(kind for kind in KINDS.values() if kind.dtype == array.dtype)
    return kind(array, n_animals)


def _line(centre: np.ndarray, scale: np.ndarray, step: float) -> np.ndarray:
    """values of x = scale (step code - centre)."""
    nothing = np.zeros(len(scale))
    return np.stack([step * scale, -scale * centre, nothing, nothing], axis=1)


def _moments(store: Store, weights: np.ndarray | None) -> np.ndarray:
    w = np.ones(store.n_animals) if weights is None else np.asarray(weights, np.float64)
    out = np.empty((store.n_snps, 3))
    for first in range(0, store.n_snps, BLOCK):
        m = store.decode(store.every[first : first + BLOCK]).astype(np.float64)
        known = ~np.isnan(m)
        m[~known] = 0.0
        out[first : first + BLOCK] = np.stack([known @ w, m @ w, (m * m) @ w], axis=1)
    return out


def _fill(out: np.ndarray, block: np.ndarray, missing: float) -> None:
    rows = out.reshape(len(out), -1)
    rows[:, : block.shape[1]] = block
    rows[:, block.shape[1] :] = missing


@kernel
def _pack_codes(block, animals, out):
    """The layout of `products`; what is left of the last chunk is missing."""
    n = animals.size
    for j in range(out.shape[0]):
        for chunk in range(out.shape[1]):
            first = chunk << 7
            for lane in range(8):
                word = np.uint32(0)
                for s in range(16):
                    a = first + 8 * s + lane
                    code = np.uint32(block[j, animals[a]]) if a < n else np.uint32(MISSING)
                    word |= code << np.uint32(2 * s)
                out[j, chunk, lane] = word


@kernel
def _unpack_codes(words, out):
    for j in range(out.shape[0]):
        for a in range(out.shape[1]):
            within = a & 127
            out[j, a] = (words[j, a >> 7, within & 7] >> np.uint32(2 * (within >> 3))) & np.uint32(3)
