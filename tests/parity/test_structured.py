"""The structured engine has the serial chain on the colour partition, bit for bit the same for any threads."""

import numpy as np
import pytest
from helpers.mixed_models import equations_of
from helpers.mixed_models import sampled as sampled_model
from helpers.selection import first
from numba import njit
from reference import models

from mmgibbs.engines.coloured.collapsed import CollapsedSweep
from mmgibbs.engines.coloured.engine import StructuredEngine
from mmgibbs.engines.coloured.lanes import LaneSweep
from mmgibbs.engines.coloured.pieces import LongSweep
from mmgibbs.engines.serial import SerialEngine
from mmgibbs.errors import ModelError
from mmgibbs.sampler.chain import sample_chain
from mmgibbs.sampler.schedule import Schedule
from mmgibbs.simulation.simulate import beef_design, simulate_beef

KEY = (11, 2)


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    """Small data meet what large data meet: classes of levels and records, lists in pieces, ranges of threads."""
    monkeypatch.setattr("mmgibbs.engines.coloured.collapsed.RECORDS_PER_PLACE", 0.1)
    monkeypatch.setattr("mmgibbs.engines.coloured.collapsed.PLACES", 64)
    monkeypatch.setattr("mmgibbs.equations.cell_classes.WORTHWHILE", 1)
    monkeypatch.setattr("mmgibbs.equations.cell_classes.MANY", 0)
    monkeypatch.setattr("mmgibbs.engines.coloured.pieces.PIECE", 7)
    monkeypatch.setattr("mmgibbs.engines.coloured.pieces.LONG", 14)
    monkeypatch.setattr("mmgibbs.engines.coloured.engine.SMALL", 10)


def states(example, engine, sampled: bool, sweeps: int = 100):
    if sampled:
        sample_chain(
            sampled_model(example.design, example.G, example.R),
            engine,
            Schedule(0, sweeps, sweeps, refresh_every=50),
            KEY,
        )
    else:
        engine.set_variances(example.G, example.R)
        for number in range(1, sweeps + 1):
            engine.sweep(number, KEY)
    return engine.fetch()


@pytest.mark.parametrize(
    "name",
    [
        "three_traits_maternal",
        "bivariate_missing",
        "random_regression",
        "user_relationship",
        "fixed_groups",
        "fixed_covariates",
        *models.DENSE,
        *models.SEVERAL_LEVELS,
    ],
)
@pytest.mark.parametrize("update", first(1, ["level", "site"]))
@pytest.mark.parametrize("sampled", [False, True])
def test_same_chain_as_serial(name, update, sampled):
    example = models.example(name)
    equations = equations_of(example)
    truth = states(example, SerialEngine(equations, update), sampled)
    one = states(example, StructuredEngine(equations, update, threads=1), sampled)
    for term, a, b in zip(example.design.terms, truth, one, strict=True):
        np.testing.assert_allclose(b, a, rtol=0, atol=1e-9 * np.abs(a).max(), err_msg=term.name)
    for threads in (2, 3):
        for a, b in zip(one, states(example, StructuredEngine(equations, update, threads), sampled), strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("classes", [True, False])
@pytest.mark.parametrize("name", ["fixed_groups", "sire_and_grandsire", "diallel"])
@pytest.mark.parametrize("sampled", [False, True], ids=["fixed variances", "sampled"])
def test_lanes_are_the_same_chain(name, classes, sampled, monkeypatch):
    """Held components, weights, groups that stand for both parents; records that meet a level through two effects."""
    monkeypatch.setattr("mmgibbs.engines.coloured.unrolled.UNROLL_FROM", 0)
    monkeypatch.setattr("mmgibbs.equations.cell_classes.WORTHWHILE", 0.1 if classes else 1000)
    monkeypatch.setattr("mmgibbs.equations.cell_classes.MANY", 0)
    example = models.example(name)
    equations = equations_of(example)
    engines = [SerialEngine(equations), *(StructuredEngine(equations, threads=t) for t in (1, 2))]
    lanes = [s.tables for s in engines[1].sweeps if isinstance(s, LaneSweep) and s.block.term == 1]
    assert lanes and (lanes[0].cells.cell_class.size > 0) == classes
    truth, one, two = (states(example, engine, sampled=sampled) for engine in engines)
    for a, b, c in zip(truth, one, two, strict=True):
        np.testing.assert_allclose(b, a, rtol=0, atol=1e-9 * np.abs(a).max())
        np.testing.assert_array_equal(b, c)


@pytest.fixture(scope="module")
def beef():
    data = simulate_beef(3000, 3)
    return data, beef_design(data)


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["double", "single"])
@pytest.mark.parametrize("few_levels", ["collapsed", "in pieces"])
def test_beef_with_lanes(beef, precision, few_levels, monkeypatch):
    monkeypatch.setattr("mmgibbs.engines.coloured.unrolled.UNROLL_FROM", 0)
    monkeypatch.setattr("mmgibbs.engines.coloured.collapsed.PLACES", 128 if few_levels == "collapsed" else 0)
    data, design = beef
    equations = equations_of(design, precision=precision)
    truth = SerialEngine(equations)
    engines = [StructuredEngine(equations, threads=t) for t in (1, 2)]
    sweeps = engines[0].sweeps
    assert any(isinstance(s, LaneSweep) for s in sweeps)
    if few_levels == "collapsed":
        assert [len(s.few.blocks) for s in sweeps if isinstance(s, CollapsedSweep)] == [2]
    else:
        assert any(len(s.pieces) > 1 for s in sweeps if isinstance(s, LongSweep))
    for engine in (truth, *engines):
        engine.set_variances(data.G, data.R)
        for number in range(1, 6):
            engine.sweep(number, KEY)
    for a, b, c in zip(truth.fetch(), *(e.fetch() for e in engines), strict=True):
        np.testing.assert_allclose(b, a, rtol=0, atol=(1e-9 if precision == "double" else 1e-3) * np.abs(a).max())
        np.testing.assert_array_equal(b, c)


@pytest.mark.slow  # compiles lanes in single precision
def test_a_last_group_of_lanes_is_filled_with_identities(beef, monkeypatch):
    """What an earlier group left in unused lanes (factors of nearly singular P) must not look like a level that cannot
    be drawn.
    """
    monkeypatch.setattr("mmgibbs.engines.coloured.unrolled.UNROLL_FROM", 0)
    data, design = beef
    equations = equations_of(design, precision="single")
    engine = StructuredEngine(equations)
    G = [None if g is None else 1e-4 * (0.01 * np.eye(len(g)) + 0.99) for g in data.G]
    engine.set_variances(G, data.R)
    engine.sweep(1, KEY)
    assert all(np.isfinite(t).all() for t in engine.fetch())


def test_levels_with_equal_records_form_classes(beef, monkeypatch):
    from mmgibbs.engines.coloured.lanes import parts_of_classes
    from mmgibbs.equations.base import precisions
    from mmgibbs.equations.records import sum_level_cross_products

    @njit
    def of_level(term, Rinv, level, out):
        sum_level_cross_products(term, Rinv, level, out)

    data, design = beef
    monkeypatch.setattr("mmgibbs.equations.cell_classes.MANY", 10**6)
    own_cells = equations_of(design).terms[-2]
    assert own_cells.cell_class.size == 0, "few levels keep cells of their own"
    monkeypatch.setattr("mmgibbs.equations.cell_classes.MANY", 0)
    shared = equations_of(design).terms[-2]
    which, classes = shared.cell_class, shared.cell_ptr.size - 1
    assert 1 < classes < which.size / 3 and set(which.tolist()) == set(range(classes))
    assert shared.cell_sums.nbytes < own_cells.cell_sums.nbytes / 3
    _, Rinv = precisions(design, data.G, data.R)
    parts = parts_of_classes(shared, Rinv)
    own, by_class = np.zeros(parts.shape[1:]), np.zeros(parts.shape[1:])
    for level in range(0, which.size, 17):
        of_level(own_cells, Rinv, np.uint64(level), own)
        of_level(shared, Rinv, np.uint64(level), by_class)
        np.testing.assert_array_equal(parts[which[level]], by_class)
        np.testing.assert_allclose(own, by_class, rtol=1e-14)


def test_levels_with_weights_are_swept_one_by_one(monkeypatch):
    """Lanes have no weights."""
    monkeypatch.setattr("mmgibbs.engines.coloured.unrolled.UNROLL_FROM", 0)
    example = models.example("pen_mates")
    equations = equations_of(example)
    truth = states(example, SerialEngine(equations), sampled=True)
    for a, b in zip(truth, states(example, StructuredEngine(equations, threads=1), sampled=True), strict=True):
        np.testing.assert_allclose(b, a, rtol=0, atol=1e-9 * np.abs(a).max())


def test_other_partitions_are_refused():
    design = models.example("univariate_animal").design
    with pytest.raises(
        ModelError, match="found 'term', which cannot be combined with engine: structured; needed colour"
    ):
        StructuredEngine(equations_of(design, "term"))
