"""Effects have codes of their own for missing values; records without a value are refused, or left out if asked."""

import polars as pl
import pytest
from helpers.analyses import analysis, effect, fixed, random

from mmgibbs.config import load_config
from mmgibbs.data.prepare import prepare
from mmgibbs.errors import DataError

FRAME = pl.DataFrame(
    {
        "y": ["1.5", "2.5", "3.0", "4.5", "5.0", "7.5"],
        "z": ["1.0", "2.0", "9.0", "4.0", "2.5", "3.5"],
        "sex": ["1", "2", "9", "1", "2", "1"],
        "age": ["10", "0", "30", "45", "22", "9"],
        "herd": ["a", "b", "a", "9", "b", "a"],
    }
)


def test_codes_of_a_class_effect_hold_for_it_alone():
    p = prepare(analysis(FRAME, ["y"], {"sex": fixed("sex", traits=["y"], missing=["9"], without_value="drop")}))
    assert p.design.n_records == 5 and list(p.levels[0].ids) == ["1", "2"]
    assert "model.fixed.sex.without_value: drop: 1 record has no value in column 'sex' and is left out for y" in (
        p.design.notes
    )
    both = {
        "sex": fixed("sex", traits=["y"], missing=["9"], without_value="drop"),
        "age": fixed("age", "covariate", traits=["y"]),
    }
    assert prepare(analysis(FRAME, ["y"], both)).design.n_records == 5  # an age of 9 is an age


@pytest.mark.parametrize("code", ["0", "0.0"])
def test_codes_of_a_covariate(code):
    p = prepare(
        analysis(FRAME, ["y"], {"age": fixed("age", "covariate", traits=["y"], missing=[code], without_value="drop")})
    )
    assert p.design.n_records == 5


def test_they_are_refused_unless_asked_and_the_message_names_the_key():
    with pytest.raises(DataError, match=r"row 3: found no value in column 'sex'.*'model.fixed.sex.without_value:"):
        prepare(analysis(FRAME, ["y"], {"sex": fixed("sex", traits=["y"], missing=["9"])}))
    with pytest.raises(DataError, match=r"row 2: found no value in column 'age'.*'model.fixed.age.without_value:"):
        prepare(analysis(FRAME, ["y"], {"age": fixed("age", "covariate", traits=["y"], missing=["0"])}))


def test_only_traits_with_the_effect_are_left_out():
    effects = {
        "sex": fixed("sex", traits=["y"], missing=["9"], without_value="drop"),
        "herd": fixed("herd", traits=["z"]),
    }
    p = prepare(analysis(FRAME, ["y", "z"], effects))
    assert p.design.n_records == 6 and p.counts["observations"] == {"y": 5, "z": 6}


def test_slopes_within_a_class():
    frame = FRAME.with_columns(herd=pl.when(pl.col("herd") != "9").then("herd"))
    effects = {"age": fixed("age", "covariate", by="herd", traits=["y"], without_value="drop")}
    assert prepare(analysis(frame, ["y"], effects)).design.n_records == 5


@pytest.mark.parametrize(
    ("keys", "tallied"),
    [({"type": "count"}, 5), ({"type": "ordinal"}, 5), ({"type": "censored", "lower": "y", "upper": "y2"}, 5)],
)
def test_traits_that_are_not_normal(keys, tallied):
    frame = FRAME.with_columns(y=pl.Series(["1", "2", "3", "1", "2", "1"])).with_columns(y2="y")
    tree = {
        "data": {"phenotypes": frame},
        "traits": {"y": keys if "lower" in keys else keys | {"column": "y"}},
        "model": {"fixed": {"age": {"kind": "covariate", "missing": ["0"], "without_value": "drop"}}},
    }
    found = prepare(load_config(tree))
    assert found.design.n_records == tallied and sum(found.counts["observed_as"]["y"].values()) == tallied


def test_codes_of_a_random_effect():
    term = random(_=effect("herd", traits=["y"], missing=["9"], unknown_level="omit"))
    p = prepare(analysis(FRAME, ["y"], {}, {"herd": term}))
    assert p.design.n_records == 6 and p.counts["levels"]["herd"] == 2
    with pytest.raises(DataError, match=r"row 4: found no known level in column 'herd'"):
        prepare(analysis(FRAME, ["y"], {}, {"herd": random(_=effect("herd", traits=["y"], missing=["9"]))}))


def test_animals_added_to_a_pedigree_are_none_of_the_codes(tmp_path):
    (tmp_path / "p.csv").write_text("id,sire,dam\na,0,0\nb,0,0\n")
    term = random("pedigree", _=effect("herd", traits=["y"], missing=["9"], unknown_level="omit"))
    p = prepare(analysis(FRAME, ["y"], {}, {"g": term}, pedigree=tmp_path / "p.csv", add_missing_animals=True))
    assert sorted(p.pedigree.ids) == ["a", "b"]
