"""Expectations given chosen animals or known relatives, against A written out."""

import numpy as np
import pytest
from unit.pedigree.test_inbreeding import random_pedigree

from mmgibbs.pedigree.conditional_means import ConditionalMeans
from mmgibbs.pedigree.expected import ConditionalExpectation
from mmgibbs.pedigree.inbreeding import inbreeding
from mmgibbs.pedigree.relationship import a_inverse_csr, relatives
from mmgibbs.pedigree.relationship_products import relationship_block
from mmgibbs.pedigree.selfing import selfed_relatives


def pedigree(n, seed, groups=0):
    """Parents before progeny; some unknown, or of a group."""
    rng = np.random.default_rng(seed)
    sire, dam = (np.array([rng.integers(-1, max(1, i)) if i else -1 for i in range(n)], np.int32) for _ in range(2))
    dam[dam == sire] = -1
    if groups:
        sire, dam = (np.where(p < 0, n + rng.integers(0, groups, n), p).astype(np.int32) for p in (sire, dam))
    return sire, dam


def written_out(kin, chosen):
    """(levels, m) B = A12' A22^-1 of the animals."""
    n = kin.n_animals
    A = np.linalg.inv(a_inverse_csr(kin).toarray()[:n, :n])
    return A[:, chosen] @ np.linalg.inv(A[np.ix_(chosen, chosen)])


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("chosen_from", ["all", "youngest", "oldest", "everybody", "one"])
def test_products(seed, chosen_from):
    n, rng = 60, np.random.default_rng(seed)
    sire, dam = pedigree(n, seed)
    kin = relatives(sire, dam, inbreeding(sire, dam) if seed % 2 else np.zeros(n))
    chosen = {
        "all": rng.permutation(n)[:14],
        "youngest": np.arange(n - 10, n),
        "oldest": np.arange(8),
        "everybody": np.arange(n),
        "one": np.array([5]),
    }[chosen_from]
    B = written_out(kin, chosen)
    x, y = rng.normal(size=(2, chosen.size, 3))
    means = ConditionalMeans(kin, chosen)
    expected = np.einsum("ij,ij->i", B @ x, B @ y)
    expected[chosen] = 0.0
    np.testing.assert_allclose(means.products(x, y), expected, atol=1e-9)
    V = rng.normal(size=(chosen.size, chosen.size))
    expected = np.einsum("ij,jk,ik->i", B, V + V.T, B)
    expected[chosen] = 0.0
    total = sum(means.quadratic(columns, (V + V.T)[:, columns]) for columns in means.columns(4))
    np.testing.assert_allclose(total, expected, atol=1e-8)


def test_groups_that_are_not_chosen_are_unknown_parents():
    sire, dam = pedigree(40, 7, groups=3)
    F = np.zeros(40)
    without = [np.where(p >= 40, -1, p).astype(np.int32) for p in (sire, dam)]
    chosen, x = np.array([30, 12, 35]), np.random.default_rng(1).normal(size=(3, 2))
    found = ConditionalMeans(relatives(sire, dam, F, 3), chosen).products(x, x)
    expected = ConditionalMeans(relatives(*without, F), chosen).products(x, x)
    np.testing.assert_allclose(found[:40], expected, atol=1e-12)
    assert (found[40:] == 0).all() and expected.any()


def test_metafounders_that_are_chosen_are_parents():
    """A base of two populations: an animal of both expects half of each."""
    sire, dam = np.array([3, 3, 0], np.int32), np.array([3, 4, 1], np.int32)
    kin = relatives(sire, dam, np.zeros(3), 2)
    x = np.array([[1.0], [5.0]])
    found = ConditionalMeans(kin, np.array([3, 4])).products(x, x)
    np.testing.assert_allclose(found, [1.0, 9.0, 4.0, 0.0, 0.0])


def test_the_expectation_is_that_of_a_written_out():
    sire, dam = random_pedigree(300, 7)
    rng = np.random.default_rng(8)
    known, wanted = np.split(rng.permutation(300)[:140], [60])
    kin = relatives(sire, dam, inbreeding(sire, dam))
    values = rng.normal(size=(60, 5))
    A = relationship_block(sire, dam, kin.inbreeding, np.arange(300))
    direct = A[np.ix_(wanted, known)] @ np.linalg.solve(A[np.ix_(known, known)], values)
    np.testing.assert_allclose(ConditionalExpectation(kin, known, wanted)(values), direct, atol=1e-10)


def test_a_calf_of_two_known_parents_and_an_unrelated_animal():
    kin = relatives(np.array([-1, -1, 0, -1], np.int32), np.array([-1, -1, 1, -1], np.int32))
    found = ConditionalExpectation(kin, np.array([0, 1]), np.array([2, 3]))(np.array([[1.0], [2.0]]))
    np.testing.assert_allclose(found, [[1.5], [0.0]])


def test_generations_of_selfing_are_kept():
    sire, dam = np.array([-1, -1, 0, 2, 2], np.int32), np.array([-1, -1, 1, 1, 0], np.int32)
    kin = selfed_relatives(sire, dam, np.array([0, 3, 2, 5, 0]))
    rng = np.random.default_rng(1)
    A = np.linalg.inv(a_inverse_csr(kin).toarray())
    values = rng.normal(size=(2, 1))
    known, wanted = np.array([2, 4]), np.array([0, 3])
    direct = A[np.ix_(wanted, known)] @ np.linalg.solve(A[np.ix_(known, known)], values)
    np.testing.assert_allclose(ConditionalExpectation(kin, known, wanted)(values), direct, atol=1e-12)
