"""What a validation is asked for from Python: every option is checked, and answered by its name."""

from pathlib import Path

import numpy as np
import pytest

from mmgibbs.errors import ConfigError
from mmgibbs.validation.options import Plan, resolve_plan
from mmgibbs.validation.run import validate_analysis, validate_several


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"folds": "x"}, "found folds='x', needed a whole number of at least 2"),
        ({"folds": 2.0}, "found folds=2.0, needed a whole number of at least 2"),
        ({"folds": True}, "found folds=True, needed a whole number of at least 2"),
        ({"folds": 1}, "found folds=1, needed at least 2"),
        ({"seed": 1.5}, "found seed=1.5, needed a whole number of 0 or more"),
        ({"seed": None}, "found seed=None, needed a whole number of 0 or more"),
        ({"seed": -1}, "found seed=-1, needed 0 or more"),
        ({"replicates": "many"}, "found replicates='many', needed a whole number of at least 2, or 0 for none"),
        ({"replicates": 1}, "found replicates=1, needed at least 2, or 0 for none"),
        ({"method": "k-fold"}, "found method='k-fold', needed kfold, lr or both; did you mean 'kfold'?"),
        ({"method": None}, "found method=None, needed kfold, lr or both"),
        ({"by": 3}, "found by=3, needed random, family, time, column or cell"),
        (
            {"by": "families"},
            "found by='families', needed random, family, time, column or cell; did you mean 'family'?",
        ),
        ({"by": "time", "time": 2019}, "found time=2019, needed the name of a column of the records"),
        ({"by": "column", "column": ["herd"]}, "found column=['herd'], needed the name of a column of the records"),
        ({"cutoff": "2019"}, "found cutoff='2019', needed a birth year"),
        ({"cutoff": float("inf")}, "found cutoff=inf, needed a birth year"),
        ({"focal": 7}, "found focal=7, needed the path of a file of ids"),
        (
            {"variances": {"animal": 3}},
            "found variances={'animal': 3}, needed the folder of a finished run, or 'sample'",
        ),
    ],
)
def test_options_are_refused_by_name(options, said):
    with pytest.raises(ConfigError) as refused:
        resolve_plan(Plan(**options))
    assert str(refused.value) == f"validate: {said}"


def test_what_is_no_plan_is_refused_before_anything_is_read():
    for call in (
        lambda: validate_analysis("none.yaml", {"folds": 3}),
        lambda: validate_several(["none.yaml"], {"folds": 3}),
    ):
        with pytest.raises(ConfigError, match=r"^validate: found plan=\{'folds': 3\}, needed a Plan"):
            call()


def test_numbers_of_numpy_and_paths_are_plain_ones():
    plan = resolve_plan(Plan(folds=np.int64(3), seed=np.uint8(2), cutoff=np.float32(2003), focal=Path("a") / "ids.txt"))
    assert (plan.folds, plan.seed, plan.cutoff, plan.focal) == (3, 2, 2003.0, str(Path("a") / "ids.txt"))
    assert [type(v) for v in (plan.folds, plan.seed, plan.cutoff)] == [int, int, float]
    assert resolve_plan(plan) == plan


def test_variances_of_several_analyses_are_checked_too():
    with pytest.raises(ConfigError, match="found variances=3, needed the folder of a finished run"):
        validate_several(["a.yaml", "b.yaml"], Plan(), variances=[None, 3])
