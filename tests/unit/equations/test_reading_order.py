"""Herds stand together, no herd is too large, and the order moves the chain by rounding only."""

from dataclasses import replace

import numpy as np
import pytest
from helpers.mixed_models import equations_of
from helpers.mutants import mutant
from reference import models

from mmgibbs.engines.coloured.engine import StructuredEngine
from mmgibbs.equations import reading_order
from mmgibbs.equations.reading_order import join, positions, reading_orders
from mmgibbs.simulation.simulate import beef_design, simulate_beef

KEY = (11, 2)


@pytest.fixture(autouse=True)
def every_size(monkeypatch):
    monkeypatch.setattr("mmgibbs.equations.reading_order.MANY", 0)


@pytest.mark.parametrize("name", models.NAMES)
def test_orders_hold_every_level_once(name):
    design = models.example(name).design
    for term, order in zip(design.terms, reading_orders(design), strict=True):
        np.testing.assert_array_equal(np.sort(order), np.arange(term.n_levels))


@pytest.mark.parametrize("name", ["three_traits_maternal", "random_groups", "single_step_maternal"])
def test_same_chain_but_for_rounding(name, monkeypatch):
    """Draws belong to levels in model order, wherever these stand."""
    example = models.example(name)

    def theta(many, spoilt=False):
        monkeypatch.setattr("mmgibbs.equations.reading_order.MANY", many)
        equations = equations_of(example)
        if spoilt:  # draws that belong to places
            terms = (t._replace(code=np.arange(t.code.size, dtype=np.int32)) for t in equations.terms)
            equations = replace(equations, terms=tuple(terms))
        engine = StructuredEngine(equations)
        engine.set_variances(example.G, example.R)
        for number in range(1, 51):
            engine.sweep(number, KEY)
        out = [np.empty(t.shape) for t in engine.theta]
        for level, order, rows in zip(out, equations.partition.order, engine.theta, strict=True):
            level[order] = rows
        return equations.partition.order, out

    in_model_order, right = theta(10**9)
    in_herds, moved = theta(0)
    assert any(np.any(a != b) for a, b in zip(in_model_order, in_herds, strict=True))
    for a, b in zip(right, moved, strict=True):
        np.testing.assert_allclose(b, a, rtol=0, atol=1e-9 * np.abs(a).max())
    _, wrong = theta(0, spoilt=True)
    assert max(np.abs(a - b).max() for a, b in zip(right, wrong, strict=True)) > 1e-2


def test_contemporary_groups_read_few_stretches_of_memory():
    """Herds of 50 cows, 6,500 animals, in the order of their codes when those say nothing of herds, and by herds."""
    beef = simulate_beef(6500, 4)
    rng = np.random.default_rng(1)
    new = np.lexsort((rng.random(beef.sire.size), beef.birth_year)).argsort()  # code anew of each animal
    old = new.argsort()
    renamed = lambda parent: np.where(parent[old] < 0, -1, new[parent[old]]).astype(np.int32)
    beef = replace(
        beef, sire=renamed(beef.sire), dam=renamed(beef.dam), birth_year=beef.birth_year[old], herd=beef.herd[old],
        sex=beef.sex[old], animal=new[beef.animal].astype(np.int32),
    )  # fmt: skip
    design = beef_design(beef)
    animals = reading_order.term_of_most_levels(design)

    def stretches(order):
        """Runs of neighbouring records, on average over the contemporary groups."""
        place = np.argsort(positions(order)[design.terms[animals].effects[0].level]).argsort()
        group = beef.contemporary_group
        ordered = place[np.lexsort((place, group))]
        starts = np.append(True, (np.diff(ordered) > 2) | (np.diff(np.sort(group)) > 0))
        return np.count_nonzero(starts) / (group.max() + 1)

    orders = reading_orders(design)
    natural, herds = stretches(np.arange(beef.sire.size, dtype=np.int32)), stretches(orders[animals])
    assert natural > 10
    assert herds < 1.5
    herd = beef.herd[orders[animals]]
    assert np.count_nonzero(np.diff(herd)) < 0.2 * np.count_nonzero(np.diff(beef.herd))
    environments = next(i for i, t in enumerate(design.terms) if t.name == "maternal_environment")
    level = design.terms[environments].effects[0].level
    first = positions(orders[animals])[design.terms[animals].effects[0].level]
    met = [first[level == dam].min() for dam in orders[environments] if np.any(level == dam)]
    assert met == sorted(met)


def joined(module, a, b, sizes, most):
    oldest, size = np.arange(len(sizes), dtype=np.int32), np.array(sizes, np.int32)
    module.join(np.array(a, np.int32), np.array(b, np.int32), 0, oldest, size, most)
    return [int(module.root(oldest, i)) for i in range(len(sizes))]


class Compiled:
    join = staticmethod(join)

    @staticmethod
    def root(oldest, node):
        while oldest[node] != node:
            node = oldest[node]
        return node


def test_joined_until_there_are_most():
    a, b = [1, 3, -1, 2, 4, 5], [0, 2, 0, -1, 3, 1]
    assert joined(Compiled, a, b, [1] * 6, 10) == [0, 0, 2, 2, 2, 0]
    assert joined(Compiled, [5, 5, 3], [4, 1, 5], [1] * 6, 10) == [0, 1, 2, 1, 1, 1]
    assert joined(Compiled, [1, 2, 3, 4], [0, 0, 0, 3], [1] * 5, 3) == [0, 0, 0, 3, 3]
    assert joined(Compiled, [4, 4, 4], [0, 1, 2], [1, 1, 1, 1, 0], 2) == [0, 0, 2, 3, 0]


@pytest.mark.parametrize(
    ("right", "wrong"),
    [("<= most", "<= most + 1"), ("size[early] += size[late]", "size[early] += 0"), ("x != y and", "x != y or")],
)
def test_other_limits_are_seen(right, wrong):
    spoilt = mutant(reading_order, right, wrong, compiled=False)
    spoilt.root = Compiled.root
    assert joined(spoilt, [1, 2, 3, 4], [0, 0, 0, 3], [1] * 5, 3) != [0, 0, 0, 3, 3]


def test_few_levels_keep_model_order(monkeypatch):
    monkeypatch.setattr("mmgibbs.equations.reading_order.MANY", 6400)
    design = models.example("three_traits_maternal").design
    for order in reading_orders(design):
        np.testing.assert_array_equal(order, np.arange(order.size))
