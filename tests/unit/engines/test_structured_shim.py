"""The GPU form of the structured engine without a GPU: its kernels, compiled by g++, against the serial engine.

The engine is the one that runs on a GPU; only its device is another (host_device.py). Where every list is short the
doubles are those of the serial engine on the colour partition, bit for bit; where a list is cut into pieces its sum
runs in another order.
"""

import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from helpers.host_device import CompilingDevice, HostDevice
from helpers.support import mixed_model, random_draws, saved_draws
from reference import models

from benchmarks.effective import SAMPLED
from benchmarks.engines import one_system
from benchmarks.gpu import structured_row
from mmgibbs.engines.coloured_gpu.engine import StructuredGpuEngine
from mmgibbs.engines.coloured_gpu.resident import cut
from mmgibbs.engines.serial import SerialEngine
from mmgibbs.equations.partition import partition
from mmgibbs.equations.structured import structured_equations
from mmgibbs.errors import DeviceError, ModelError
from mmgibbs.models.covariance import CovarianceModel, blocks_recorded_together, full_block
from mmgibbs.models.design import CentringShift, Rescale
from mmgibbs.models.relationships.identity import Identity
from mmgibbs.models.terms import Effect
from mmgibbs.posterior.moments import Moments
from mmgibbs.sampler.chain import Chain, sample_chain
from mmgibbs.sampler.mixed_model import MixedModel
from mmgibbs.sampler.schedule import Schedule
from mmgibbs.simulation.simulate import beef_design, simulate_beef

KEY = (11, 2)


def equations_of(design, precision="double"):
    return structured_equations(design, partition(design, "colour"), precision)


def engines(example, library, update="level", precision="double", backwards=False):
    equations = equations_of(example.design, precision)
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


@pytest.mark.parametrize("update", ["level", "site"])
@pytest.mark.parametrize("name", models.ON_GPU)
def test_a_sweep_is_the_serial_sweep_bit_for_bit(name, update, shim):
    """The third sweep repeats what was recorded of the second."""
    truth, engine = engines(models.example(name), shim("double"), update)
    assert_same_state(swept(truth), swept(engine))
    assert engine.queue.device.graphs == 1


@pytest.mark.parametrize("name", ["three_traits_maternal", "fixed_groups", "fixed_covariates"])
def test_single_precision_too(name, shim):
    truth, engine = engines(models.example(name), shim("single"), precision="single")
    assert_same_state(swept(truth), swept(engine))


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


def test_a_record_that_meets_its_level_three_times(tmp_path, cut_lists):
    """In one piece of a long list, in which one thread moves the record by all of them."""
    rng, q, n = np.random.default_rng(5), 4, 20
    level = rng.integers(0, q, n).astype(np.int32)
    level[:4] = np.arange(4)
    names = ("direct", "social", "maternal")
    effects = [Effect(name, level, (0,), rng.uniform(0.2, 1.0, (n, 1)), (f"share_{name}",)) for name in names]
    G, R = [None, np.diag([3.0, 2.0, 1.0])], np.array([[4.0]])
    terms = [
        models.class_term("pen", np.arange(n) % 3, 3, [0]),
        models.random_term("group", effects, Identity(q), q),
    ]
    equations = equations_of(models.with_records(rng, n, terms, G, R))
    truth, engine = SerialEngine(equations), StructuredGpuEngine(equations, device=CompilingDevice(tmp_path))
    for e in (truth, engine):
        e.set_variances(G, R)
    for a, b in zip(swept(truth).fetch(), swept(engine).fetch(), strict=True):
        assert_near(b, a)
    assert_near(np.asarray(engine.resident.e), truth.e)


@pytest.fixture(scope="module")
def beef():
    data = simulate_beef(3000, 3)
    return data, beef_design(data)


@pytest.mark.parametrize("precision", ["double", "single"])
def test_beef_system(beef, shim, precision, monkeypatch):
    data, design = beef
    equations = equations_of(design, precision)
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


def triangle(k):
    return tuple((c, j) for c in range(k) for j in range(c + 1))


@pytest.mark.parametrize("name", ["direct_maternal", "random_regression", "fixed_groups", "same_effect_twice"])
def test_a_linear_change_of_a_term(name, shim, cut_lists):
    example = models.example(name)
    truth, engine = (swept(e) for e in engines(example, shim("double")))
    for i in example.random_terms():
        k = example.design.terms[i].n_components
        for elements in (triangle(k), ((k - 1, 0),)):
            for found, expected in zip(
                engine.scaling_products(i, elements), truth.scaling_products(i, elements), strict=True
            ):
                assert_near(found, expected)
        M = np.eye(k) + np.tril(np.arange(1.0, k * k + 1).reshape(k, k)) / (10 * k * k)
        for e in (truth, engine):
            e.transform_term(i, M)
        assert_near(engine.quadratic_form(i), truth.quadratic_form(i))
    for a, b in zip(truth.fetch(), engine.fetch(), strict=True):
        assert_near(b, a)
    assert_near(np.asarray(engine.resident.e), truth.e)


def sampled_model(example) -> MixedModel:
    def sampled(g):
        return CovarianceModel(np.asarray(g), False, full_block(len(g)), df=len(g) + 4.0, scale=np.asarray(g) * 3.0)

    blocks = blocks_recorded_together(example.design.patterns)
    residual = CovarianceModel(example.R, False, blocks, df=len(example.R) + 4.0, scale=example.R * 3.0)
    return MixedModel(example.design, tuple(None if g is None else sampled(g) for g in example.G), residual)


@pytest.mark.parametrize("name", ["direct_maternal", "fixed_groups"])
def test_a_chain_with_sampled_variances(name, shim, cut_lists):
    """Interwoven, with a refresh on the way: every operation of an engine in the order of a run."""
    example = models.example(name)
    equations, model = equations_of(example.design), sampled_model(example)
    both = SerialEngine(equations), StructuredGpuEngine(equations, device=HostDevice(shim("double")))
    model = replace(model, saved={example.design.terms[-1].name: np.array([2, 0])})
    schedule = Schedule(4, 36, 3, refresh_every=15, interweave=tuple(example.random_terms()))
    truth, found = (sample_chain(model, engine, schedule, KEY) for engine in both)
    assert_near(found.draws["R"], truth.draws["R"], 1e-9)
    for part, values in truth.moments.state().items():
        assert_near(found.moments.state()[part], values, 1e-9)
    for fact, values in truth.sample_stats.items():
        assert_near(found.sample_stats[fact], values, 1e-9)
    assert truth.tracked.keys() == found.tracked.keys()
    for followed, one in truth.tracked.items():
        for part, values in one.state().items():
            assert_near(found.tracked[followed].state()[part], values, 1e-9)
    for a, b in zip(random_draws(truth), random_draws(found), strict=True):
        assert_near(b, a, 1e-9)
    for a, b in zip(*(engine.fetch() for engine in both), strict=True):
        assert_near(b, a, 1e-9)


def test_a_start_in_the_middle_continues_the_chain(shim):
    example = models.example("direct_maternal")
    _, whole = engines(example, shim("double"))
    _, second = engines(example, shim("double"))
    second.start(swept(whole, 5).fetch())
    whole.refresh()
    for engine in (whole, second):
        engine.sweep(6, KEY)
    for a, b in zip(whole.fetch(), second.fetch(), strict=True):
        np.testing.assert_array_equal(a, b)


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


@pytest.mark.parametrize("precision", ["double", "single"])
def test_moments_on_the_device(shim, precision):
    """Draw by draw those of posterior.moments, on the user's scale; a term that no centring touches bit for bit."""
    example = models.example("fixed_covariates")
    design = on_another_scale(example)
    equations = equations_of(design, precision)
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


def test_moments_go_on_from_where_they_were(shim):
    """Their state, brought to the host and back into another engine: the same bits as without a stop."""
    example = models.example("direct_maternal")
    equations = equations_of(example.design)
    assert any(np.any(np.diff(lists.code.astype(int)) < 0) for lists in equations.terms)  # not in model order
    one, other = (StructuredGpuEngine(equations, device=HostDevice(shim("double"))) for _ in range(2))
    moments, stopped = one.moments(3), one.moments(3)
    resumed = other.moments(1)
    for engine in (one, other):
        engine.set_variances(example.G, example.R)
    for number in range(1, 9):
        one.sweep(number, KEY)
        moments.add()
        if number < 5:
            stopped.add()
        elif number == 5:
            resumed.restore(stopped.state())
        if number >= 5:
            other.restore(one.state())
            resumed.add()
    for part, values in moments.state().items():
        np.testing.assert_array_equal(resumed.state()[part], values)


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


def test_other_partitions_are_refused(shim):
    design = models.example("univariate_animal").design
    equations = structured_equations(design, partition(design, "term"))
    with pytest.raises(
        ModelError, match="found 'term', which cannot be combined with engine: structured; needed colour"
    ):
        StructuredGpuEngine(equations, device=HostDevice(shim("double")))


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


def test_a_device_that_is_too_small_is_refused_with_the_numbers(shim):
    equations = equations_of(models.example("univariate_animal").design)
    device = HostDevice(shim("double"))
    device.free = 1000
    with pytest.raises(DeviceError, match=r"found 1,000 bytes free on the device, needed [\d,]+ .*precision: single"):
        StructuredGpuEngine(equations, device=device)


def test_too_many_components_are_refused(shim, monkeypatch):
    monkeypatch.setattr("mmgibbs.models.gpu_rules.MAX_COMPONENTS", 4)
    equations = equations_of(models.example("three_traits_maternal").design)
    with pytest.raises(
        DeviceError, match="device: found gpu, which cannot be combined with term 'genetic', which has 5"
    ):
        StructuredGpuEngine(equations, device=HostDevice(shim("double")))


def test_the_benchmark_row(beef, shim, monkeypatch):
    """On the host its seconds say nothing, but every figure is there; without a device the row says why."""
    monkeypatch.setattr("benchmarks.gpu.COPIED", 1000)
    data, design = beef
    row = structured_row(design, data.G, data.R, sweeps=2, device=HostDevice(shim("single")))
    assert row["equations"] == design.n_equations
    assert 100 < row["bytes per sweep"] / data.n_animals < 1000
    assert all(row[name] > 0 for name in ("s per sample", "s per sample, variances sampled", "copy bandwidth, GB/s"))
    monkeypatch.setitem(sys.modules, "cupy", None)
    assert structured_row(design, data.G, data.R)["s per sample"].startswith("not measured (device: gpu needs CuPy")


@pytest.mark.slow
def test_bench_engines_with_a_device(shim, monkeypatch):
    """What the device did stands in the table, what bounds it above."""
    monkeypatch.setattr("benchmarks.gpu.COPIED", 1000)
    args = SimpleNamespace(scale=0.001, seed=1, sweeps=1, ess_sweeps=10, engines=["structured"])
    about, rows = one_system("small", args, HostDevice(shim("single")))
    row = next(row for row in rows if row["engine"] == "structured on a GPU")
    assert all(row[column] > 0 for column in ("s per sample", SAMPLED, "ESS/s, genetic variances (least)"))
    assert (
        about["structured on a GPU, device"] == "this host" and about["structured on a GPU, copy bandwidth, GB/s"] > 0
    )


def test_pieces_hold_every_entry_once_and_keep_records_together(monkeypatch):
    monkeypatch.setattr("mmgibbs.engines.coloured_gpu.resident.PIECE", 2)
    record = np.array([0, 1, 1, 1, 2, 3, 4, 4, 5])
    pieces, ptr = cut(np.array([0, 5]), np.array([5, 9]), record)
    np.testing.assert_array_equal(pieces, [[0, 0, 4], [0, 4, 4], [0, 4, 5], [1, 5, 8], [1, 8, 9]])
    np.testing.assert_array_equal(ptr, [0, 3, 5])


@pytest.mark.parametrize("name", ["direct_maternal", "bivariate_missing"])
def test_a_chain_that_pauses_goes_on_to_the_same_draws(name, shim):
    """State and moments leave one device and come to another, bit for bit."""
    example = models.example(name)
    priors = {i: (len(g) + 4.0, 3.0 * g) for i, g in enumerate(example.G) if g is not None} | {
        "residual": (9.0, 9.0 * example.R)
    }
    model = mixed_model(example.design, example.G, example.R, priors, saved=[example.design.terms[-1].name])
    schedule = Schedule(3, 10, 2, refresh_every=4, interweave=(len(example.G) - 1,))

    def chain(state=None):
        return Chain(
            model,
            StructuredGpuEngine(equations_of(example.design), "level", HostDevice(shim("double"))),
            schedule,
            KEY,
            state,
        )

    whole, parts = chain(), chain()
    whole.advance(13)
    for pause in (2, 8, 11):
        parts.advance(pause)
        parts = chain({key: array.copy() for key, array in parts.state().items()})
    parts.advance(13)
    one, other = parts.result(), whole.result()
    for a, b in zip(
        (*random_draws(one), one.draws["R"], *saved_draws(one).values()),
        (*random_draws(other), other.draws["R"], *saved_draws(other).values()),
        strict=True,
    ):
        np.testing.assert_array_equal(a, b)
    for part, values in other.moments.state().items():
        np.testing.assert_array_equal(one.moments.state()[part], values)
