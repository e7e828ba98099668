"""The classic explicit sampler against the serial engine and the dense equations."""

import numpy as np
import pytest
from helpers.classic import ClassicEngine
from helpers.sweep_rows import sweep_rows
from reference import dense, models

from mmgibbs.engines.serial import SerialEngine
from mmgibbs.equations.partition import partition
from mmgibbs.equations.structured import structured_equations
from mmgibbs.models.covariance import CovarianceModel, full_block
from mmgibbs.sampler.chain import sample_chain
from mmgibbs.sampler.mixed_model import MixedModel
from mmgibbs.sampler.schedule import Schedule

KEY = (7, 3)
KINDS = ("term", "effect", "equal", "colour")


def equations_of(example, kind="term", precision="double"):
    return structured_equations(example.design, partition(example.design, kind), precision)


def other_variances(example):
    rng = np.random.default_rng(1)
    draw = lambda k: (lambda L: L @ L.T)(rng.standard_normal((k, k)) / 2 + 2 * np.eye(k))
    return [None if g is None else draw(len(g)) for g in example.G], draw(len(example.R))


def assert_same_state(example, one, other, tolerance=1e-9):
    for term, a, b in zip(example.design.terms, one, other, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=tolerance * np.abs(b).max(), err_msg=term.name)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", models.NAMES)
def test_rows_are_the_dense_equations_in_sweep_order(name, kind):
    example = models.example(name)
    rows = sweep_rows(equations_of(example, kind))
    for G, R in ((example.G, example.R), other_variances(example), (example.G, example.R)):
        rows.set_variances(G, R)
        truth = dense.build(example.design, G, R)
        places = dense_places(example, truth, rows)
        C, b = np.diag(rows.diagonal), rows.right_hand_side
        for row in range(len(C)):
            at = slice(int(rows.indptr[row]), int(rows.indptr[row + 1]))
            assert len(set(rows.indices[at])) == at.stop - at.start
            C[row, rows.indices[at]] = rows.values[at]
        expected, rhs = np.zeros_like(C), np.zeros_like(b)
        expected[np.ix_(places, places)], rhs[places] = truth.C, truth.rhs
        np.testing.assert_allclose(C, expected, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(b, rhs, rtol=1e-10, atol=1e-10)


def dense_places(example, truth, rows):
    """The sweep row of each dense equation."""
    part, place = rows.equations.partition, {}
    for block, first in zip(part.blocks, rows.first[:-1], strict=True):
        for i, level in enumerate(part.order[block.term][block.first : block.last]):
            for c in range(block.first_component, block.last_component):
                place[block.term, int(level), c] = (
                    first + i * (block.last_component - block.first_component) + c - block.first_component
                )
    return [place[label] for label in truth.labels]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", models.NAMES)
def test_the_chain_of_the_serial_engine(name, kind):
    example = models.example(name)
    equations = equations_of(example, kind)
    serial, classic = SerialEngine(equations, "site"), ClassicEngine(equations)
    for engine in (serial, classic):
        engine.set_variances(example.G, example.R)
        for number in range(1, 201):
            engine.sweep(number, KEY)
    assert_same_state(example, classic.fetch(), serial.fetch())
    for i in example.random_terms():
        np.testing.assert_allclose(classic.quadratic_form(i), serial.quadratic_form(i), rtol=1e-8)
    blocks = [tuple(range(example.design.n_traits))]
    for ours, theirs in zip(
        classic.residual_products(5, KEY, blocks), serial.residual_products(5, KEY, blocks), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-8)


@pytest.mark.parametrize("name", ["univariate_animal", "bivariate_missing", "user_relationship"])
def test_sampled_variances(name):
    example = models.example(name)
    equations = equations_of(example)
    covariances = [
        None if g is None else CovarianceModel(g, False, full_block(len(g)), len(g) + 5.0, 5 * g) for g in example.G
    ]
    residual = CovarianceModel(example.R, False, full_block(len(example.R)), len(example.R) + 5.0, 5 * example.R)
    model = MixedModel(example.design, tuple(covariances), residual)
    schedule = Schedule(100, 100)
    serial, classic = SerialEngine(equations, "site"), ClassicEngine(equations)
    ours, theirs = (sample_chain(model, engine, schedule, KEY) for engine in (classic, serial))
    assert_same_state(example, classic.fetch(), serial.fetch())
    np.testing.assert_allclose(ours.draws["R"], theirs.draws["R"], rtol=1e-8)
    assert np.ptp(ours.draws["R"][:, 0, 0]) > 0


def test_single_precision_follows_double():
    example = models.example("three_traits_maternal")
    engines = [ClassicEngine(equations_of(example, precision=p)) for p in ("single", "double")]
    for engine in engines:
        engine.set_variances(example.G, example.R)
        for number in range(1, 51):
            engine.sweep(number, KEY)
    assert engines[0].x.dtype == engines[0].rows.values.dtype == np.float32
    assert_same_state(example, engines[0].fetch(), engines[1].fetch(), 1e-4)
