"""Genomic and single-step relationship matrices: inverse, draws, diagonal and spread against K written out."""

from dataclasses import replace

import numpy as np
import pytest
from reference import dense, models

from mmgibbs.errors import ModelError
from mmgibbs.models.relationships import single_step
from mmgibbs.models.relationships.inverse import identical_pairs, invert


def case(name):
    term = models.example(name).design.terms[-1]
    return term.relationship, np.linalg.inv(dense.relationship_inverse(term))


@pytest.mark.parametrize("name", models.DENSE)
def test_rows_of_the_inverse(name):
    kind, K = case(name)
    indptr, indices, values = kind.inverse_csr()
    found = np.zeros(K.shape)
    for i in range(len(K)):
        own = slice(indptr[i], indptr[i + 1])
        assert np.all(np.diff(indices[own]) > 0)
        found[i, indices[own]] = values[own]
    np.testing.assert_allclose(found @ K, np.eye(len(K)), atol=1e-10)


@pytest.mark.parametrize("name", models.DENSE)
def test_draws_have_covariance_K(name):
    kind, K = case(name)
    root = kind.draw(np.eye(len(K)))
    np.testing.assert_allclose(root @ root.T, K, atol=1e-10)


@pytest.mark.parametrize("name", models.DENSE)
def test_diagonal_and_spread(name):
    kind, K = case(name)
    np.testing.assert_allclose(kind.diagonal, K.diagonal(), atol=1e-10)
    for levels in (np.array([0, 3, 7]), np.arange(len(K))):
        V = K[np.ix_(levels, levels)]
        assert kind.spread(levels) == pytest.approx(V.trace() / len(V) - V.mean(), abs=1e-10)


def test_the_diagonal_of_many_animals_is_estimated(monkeypatch):
    """Within 5 % for 16 x as many draws; the genotyped have theirs exactly."""
    kind, K = case("single_step_maternal")
    monkeypatch.setattr(single_step, "EXACT_UP_TO", 0)
    monkeypatch.setattr(single_step, "DRAWS", 16 * single_step.DRAWS)
    found = replace(kind).diagonal
    np.testing.assert_allclose(found, K.diagonal(), rtol=0.05)
    at = kind.dense.levels
    np.testing.assert_allclose(found[at], K.diagonal()[at], atol=1e-10)


def test_relationships_that_take_too_much_away():
    kind, _ = case("single_step_maternal")
    with pytest.raises(ModelError, match="needed a smaller omega"):
        replace(kind, block=replace(kind.block, values=kind.block.values - 5 * np.eye(6))).draw(np.eye(17))


def test_the_inverse_and_its_figures():
    K = models.covariance_of(np.random.default_rng(4), 90)
    found = invert(K)
    np.testing.assert_allclose(found.values, np.linalg.inv(K), atol=1e-10)
    np.testing.assert_array_equal(found.values, found.values.T)
    assert found.error < 1e-11 and found.condition == pytest.approx(np.linalg.cond(K, 1), rel=1e-8)


@pytest.mark.parametrize("lift", [0.0, 1e-17])
def test_a_singular_matrix_has_none(lift):
    x = np.random.default_rng(5).standard_normal((12, 40))
    x[7] = x[2]
    K = x @ x.T / 40 + lift * np.eye(12)
    with pytest.raises(np.linalg.LinAlgError):
        invert(K)
    assert identical_pairs(K, 5, block=3) == [(2, 7)]
    x[9] = x[2]
    assert identical_pairs(x @ x.T, 2) == [(2, 7), (2, 9)]


@pytest.mark.parametrize("name", models.NAMES)
def test_products_with_K(name):
    """Of every kind; of fixed groups there is no covariance."""
    for term in models.example(name).design.terms:
        if term.kind != "random":
            continue
        n, x = term.n_without_fixed_groups, np.random.default_rng(1).normal(size=(term.n_levels, 3))
        expected = np.zeros(x.shape)
        expected[:n] = np.linalg.solve(dense.relationship_inverse(term)[:n, :n], x[:n])
        np.testing.assert_allclose(term.relationship.times(x), expected, rtol=1e-6, atol=1e-6)
