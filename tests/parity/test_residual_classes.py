"""Residual classes: against the dense equations with the R of each record's class, between engines, and one class
against none.
"""

from dataclasses import replace

import numpy as np
import pytest
from helpers.support import exact_draws
from reference import dense, models
from reference.fake_device import FakeDevice

from mmgibbs.engines.choice import engine_class
from mmgibbs.engines.coloured.engine import StructuredEngine
from mmgibbs.engines.direct.standard_errors import posterior_sd
from mmgibbs.engines.hybrid.engine import HybridEngine
from mmgibbs.engines.pcg.solver import PcgSolver
from mmgibbs.engines.serial import SerialEngine
from mmgibbs.equations.partition import partition
from mmgibbs.equations.structured import structured_equations
from mmgibbs.models.covariance import CovarianceModel, blocks_recorded_together, full_block
from mmgibbs.models.residual import ClassBlocks, ResidualModel, fold_classes
from mmgibbs.sampler.chain import Chain, sample_chain
from mmgibbs.sampler.interweave import terms_to_interweave
from mmgibbs.sampler.mixed_model import MixedModel
from mmgibbs.sampler.schedule import Schedule

KEY = (17, 1)
NAMES = ("univariate_animal", "bivariate_missing", "three_traits_maternal")


def with_classes(design, names, seed=5):
    """Classes drawn at random for the records of a design."""
    of_record = np.random.default_rng(seed).integers(0, len(names), design.n_records)
    pattern, patterns, of_pattern = fold_classes(design.pattern, design.patterns, of_record, len(names))
    return replace(design, pattern=pattern, patterns=patterns, pattern_class=of_pattern, residual_classes=names)


def matrices(R, n):
    """(n, T, T): very different ones."""
    scales = np.array([1.0, 4.0, 0.2])[:n, None, None]
    return R * scales + np.eye(len(R)) * np.arange(n)[:, None, None] / 3


def example_of(name, n=3):
    """(design with classes, G, R of each class)"""
    example = models.example(name)
    return with_classes(example.design, tuple("abc"[:n])), example.G, matrices(np.asarray(example.R), n)


def sampled(design, G, R):
    """Everything sampled under proper priors."""

    def covariance(start, blocks):
        start = np.asarray(start, float)
        return CovarianceModel(start, False, blocks, len(start) + 4.0, 3.0 * start)

    own = [design.patterns[design.class_of_pattern == c] for c in range(max(1, len(design.residual_classes)))]
    each = R if np.ndim(R) == 3 else [R]
    residual = tuple(covariance(r, blocks_recorded_together(p)) for r, p in zip(each, own, strict=True))
    terms = tuple(None if g is None else covariance(g, full_block(len(g))) for g in G)
    return MixedModel(design, terms, ResidualModel(residual, design.residual_classes))


@pytest.mark.parametrize("name", NAMES)
def test_solutions_and_pev_are_those_of_the_dense_equations(name):
    design, G, R = example_of(name)
    expected = dense.build(design, G, R)
    solver = PcgSolver(structured_equations(design, partition(design)))
    solver.set_variances(G, R)
    found = expected.vector(solver.solve(1e-13).theta)
    np.testing.assert_allclose(found, expected.solution, atol=1e-9 * np.abs(expected.solution).max())
    sd = expected.vector(posterior_sd(design, G, R))
    np.testing.assert_allclose(sd, np.sqrt(np.diag(expected.covariance)), rtol=1e-9)
    other = dense.build(design, G, R[::-1])  # classes confused are seen
    assert np.abs(other.solution - expected.solution).max() > 1e-3 * np.abs(expected.solution).max()


@pytest.mark.parametrize("name", NAMES)
def test_residual_products_are_those_of_the_class_alone(name):
    design, G, R = example_of(name)
    engine = SerialEngine(structured_equations(design, partition(design)))
    engine.set_variances(G, R)
    engine.sweep(1, KEY)
    of_class = tuple(blocks_recorded_together(design.patterns[design.class_of_pattern == c]) for c in range(3))
    total, counts = engine.residual_products(2, KEY, ClassBlocks(of_class, design.class_of_pattern))
    records = engine.equations.records
    for c in range(3):
        own = np.flatnonzero(design.class_of_pattern[records.pattern] == c)
        keep = np.sort(records.record[own])
        lone = replace(
            design,
            y=design.y[keep],
            weight=design.weight[keep],
            pattern=design.pattern[keep],
            terms=tuple(_of_records(t, keep) for t in design.terms),
        )
        few = SerialEngine(structured_equations(lone, partition(lone)))
        few.set_variances(G, R)
        order = np.argsort(records.record[own])
        few.e[:] = engine.e[own][order][few.equations.records.record]
        complete = design.patterns[records.pattern[own]].all(axis=1)
        found, n = few.residual_products(2, KEY, ClassBlocks(of_class, design.class_of_pattern))
        np.testing.assert_array_equal(counts[c], n[c])
        assert all(not found[other].any() for other in range(3) if other != c)
        if complete.all():
            w = records.weight[own] if records.weight.size else np.ones(own.size)
            np.testing.assert_allclose(total[c], (w[:, None] * engine.e[own]).T @ engine.e[own], rtol=1e-12)
            np.testing.assert_allclose(total[c], found[c], rtol=1e-12)


def _of_records(term, keep):
    def of(effect):
        covariates = None if effect.covariates is None else effect.covariates[keep]
        return replace(effect, level=effect.level[keep], covariates=covariates)

    return replace(term, incidence=replace(term.incidence, effects=tuple(map(of, term.effects))))


@pytest.mark.parametrize("name", NAMES)
def test_engines_draw_the_same_chain(name):
    """Structured on one and two threads to the bit, hybrid and structured as the serial one."""
    design, G, R = example_of(name)
    model = sampled(design, G, R)
    equations = structured_equations(design, partition(design, "colour"))
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
    equations = structured_equations(design, partition(design, "colour"))
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
        engine = make(structured_equations(design, partition(design)))
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
    engine = SerialEngine(structured_equations(design, partition(design)))
    result = sample_chain(replace(model, residual=residual), engine, Schedule(0, 5), (17, 2))  # starts are doubled
    np.testing.assert_array_equal(result.draws["R"][:, 1], np.broadcast_to(R[1], (5, 2, 2)))
    assert np.ptp(result.draws["R"][:, 0, 0, 0]) > 0 and np.ptp(result.draws["R"][:, 2, 0, 0]) > 0


@pytest.mark.parametrize("make", [SerialEngine, exact_draws])
def test_a_chain_continues_to_the_same_bits(make):
    design, G, R = example_of("bivariate_missing")
    model = sampled(design, G, R)
    equations, schedule = structured_equations(design, partition(design)), Schedule(3, 10, thin=2)
    whole = Chain(model, make(equations), schedule, KEY)
    whole.advance(13)
    first = Chain(model, make(equations), schedule, KEY)
    first.advance(6)
    state = {name: np.array(values) for name, values in first.state().items()}
    then = Chain(model, make(equations), schedule, KEY, state)
    then.advance(13)
    for parameter, values in whole.result().draws.items():
        np.testing.assert_array_equal(then.result().draws[parameter], values)


def test_every_engine_takes_residual_classes():
    design, *_ = example_of("univariate_animal")
    for engine in (engine_class("structured", "gpu"), engine_class("structured", "cpu"), engine_class("serial", "cpu")):
        assert engine.refuses(design) is None
