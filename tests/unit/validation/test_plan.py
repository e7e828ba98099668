"""What a validation is asked for, and its folds: every record is predicted once, time runs forward."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from mmgibbs.data.dates import birth_years
from mmgibbs.errors import ConfigError
from mmgibbs.pedigree.read import read_pedigree
from mmgibbs.validation.options import ValidationPlan, resolve_plan
from mmgibbs.validation.run import validate_analysis, validate_several
from mmgibbs.validation.splits import animal_units, balanced_folds, families, forward_folds, record_birth_years


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"folds": "x"}, "found folds='x', needed a whole number of at least 2"),
        ({"folds": 2.0}, "found folds=2.0, needed a whole number of at least 2"),
        ({"folds": True}, "found folds=True, needed a whole number of at least 2"),
        ({"method": "lr", "cutoff": float("nan")}, "found cutoff=nan, needed a birth year"),
        ({"folds": 1}, "found folds=1, needed at least 2"),
        ({"seed": 1.5}, "found seed=1.5, needed a whole number of 0 or more"),
        ({"seed": None}, "found seed=None, needed a whole number of 0 or more"),
        ({"seed": -1}, "found seed=-1, needed 0 or more"),
        ({"replicates": "many"}, "found replicates='many', needed a whole number of at least 2, or 0 for none"),
        ({"replicates": 1}, "found replicates=1, needed at least 2, or 0 for none"),
        ({"method": "k-fold"}, "found method='k-fold', needed kfold, lr or both; did you mean 'kfold'?"),
        ({"method": None}, "found method=None, needed kfold, lr or both"),
        ({"by": 3}, "found by=3, needed random, family, time, column or cell"),
        ({"by": "families"}, "found by='families', needed random, family, time, column or cell; did you mean 'family'"),
        ({"by": "time", "time": 2019}, "found time=2019, needed the name of a column of the records"),
        ({"by": "column", "column": ["herd"]}, "found column=['herd'], needed the name of a column of the records"),
        ({"cutoff": "2019"}, "found cutoff='2019', needed a birth year"),
        ({"cutoff": float("inf")}, "found cutoff=inf, needed a birth year"),
        ({"focal": 7}, "found focal=7, needed the path of a file of ids"),
        ({"variances": {"animal": 3}}, "found variances={'animal': 3}, needed the folder of a finished run, or 'sampl"),
    ],
)
def test_options_are_refused_by_name(options, said):
    with pytest.raises(ConfigError) as refused:
        resolve_plan(ValidationPlan(**options))
    assert str(refused.value).startswith(f"validate: {said}")


def test_what_is_no_plan_is_refused_before_anything_is_read():
    one = lambda: validate_analysis("none.yaml", {"folds": 3})
    for call in (one, lambda: validate_several(["none.yaml"], {"folds": 3})):
        with pytest.raises(ConfigError, match=r"^validate: found plan=\{'folds': 3\}, needed a ValidationPlan"):
            call()


def test_numbers_of_numpy_and_paths_are_plain_ones():
    plan = resolve_plan(
        ValidationPlan(folds=np.int64(3), seed=np.uint8(2), cutoff=np.float32(2003), focal=Path("a") / "ids.txt")
    )
    assert (plan.folds, plan.seed, plan.cutoff, plan.focal) == (3, 2, 2003.0, str(Path("a") / "ids.txt"))
    assert [type(v) for v in (plan.folds, plan.seed, plan.cutoff)] == [int, int, float]
    assert resolve_plan(plan) == plan


def test_variances_of_several_analyses_are_checked_too():
    with pytest.raises(ConfigError, match="found variances=3, needed the folder of a finished run"):
        validate_several(["a.yaml", "b.yaml"], ValidationPlan(variances=[None, 3]))


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
    folds = lambda seed: balanced_folds(np.arange(60), 3, np.random.default_rng(seed), "animals")
    draw = lambda seed: np.stack([f.tested for f in folds(seed)])
    assert np.array_equal(draw(1), draw(1)) and not np.array_equal(draw(1), draw(2))


def test_time_runs_forward():
    time = np.array([2001, 2003, 2002, 2004, 2004, 2001.0])
    folds = forward_folds(time, 2)
    assert [f.name for f in folds] == ["2003", "2004"]
    assert folds[0].tested.tolist() == [False, True, False, False, False, False]
    assert folds[0].masked.tolist() == [False, True, False, True, True, False]  # the future is not known either
    assert np.array_equal(folds[1].tested, folds[1].masked)
    assert [f.name for f in forward_folds(20030101 + np.arange(3.0), 2)] == ["20030102", "20030103"]


def test_families_and_animals_without_one():
    pedigree = read_pedigree(PEDIGREE)
    a, b, c, e = pedigree.codes(pl.Series(["a", "b", "c", "e"])).to_list()
    family = families(pedigree, np.array([a, b, c, e, a]))
    assert family[0] == family[1] == family[4] and len(set(family.tolist())) == 3
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
    birth = pl.Series([20010304, 20010101, 20020101, 20100704, 20110304, 20090101, None])
    pedigree = read_pedigree(PEDIGREE.with_columns(birth=birth))
    codes = pedigree.codes(pl.Series(["a", "b", "e"])).to_numpy()
    of_animals = birth_years(pl.Series(pedigree.birth, nan_to_null=True))
    years = record_birth_years(of_animals, np.append(codes, -1), "this", "that")
    assert years[:2].tolist() == [2010, 2011] and np.isnan(years[2:]).all()


in_folds = lambda group, n, what: balanced_folds(np.array(group), n, np.random.default_rng(1), what)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: in_folds(range(9), 1, "animals"), "found folds=1, needed at least 2"),
        (lambda: in_folds([1, 1, 2], 3, "half-sib families"), "found 2 half-sib families with records for 3 folds"),
        (
            lambda: forward_folds(np.array([1.0, 2.0]), 2),
            "records of 2 times for 2 folds forward in time; needed at le",
        ),
        (
            lambda: record_birth_years(None, [0], "the LR method", "--focal"),
            "no birth years, which the LR method needs",
        ),
    ],
)
def test_what_cannot_be_is_told(call, said):
    with pytest.raises(ConfigError, match=said):
        call()
