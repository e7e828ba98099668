"""Relationships from packed genotypes are the formulas of VanRaden (2008) and Vitezica et al. (2013), written out."""

import numpy as np
import pytest
from helpers.genotypes import codes_and_dosages, stored
from helpers.host_arrays import ArraysDevice

from mmgibbs.errors import DeviceError
from mmgibbs.genotypes import on_device, relationship
from mmgibbs.genotypes.components import principal_components
from mmgibbs.genotypes.on_device import DeviceMatrices, device_matrices
from mmgibbs.genotypes.relationship import (
    Additive,
    cross_products,
    dominance,
    fill_upper,
    products,
    scaled_1,
    scaled_2,
    vanraden_1,
    vanraden_2,
)
from mmgibbs.genotypes.store import KINDS, PackedGenotypes
from mmgibbs.models.relationships.inverse import invert


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


def test_edges_of_relationships():
    store, M, p = case()
    p = p.copy()
    p[:40] = 0.0
    Z = (M - 2 * p)[:, 40:] / np.sqrt(2 * p * (1 - p))[40:]
    np.testing.assert_allclose(vanraden_2(store, p, M.mean(axis=0)).matrix, Z @ Z.T / 260, atol=1e-12)
    matrix = np.arange(49.0).reshape(7, 7)
    expected = np.tril(matrix) + np.tril(matrix, -1).T
    fill_upper(matrix, block=3)
    np.testing.assert_array_equal(matrix, expected)
    codes, _ = codes_and_dosages(50, 20, seed=3)
    codes[:, 4] = 3
    store = stored(PackedGenotypes, codes)
    dosages = np.where(codes == 3, np.nan, codes.astype(float))
    mean = np.nanmean(dosages, axis=1)
    assert np.abs(vanraden_1(store, mean / 2, mean).matrix[4]).max() < 1e-6


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


@pytest.fixture
def on(monkeypatch):
    monkeypatch.setattr(on_device, "SNPS_AT_ONCE", 7)
    return DeviceMatrices(ArraysDevice())


@pytest.mark.parametrize("method", ["vanraden1", "vanraden2", "dominance"])
def test_matrices_of_the_cpu(on, method):
    store, M, frequency = case(p=40, n=31)
    if method == "dominance":
        expected, found = dominance(store, frequency), dominance(store, frequency, on)
    else:
        coded = (scaled_1 if method == "vanraden1" else scaled_2)(store, frequency, M.mean(axis=0))
        expected, found = products(*coded), products(*coded, on)
    np.testing.assert_allclose(found.matrix, expected.matrix, rtol=0, atol=1e-12)
    assert found.arithmetic == "double, on a GPU"


def test_the_inverse_of_the_cpu(on):
    x = np.random.default_rng(4).standard_normal((20, 30))
    K = x @ x.T / 30 + 0.1 * np.eye(20)
    expected, found = invert(K), invert(K, on)
    np.testing.assert_allclose(found.values, expected.values, rtol=0, atol=1e-10)
    np.testing.assert_array_equal(found.values, found.values.T)
    assert found.error < 1e-12
    with pytest.raises(np.linalg.LinAlgError):
        invert(K - 5 * np.eye(20), on)


def test_memory_is_said_in_bytes(monkeypatch):
    store, M, frequency = case(p=40, n=31)
    small = DeviceMatrices(ArraysDevice(1000))
    with pytest.raises(DeviceError, match="found 1,000 bytes free on the device, needed .* of 31 genotyped animals"):
        products(*scaled_1(store, frequency, M.mean(axis=0)), small)
    with pytest.raises(DeviceError, match="needed 30,752 for the inverse of the relationships of 31 genotyped animals"):
        invert(np.eye(31), small)
    monkeypatch.setattr(on_device, "Device", ArraysDevice)
    assert device_matrices("cpu") is None and device_matrices("auto") is None and device_matrices("gpu") is not None


def coded_lines(n, p):
    """Two lines that differ at a tenth of the SNPs, some genotypes missing."""
    codes, _ = codes_and_dosages(p, n, seed=5)
    codes[: max(1, p // 10), : n // 2] = 2
    codes[: max(1, p // 10), n // 2 :] = 0
    dosages = np.where(codes == 3, np.nan, codes.astype(float))
    mean = np.nanmean(dosages, axis=1)
    store = stored(PackedGenotypes, codes)
    return Additive(store, mean, np.full(p, 1 / np.sqrt(p)), mean)


@pytest.mark.parametrize("n, p", [(60, 200), (40, 25), (5, 100)])
def test_scores_and_shares(n, p):
    coded = coded_lines(n, p)
    G = products(coded, np.arange(p)).matrix
    roots, vectors = np.linalg.eigh(G)
    scores, shares = principal_components(coded, 2)
    np.testing.assert_allclose(shares, roots[::-1][:2] / G.trace(), rtol=1e-4)
    for j in range(2):
        expected = vectors[:, -1 - j] * np.sqrt(roots[-1 - j])
        assert abs(scores[:, j] @ expected) == pytest.approx(roots[-1 - j], rel=1e-3)
        assert scores[np.argmax(np.abs(scores[:, j])), j] > 0


def test_the_first_component_tells_the_lines_apart():
    scores, _ = principal_components(coded_lines(60, 200), 1)
    assert np.unique(np.sign(scores[:30, 0])).size == 1 and np.sign(scores[0, 0]) != np.sign(scores[40, 0])
    assert principal_components(coded_lines(3, 50), 4)[0].shape == (3, 3)
