"""Products with a dense block of K^-1 that a core makes, against the matrix that they stand for."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from helpers.mixed_models import equations_of
from reference import models

from mmgibbs.engines import dense_products
from mmgibbs.engines.dense_products import dense_quadratic_form, dense_times
from mmgibbs.engines.pcg.engine import PcgEngine
from mmgibbs.engines.serial import SerialEngine
from mmgibbs.errors import ModelError
from mmgibbs.machine.threads import Threads
from mmgibbs.models.design import Design
from mmgibbs.models.relationships.base import DenseBlock
from mmgibbs.models.relationships.core import CoreBlock, parts_of_core
from mmgibbs.models.relationships.single_step import SingleStep
from mmgibbs.models.terms import Effect, Levels, Related, Term
from mmgibbs.pedigree.partitioned import SubsetInverse, inverse_among
from mmgibbs.pedigree.relationship import relatives

LEVELS = np.array([3, 4, 7, 9, 12, 15, 20, 21, 22, 29], np.int32)


def design(less=0.7, weight=1.3):
    """30 animals, of which LEVELS are joined by a core; two components."""
    rng = np.random.default_rng(5)
    q = 30
    sire = np.array([-1 if i < 6 else rng.integers(0, i) for i in range(q)], np.int32)
    dam = np.array([-1 if i < 6 else rng.integers(0, i) for i in range(q)], np.int32)
    kin = relatives(sire, np.where(dam == sire, -1, dam).astype(np.int32), None)
    K = models.covariance_of(rng, LEVELS.size)
    core = np.array([1, 2, 5, 8])
    parts = parts_of_core(np.ascontiguousarray(K[:, core]), K.diagonal(), core)
    kind = SingleStep(kin, CoreBlock(LEVELS, parts, weight, SubsetInverse(kin, LEVELS), less), {})
    levels = Levels((Effect("", np.arange(q, dtype=np.int32), (0, 1)),), q)
    y = rng.standard_normal((q, 2))
    term = Term("genetic", levels, Related(kind))
    return Design(("a", "b"), y, np.zeros(q, np.int32), np.ones((1, 2), bool), np.ones(q), (term,))


def matrix(block):
    """S, written out."""
    core, others, K_cc, P, left, _ = block.parts
    W = np.zeros((others.size, LEVELS.size))
    W[:, core], W[np.arange(others.size), others] = -P, 1.0
    inverse = W.T @ np.diag(1 / left) @ W
    inverse[np.ix_(core, core)] += K_cc
    return block.weight * inverse - block.less * inverse_among(block.pedigree.kin, LEVELS)


@pytest.mark.parametrize("columns", [(), (3,)])
def test_products_forms_and_diagonal(columns):
    of = design()
    equations = equations_of(of)
    S, levels = matrix(of.terms[0].relationship.dense), equations.dense[0]
    theta = np.random.default_rng(1).standard_normal((30, 2, *columns))
    own = theta[levels.positions]
    np.testing.assert_allclose(dense_times(levels, theta), np.tensordot(S, own, 1), atol=1e-12)
    np.testing.assert_allclose(levels.diagonal(), S.diagonal(), atol=1e-12)
    if not columns:
        np.testing.assert_allclose(dense_quadratic_form(levels, theta), own.T @ S @ own, atol=1e-11)


def test_no_bit_depends_on_the_number_of_threads(monkeypatch):
    monkeypatch.setattr(dense_products, "CORE_PIECE", 2)
    of = design()
    levels = equations_of(of, "term").dense[0]
    theta = np.random.default_rng(1).standard_normal((30, 2))
    one, three = (dense_times(levels, theta, Threads(n)) for n in (1, 3))
    np.testing.assert_array_equal(one, three)


def test_another_process_makes_its_own_factor():
    of = design()
    levels = equations_of(of, "term").dense[0]
    theta = np.random.default_rng(1).standard_normal((30, 2))
    before = dense_times(levels, theta)  # the factor of A^11 has been made, and cannot be sent
    np.testing.assert_array_equal(dense_times(pickle.loads(pickle.dumps(levels)), theta), before)


def test_the_matrix_that_it_stands_for():
    block = design().terms[0].relationship.dense
    np.testing.assert_allclose(block.values, matrix(block), atol=1e-12)


@pytest.mark.parametrize("less", [0.0, 0.7, 1.0])
def test_engine_pcg_by_products_and_by_the_matrix(less):
    """C x, the preconditioner, one draw from the same noise, and u'K^-1 u with the cross forms of two traits."""
    of = design(less)
    block = DenseBlock(LEVELS, matrix(of.terms[0].relationship.dense))
    formed = replace(of.terms[0], prior=Related(replace(of.terms[0].relationship, block=block)))
    engines = []
    for one in (of, replace(of, terms=(formed,))):
        engines.append(PcgEngine(equations_of(one, "term"), 1e-13))
        engines[-1].set_variances([np.array([[2.0, 0.5], [0.5, 1.0]])], np.array([[3.0, 1.0], [1.0, 2.0]]))
    by_products, by_matrix = engines
    x = np.random.default_rng(2).standard_normal((60, 3))
    for solver in ("times", "precondition"):
        found, expected = (getattr(engine.solver, solver)(x) for engine in engines)
        np.testing.assert_allclose(found, expected, atol=1e-11)
    noise = by_products._noise([1], (4, 0), by_products.y.astype(np.float64)[:, :, None])
    for engine in engines:
        engine._noise = lambda *_: noise
        engine.sweep(1, (4, 0))
    np.testing.assert_allclose(by_products.theta[0], by_matrix.theta[0], atol=1e-10)
    np.testing.assert_allclose(by_products.quadratic_form(0), by_matrix.quadratic_form(0), rtol=1e-10)


def test_a_sweep_needs_rows():
    of = design()
    with pytest.raises(ModelError, match="'genetic': found an inverse by a core that is kept as products"):
        SerialEngine(equations_of(of, "term"))
