"""Residual classes: against the dense equations, between engines, and one class against none."""

from dataclasses import replace

import numpy as np
import pytest
from helpers.mixed_models import equations_of, example_of, sampled, with_classes
from helpers.support import exact_draws
from reference import dense, models
from reference.fake_device import FakeDevice

from mmgibbs.engines.coloured.engine import StructuredEngine
from mmgibbs.engines.direct.standard_errors import posterior_sd
from mmgibbs.engines.hybrid.engine import HybridEngine
from mmgibbs.engines.pcg.solver import PcgSolver
from mmgibbs.engines.serial import SerialEngine
from mmgibbs.models.residual import ResidualModel
from mmgibbs.sampler.chain import sample_chain
from mmgibbs.sampler.interweave import terms_to_interweave
from mmgibbs.sampler.schedule import Schedule

KEY = (17, 1)
NAMES = ("univariate_animal", "bivariate_missing", "three_traits_maternal")


@pytest.mark.parametrize("name", NAMES)
def test_solutions_and_pev_are_those_of_the_dense_equations(name):
    design, G, R = example_of(name)
    expected = dense.build(design, G, R)
    solver = PcgSolver(equations_of(design, "term"))
    solver.set_variances(G, R)
    found = expected.vector(solver.solve(1e-13).theta)
    np.testing.assert_allclose(found, expected.solution, atol=1e-9 * np.abs(expected.solution).max())
    sd = expected.vector(posterior_sd(design, G, R))
    np.testing.assert_allclose(sd, np.sqrt(np.diag(expected.covariance)), rtol=1e-9)
    other = dense.build(design, G, R[::-1])  # classes confused are seen
    assert np.abs(other.solution - expected.solution).max() > 1e-3 * np.abs(expected.solution).max()


@pytest.mark.parametrize("name", NAMES)
def test_engines_draw_the_same_chain(name):
    """Structured on one and two threads to the bit, hybrid and structured as the serial one."""
    design, G, R = example_of(name)
    model = sampled(design, G, R)
    equations = equations_of(design)
    schedule = Schedule(0, 12, interweave=terms_to_interweave(model))
    makers = (
        SerialEngine,
        lambda eq: StructuredEngine(eq, threads=1),
        lambda eq: StructuredEngine(eq, threads=2),
        lambda eq: HybridEngine(eq, threads=2),
    )
    serial, one, two, hybrid = (sample_chain(model, make(equations), schedule, KEY) for make in makers)
    for parameter in serial.draws:
        np.testing.assert_array_equal(one.draws[parameter], two.draws[parameter])
        for other in (one, hybrid):
            scale = np.abs(serial.draws[parameter]).max()
            np.testing.assert_allclose(other.draws[parameter], serial.draws[parameter], atol=1e-9 * scale)
    assert serial.draws["R"].shape == (12, 3, design.n_traits, design.n_traits)


@pytest.mark.parametrize("name", ["bivariate_missing"])
def test_the_hybrid_engine_on_a_device_draws_the_chain_of_its_threads(name, tmp_path):
    """To the bit, on a device that runs late and at random; R of the classes in another order is another chain."""
    design, G, R = example_of(name)
    equations = equations_of(design)
    schedule = Schedule(0, 8)

    def draws(engine, R):
        return sample_chain(sampled(design, G, R), engine, schedule, KEY).draws["R"]

    expected = draws(HybridEngine(equations, threads=1), R)
    np.testing.assert_array_equal(draws(HybridEngine(equations, device=FakeDevice(tmp_path, 1)), R), expected)
    assert not np.array_equal(draws(HybridEngine(equations, threads=1), R[::-1]), expected)


@pytest.mark.parametrize("make", [SerialEngine, exact_draws])
def test_one_class_is_no_class(make):
    """Draw for draw, and to the bit."""
    example = models.example("bivariate_missing")
    chains = []
    for design, R in ((example.design, example.R), (with_classes(example.design, ("all",)), np.array([example.R]))):
        model = sampled(design, example.G, R)
        schedule = Schedule(2, 20, interweave=terms_to_interweave(model))
        engine = make(equations_of(design, "term"))
        chains.append((sample_chain(model, engine, schedule, KEY), engine.fetch()))
    (none, theta), (one, same) = chains
    np.testing.assert_array_equal(one.draws["R"][:, 0], none.draws["R"])
    np.testing.assert_array_equal(one.draws["G.2"], none.draws["G.2"])
    assert all(np.array_equal(a, b) for a, b in zip(theta, same, strict=True))


def test_a_class_that_is_held_fixed_stays_while_others_move():
    design, G, R = example_of("bivariate_missing")
    model = sampled(design, G, R)
    held = replace(model.residual.matrices[1], fixed=True)
    residual = ResidualModel((model.residual.matrices[0], held, model.residual.matrices[2]), model.residual.classes)
    engine = SerialEngine(equations_of(design, "term"))
    result = sample_chain(replace(model, residual=residual), engine, Schedule(0, 5), (17, 2))  # starts are doubled
    np.testing.assert_array_equal(result.draws["R"][:, 1], np.broadcast_to(R[1], (5, 2, 2)))
    assert np.ptp(result.draws["R"][:, 0, 0, 0]) > 0 and np.ptp(result.draws["R"][:, 2, 0, 0]) > 0
