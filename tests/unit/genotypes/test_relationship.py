"""Relationships from packed genotypes are the formulas of VanRaden (2008) and Vitezica et al. (2013), written out."""

import numpy as np
import pytest
from helpers.genotypes import codes_and_dosages, stored

from mmgibbs.genotypes import relationship
from mmgibbs.genotypes.relationship import (
    cross_products,
    dominance,
    fill_upper,
    scaled_1,
    scaled_2,
    vanraden_1,
    vanraden_2,
)
from mmgibbs.genotypes.store import KINDS, PackedGenotypes


def case(kind="packed", p=300, n=140):
    """(store, dosages with the mean where missing (n, p), frequencies)."""
    codes, dosages = codes_and_dosages(p, n, seed=31)
    exactly = dosages.astype(float)
    M = np.where(np.isnan(dosages), np.nanmean(exactly, axis=1)[:, None], exactly).T
    source = codes if kind == "packed" else dosages
    return stored(KINDS[kind], source), M, M.mean(axis=0) / 2


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("half", [False, True])
def test_additive(kind, half):
    store, M, p = case(kind)
    p_used = np.full(len(p), 0.5) if half else p
    Z, pq2 = M - 2 * p_used, 2 * p_used * (1 - p_used)
    expected = [Z @ Z.T / pq2.sum(), (Z / np.sqrt(pq2)) @ (Z / np.sqrt(pq2)).T / len(p)]
    for make, matrix in zip((vanraden_1, vanraden_2), expected, strict=True):
        found = make(store, p_used, 2 * p)
        assert found.arithmetic == "double"
        np.testing.assert_allclose(found.matrix, matrix, atol=1e-12 if kind == "packed" else 1e-6)


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("make, scaled", [(vanraden_1, scaled_1), (vanraden_2, scaled_2)])
def test_columns_of_some_animals(monkeypatch, make, scaled, single):
    """With the diagonal and the sum of the whole matrix."""
    store, _, p = case()
    whole, chosen = make(store, p, 2 * p).matrix, np.array([2, 3, 90])
    monkeypatch.setattr(relationship, "DOUBLE_UP_TO", 0 if single else np.inf)
    monkeypatch.setattr(relationship, "BLOCK", 64)
    found = cross_products(*scaled(store, p, 2 * p), chosen)
    tolerance = {"atol": 3e-6 if single else 1e-12}
    np.testing.assert_allclose(found.matrix, whole[:, chosen], **tolerance)
    np.testing.assert_allclose(found.diagonal, whole.diagonal(), **tolerance)
    assert found.total == pytest.approx(whole.sum(), abs=3e-2 if single else 1e-9)
    assert found.arithmetic.startswith("products of 64 SNPs" if single else "double")


def test_snps_without_variance_are_no_part_of_the_mean():
    store, M, p = case()
    p = p.copy()
    p[:40] = 0.0
    Z = (M - 2 * p)[:, 40:] / np.sqrt(2 * p * (1 - p))[40:]
    np.testing.assert_allclose(vanraden_2(store, p, M.mean(axis=0)).matrix, Z @ Z.T / 260, atol=1e-12)


def test_dominance():
    codes, _ = codes_and_dosages(300, 140, seed=31)
    store, _, p = case()
    q = 1 - p
    W = np.choose(codes.T, [-2 * p**2, 2 * p * q, -2 * q**2, np.zeros(300)])
    found = dominance(store, p).matrix
    np.testing.assert_allclose(found, W @ W.T / np.sum((2 * p * q) ** 2), atol=1e-12)


def test_products_of_blocks_in_single_precision(monkeypatch):
    """Large matrices: within what single precision holds of sums of a block."""
    store, _, p = case()
    double = vanraden_1(store, p, 2 * p).matrix
    monkeypatch.setattr(relationship, "DOUBLE_UP_TO", 0)
    monkeypatch.setattr(relationship, "BLOCK", 64)
    found = vanraden_1(store, p, 2 * p)
    assert found.arithmetic.startswith("products of 64 SNPs in single precision")
    np.testing.assert_allclose(found.matrix, double, atol=3e-6)
    np.testing.assert_array_equal(found.matrix, found.matrix.T)


def test_the_upper_triangle_is_the_lower_one():
    matrix = np.arange(49.0).reshape(7, 7)
    expected = np.tril(matrix) + np.tril(matrix, -1).T
    fill_upper(matrix, block=3)
    np.testing.assert_array_equal(matrix, expected)


def test_a_store_of_nothing_known():
    """A missing genotype is the mean of its SNP: an animal without any is related to no one more than the average."""
    codes, _ = codes_and_dosages(50, 20, seed=3)
    codes[:, 4] = 3
    store = stored(PackedGenotypes, codes)
    dosages = np.where(codes == 3, np.nan, codes.astype(float))
    mean = np.nanmean(dosages, axis=1)
    assert np.abs(vanraden_1(store, mean / 2, mean).matrix[4]).max() < 1e-6
