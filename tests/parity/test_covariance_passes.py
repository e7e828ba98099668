"""What the structured engine gives the draws of covariance matrices is what the serial engine gives them."""

import numpy as np
import pytest
from helpers.mixed_models import equations_of, starting_point
from reference import models

from mmgibbs.draws.purpose import Site
from mmgibbs.engines.coloured import record_rows, squares
from mmgibbs.engines.coloured.engine import StructuredEngine
from mmgibbs.engines.serial import SerialEngine
from mmgibbs.equations.structured import Records
from mmgibbs.machine.threads import Threads
from mmgibbs.models.covariance import blocks_recorded_together
from mmgibbs.models.residual import ClassBlocks

KEY = (3, 1)


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    """Small data meet what large data meet: rows as vectors, several pieces and blocks of lanes."""
    monkeypatch.setattr("mmgibbs.engines.coloured.unrolled.UNROLL_FROM", 0)
    monkeypatch.setattr("mmgibbs.machine.threads.PIECE", 7)


def engines(name, precision="double"):
    """Serial, and structured on 1, 2 and 3 threads, after two sweeps from the same start."""
    example = models.example(name)
    equations = equations_of(example, precision=precision)
    out = [SerialEngine(equations), *(StructuredEngine(equations, threads=t) for t in (1, 2, 3))]
    for engine in out:
        engine.set_variances(example.G, example.R)
        engine.start(starting_point(example))
    return example, out


def hold(serial, one, *more, rtol):
    np.testing.assert_allclose(one, serial, rtol=0, atol=rtol * np.abs(serial).max())
    for other in more:
        np.testing.assert_array_equal(other, one)


def each_is_near(name, precision, rtol):
    example, every = engines(name, precision)
    equations = every[1].equations
    fits = [i for i in example.random_terms() if record_rows.row_tuples(equations, i) is not None]
    assert fits and every[1].threads.pieces(example.design.n_records).count > 1
    patterns = example.design.patterns
    for i in example.random_terms():
        hold(*(e.quadratic_form(i) for e in every), rtol=rtol)
        k = example.design.terms[i].n_components
        elements = tuple((c, j) for c in range(k) for j in range(c + 1))
        for part in zip(*(e.scaling_products(i, elements) for e in every), strict=True):
            hold(*part, rtol=rtol)
        M = np.eye(k) + np.tril(np.random.default_rng(i).normal(size=(k, k))) / 5
        for e in every:
            e.transform_term(i, M)
        hold(*(e.theta[i] for e in every), rtol=rtol)
        hold(*(np.where(patterns[e.equations.records.pattern], e.e, 0.0) for e in every), rtol=rtol)
    blocks = blocks_recorded_together(patterns)
    products = [e.residual_products(4, KEY, blocks) for e in every]
    hold(*(p for p, _ in products), rtol=rtol)
    hold(*(n for _, n in products), rtol=0)
    every_other = ClassBlocks((blocks, blocks), np.arange(len(patterns)) % 2)
    for e in every:
        e.R = np.stack([example.R, 2 * example.R])
    hold(*(e.residual_products(4, KEY, every_other)[0] for e in every), rtol=rtol)


@pytest.mark.parametrize(
    "name, precision, rtol",
    [
        ("direct_maternal", "double", 1e-11),  # missing traits, a maternal effect
        pytest.param("direct_maternal", "single", 1e-5, marks=pytest.mark.slow),
        ("fixed_groups", "double", 1e-11),  # deviations from flat groups, weights
        ("univariate_animal", "double", 1e-11),  # no trait is missing: one pattern, with weights
        ("single_step_maternal", "double", 1e-11),  # one pattern, two effects
        pytest.param("single_step_maternal", "single", 1e-5, marks=pytest.mark.slow),
        ("populations", "double", 1e-11),  # one pattern, two traits
        pytest.param("sire_and_grandsire", "double", 1e-11, marks=pytest.mark.slow),  # a level met through two effects
        pytest.param("never_together", "double", 1e-11, marks=pytest.mark.slow),
    ],
)
def test_passes_are_those_of_the_serial_engine(name, precision, rtol):
    each_is_near(name, precision, rtol)


@pytest.mark.parametrize(
    "spoiled",
    [
        ("sum_places", lambda good: lambda plan, xx, xe: good(plan, xx, np.zeros_like(xe))),
        ("rows_of_traits", lambda good: lambda *a: good(*a) * np.arange(2)[:, None, None]),
        (
            "sum_rows",
            lambda good: lambda *a: good(a[0], a[1]._replace(levels=a[1].levels[::-1].copy()), *a[2:]),
        ),  # each record another's levels
    ],
)
@pytest.mark.parametrize("name", ["direct_maternal", "single_step_maternal"])
def test_a_spoiled_pass_is_noticed(name, spoiled, monkeypatch):
    what, make = spoiled
    monkeypatch.setattr(record_rows, what, make(getattr(record_rows, what)))
    with pytest.raises(AssertionError):
        each_is_near(name, "double", 1e-11)


def test_complete_records_keep_every_residual(monkeypatch):
    good = squares.complete_records
    monkeypatch.setattr(squares, "complete_records", lambda *a: type(good(*a))(*(m * 0 for m in good(*a))))
    with pytest.raises(AssertionError):
        each_is_near("populations", "double", 1e-11)


@pytest.mark.parametrize("T", [1, 2, 3, 4])
@pytest.mark.parametrize("classes", [1, 2])
def test_sums_of_complete_records_are_plain_sums(T, classes):
    rng, n = np.random.default_rng(3), 50
    e, weight, pattern = rng.normal(size=(n, T)), rng.uniform(0.5, 2, n), rng.integers(classes, size=n)
    records = Records(np.empty((0, T)), pattern.astype(np.uint8), weight, np.arange(n, dtype=np.uint32))
    for threads in (1, 3):
        data = records, e, (0,) * T, None, np.arange(classes), classes
        found = squares.augmented_products(*data, site=Site(1, 1, *KEY), threads=Threads(threads))
        expected = [(e[own].T * weight[own]) @ e[own] for own in (pattern == c for c in range(classes))]
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_normals_that_no_pattern_needs_are_the_only_ones_left_out(monkeypatch):
    monkeypatch.setattr(squares, "sum_augmented", _with_pairs(squares.sum_augmented, np.zeros_like))
    with pytest.raises(AssertionError):
        each_is_near("direct_maternal", "double", 1e-11)


def _with_pairs(kernel, spoil):
    at = 5  # of the columns among the arguments of sum_augmented

    def spoiled(*args):
        return kernel(*args[:at], args[at]._replace(pairs=spoil(args[at].pairs)), *args[at + 1 :])

    return spoiled


def test_pieces_do_not_depend_on_the_threads():
    cuts = []
    for threads in (1, 2, 5):
        seen = []
        Threads(threads).pieces(100)(lambda size, a, b, seen=seen: seen.extend((size, p) for p in range(a, b)))
        cuts.append(sorted(seen))
    assert cuts[0] == cuts[1] == cuts[2] == [(7, p) for p in range(15)]
    Threads(2).pieces(0)(lambda *_: pytest.fail("there is nothing to do"))
