"""What is remarkable about stored genotypes: missing ones, the same ones twice, parents that cannot be parents."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numba import types
from numba.extending import intrinsic

from mmgibbs.genotypes.products import CHUNK
from mmgibbs.genotypes.store import BLOCK, STEPS, Store
from mmgibbs.pedigree.kernels import kernel

HOMOZYGOUS = np.float32(0.5)  # a dosage is within this of 0 or 2
UPPER = 2 - HOMOZYGOUS
SNPS_OF_A_WORD = 64
ANIMALS_AT_ONCE = 2048
PAIR_ROWS = 256  # animals that are compared with all others before their pairs are listed


def call_rates(store: Store, rows: np.ndarray) -> np.ndarray:
    """(n,) share of these SNPs whose genotype is known, animal by animal."""
    return store.product(rows, store.known(), np.ones(len(rows), np.float32)) / max(len(rows), 1)


def count_heterozygous(store: Store, rows: np.ndarray) -> np.ndarray:
    """(n, 2) int64 of each animal: heterozygous and known genotypes at these SNPs."""
    out = np.zeros((store.n_animals, 2), np.int64)
    for first in range(0, len(rows), BLOCK):
        dosage = store.decode(rows[first : first + BLOCK])
        out[:, 0] += ((dosage >= HOMOZYGOUS) & (dosage <= UPPER)).sum(axis=0)
        out[:, 1] += (~np.isnan(dosage)).sum(axis=0)
    return out


def repeated_snps(store: Store, rows: np.ndarray, animals: np.ndarray) -> np.ndarray:
    """(m,) for each of these SNPs the place in `rows` of the first with the same genotypes, itself where it is that.

    animals: (n,) bool, those that count. Genotypes are also the same where the alleles are swapped, 2 - m for m. Equal
    genotypes give equal sums with random numbers over the animals, to the bit; those with equal sums are compared.
    """
    rng = np.random.default_rng(0)
    v = np.where(animals, rng.standard_normal(store.n_animals), 0.0)
    # 127 (m - 1) is a whole number in 8 bits too, so that it changes its sign alone where the alleles are swapped
    ones, scale = np.ones(store.n_snps), np.full(store.n_snps, float(STEPS))
    sums = np.abs(store.dot(rows, store.values(ones, scale), v))
    with_gaps = store.values(ones, scale, np.full(store.n_snps, np.nan))
    chosen = np.flatnonzero(animals)

    def same(i: int, j: int) -> bool:
        a, b = store.decode(rows[[i, j]], with_gaps)[:, chosen]
        return np.array_equal(a, b, equal_nan=True) or np.array_equal(a, -b, equal_nan=True)

    return _first_of_equals(sums, same)


def repeated_animals(store: Store, rows: np.ndarray) -> np.ndarray:
    """(n,) for each animal the first with the same genotypes at these SNPs, itself where it is that."""
    rng = np.random.default_rng(0)
    sums = store.product(rows, store.values(np.ones(store.n_snps)), rng.standard_normal(len(rows)))

    def same(a: int, b: int) -> bool:
        for i in range(0, len(rows), BLOCK):
            first, two = store.decode(rows[i : i + BLOCK])[:, [a, b]].T
            if not np.array_equal(first, two, equal_nan=True):
                return False
        return True

    return _first_of_equals(sums, same)


def opposing_homozygotes(store: Store, rows: np.ndarray, animals: np.ndarray, two: np.ndarray) -> np.ndarray:
    """(pairs, 2) int64: at how many of these SNPs the animals one[k] and two[k] are 0 and 2 or 2 and 0, and at how
    many both are known. A parent and its progeny share an allele at every SNP (Hayes 2011, J. Dairy Sci. 94:2114).
    Dosages below 1/2 count as 0, above 3/2 as 2."""
    return compare_genotypes(store, rows, animals, two)[:, :2]


def compare_genotypes(store: Store, rows: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """(pairs, 3) int64 of the SNPs of each pair: opposing homozygotes, both known, both known and the same."""
    out = np.zeros((len(first), 3), np.int64)
    for zero, two, known in _planes(store, rows):
        _count_opposing(zero, two, known, first, second, out)
    return out


def find_compatible_pairs(store: Store, rows: np.ndarray, animals: np.ndarray, most: int) -> np.ndarray:
    """(pairs, 2) int64 of these animals, the smaller number first, with at most so many opposing homozygotes.

    All pairs are compared, 64 SNPs at a time, until they have more: of unrelated animals after few SNPs. The SNPs need
    3 bits of memory for each animal.
    """
    planes = np.array([plane[:2, animals] for plane in _planes(store, rows)], np.uint64)
    zero, two = (np.ascontiguousarray(planes[:, k].T) for k in (0, 1))
    pairs, n = [], animals.size
    for first in range(0, n, PAIR_ROWS):
        stop = min(n, first + PAIR_ROWS)
        is_compatible = np.zeros((stop - first, n), np.bool_)
        _mark_compatible(zero, two, first, most, is_compatible)
        a, b = np.nonzero(is_compatible)
        pairs.append(np.stack([animals[first + a], animals[b]], axis=1))
    found = np.concatenate(pairs) if pairs else np.empty((0, 2), np.int64)
    return np.sort(found, axis=1)


def _planes(store: Store, rows: np.ndarray) -> Iterator[np.ndarray]:
    """Yield (3, animals) uint64 for 64 SNPs at a time: bits of 0, of 2 and of known genotypes."""
    values, dosage = store.as_read(), np.empty((SNPS_OF_A_WORD, store.n_chunks * CHUNK), np.float32)
    for first in range(0, len(rows), SNPS_OF_A_WORD):
        chunk = rows[first : first + SNPS_OF_A_WORD]
        store.decode_to(chunk, values, dosage)
        planes = np.zeros((3, dosage.shape[1]), np.uint64)
        _set_planes(dosage[: len(chunk)], planes[0], planes[1], planes[2])
        yield planes


@intrinsic
def _ones(typingctx, word):
    """Bits that are set."""

    def codegen(context, builder, signature, args):
        return builder.ctpop(args[0])

    return types.uint64(types.uint64), codegen


@kernel
def _set_planes(dosage, zero, two, known):
    """A bit a SNP, for each animal: is 0, is 2, is known. Some animals at a time, whose words stay in the cache."""
    n = dosage.shape[1]
    for first in range(0, n, ANIMALS_AT_ONCE):
        stop = min(n, first + ANIMALS_AT_ONCE)
        for j in range(dosage.shape[0]):
            place = np.uint64(j)
            for a in range(first, stop):
                x = dosage[j, a]
                zero[a] |= np.uint64(x < HOMOZYGOUS) << place
                two[a] |= np.uint64(x > UPPER) << place
                known[a] |= np.uint64(x == x) << place


@kernel
def _count_opposing(zero, two, known, first, second, out):
    for k in range(first.size):
        a, b = first[k], second[k]
        out[k, 0] += _ones((zero[a] & two[b]) | (two[a] & zero[b]))
        both = known[a] & known[b]
        out[k, 1] += _ones(both)
        out[k, 2] += _ones(both & ~((zero[a] ^ zero[b]) | (two[a] ^ two[b])))


@kernel
def _mark_compatible(zero, two, begin, most, out):
    """out[i, b]: begin + i and b > begin + i have at most so many opposing homozygotes; zero, two (n, words)."""
    n, words = zero.shape
    for i in range(out.shape[0]):
        a = begin + i
        for b in range(a + 1, n):
            opposing, w = 0, 0
            while w < words and opposing <= most:
                opposing += np.int64(_ones((zero[a, w] & two[b, w]) | (two[a, w] & zero[b, w])))
                w += 1
            out[i, b] = opposing <= most


def _first_of_equals(sums: np.ndarray, same: Callable[[int, int], bool]) -> np.ndarray:
    """(m,) the first that is the same, among those of equal sums, which may still differ."""
    first = np.arange(len(sums))
    order = np.argsort(sums, kind="stable")
    bounds = np.flatnonzero(np.r_[True, np.diff(sums[order]) != 0, True])
    for begin, end in zip(bounds[:-1], bounds[1:], strict=True):
        if end - begin == 1:
            continue
        distinct: list[int] = []
        for i in order[begin:end]:
            first[i] = next((j for j in distinct if same(j, i)), i)
            if first[i] == i:
                distinct.append(i)
    return first
