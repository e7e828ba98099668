"""Genotypes of a pedigree by gene dropping."""

import numpy as np

FOUNDERS = 20


def drop_genes(rng, n, n_snps, late=None):
    """(sire, dam, codes (n, SNPs)): parents are founders, and of animals from `late` on those born in between."""
    is_founder = np.arange(n) < FOUNDERS
    sire = np.where(is_founder, -1, rng.integers(0, FOUNDERS // 2, n))
    dam = np.where(is_founder, -1, rng.integers(FOUNDERS // 2, FOUNDERS, n))
    if late is not None:
        sire[late:], dam[late:] = rng.integers(FOUNDERS, 40, n - late), rng.integers(40, late, n - late)
    gamete = lambda parent: rng.binomial(1, parent / 2)
    codes = rng.binomial(2, rng.uniform(0.2, 0.5, n_snps), (n, n_snps))
    for i in range(FOUNDERS, n):
        codes[i] = gamete(codes[sire[i]]) + gamete(codes[dam[i]])
    return sire, dam, codes


def name_animals(codes):
    return [None if c < 0 else f"a{c}" for c in codes]
