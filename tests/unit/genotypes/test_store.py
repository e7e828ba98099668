"""Stores: what goes in comes out; missing, repeated and conflicting genotypes, against plain NumPy."""

import numpy as np
import pytest
from helpers.genotypes import ArraySource, codes_and_dosages, stored

from mmgibbs.genotypes.quality import (
    call_rates,
    compare_genotypes,
    find_compatible_pairs,
    opposing_homozygotes,
    repeated_animals,
    repeated_snps,
)
from mmgibbs.genotypes.store import BLOCK, FixedGenotypes, PackedGenotypes, RealGenotypes, open_store, store_genotypes

KINDS = [PackedGenotypes, FixedGenotypes, RealGenotypes]


@pytest.mark.parametrize("kind", KINDS)
def test_chosen_animals_and_snps_in_the_chosen_order(kind, tmp_path):
    codes, dosages = codes_and_dosages(BLOCK + 50, 200, seed=2)
    rng = np.random.default_rng(3)
    animals, snps = rng.permutation(200)[:131], rng.permutation(BLOCK + 50)[:70]
    store = store_genotypes(ArraySource(codes), animals, snps, tmp_path / "packed.npy", kind)
    assert np.array_equal(store.decode(store.every), dosages[snps][:, animals], equal_nan=True)
    assert not store.array.flags.writeable


def test_stores_of_a_kind(tmp_path):
    codes, _ = codes_and_dosages(4, 130, seed=4)
    every = np.arange(130), np.arange(4)
    made = [store_genotypes(ArraySource(codes), *every, tmp_path / f"{k.kind}.npy", k) for k in KINDS]
    opened = [open_store(tmp_path / f"{k.kind}.npy", 130) for k in KINDS]
    assert [type(store) for store in opened] == [type(store) for store in made] == KINDS
    assert all(isinstance(store.array, np.memmap) for store in opened)
    codes, _ = codes_and_dosages(3, 1280, seed=5)
    assert stored(PackedGenotypes, codes).array.nbytes == 3 * 1280 // 4
    codes, _ = codes_and_dosages(20, 777, seed=9)
    expected = np.stack([(codes == code).sum(axis=1) for code in range(4)], axis=1)
    assert np.array_equal(stored(PackedGenotypes, codes).counts(), expected)


def test_dosages_are_kept_within_the_stated_error():
    rng = np.random.default_rng(6)
    real = rng.uniform(0, 2, (5, 1000)).astype(np.float32)
    real[rng.random(real.shape) < 0.1] = np.nan
    source = ArraySource(real)
    every = (np.arange(1000), np.arange(5))
    fixed, exact = store_genotypes(source, *every), store_genotypes(source, *every, kind=RealGenotypes)
    assert isinstance(fixed, FixedGenotypes)
    assert np.nanmax(np.abs(fixed.decode(fixed.every) - real)) <= 1 / 254 + 1e-6
    assert np.array_equal(exact.decode(exact.every), real, equal_nan=True)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weighted", [False, True])
def test_moments(kind, weighted):
    codes, dosages = codes_and_dosages(20, 777, seed=7)
    w = np.random.default_rng(8).uniform(0, 3, 777) if weighted else None
    by = np.ones(777) if w is None else w
    known, m = ~np.isnan(dosages), np.nan_to_num(dosages.astype(np.float64))
    expected = np.stack([known @ by, m @ by, m**2 @ by], axis=1)
    assert stored(kind, codes).moments(w) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_call_rates_of_animals(kind):
    codes, _ = codes_and_dosages(40, 300, seed=1)
    rows = np.array([0, 5, 7, 33])
    assert call_rates(stored(kind, codes), rows) == pytest.approx((codes[rows] != 3).mean(axis=0))


@pytest.mark.parametrize("kind", KINDS)
def test_snps_with_the_same_genotypes(kind):
    codes, _ = codes_and_dosages(30, 200, seed=2)
    swapped = np.array([2, 1, 0, 3], np.uint8)
    codes[9], codes[20], codes[25] = codes[4], swapped[codes[4]], codes[9]
    codes[11] = codes[10]
    codes[11, 50] = 2 - codes[10, 50] if codes[10, 50] in (0, 2) else 0  # differs at one animal, who does not count
    animals = np.arange(200) != 50
    rows = np.arange(1, 30)
    expected = np.arange(29)
    expected[[9 - 1, 20 - 1, 25 - 1]] = 4 - 1
    expected[11 - 1] = 10 - 1
    assert np.array_equal(repeated_snps(stored(kind, codes), rows, animals), expected)


@pytest.mark.parametrize("kind", KINDS)
def test_animals_with_the_same_genotypes(kind):
    codes, _ = codes_and_dosages(60, 150, seed=4)
    codes[:, 140] = codes[:, 3]
    codes[:, 8] = codes[:, 3]
    codes[10, 8] = 3 if codes[10, 3] == 1 else 1  # missing and one copy may give the same sum
    expected = np.arange(150)
    expected[140] = 3
    if kind is PackedGenotypes:
        assert np.array_equal(repeated_animals(stored(kind, codes), np.arange(60)), expected)
    rows = np.setdiff1d(np.arange(60), [10])
    expected[8] = 3
    assert np.array_equal(repeated_animals(stored(kind, codes), rows), expected)


@pytest.mark.parametrize("kind", KINDS)
def test_opposing_homozygotes(kind):
    codes, dosages = codes_and_dosages(2000, 40, seed=5)
    rng = np.random.default_rng(6)
    one, two = rng.integers(0, 40, (2, 25))
    rows = np.sort(rng.permutation(2000)[:1700])
    a, b = dosages[rows][:, one], dosages[rows][:, two]
    expected = np.stack([(np.abs(a - b) == 2).sum(axis=0), (~np.isnan(a - b)).sum(axis=0)], axis=1)
    assert np.array_equal(opposing_homozygotes(stored(kind, codes), rows, one, two), expected)
    same = (a == b).sum(axis=0)
    assert np.array_equal(compare_genotypes(stored(kind, codes), rows, one, two)[:, 2], same)


@pytest.mark.parametrize("most", [0, 25, 60])
def test_compatible_pairs_are_all_with_few_opposing_homozygotes(most):
    """More animals than are compared at once, in an order of their own."""
    codes, dosages = codes_and_dosages(500, 300, seed=7)
    animals = np.random.default_rng(8).permutation(300)[:290]
    rows = np.arange(3, 480)
    chosen = dosages[rows]
    zero, two = (chosen == 0).astype(np.float32), (chosen == 2).astype(np.float32)
    opposing = zero.T @ two + two.T @ zero
    expected = {(a, b) for a in animals for b in animals if a < b and opposing[a, b] <= most}
    found = find_compatible_pairs(stored(PackedGenotypes, codes), rows, animals, most)
    assert {tuple(pair) for pair in found.tolist()} == expected and len(found) == len(expected)
