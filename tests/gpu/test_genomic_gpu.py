"""Genomic relationships on a real device: made, inverted and swept as on the CPU, up to rounding."""

import numpy as np
import pytest
from helpers.mixed_models import equations_of
from reference import models

from mmgibbs.engines.coloured_gpu.engine import StructuredGpuEngine
from mmgibbs.engines.serial import SerialEngine
from mmgibbs.genotypes.on_device import DeviceMatrices
from mmgibbs.models.relationships.inverse import invert

pytestmark = pytest.mark.gpu
KEY = (7, 3)


class Normals:
    """Numbers in the place of genotypes."""

    def __init__(self, n, p):
        self.x = np.random.default_rng(1).standard_normal((p, n))

    def double(self, rows):
        return self.x[rows]


@pytest.mark.parametrize("update", ["level", "site"])
@pytest.mark.parametrize("name", models.DENSE)
def test_a_chain_is_that_of_the_serial_engine(device, name, update):
    example = models.example(name)
    equations = equations_of(example)
    engines = SerialEngine(equations, update), StructuredGpuEngine(equations, update, device)
    for engine in engines:
        engine.set_variances(example.G, example.R)
        for number in range(1, 6):
            engine.sweep(number, KEY)
    pairs = list(zip(*(engine.fetch() for engine in engines), strict=True))
    pairs += [tuple(engine.quadratic_form(i) for engine in engines) for i in example.random_terms()]
    for expected, found in pairs:
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9 * np.abs(expected).max())


def test_matrices_of_the_cpu(device):
    on, genotypes = DeviceMatrices(device), Normals(300, 5000)
    K = on.multiply(genotypes, np.arange(5000), 300)
    np.testing.assert_allclose(K, genotypes.x.T @ genotypes.x, rtol=0, atol=1e-9)
    K += K.T.copy()
    expected, found = invert(K), invert(K, on)
    np.testing.assert_allclose(found.values, expected.values, rtol=0, atol=1e-10 * np.abs(expected.values).max())
    with pytest.raises(np.linalg.LinAlgError):
        invert(K - 10 * np.trace(K) * np.eye(300), on)
