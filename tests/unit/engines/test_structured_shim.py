"""The GPU form of the structured engine without a GPU: the serial engine's doubles, but for sums of long lists."""

import gc
import weakref
from dataclasses import replace

import numpy as np
import pytest
from helpers.host_device import HostDevice
from helpers.mixed_model_chains import assert_same_results
from helpers.mixed_models import equations_of, sampled
from helpers.selection import first
from reference import models

from mmgibbs.engines.coloured_gpu.engine import StructuredGpuEngine
from mmgibbs.engines.serial import SerialEngine
from mmgibbs.errors import DeviceError, ModelError
from mmgibbs.models.covariance import CovarianceModel, blocks_recorded_together, full_block
from mmgibbs.models.design import CentringShift, Rescale
from mmgibbs.posterior.moments import Moments
from mmgibbs.sampler.chain import Chain, sample_chain
from mmgibbs.sampler.mixed_model import MixedModel
from mmgibbs.sampler.schedule import Schedule
from mmgibbs.simulation.simulate import beef_design, simulate_beef

KEY = (11, 2)


def engines(example, library, update="level", precision="double", backwards=False):
    equations = equations_of(example.design, precision=precision)
    both = SerialEngine(equations, update), StructuredGpuEngine(equations, update, HostDevice(library, backwards))
    for engine in both:
        engine.set_variances(example.G, example.R)
    return both


def swept(engine, sweeps=3):
    for number in range(1, sweeps + 1):
        engine.sweep(number, KEY)
    return engine


def assert_same_state(truth, engine):
    for term, a, b in zip(truth.equations.design.terms, truth.fetch(), engine.fetch(), strict=True):
        np.testing.assert_array_equal(b, a, err_msg=term.name)
    np.testing.assert_array_equal(np.asarray(engine.resident.e), truth.e)


def assert_near(found, expected, tolerance=1e-12):
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * np.abs(expected).max())


@pytest.fixture
def cut_lists(monkeypatch):
    """Lists of three entries are long, so that small data meet what large data meet."""
    monkeypatch.setattr("mmgibbs.engines.coloured_gpu.resident.PIECE", 3)
    monkeypatch.setattr("mmgibbs.engines.coloured_gpu.resident.LONG_VISITS", 2)
    monkeypatch.setattr("mmgibbs.engines.coloured_gpu.resident.LONG_RELATIVES", 1)


@pytest.mark.parametrize("name", models.ON_GPU)
def test_an_engine_ends_with_its_last_reference(name, shim):
    """Device memory does not wait for a collection of garbage."""
    example = models.example(name)
    _, engine = engines(example, shim("double"))
    engine.sweep(1, KEY)
    _ = engine.responses
    alive = weakref.ref(engine)
    gc.disable()
    try:
        del engine, _
        assert alive() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("update", ["level", "site"])
@pytest.mark.parametrize("name", models.ON_GPU)
def test_a_sweep_is_the_serial_sweep_bit_for_bit(name, update, shim):
    """The third sweep repeats what was recorded of the second."""
    truth, engine = engines(models.example(name), shim("double"), update)
    assert_same_state(swept(truth), swept(engine))
    assert engine.queue.device.graphs == 1


@pytest.mark.parametrize("few", [0, 16])
@pytest.mark.parametrize("name", models.ON_GPU)
def test_long_lists_in_pieces(name, few, shim, cut_lists, monkeypatch):
    """With classes of levels, too; a block to a level, or a thread to one of few pieces. The last thread first changes
    nothing: threads of a kernel share no data."""
    monkeypatch.setattr("mmgibbs.engines.coloured_gpu.engine.FEW_PIECES", few)
    monkeypatch.setattr("mmgibbs.equations.cell_classes.WORTHWHILE", 1)
    monkeypatch.setattr("mmgibbs.equations.cell_classes.MANY", 0)
    truth, engine = engines(models.example(name), shim("double"))
    _, other_way = engines(models.example(name), shim("double"), backwards=True)
    assert any(c.n_pieces > c.n_long > 0 for t in engine.resident.terms for c in t.colours)
    for a, b, c in zip(swept(truth).fetch(), swept(engine).fetch(), swept(other_way).fetch(), strict=True):
        assert_near(b, a)
        np.testing.assert_array_equal(b, c)
    drawn = {name for name in engine.queue.device.launched if "draw_l" in name}
    assert any("few_pieces" in name for name in drawn) == (few > 0) and len(drawn) > 0
    assert_near(np.asarray(engine.resident.e), truth.e)
    for e in (truth, engine):
        e.refresh()
    assert_near(np.asarray(engine.resident.e), truth.e)


@pytest.fixture(scope="module")
def beef():
    data = simulate_beef(3000, 3)
    return data, beef_design(data)


@pytest.mark.parametrize("precision", first(1, ["double", "single"]))
def test_beef_system(beef, shim, precision, monkeypatch):
    data, design = beef
    equations = equations_of(design, precision=precision)
    cut_up = StructuredGpuEngine(equations, device=HostDevice(shim(precision)))
    assert cut_up.resident.terms[3].n_classes > 1
    assert max(c.n_pieces for t in cut_up.resident.terms for c in t.colours) > 3
    monkeypatch.setattr("mmgibbs.engines.coloured_gpu.resident.LONG_VISITS", 10**6)
    monkeypatch.setattr("mmgibbs.engines.coloured_gpu.resident.LONG_RELATIVES", 10**6)
    truth, whole, backwards = (
        SerialEngine(equations),
        StructuredGpuEngine(equations, device=HostDevice(shim(precision))),
        StructuredGpuEngine(equations, device=HostDevice(shim(precision), backwards=True)),
    )
    for engine in (truth, whole, backwards, cut_up):
        engine.set_variances(data.G, data.R)
        swept(engine)
    assert_same_state(truth, whole)
    assert_same_state(truth, backwards)
    for a, b in zip(truth.fetch(), cut_up.fetch(), strict=True):
        assert_near(b, a, 1e-12 if precision == "double" else 1e-5)


@pytest.mark.parametrize("strands", [1, 7, 65_536])
@pytest.mark.parametrize(
    "name", ["direct_maternal", "three_traits_maternal", "user_relationship", "fixed_groups", "same_effect_twice"]
)
def test_products(name, strands, shim, monkeypatch):
    """One strand adds in the order of the CPU: the same doubles."""
    monkeypatch.setattr("mmgibbs.engines.coloured_gpu.sizes.STRANDS", strands)
    example = models.example(name)
    truth, engine = (swept(e) for e in engines(example, shim("double")))
    blocks = blocks_recorded_together(example.design.patterns)
    found, counts = engine.residual_products(9, KEY, blocks)
    expected, expected_counts = truth.residual_products(9, KEY, blocks)
    pairs = [(found, expected)] + [(engine.quadratic_form(i), truth.quadratic_form(i)) for i in example.random_terms()]
    for a, b in pairs:
        assert_near(a, b)
        assert strands > 1 or np.array_equal(a, b)
    np.testing.assert_array_equal(counts, expected_counts)


def on_another_scale(example):
    """A rescaling, a centring and an offset, as covariates bring them."""
    design = example.design
    means = np.random.default_rng(4).normal(size=(4, 2))
    one, is_2, every = np.ones((4, 1)), np.arange(4) == 2, [np.ones(t.n_levels, bool) for t in design.terms]
    return replace(
        design,
        rescale=(
            Rescale(1, (0, 1), np.array([[2.0, 0.5], [0.0, 3.0]])),
            Rescale(1, (2, 3), np.array([[1.5, -0.5], [0.2, 0.7]])),
        ),
        shifts=(
            CentringShift(0, 0, 1, (0, 1), np.arange(4, dtype=np.int32), means),
            CentringShift(0, 1, 1, (2, 3), np.array([1, 0, 3, 2], np.int32), means[:, ::-1]),
            CentringShift(3, 1, 2, (0,), np.zeros(3, np.int32), means[:1, :1]),
        ),
        offsets=((0, 0, 12.5), (3, 1, -4.0)),
        base=(  # level 2 of term 0 moves into term 3
            CentringShift(3, 0, 0, (0,), np.full(design.terms[3].n_levels, 2, np.int32), -one, every[3]),
            CentringShift(0, 0, 0, (0,), np.full(4, 2, np.int32), one, is_2 == 0),
            CentringShift(0, 0, 0, (0,), np.full(4, 2, np.int32), one, is_2 == 1),
        ),
    )


@pytest.mark.parametrize("precision", first(1, ["double", "single"]))
def test_moments_on_the_device(shim, precision):
    """Draw by draw those of posterior.moments, on the user's scale; a term that no centring touches bit for bit."""
    example = models.example("fixed_covariates")
    design = on_another_scale(example)
    equations = equations_of(design, precision=precision)
    engine = StructuredGpuEngine(equations, device=HostDevice(shim(precision)))
    engine.set_variances(example.G, example.R)
    host = Moments([(t.n_levels, t.n_components) for t in design.terms], 11, 3)
    device = engine.moments(host.batch_length)
    for number in range(1, 12):
        engine.sweep(number, KEY)
        draw = design.to_original_scale(engine.fetch())
        host.add(draw)
        device.add()
    for i, codes in ((0, [2, 0]), (4, [4, 1, 3])):
        assert_near(device.levels(i, codes), draw[i][codes])
    found, expected = device.state(), host.state()
    assert Moments.from_state(found).n_batches == host.n_batches == 3
    untouched = slice(-design.terms[-1].n_levels * 2, None)
    assert set(found) == set(expected)
    for part, values in expected.items():
        assert_near(found[part], values)
        np.testing.assert_array_equal(found[part][untouched], values[untouched])


def test_a_chain_that_reads_nothing_until_its_end_still_fails(shim):
    """Variances fixed: the level that cannot be drawn is named when the moments are brought over."""
    example = models.example("bivariate_missing")
    engine = StructuredGpuEngine(equations_of(example.design), device=HostDevice(shim("double")))
    known = CovarianceModel(-np.asarray(example.G[2]), True, full_block(2))
    residual = CovarianceModel(example.R, True, blocks_recorded_together(example.design.patterns))
    with pytest.raises(ModelError, match="term 'genetic'.*level number"):
        sample_chain(MixedModel(example.design, (None, None, known), residual), engine, Schedule(0, 3), KEY)


def test_a_level_that_cannot_be_drawn_is_named(shim):
    example = models.example("bivariate_missing")
    messages = []
    for engine in engines(example, shim("double")):
        engine.set_variances([*example.G[:2], -np.asarray(example.G[2])], example.R)
        with pytest.raises(ModelError, match="term 'genetic'.*level number") as error:
            engine.sweep(1, KEY)
            engine.quadratic_form(2)
        messages.append(str(error.value))
        engine.set_variances(example.G, example.R)
        engine.start()
        assert all(np.isfinite(t).all() for t in swept(engine).fetch())
    assert messages[0] == messages[1]


def test_other_data_of_a_chain_move_to_the_device(shim):
    example = models.example("bivariate_missing")
    truth, engine = (swept(e) for e in engines(example, shim("double")))
    values = np.random.default_rng(3).normal(size=example.design.n_records)
    for other in (truth, engine):
        other.replace_y(1, values)
        other.refresh()
    assert_same_state(swept(truth), swept(engine))
    state = engine.state()
    np.testing.assert_array_equal(state["y"], truth.y)
    _, there = engines(example, shim("double"))
    there.restore(state)
    there.refresh()
    np.testing.assert_array_equal(np.asarray(there.resident.y), truth.y)
    np.testing.assert_allclose(np.asarray(there.resident.e), truth.e, atol=1e-9 * np.abs(truth.e).max())


def test_too_many_components_are_refused(shim, monkeypatch):
    monkeypatch.setattr("mmgibbs.models.gpu_rules.MAX_COMPONENTS", 4)
    equations = equations_of(models.example("three_traits_maternal").design)
    with pytest.raises(
        DeviceError, match="device: found gpu, which cannot be combined with term 'genetic', which has 5"
    ):
        StructuredGpuEngine(equations, device=HostDevice(shim("double")))


@pytest.mark.parametrize("name", ["direct_maternal", "fixed_groups", "random_regression", "same_effect_twice"])
def test_a_chain_with_sampled_variances(name, shim, cut_lists):
    """Interwoven, with a refresh on the way: every operation of an engine in the order of a run."""
    example = models.example(name)
    equations, model = equations_of(example.design), sampled(example.design, example.G, example.R)
    both = SerialEngine(equations), StructuredGpuEngine(equations, device=HostDevice(shim("double")))
    schedule = Schedule(4, 36, 3, refresh_every=15, interweave=tuple(example.random_terms()))
    expected, found = (Chain(model, engine, schedule, KEY) for engine in both)
    for run in (expected, found):
        run.advance(40)
    assert_same_results(found, expected)
