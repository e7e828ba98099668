"""The structured engine on a real device: the CPU engines' chain, and seconds per sweep beside the bytes it moves."""

from dataclasses import replace

import numpy as np
import pytest
from helpers.mixed_models import equations_of, one_trait, sampled
from helpers.support import saved_draws
from reference import models

from mmgibbs.engines.coloured.engine import StructuredEngine
from mmgibbs.engines.coloured_gpu.engine import StructuredGpuEngine
from mmgibbs.engines.serial import SerialEngine
from mmgibbs.errors import ModelError
from mmgibbs.models.covariance import blocks_recorded_together
from mmgibbs.models.families import Categories
from mmgibbs.posterior.moments import Moments
from mmgibbs.sampler.chain import sample_chain
from mmgibbs.sampler.schedule import Schedule
from mmgibbs.simulation.simulate import beef_design, simulate_beef

pytestmark = pytest.mark.gpu
KEY = (7, 3)


def swept(engine, G, R, sweeps):
    engine.set_variances(G, R)
    for number in range(1, sweeps + 1):
        if number == sweeps // 2:  # a recorded sweep reads the new variances
            engine.set_variances([None if g is None else 1.5 * np.asarray(g) for g in G], R * 0.8)
        engine.sweep(number, KEY)
    return engine.fetch()


def assert_near(found, expected, tolerance):
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * np.abs(expected).max())


@pytest.mark.parametrize("update", ["level", "site"])
@pytest.mark.parametrize("name", models.ON_GPU)
def test_short_lists_give_the_serial_doubles(device, name, update):
    example = models.example(name)
    equations = equations_of(example.design)
    truth, found = (
        swept(e, example.G, example.R, 20)
        for e in (SerialEngine(equations, update), StructuredGpuEngine(equations, update, device))
    )
    for a, b in zip(truth, found, strict=True):
        np.testing.assert_array_equal(b, a)


@pytest.fixture(scope="module")
def beef():
    herds = simulate_beef(100_000, 1)
    return herds, beef_design(herds)


@pytest.mark.parametrize("precision, tolerance", [("double", 1e-9), ("single", 1e-3)])
def test_a_large_system_follows_the_cpu(device, beef, precision, tolerance):
    """Sires with thousands of progeny, two sexes, contemporary groups; the same run twice gives the same bits."""
    herds, design = beef
    equations = equations_of(design, precision=precision)
    expected = swept(StructuredEngine(equations, threads=2), herds.G, herds.R, 5)
    one, two = (swept(StructuredGpuEngine(equations, device=device), herds.G, herds.R, 5) for _ in range(2))
    for a, b, c in zip(expected, one, two, strict=True):
        assert_near(b, a, tolerance)
        np.testing.assert_array_equal(b, c)


def test_products_changes_and_moments(device, beef):
    herds, design = beef
    equations = equations_of(design)
    truth, engine = StructuredEngine(equations, threads=2), StructuredGpuEngine(equations, device=device)
    host, moments = Moments([(t.n_levels, t.n_components) for t in design.terms], 6, 3), engine.moments(2)
    for e in (truth, engine):
        e.set_variances(herds.G, herds.R)
    for number in range(1, 7):
        for e in (truth, engine):
            e.sweep(number, KEY)
        host.add(design.to_original_scale(truth.fetch()))
        moments.add()
    expected, found = host.state(), moments.state()
    for part in expected:
        assert_near(found[part], expected[part], 1e-9)
    genetic, k = 3, 4
    elements = tuple((c, j) for c in range(k) for j in range(c + 1))
    M = np.eye(k) + 0.01 * np.tril(np.ones((k, k)))
    blocks = blocks_recorded_together(design.patterns)
    for _ in range(2):
        assert_near(engine.quadratic_form(genetic), truth.quadratic_form(genetic), 1e-9)
        assert_near(engine.residual_products(8, KEY, blocks)[0], truth.residual_products(8, KEY, blocks)[0], 1e-9)
        for a, b in zip(
            engine.scaling_products(genetic, elements), truth.scaling_products(genetic, elements), strict=True
        ):
            assert_near(a, b, 1e-9)
        for e in (truth, engine):
            e.transform_term(genetic, M)
            e.refresh()


def test_a_chain_whose_moments_stay_on_the_device(device):
    """Sampled variances, thinning and chosen levels: what a run records."""
    example = models.example("direct_maternal")
    model = sampled(example.design, example.G, example.R)
    model = replace(model, saved={example.design.terms[-1].name: np.array([2, 0])})
    equations, schedule = equations_of(example.design), Schedule(4, 60, 3, refresh_every=25)
    truth, found = (
        sample_chain(model, engine, schedule, KEY)
        for engine in (StructuredEngine(equations), StructuredGpuEngine(equations, device=device))
    )
    for part, values in truth.moments.state().items():
        assert_near(found.moments.state()[part], values, 1e-9)
    for name, values in saved_draws(truth).items():
        assert_near(saved_draws(found)[name], values, 1e-9)


@pytest.mark.parametrize("kind", ["binary", "ordinal", "censored", "count"])
def test_traits_that_are_not_normal(device, kind):
    """Liabilities bit for bit, and the chain, as far as sums of thresholds and scales decide alike."""
    model = one_trait(kind)
    equations = equations_of(model.design)
    truth, engine = SerialEngine(equations), StructuredGpuEngine(equations, device=device)
    response = model.design.responses[0]
    cuts = response.start_of_cuts() if isinstance(response, Categories) else np.array([-np.inf, np.inf])
    for e in (truth, engine):
        e.set_variances([None if c is None else c.start for c in model.covariances], model.residual.start)
    truth.sweep(1, KEY)
    engine.restore(truth.state())
    for e in (truth, engine):
        e.responses.draw(0, cuts, 1, KEY)
    np.testing.assert_array_equal(engine.y, truth.y)
    expected, found = (sample_chain(model, e, Schedule(4, 40, 2), KEY) for e in (truth, engine))
    for name, values in expected.draws.items():
        assert_near(found.draws[name], values, 1e-7)


def test_a_level_that_cannot_be_drawn_is_named(device):
    example = models.example("bivariate_missing")
    engine = StructuredGpuEngine(equations_of(example.design), device=device)
    engine.set_variances([*example.G[:2], -np.asarray(example.G[2])], example.R)
    engine.sweep(1, KEY)
    with pytest.raises(ModelError, match="term 'genetic'.*level number"):
        engine.fetch()
