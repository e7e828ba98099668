"""Single-step relationships by a core, from products alone, against H written out: noise, draws, diagonal, spread."""

from dataclasses import replace

import numpy as np
import pytest
from helpers.mutants import mutant
from unit.engines.test_dense_products import LEVELS, design, matrix

from mmgibbs.errors import ModelError
from mmgibbs.models.relationships import core, genotyped_by_core, single_step
from mmgibbs.models.relationships.core import CoreBlock
from mmgibbs.models.relationships.genotyped_by_core import GenotypedByCore
from mmgibbs.pedigree.inbreeding import inbreeding
from mmgibbs.pedigree.partitioned import SubsetInverse
from mmgibbs.pedigree.relationship import a_inverse_csr, relatives

OMEGA = [0.0, 0.7, 1.0]


def kind_and_inverse(omega):
    """H by a core of 4 of 10 genotyped animals in 30, tau 1.3; and H^-1."""
    found = design(omega).terms[0].relationship
    sire, dam = found.relatives.sire, found.relatives.dam
    kin = relatives(sire, dam, inbreeding(sire, dam))
    kind = replace(found, relatives=kin, block=replace(found.block, pedigree=SubsetInverse(kin, LEVELS)))
    inverse = a_inverse_csr(kin).toarray()
    inverse[np.ix_(LEVELS, LEVELS)] += matrix(kind.dense)
    return kind, inverse


def covariance_of_noise(kind, code):
    """(q, q) in model order: of each set of normals its own root."""
    q, sets = code.size, kind.sets_of_normals
    made = kind.noise(kind.lists(code, np.dtype(float)), code, "here")
    out, place = np.zeros((q, q)), np.argsort(code)
    for own in range(sets):
        z = np.zeros((q, sets * q))
        z[:, own * q : (own + 1) * q] = np.eye(q)
        root = made(z)[place]
        out += root @ root.T
    return out


@pytest.mark.parametrize("omega", OMEGA)
def test_noise_has_the_covariance_of_the_inverse(omega):
    kind, inverse = kind_and_inverse(omega)
    assert kind.sets_of_normals == (1 if omega == 1 else 2)
    code = np.random.default_rng(3).permutation(len(inverse)).astype(np.int32)
    np.testing.assert_allclose(covariance_of_noise(kind, code), inverse, atol=1e-9)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("of_pedigree * mendelian_noise", "0 * mendelian_noise"),
        ("np.sqrt(share) * parts.root_times", "parts.root_times"),
        ("np.sqrt(by_core.pedigree_weight)", "by_core.pedigree_weight"),
    ],
)
def test_noise_without_a_share_is_seen(right, wrong):
    kind, inverse = kind_and_inverse(0.7)
    of_mutant = mutant(single_step, right, wrong, compiled=False).SingleStep(kind.relatives, kind.block, {})
    code = np.arange(len(inverse), dtype=np.int32)
    assert np.abs(covariance_of_noise(of_mutant, code) - inverse).max() > 0.05


@pytest.mark.parametrize("omega", OMEGA)
def test_draws_diagonal_and_spread(omega):
    kind, inverse = kind_and_inverse(omega)
    H = np.linalg.inv(inverse)
    np.testing.assert_allclose(kind.diagonal, H.diagonal(), atol=1e-9)
    for levels in (np.array([0, 3, 7]), LEVELS, np.arange(30)):
        V = H[np.ix_(levels, levels)]
        assert kind.spread(levels) == pytest.approx(V.trace() / len(V) - V.mean(), abs=1e-9)
    root = kind.draw(np.eye(30))
    np.testing.assert_allclose(root @ root.T, H, atol=1e-9)


@pytest.mark.parametrize("limit", [0, 1e9])
@pytest.mark.parametrize("omega", OMEGA)
def test_nothing_of_all_genotyped_with_each_other_is_made(monkeypatch, omega, limit):
    """Of A22 and M^-1 some columns at a time; noise, diagonal and spread."""
    refuse = lambda *_: pytest.fail("formed")
    monkeypatch.setattr(CoreBlock, "values", property(refuse))
    monkeypatch.setattr(single_step.SingleStep, "_M", property(refuse))
    for name in ("inverse_among", "invert"):
        monkeypatch.setattr(single_step, name, refuse)
    monkeypatch.setattr(single_step, "COLUMNS", 3)
    monkeypatch.setattr(single_step, "DRAWS", 6)
    monkeypatch.setattr(single_step, "EXACT_UP_TO", limit)
    widths, among, columns = [], single_step.relationship_block, GenotypedByCore.columns_of_inverse
    monkeypatch.setattr(single_step, "relationship_block", lambda *a: widths.append(among(*a).shape[1]) or among(*a))
    monkeypatch.setattr(
        GenotypedByCore, "columns_of_inverse", lambda self, c: widths.append(c.size) or columns(self, c)
    )
    kind, inverse = kind_and_inverse(omega)
    assert np.isfinite(kind.diagonal).all() and np.isfinite(kind.spread(np.arange(5)))
    assert np.isfinite(covariance_of_noise(kind, np.arange(len(inverse), dtype=np.int32))).all()
    assert max(widths) == 3


def test_omega_above_1_is_formed():
    """Nothing but the matrix says whether H is positive definite."""
    kind, inverse = kind_and_inverse(1.01)
    assert kind.sets_of_normals == 1
    code = np.arange(len(inverse), dtype=np.int32)
    np.testing.assert_allclose(covariance_of_noise(kind, code), inverse, atol=1e-9)
    kind, inverse = kind_and_inverse(50.0)
    with pytest.raises(ModelError, match="needed a smaller omega"):
        covariance_of_noise(kind, code)


def test_products_in_single_precision_take_some_rows_at_a_time(monkeypatch):
    block = kind_and_inverse(0.7)[0].block
    single = block.parts._replace(products=block.parts.products.astype(np.float32))
    double = single._replace(products=single.products.astype(float))
    z = np.random.default_rng(8).standard_normal((LEVELS.size, 2))
    monkeypatch.setattr(core, "ROWS", 4)
    for of in ("noise", "draw", "solved", "times"):
        few, all_at_once = (getattr(replace(block, parts=parts), of)(z) for parts in (single, double))
        np.testing.assert_allclose(few, all_at_once, atol=1e-12)
    np.testing.assert_allclose(block.times(block.solved(z)), z, atol=1e-10)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("- self.to_core(before)", "+ self.to_core(before)"),
        ("block.weight / block.parts.left", "1 / block.parts.left"),
        (" - parts.to_core(factor.solve(parts.from_core(unit)))", ""),
    ],
)
def test_a_wrong_elimination_is_seen(monkeypatch, right, wrong):
    """Columns of M^-1 against H22 written out."""
    monkeypatch.setattr(genotyped_by_core, "COLUMNS", 3)
    kind, inverse = kind_and_inverse(0.7)
    H22, every = np.linalg.inv(inverse)[np.ix_(LEVELS, LEVELS)], np.arange(LEVELS.size)
    spoilt = mutant(genotyped_by_core, right, wrong, compiled=False)
    found, of_mutant = (
        module.GenotypedByCore(kind.block, kind.block.pedigree).columns_of_inverse(every)
        for module in (genotyped_by_core, spoilt)
    )
    np.testing.assert_allclose(found, H22, atol=1e-10)
    assert np.abs(of_mutant - H22).max() > 1e-3
