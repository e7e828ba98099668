"""The hybrid engine on worker threads: the serial chain, the same bits whatever the threads do and when."""

import time

import numpy as np
import pytest
from helpers.mixed_models import equations_of, sampled
from reference import models

from mmgibbs.engines.hybrid import host as host_updates
from mmgibbs.engines.hybrid.engine import HybridEngine
from mmgibbs.engines.serial import SerialEngine
from mmgibbs.errors import ModelError
from mmgibbs.sampler.chain import sample_chain
from mmgibbs.sampler.schedule import Schedule

KEY = (7, 3)
EVERY = [
    ("colour", "level"),
    ("effect", "site"),
    ("colour", "site"),
    ("equal", "level"),
    ("equal", "site"),
    ("term", "level"),
    ("term", "site"),
]
FEW = ("bivariate_missing", "three_traits_maternal", "same_effect_twice", "fixed_covariates")


def run(engine, example, sweeps, first=1):
    engine.set_variances(example.G, example.R)
    for number in range(first, first + sweeps):
        engine.sweep(number, KEY)
    return engine.fetch()


def assert_same_state(example, one, other, tolerance=1e-9):
    for term, a, b in zip(example.design.terms, one, other, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=tolerance * np.abs(b).max(), err_msg=term.name)


def identical(one, other) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def delays(seed: int, longest: float = 3e-4, share: float = 0.2):
    """A hook that now and then holds an update up."""
    rng = np.random.default_rng(seed)
    hold = rng.uniform(0, longest, 4096) * (rng.random(4096) < share)
    calls = iter(range(1 << 60))

    def before_update(target: int, source: int) -> None:
        seconds = hold[next(calls) % hold.size]
        if seconds:
            time.sleep(seconds)

    return before_update


@pytest.fixture
def short_segments(monkeypatch):
    """Several queues per block also in small models."""
    monkeypatch.setattr(host_updates, "SEGMENT", 2)


# The serial engine's chain


@pytest.mark.parametrize(
    "name, kind, update", [(n, *e) for n in models.LISTED for e in (EVERY if n in FEW else EVERY[:2])]
)
def test_the_chain_of_the_serial_engine(name, kind, update):
    example = models.example(name)
    equations = equations_of(example, kind)
    serial, hybrid = SerialEngine(equations, update), HybridEngine(equations, update, threads=2)
    assert_same_state(example, run(hybrid, example, 100), run(serial, example, 100))
    for i in example.random_terms():
        np.testing.assert_allclose(hybrid.quadratic_form(i), serial.quadratic_form(i), rtol=1e-8)
    blocks = [tuple(range(example.design.n_traits))]
    for ours, theirs in zip(
        hybrid.residual_products(5, KEY, blocks), serial.residual_products(5, KEY, blocks), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-8)


@pytest.mark.slow  # compiles every kernel once more
def test_single_precision_follows_double():
    example = models.example("three_traits_maternal")
    single, double = (HybridEngine(equations_of(example, precision=p)) for p in ("single", "double"))
    assert single.x[0].dtype == np.float32
    assert_same_state(example, run(single, example, 50), run(double, example, 50), 1e-4)


# Bit for bit


@pytest.mark.parametrize(
    "name, kind, update",
    [
        ("direct_maternal", "colour", "level"),
        ("fixed_covariates", "effect", "site"),
        ("random_groups", "equal", "level"),
    ],
)
def test_threads_and_delays_never_change_the_chain(name, kind, update, short_segments):
    example = models.example(name)
    equations = equations_of(example, kind)
    alone = HybridEngine(equations, update, threads=1)
    expected = run(alone, example, 30)
    assert sum(map(len, alone.updates.segments)) > len(equations.partition.blocks)
    for threads in (2, 3):
        for seed in (None, 1):
            engine = HybridEngine(equations, update, threads=threads)
            engine.updates.before_update = None if seed is None else delays(seed)
            assert identical(run(engine, example, 30), expected)
            engine.close()


def test_threads_and_delays_never_change_a_chain_of_sampled_variances(short_segments):
    example = models.example("direct_maternal")
    equations, model, found = equations_of(example), sampled(example.design, example.G, example.R), []
    for seed in range(12):
        engine = HybridEngine(equations, threads=1 if seed == 0 else 2 + seed % 2)
        engine.updates.before_update = None if seed == 0 else delays(seed, 1e-4)
        result = sample_chain(model, engine, Schedule(0, 12), KEY)
        found.append([*engine.fetch(), result.draws["R"]])
        engine.close()
        assert identical(found[-1], found[0]), f"run {seed}"


def test_new_variances_are_primed_and_not_mixed_with_old_products():
    """Fixed, then other variances every sweep (the updates for the next sweep are then left out), then fixed again."""
    example = models.example("direct_maternal")
    equations = equations_of(example)
    serial, hybrid = SerialEngine(equations), HybridEngine(equations)
    for number in range(1, 21):
        if number in (1, 5) or 8 <= number < 14:
            for engine in (serial, hybrid):
                engine.set_variances(
                    [None if g is None else g * (1 + 0.1 * number) for g in example.G], example.R * (2 - 0.05 * number)
                )
        for engine in (serial, hybrid):
            engine.sweep(number, KEY)
        assert_same_state(example, hybrid.fetch(), serial.fetch())


def test_without_one_wait_the_chain_is_wrong(monkeypatch):
    """The last block, sampled before the others' updates of it are in."""
    example = models.example("direct_maternal")
    equations = equations_of(example)
    expected = run(HybridEngine(equations, threads=2), example, 10)
    wait = host_updates.HostUpdates.wait
    last = len(equations.partition.blocks) - 1
    monkeypatch.setattr(host_updates.HostUpdates, "wait", lambda self, k: None if k == last else wait(self, k))
    engine = HybridEngine(equations, threads=2)
    engine.updates.before_update = delays(1, 2e-3, share=1.0)
    found = run(engine, example, 10)
    engine.close()
    assert not identical(found, expected)
    with pytest.raises(AssertionError):
        assert_same_state(example, found, expected)


def test_an_update_that_fails_stops_the_sweep():
    example = models.example("univariate_animal")
    for threads in (1, 2):
        engine = HybridEngine(equations_of(example), threads=threads)
        engine.updates.before_update = lambda target, source: 1 // 0
        with pytest.raises(ZeroDivisionError):
            run(engine, example, 2)
        engine.close()


def test_worker_threads_end_with_their_engine():
    example = models.example("univariate_animal")
    engine = HybridEngine(equations_of(example), threads=3)
    run(engine, example, 1)
    workers = list(engine.updates._workers)
    assert len(workers) == 2 and all(w.is_alive() for w in workers)
    del engine
    for worker in workers:
        worker.join(5)
        assert not worker.is_alive()


# Refusals


def test_level_updates_need_whole_levels():
    example = models.example("bivariate_missing")
    with pytest.raises(ModelError, match="partition: found 'effect'.*update: site"):
        HybridEngine(equations_of(example, "effect"), "level")
