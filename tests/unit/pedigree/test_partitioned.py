"""Parts of A^-1 and A22^-1 against the tabular A, inverted."""

import numpy as np
import pytest
from reference import models, tabular

from mmgibbs.pedigree.partitioned import SubsetInverse, inverse_among, partitioned
from mmgibbs.pedigree.relationship import a_inverse_csr, relatives


def case(accounted=True):
    rng = np.random.default_rng(8)
    sire, dam = models.looped_pedigree(rng, 40, 6)
    A = tabular.relationship(sire, dam, accounted)
    return relatives(sire, dam, tabular.inbreeding(sire, dam) if accounted else None), A


CHOSEN = {
    "some": np.array([3, 9, 12, 20, 21]),
    "in another order": np.array([21, 3, 30, 12]),
    "founders": np.arange(6),
    "all": np.arange(40),
    "one": np.array([39]),
}


@pytest.mark.parametrize("name", list(CHOSEN))
def test_inverse_among_chosen_animals(name):
    kin, A = case()
    at = CHOSEN[name]
    np.testing.assert_allclose(inverse_among(kin, at), np.linalg.inv(A[np.ix_(at, at)]), atol=1e-10)


@pytest.mark.parametrize("name", list(CHOSEN))
def test_products_with_the_inverse_among_chosen_animals(name):
    kin, A = case()
    at = CHOSEN[name]
    inverse, x = np.linalg.inv(A[np.ix_(at, at)]), np.random.default_rng(2).standard_normal((at.size, 3))
    operator = SubsetInverse(kin, at)
    np.testing.assert_allclose(operator.times(x), inverse @ x, atol=1e-10)
    np.testing.assert_allclose(operator.times(x[:, 0]), inverse @ x[:, 0], atol=1e-10)
    np.testing.assert_allclose(operator.diagonal, inverse.diagonal(), atol=1e-10)


def test_inbreeding_ignored():
    """The A that A^-1 implies is that of parents who are not inbred."""
    rng = np.random.default_rng(8)
    sire, dam = models.looped_pedigree(rng, 40, 6)
    kin, at = relatives(sire, dam), np.array([5, 17, 33])
    A = np.linalg.inv(a_inverse_csr(kin).toarray())
    np.testing.assert_allclose(inverse_among(kin, at), np.linalg.inv(A[np.ix_(at, at)]), atol=1e-10)


def test_unknown_parent_groups_count_as_unknown_parents():
    sire, dam = np.array([-1, -1, 5, 0, 2], np.int32), np.array([-1, -1, 6, 1, 3], np.int32)
    with_groups = relatives(sire, dam, None, n_groups=2)
    without = relatives(np.where(sire >= 5, -1, sire), np.where(dam >= 5, -1, dam))
    at = np.array([2, 4])
    np.testing.assert_allclose(inverse_among(with_groups, at), inverse_among(without, at), atol=1e-14)


@pytest.mark.parametrize("name", list(CHOSEN))
def test_solutions_and_root_of_the_part_of_the_others(name):
    kin, A = case()
    parts = partitioned(kin, CHOSEN[name])
    inverse = np.linalg.inv(A)
    own = inverse[np.ix_(parts.others, parts.others)]
    b = np.random.default_rng(1).standard_normal((parts.others.size, 3))
    np.testing.assert_allclose(own @ parts.solve(b), b, atol=1e-10)
    root = parts.root_times(np.eye(parts.others.size))
    np.testing.assert_allclose(root @ root.T, own, atol=1e-10)
    np.testing.assert_allclose(parts.across.toarray(), inverse[np.ix_(parts.chosen, parts.others)], atol=1e-10)
