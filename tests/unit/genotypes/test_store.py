"""Stores: what goes in comes out, in the order asked for, in memory and from a file."""

import numpy as np
import pytest
from helpers.genotypes import ArraySource, codes_and_dosages, stored

from mmgibbs.genotypes.store import BLOCK, FixedGenotypes, PackedGenotypes, RealGenotypes, open_store, store_genotypes

KINDS = [PackedGenotypes, FixedGenotypes, RealGenotypes]


@pytest.mark.parametrize("kind", KINDS)
def test_calls_come_out_as_they_went_in(kind):
    codes, dosages = codes_and_dosages(9, 300, seed=1)
    assert np.array_equal(stored(kind, codes).decode(np.arange(9)), dosages, equal_nan=True)


@pytest.mark.parametrize("kind", KINDS)
def test_chosen_animals_and_snps_in_the_chosen_order(kind, tmp_path):
    codes, dosages = codes_and_dosages(BLOCK + 50, 200, seed=2)
    rng = np.random.default_rng(3)
    animals, snps = rng.permutation(200)[:131], rng.permutation(BLOCK + 50)[:70]
    store = store_genotypes(ArraySource(codes), animals, snps, tmp_path / "packed.npy", kind)
    assert np.array_equal(store.decode(store.every), dosages[snps][:, animals], equal_nan=True)
    assert not store.array.flags.writeable


def test_a_file_is_mapped_with_its_kind(tmp_path):
    codes, _ = codes_and_dosages(4, 130, seed=4)
    made = [
        store_genotypes(ArraySource(codes), np.arange(130), np.arange(4), tmp_path / f"{k.kind}.npy", k) for k in KINDS
    ]
    opened = [open_store(tmp_path / f"{k.kind}.npy", 130) for k in KINDS]
    assert [type(store) for store in opened] == [type(store) for store in made] == KINDS
    assert all(isinstance(store.array, np.memmap) for store in opened)


def test_two_bits_a_genotype():
    codes, _ = codes_and_dosages(3, 1280, seed=5)
    assert stored(PackedGenotypes, codes).array.nbytes == 3 * 1280 // 4


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


def test_counts():
    codes, _ = codes_and_dosages(20, 777, seed=9)
    expected = np.stack([(codes == code).sum(axis=1) for code in range(4)], axis=1)
    assert np.array_equal(stored(PackedGenotypes, codes).counts(), expected)
