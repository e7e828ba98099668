"""Columns of ids are no traits and no covariates."""

import numpy as np
import polars as pl
import pytest
from helpers.analyses import analysis, effect, fixed, random, trait

from mmgibbs.data.prepare import prepare
from mmgibbs.errors import DataError


def test_ids_are_no_trait_and_no_covariate(tmp_path):
    (tmp_path / "numbers.csv").write_text("id,sire,dam\n1,3,4\n2,3,4\n")
    frame = pl.DataFrame({"calf": [1, 2, 1], "sire": [3, 3, 3], "y": [1.0, 2, 4]})
    of = {"g": random("pedigree", _=effect("calf", traits=["y"]))}
    kin = {"pedigree": tmp_path / "numbers.csv", "add_missing_animals": True}
    with pytest.raises(DataError) as refused:
        prepare(analysis(frame, ["y"], {"age": fixed("calf", "covariate", traits=["y"])}, of, **kin))
    assert str(refused.value) == (
        "phenotypes: found column 'calf' as the values of a covariate (model.fixed.age), and as ids of animals "
        "(model.random.g.level); needed a column of numbers that measure something, or no covariate"
    )
    with pytest.raises(DataError, match=r"'calf' as the values of a trait \(traits.y\), and as ids of animals"):
        prepare(analysis(frame, [trait("y", "calf")], {}, of, **kin))
    with pytest.raises(
        DataError, match=r"a trait \(traits.y\), and as ids of animals \(model.random.g.effects.m.level"
    ):
        maternal = {"d": effect("calf", traits=["y"]), "m": effect("sire", traits=["y"])}
        prepare(analysis(frame, [trait("y", "sire")], {}, {"g": random("pedigree", **maternal)}, **kin))
    # a class of them is an effect as any other, and so is an effect of independent levels
    prepare(analysis(frame, ["y"], {"calf": fixed("calf", traits=["y"])}))
    p = prepare(analysis(frame, ["y"], {"sire": fixed("sire", "covariate", traits=["y"])}))
    assert p.warnings == (
        "phenotypes: model.fixed.sire: column 'sire' has ids, by its name: are its numbers those of a covariate?",
    )
    (warning,) = prepare(analysis(frame.with_columns(id=pl.Series([5, 6, 9])), ["id"])).warnings
    assert warning == "phenotypes: traits.id: column 'id' has ids, by its name: are its numbers those of a trait?"


def test_levels_that_a_file_relates_may_be_a_covariate_too(tmp_path):
    """Days with relationships of their own, and a trend over the days."""
    (tmp_path / "days.txt").write_text("1 1 2\n2 2 2\n3 3 2\n2 1 -0.5\n3 2 -0.5\n")
    frame = pl.DataFrame({"day": [1, 2, 3] * 4, "y": np.arange(12.0) % 5})
    of = {"days": random(str(tmp_path / "days.txt"), _=effect("day", traits=["y"]))}
    p = prepare(analysis(frame, ["y"], {"trend": fixed("day", "covariate", traits=["y"])}, of))
    assert [t.name for t in p.design.terms] == ["intercept", "trend", "days"] and p.warnings == ()
