"""Generations of selfing after a cross against a tabular A in which every generation is a plant of its own."""

import numpy as np
import polars as pl
import pytest
from reference import models, tabular

from mmgibbs.models.relationships.selfing import SelfedPedigree
from mmgibbs.pedigree.errors import PedigreeError
from mmgibbs.pedigree.inbreeding import inbreeding, inbreeding_with_selfing
from mmgibbs.pedigree.read import read_pedigree
from mmgibbs.pedigree.relationship import MIN_MENDELIAN_VARIANCE, a_inverse_csr, relatives
from mmgibbs.pedigree.relationship_products import a_times_relatives
from mmgibbs.pedigree.selfing import relatives_of_lines, selfed_relatives


@pytest.mark.parametrize("seed", range(4))
def test_a_and_its_inverse_are_those_of_the_expanded_pedigree(seed):
    rng = np.random.default_rng(seed)
    n = 40
    sire, dam, generations = models.selfed_pedigree(rng, n, 5)
    A = tabular.selfed_relationship(sire, dam, generations)
    found = selfed_relatives(sire, dam, generations)
    assert found.inbreeding == pytest.approx(np.diag(A) - 1, abs=1e-12)
    assert a_times_relatives(found, np.eye(n)) == pytest.approx(A, abs=1e-12)
    inverse, oracle = a_inverse_csr(found).toarray(), np.linalg.inv(A)
    assert np.abs(inverse @ A - np.eye(n)).max() < 1e-12 * np.abs(oracle).max()
    assert np.abs(inverse - oracle).max() < 1e-12 * np.abs(oracle).max()


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("random_groups", [True, False])
def test_unknown_parent_groups_of_lines(seed, random_groups):
    rng = np.random.default_rng(seed)
    n = 25
    sire, dam, generations = models.selfed_pedigree(rng, n, 5)
    for parent in (sire, dam):
        parent[parent < 0] = n + rng.integers(0, 2, np.count_nonzero(parent < 0))
    kind = SelfedPedigree(selfed_relatives(sire, dam, generations, 2, random_groups), generations)
    oracle = tabular.relationship_inverse(sire, dam, 2, random_groups, generations=generations)
    assert a_inverse_csr(kind.relatives).toarray() == pytest.approx(oracle, abs=1e-11)
    assert (kind.n_groups, kind.groups_fixed) == (2, not random_groups)


def test_the_rules_in_numbers():
    """A founder selfed g times, an F1 of two founders, its F2 and F5, a line of one parent, a cross of lines."""
    sire = np.array([-1, -1, 0, 0, 0, 0, 4], np.int32)
    dam = np.array([-1, -1, 1, 1, 1, -1, 3], np.int32)
    generations = np.array([0, 3, 0, 1, 4, 2, 0])
    found = selfed_relatives(sire, dam, generations)
    assert found.inbreeding[:6].tolist() == [0, 1 - 1 / 8, 0, 1 / 2, 1 - 1 / 16, 1 - 1 / 4]
    # the cross of an unselfed founder with an F = 7/8 one: 1 - 1/4 - (15/8)/4
    cross = 1 - 1 / 4 - 15 / 32
    expected = [1, 1 + 7 / 8, cross, cross + 1 / 2, cross + 15 / 16, 3 / 4 + 3 / 4]
    assert (1 / found.dinv[:6]).tolist() == pytest.approx(expected, rel=1e-15)
    assert found.inbreeding[6] == pytest.approx((1 + 15 / 8) / 8)  # half of (A_00 + A_11) / 4


def test_without_selfing_nothing_changes_to_the_last_bit():
    sire, dam, _ = models.selfed_pedigree(np.random.default_rng(1), 60, 6)
    F, within = inbreeding_with_selfing(sire, dam, np.zeros(60))
    assert np.array_equal(F, inbreeding(sire, dam)) and not within.any()
    plain, selfed = relatives(sire, dam, F), selfed_relatives(sire, dam, np.zeros(60, int))
    assert np.array_equal(plain.dinv, selfed.dinv) and np.array_equal(plain.diagonal, selfed.diagonal)


def pedigree(*generations, parents=(("", ""), ("", ""), ("a", "b"))):
    frame = pl.DataFrame({"line": list("abc"), "sire": [p[0] for p in parents], "dam": [p[1] for p in parents]})
    frame = frame.with_columns(f=pl.Series(list(generations)))
    return read_pedigree(frame, hermaphrodites=True, more=["f"], name="lines.csv")


@pytest.mark.parametrize("values", [("", "3", "0"), (None, 3, 0), (None, 3.0, 0.0), ("NA", " 3 ", "0")])
def test_generations_as_recorded(values):
    found, generations = relatives_of_lines(pedigree(*values), "f", False)
    assert generations.tolist() == [0, 3, 0] and found.inbreeding.tolist() == [0, 7 / 8, 0]


@pytest.mark.parametrize("value", ["-1", "1.5", "F4", "inf", "nan"])
def test_what_is_no_number_of_generations_is_refused(value):
    with pytest.raises(PedigreeError) as refused:
        relatives_of_lines(pedigree("0", value, "2"), "f", False)
    assert str(refused.value) == (
        f"lines.csv row 2: column 'f' has '{value}' for 'b'; needed the number of generations of selfing after the "
        "cross, a whole number: 0 (or empty) for none, 1, 2, ..."
    )


def test_fully_inbred_parents():
    """Next to nothing of their cross is left to vary, and A^-1 exists; lines from it vary."""
    cross, _ = relatives_of_lines(pedigree("99", "99", "0"), "f", False)
    np.testing.assert_allclose(1 / cross.dinv, [2, 2, MIN_MENDELIAN_VARIANCE])
    found, _ = relatives_of_lines(pedigree("99", "99", "99"), "f", False)
    assert found.inbreeding.tolist() == [1, 1, 1] and (1 / found.dinv).tolist() == [2, 2, 1]
