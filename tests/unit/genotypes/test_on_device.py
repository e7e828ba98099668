"""Relationship matrices on a device, by NumPy in the place of CuPy: those of the CPU."""

import numpy as np
import pytest
from helpers.host_arrays import ArraysDevice
from unit.genotypes.test_relationship import case

from mmgibbs.errors import DeviceError
from mmgibbs.genotypes import on_device
from mmgibbs.genotypes.on_device import DeviceMatrices, device_matrices
from mmgibbs.genotypes.relationship import dominance, products, scaled_1, scaled_2
from mmgibbs.models.relationships.inverse import invert


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
