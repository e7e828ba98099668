"""Folds: every record is predicted once, families stay together, time runs forward."""

import numpy as np
import polars as pl
import pytest

from mmgibbs.data.births import birth_years
from mmgibbs.errors import ConfigError
from mmgibbs.validation.splits import animal_units, balanced_folds, families, forward_folds, record_birth_years
from pedigree.read import read_pedigree

PEDIGREE = pl.DataFrame(
    {
        "id": ["s", "t", "d", "a", "b", "c", "e"],
        "sire": [None, None, None, "s", "s", "t", None],
        "dam": [None, None, None, "d", None, "d", "d"],
    }
)


def test_groups_stay_together_in_folds_of_equal_size():
    group = np.repeat(np.arange(30), np.arange(1, 31))
    folds = balanced_folds(group, 4, np.random.default_rng(1), "families")
    assert np.all(sum(f.tested.astype(int) for f in folds) == 1)
    assert all(np.array_equal(f.tested, f.masked) for f in folds)
    sizes = [int(f.tested.sum()) for f in folds]
    assert max(sizes) - min(sizes) <= 2 and sum(sizes) == group.size
    for f in folds:
        assert not set(group[f.tested]) & set(group[~f.tested])


def test_the_seed_decides_who_is_together():
    draw = lambda seed: np.stack(
        [f.tested for f in balanced_folds(np.arange(60), 3, np.random.default_rng(seed), "animals")]
    )
    assert np.array_equal(draw(1), draw(1)) and not np.array_equal(draw(1), draw(2))


def test_time_runs_forward():
    time = np.array([2001, 2003, 2002, 2004, 2004, 2001.0])
    folds = forward_folds(time, 2)
    assert [f.name for f in folds] == ["2003", "2004"]
    assert folds[0].tested.tolist() == [False, True, False, False, False, False]
    assert folds[0].masked.tolist() == [False, True, False, True, True, False]  # the future is not known either
    assert np.array_equal(folds[1].tested, folds[1].masked)
    assert [f.name for f in forward_folds(20030101 + np.arange(3.0), 2)] == ["20030102", "20030103"]


def test_families_are_half_sibs_by_sire():
    pedigree = read_pedigree(PEDIGREE)
    a, b, c, e = pedigree.codes(pl.Series(["a", "b", "c", "e"])).to_list()
    family = families(pedigree, np.array([a, b, c, e, a]))
    assert family[0] == family[1] == family[4] and len(set(family.tolist())) == 3


def test_animals_that_the_pedigree_does_not_hold_are_units_of_their_own():
    """By their id, and each record by itself without one: they are not one animal, and not one family."""
    pedigree = read_pedigree(PEDIGREE)
    animals = pl.Series(["a", "x", None, "y", "x", None, "c", "e", "a"])
    codes = pedigree.codes(animals).fill_null(-1).to_numpy().astype(np.int64)
    units = animal_units(animals, codes, len(pedigree.ids))
    assert np.array_equal(units[codes >= 0], codes[codes >= 0])
    assert units[1] == units[4] and len(set(units.tolist())) == 7
    family = families(pedigree, units)
    assert family[1] == family[4] and len(set(family.tolist())) == 7  # a and c are of two sires, e of none
    folds = balanced_folds(units, 7, np.random.default_rng(1), "animals")
    assert sorted(int(f.tested.sum()) for f in folds) == [1] * 5 + [2] * 2


def test_birth_years_are_years():
    pedigree = read_pedigree(
        PEDIGREE.with_columns(birth=pl.Series([20010304, 20010101, 20020101, 20100704, 20110304, 20090101, None]))
    )
    codes = pedigree.codes(pl.Series(["a", "b", "e"])).to_numpy()
    of_animals = birth_years(pl.Series(pedigree.birth, nan_to_null=True))
    years = record_birth_years(of_animals, np.append(codes, -1), "this", "that")
    assert years[:2].tolist() == [2010, 2011] and np.isnan(years[2:]).all()


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (
            lambda: balanced_folds(np.arange(9), 1, np.random.default_rng(1), "animals"),
            "found folds=1, needed at least 2",
        ),
        (
            lambda: balanced_folds(np.array([1, 1, 2]), 3, np.random.default_rng(1), "half-sib families"),
            "found 2 half-sib families with records for 3 folds",
        ),
        (
            lambda: forward_folds(np.array([1.0, 2.0]), 2),
            "found records of 2 times for 2 folds forward in time; needed at least 3",
        ),
        (
            lambda: record_birth_years(None, np.array([0]), "the LR method", "--focal FILE"),
            "found no birth years, which the LR method needs",
        ),
    ],
)
def test_what_cannot_be_is_told(call, said):
    with pytest.raises(ConfigError, match=said):
        call()
