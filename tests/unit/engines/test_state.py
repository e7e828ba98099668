"""What every engine answers of its state: own data of a chain, and what it refuses."""

import gc
import weakref
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from helpers.mixed_models import equations_of
from helpers.selection import first
from helpers.support import exact_draws
from reference import models

from mmgibbs.engines.coloured.engine import StructuredEngine
from mmgibbs.engines.hybrid.engine import HybridEngine
from mmgibbs.engines.serial import SerialEngine

KEY = (4, 1)
ENGINES = {  # name -> partition, engine of equations
    "serial": ("term", SerialEngine),
    "serial, sites": ("effect", lambda eq: SerialEngine(eq, "site")),
    "structured": ("colour", lambda eq: StructuredEngine(eq, threads=2)),
    "hybrid": ("equal", lambda eq: HybridEngine(eq, threads=2)),
    "hybrid, sites": ("effect", lambda eq: HybridEngine(eq, "site")),
    "pcg": ("term", exact_draws),
    "pcg, fixed variances": ("term", partial(exact_draws, variances_fixed=True, draws_at_once=3)),
}


def engine_of(name, design, example, precision="double"):
    kind, make = ENGINES[name]
    engine = make(equations_of(design, kind, precision))
    engine.set_variances(example.G, example.R)
    return engine


@pytest.mark.parametrize("name", ["serial", "structured", "hybrid"])
def test_an_engine_ends_with_its_last_reference(name):
    """Its arrays, threads and device memory do not wait for a collection of garbage."""
    example = models.example("bivariate_missing")
    engine = engine_of(name, example.design, example)
    engine.sweep(1, KEY)
    alive = weakref.ref(engine)
    gc.disable()
    try:
        del engine
        assert alive() is None
    finally:
        gc.enable()


def other_data(example, trait):
    """(n,) values for a trait, records in model order, and the design that has them from the start."""
    y = example.design.y.copy()
    values = np.random.default_rng(3).normal(size=len(y)) * y[~np.isnan(y[:, trait]), trait].std()
    y[:, trait] = np.where(np.isnan(y[:, trait]), np.nan, values)
    return values, replace(example.design, y=y)


def sweeps(engine, first, last):
    for number in range(first, last + 1):
        engine.sweep(number, KEY)
    return engine.fetch()


def assert_near(found, expected, tolerance=1e-8):
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=tolerance * max(1.0, np.abs(b).max()))


@pytest.mark.parametrize("example_name", ["bivariate_missing", "direct_maternal", "random_regression"])
@pytest.mark.parametrize("name", ENGINES)
def test_other_data_are_as_if_they_had_been_there_from_the_start(name, example_name):
    """From the same Theta on; the chain of the other data is another one."""
    example = models.example(example_name)
    trait = example.design.n_traits - 1
    values, design = other_data(example, trait)
    engine, expected = engine_of(name, example.design, example), engine_of(name, design, example)
    assert engine.y is engine.equations.records.y
    theta = sweeps(engine, 1, 3)
    before = engine.e.copy()
    engine.replace_y(trait, values)
    expected.start(theta)
    observed = design.patterns[engine.equations.records.pattern]
    assert_near([engine.e[observed]], [expected.e[observed]])
    assert np.abs(engine.e - before)[observed].max() > 0
    assert_near(sweeps(engine, 4, 6), sweeps(expected, 4, 6))
    engine.refresh()
    assert_near([engine.e[observed]], [expected.e[observed]])
    unchanged = engine_of(name, example.design, example)
    unchanged.start(theta)
    assert max(np.abs(a - b).max() for a, b in zip(sweeps(unchanged, 4, 6), engine.fetch(), strict=True)) > 1e-3


@pytest.mark.parametrize("name", ENGINES)
def test_other_data_stay_when_variances_move_and_belong_to_one_chain(name):
    example = models.example("bivariate_missing")
    values, design = other_data(example, 1)
    engine, expected = engine_of(name, example.design, example), engine_of(name, design, example)
    shared = engine.equations.records.y.copy()
    engine.replace_y(1, values)
    for other in (engine, expected):
        other.set_variances([None if g is None else 2.0 * g for g in example.G], 0.5 * example.R)
    assert_near(sweeps(engine, 1, 3), sweeps(expected, 1, 3))
    np.testing.assert_array_equal(engine.equations.records.y, shared)


@pytest.mark.parametrize("precision", first(1, ["double", "single"]))
@pytest.mark.parametrize("name", ENGINES)
def test_other_data_are_part_of_the_state(name, precision):
    """Restored elsewhere, the chain has the same bits; without them it would not."""
    example = models.example("bivariate_missing")
    values, _ = other_data(example, 0)
    engine = engine_of(name, example.design, example, precision)
    assert "y" not in engine.state()
    engine.replace_y(0, values)
    sweeps(engine, 1, 4)
    state = {part: array.copy() for part, array in engine.state().items()}
    there, forgetful = (engine_of(name, example.design, example, precision) for _ in range(2))
    there.restore(state)
    forgetful.restore({part: array for part, array in state.items() if part != "y"})
    truth = sweeps(engine, 5, 8)
    forgetful.refresh()
    for a, b in zip(sweeps(there, 5, 8), truth, strict=True):
        np.testing.assert_array_equal(a, b)
    assert max(np.abs(a - b).max() for a, b in zip(sweeps(forgetful, 5, 8), truth, strict=True)) > 1e-3


@pytest.mark.parametrize("name", ENGINES)
def test_values_of_records_that_lack_the_trait_are_not_read(name):
    example = models.example("bivariate_missing")
    observed = example.design.patterns[example.design.pattern, 1]
    assert not observed.all()
    values, _ = other_data(example, 1)
    one, other = (engine_of(name, example.design, example) for _ in range(2))
    one.replace_y(1, values)
    other.replace_y(1, np.where(observed, values, np.nan))
    for a, b in zip(sweeps(one, 1, 2), sweeps(other, 1, 2), strict=True):
        np.testing.assert_array_equal(a, b)
