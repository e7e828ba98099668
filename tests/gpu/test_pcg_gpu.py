"""Conjugate gradients on a real device: products and solutions of the CPU."""

import numpy as np
import pytest
from helpers.mixed_models import equations_of
from reference import models

from mmgibbs.engines.pcg.device_solver import DevicePcgSolver
from mmgibbs.engines.pcg.solver import PcgSolver
from mmgibbs.machine.threads import ALONE
from mmgibbs.simulation.simulate import beef_design, simulate_beef

pytestmark = pytest.mark.gpu


def solvers(design, G, R, device):
    equations = equations_of(design, "term")
    both = PcgSolver(equations, ALONE, "blocks"), DevicePcgSolver(equations, ALONE, device)
    for solver in both:
        solver.set_variances(G, R)
    return both


@pytest.mark.parametrize("name", models.NAMES)
def test_products_and_solutions(device, name):
    example = models.example(name)
    host, on_device = solvers(example.design, example.G, example.R, device)
    x = np.random.default_rng(2).standard_normal((int(host.bounds[-1]), 5)) * host.active[:, None]
    expected, found = host.times(x), on_device._download(on_device._times(on_device._upload(x)))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-11 * np.abs(expected).max())
    for a, b in zip(on_device.solve(1e-12).theta, host.solve(1e-12).theta, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-7 * max(1.0, np.abs(b).max()))


def test_many_right_hand_sides_of_a_large_system(device):
    herds = simulate_beef(20_000, 1)
    host, on_device = solvers(beef_design(herds), herds.G, herds.R, device)
    b = np.random.default_rng(3).standard_normal((int(host.bounds[-1]), 20)) * host.active[:, None]
    expected, found = (solver.solve_columns(b, np.zeros(b.shape), 1e-8, True) for solver in (host, on_device))
    np.testing.assert_allclose(found.x, expected.x, rtol=0, atol=1e-5 * np.abs(expected.x).max())
