"""Expectations given known relatives, against A written out and against what must be so."""

import numpy as np
from unit.pedigree.test_inbreeding import random_pedigree

from pedigree.expected import ConditionalExpectation
from pedigree.inbreeding import inbreeding
from pedigree.relationship import a_inverse_csr, relatives
from pedigree.relationship_products import relationship_block
from pedigree.selfing import selfed_relatives


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
