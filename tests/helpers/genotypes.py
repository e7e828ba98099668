"""Genotypes for tests, as arrays and as stores."""

from __future__ import annotations

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
