"""Completeness, founders and ancestors of small pedigrees that can be done by hand."""

import numpy as np
import pytest

from mmgibbs.pedigree.ancestry import (
    completeness,
    effective_number,
    equivalent_generations,
    founder_contributions,
    major_ancestors,
)

# 0, 1 founders; 2 = 0 x 1; 3 = 0 x unknown; 4 = 2 x 3; 5 = 4 x 2
SIRE = np.array([-1, -1, 0, 0, 2, 4], np.int32)
DAM = np.array([-1, -1, 1, -1, 3, 2], np.int32)
LAST = np.arange(6) == 5


def test_equivalent_generations():
    expected = [0, 0, 1, 0.5, 0.5 * (1 + 1) + 0.5 * (0.5 + 1), 0]
    expected[5] = 0.5 * (expected[4] + 1) + 0.5 * (1 + 1)
    np.testing.assert_allclose(equivalent_generations(SIRE, DAM), expected)


def test_completeness_by_generation():
    shares = completeness(SIRE, DAM, 3)
    np.testing.assert_allclose(shares[:, 0], [0, 0, 1, 0.5, 1, 1])
    np.testing.assert_allclose(shares[4], [1, 0.75, 0])
    np.testing.assert_allclose(shares[5], [1, 1, 0.375])
    np.testing.assert_allclose(shares.sum(axis=1)[[2, 4]], [1, 1.75])  # sums to equivalent generations
    np.testing.assert_allclose(completeness(SIRE, DAM, 6).sum(axis=1), equivalent_generations(SIRE, DAM))


def test_contributions_of_founders_add_to_one():
    """Of 5: half from 4 (half 2, half 3), half from 2; 2 is half 0, half 1; 3 is half 0, half unknown."""
    q = founder_contributions(SIRE, DAM, LAST)
    share_of_2, share_of_3 = 0.25 + 0.5, 0.25
    expected = [share_of_2 / 2 + share_of_3 / 2, share_of_2 / 2, 0, share_of_3 / 2, 0, 0]
    np.testing.assert_allclose(q, expected)
    assert q.sum() == pytest.approx(1.0)
    assert effective_number(np.full(8, 1 / 8)) == pytest.approx(8.0)


def test_groups_are_unknown_parents():
    with_groups = np.where(SIRE < 0, 6, SIRE), np.where(DAM < 0, 7, DAM)
    np.testing.assert_allclose(founder_contributions(*with_groups, LAST), founder_contributions(SIRE, DAM, LAST))
    np.testing.assert_allclose(equivalent_generations(*with_groups), equivalent_generations(SIRE, DAM))


def test_the_bull_behind_all_is_the_first_ancestor():
    """A sire of all progeny by many dams explains half; each dam a share of the other half."""
    n_dams = 5
    sire = np.array([-1] * (1 + n_dams) + [0] * n_dams, np.int32)
    dam = np.array([-1] * (1 + n_dams) + list(range(1, n_dams + 1)), np.int32)
    reference = np.arange(len(sire)) > n_dams
    found = major_ancestors(sire, dam, reference, 10)
    assert found.code[0] == 0
    np.testing.assert_allclose(found.marginal, [0.5] + [0.1] * 5)
    assert effective_number(found.marginal) == pytest.approx(1 / (0.25 + 5 * 0.01))


def test_a_bottleneck_counts_once():
    """All genes pass through 2: it explains everything, its parents nothing more."""
    sire = np.array([-1, -1, 0, 2, 2, 2], np.int32)
    dam = np.array([-1, -1, 1, -1, -1, -1], np.int32)
    found = major_ancestors(sire, dam, np.arange(6) >= 3, 10)
    assert found.code[0] == 2
    np.testing.assert_allclose(found.marginal[0], 0.5)
    assert not {0, 1} & set(found.code.tolist()) and found.marginal.sum() == pytest.approx(1.0)
    founders = founder_contributions(sire, dam, np.arange(6) >= 3)
    assert effective_number(found.marginal) < effective_number(founders)


def test_marginal_shares_never_exceed_one_in_a_deep_pedigree():
    rng = np.random.default_rng(2)
    n = 400
    sire, dam = (np.array([rng.integers(0, i) if i > 20 else -1 for i in range(n)], np.int32) for _ in range(2))
    reference = np.arange(n) >= 300
    found = major_ancestors(sire, dam, reference, n)
    assert found.marginal.sum() == pytest.approx(1.0) and len(set(found.code.tolist())) == found.code.size
    assert founder_contributions(sire, dam, reference).sum() == pytest.approx(1.0)
