"""Sweeps and forms that read half of a dense block: what its tiles have of the levels after them, kept from before."""

import numpy as np
import pytest
from helpers.mixed_models import equations_of
from helpers.mutants import mutant
from reference import models

from mmgibbs.engines import dense_products
from mmgibbs.engines.coloured.engine import StructuredEngine
from mmgibbs.engines.dense_products import LaterTiles
from mmgibbs.engines.serial import SerialEngine
from mmgibbs.equations import dense as products
from mmgibbs.equations.dense import DenseLevels
from mmgibbs.errors import ModelError

KEY = (7, 3)


@pytest.fixture(autouse=True)
def small_tiles(monkeypatch):
    """Of 5 levels: blocks have several, the last of fewer levels."""
    monkeypatch.setattr(dense_products, "TILE", 5)


def block(m=23, k=2, real=np.float64):
    rng = np.random.default_rng(4)
    S = models.covariance_of(rng, m).astype(real)
    return DenseLevels(np.arange(m), S), np.ascontiguousarray(rng.standard_normal((k, m)))


def engine(name, threads=0, update="level", precision="double"):
    """threads: 0 for engine serial."""
    example = models.example(name)
    kind = "effect" if update == "site" else "colour"
    equations = equations_of(example, kind, precision)
    made = StructuredEngine(equations, update, threads) if threads else SerialEngine(equations, update)
    made.set_variances(example.G, example.R)
    return example, made


def after(S, columns):
    """The sums written out."""
    tile = np.arange(len(S)) // 5
    return columns @ np.where(tile[:, None] > tile[None, :], S, 0.0)


@pytest.mark.parametrize("real", [np.float64, np.float32])
def test_the_sums_are_those_over_later_tiles(real):
    levels, columns = block(real=real)
    np.testing.assert_allclose(LaterTiles(levels).at(columns), after(levels.values, columns), atol=1e-12)


def test_a_stretch_that_is_left_out_is_seen():
    spoilt = mutant(products, "out[j] += sum_0 + sum_2", "out[j] += sum_0")
    levels, columns = block()
    out = np.zeros(columns.shape)
    spoilt.add_of_rows(levels.values, 5, 10, columns, 0, 5, 4, out)
    assert np.abs(out[:, :5] - columns[:, 5:10] @ levels.values[5:10, :5]).max() > 0.1


@pytest.mark.parametrize("name", models.DENSE)
@pytest.mark.parametrize("update", ["level", "site"])
def test_sweeps_keep_what_would_be_made_anew(name, update):
    """A chain that forgets the sums before every sweep is the same, bit for bit: so is one that is continued."""
    (_, kept), (_, forgetful) = (engine(name, update=update) for _ in range(2))
    for number in range(1, 6):
        forgetful.dense_tiles.by_term.clear()
        for one in (kept, forgetful):
            one.sweep(number, KEY)
    for a, b in zip(kept.fetch(), forgetful.fetch(), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", models.DENSE)
def test_levels_times_a_matrix(name):
    """As interweaving moves them: the sums go along, a form needs no row of S, and a chain continues from its state."""
    example, made = engine(name)
    made.sweep(1, KEY)
    term = max(example.random_terms(), key=lambda i: made.equations.dense[i] is not None)
    k = made.theta[term].shape[1]
    made.transform_term(term, 1.3 * np.eye(k) + 0.1 * np.tri(k, k=-1))
    later, levels = made.dense_tiles.find(term), made.equations.dense[term]
    if not example.design.terms[term].groups_fixed:
        assert later.known(levels.columns(made.theta[term]))
    expected = after(levels.values, levels.columns(made.theta[term]))
    np.testing.assert_allclose(later.at(levels.columns(made.theta[term])), expected, atol=1e-12)
    state = {name: array.copy() for name, array in made.state().items()}
    _, continued = engine(name)
    continued.restore(state)
    for one in (made, continued):
        one.sweep(2, KEY)
    for a, b in zip(made.fetch(), continued.fetch(), strict=True):
        np.testing.assert_array_equal(a, b)


def test_sums_of_another_theta_would_be_seen(monkeypatch):
    """A change that no sweep made: theta is put."""
    name = "single_step_maternal"
    (example, right), (_, wrong) = (engine(name) for _ in range(2))
    term = max(example.random_terms(), key=lambda i: right.equations.dense[i] is not None)
    for one in (right, wrong):
        one.sweep(1, KEY)
        one.put_theta(term, 1.5 * one.theta[term])
        one.refresh()
    monkeypatch.setattr(LaterTiles, "known", lambda self, columns: True)
    wrong.sweep(2, KEY)
    monkeypatch.undo()
    monkeypatch.setattr(dense_products, "TILE", 5)
    right.sweep(2, KEY)
    assert any(not np.allclose(a, b) for a, b in zip(right.fetch(), wrong.fetch(), strict=True))


@pytest.mark.parametrize("name", models.DENSE)
def test_no_bit_depends_on_the_number_of_threads(name, monkeypatch):
    monkeypatch.setattr(dense_products, "STRETCH", 4)
    (_, one), (_, three) = (engine(name, threads=n) for n in (1, 3))
    for number in (1, 2, 3):
        for made in (one, three):
            made.sweep(number, KEY)
    for a, b in zip(one.fetch(), three.fetch(), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", models.DENSE)
def test_sweeps_by_short_stretches_are_those_by_one(name, monkeypatch):
    """Up to rounding: the sums over all stretches are those over the row."""
    (_, whole), (_, parted) = (engine(name) for _ in range(2))
    for number in (1, 2, 3):
        whole.sweep(number, KEY)
    monkeypatch.setattr(dense_products, "STRETCH", 2)
    for number in (1, 2, 3):
        parted.sweep(number, KEY)
    for a, b in zip(whole.fetch(), parted.fetch(), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-9)


def test_a_level_that_cannot_be_drawn_stops_all_threads(monkeypatch):
    """Of a tile in the middle: no thread waits for one that has left, and what follows is as if it had not been."""
    monkeypatch.setattr(dense_products, "STRETCH", 4)
    monkeypatch.setattr(dense_products, "TILE", 3)
    (example, made), (_, other) = (engine("genomic_relationships", threads=n) for n in (3, 1))
    term = next(i for i in example.random_terms() if made.equations.dense[i] is not None)
    for one in (made, other):
        S = one.equations.dense[term].values
        right, S[7, 7] = S[7, 7], -1e9
        with pytest.raises(ModelError, match=r"level number \d+ of .*positive definite"):
            one.sweep(1, KEY)
        S[7, 7] = right
        one.sweep(2, KEY)
    for a, b in zip(made.fetch(), other.fetch(), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", models.DENSE)
def test_sums_of_tiles_of_another_size_are_made_anew(name, monkeypatch):
    """The state of another version, continued."""
    _, before = engine(name)
    before.sweep(1, KEY)
    state = {part: array.copy() for part, array in before.state().items()}
    monkeypatch.setattr(dense_products, "TILE", 3)
    (_, with_sums), (_, without) = (engine(name) for _ in range(2))
    assert any(part.startswith("later.") for part in state)
    with_sums.restore(state)
    without.restore({part: array for part, array in state.items() if not part.startswith("later.")})
    for one in (with_sums, without):
        one.sweep(2, KEY)
    for a, b in zip(with_sums.fetch(), without.fetch(), strict=True):
        np.testing.assert_array_equal(a, b)
