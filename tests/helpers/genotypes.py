"""Genotypes for tests, as arrays and as stores."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from mmgibbs.genotypes.store import Store, store_genotypes


class ArraySource:
    """A source of genotypes that are in memory: (p, n) uint8 codes with 3 = missing, or float32 dosages."""

    def __init__(self, block: np.ndarray):
        self.whole = block
        self.real_valued = block.dtype == np.float32
        self.n_snps, self.n_animals = block.shape

    def block(self, first: int, stop: int) -> np.ndarray:
        return self.whole[first:stop]


def codes_and_dosages(p: int, n: int, seed: int, missing: float = 0.1) -> tuple[np.ndarray, np.ndarray]:
    """(p, n) codes 0, 1, 2, 3 = missing, and the same as float32 dosages with NaN."""
    rng = np.random.default_rng(seed)
    codes = rng.binomial(2, rng.uniform(0.05, 0.95, p)[:, None], (p, n)).astype(np.uint8)
    codes[rng.random((p, n)) < missing] = 3
    return codes, np.array([0, 1, 2, np.nan], np.float32)[codes]


def stored(kind: type[Store], codes: np.ndarray) -> Store:
    """All animals and SNPs in their order."""
    return store_genotypes(ArraySource(codes), np.arange(codes.shape[1]), np.arange(len(codes)), kind=kind)


def bed_bytes(codes: np.ndarray) -> bytes:
    """A .bed of (p, n) codes, in plain words: 11 none, 10 one, 00 two copies of A1, 01 missing; four animals a byte."""
    bits = np.array([3, 2, 0, 1], np.uint8)[codes]
    padded = np.pad(bits, ((0, 0), (0, -codes.shape[1] % 4))).reshape(len(codes), -1, 4)
    return b"\x6c\x1b\x01" + (padded << np.array([0, 2, 4, 6], np.uint8)).sum(axis=2, dtype=np.uint8).tobytes()


def write_plink(bed: Path, codes: np.ndarray, ids, snps, chromosomes, positions) -> None:
    """.bed, .bim and .fam; A1 is A."""
    bed.write_bytes(bed_bytes(codes))
    rows = zip(chromosomes, snps, positions)
    bed.with_suffix(".bim").write_text("".join(f"{c}\t{s}\t0\t{x}\tA\tC\n" for c, s, x in rows))
    bed.with_suffix(".fam").write_text("".join(f"{id} {id} 0 0 0 -9\n" for id in ids))
