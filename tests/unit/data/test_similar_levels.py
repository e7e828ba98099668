"""Levels that are alike, and words for unknown, are warned of, whichever key names the column."""

import numpy as np
import polars as pl
import pytest
from helpers.analyses import analysis, as_mapping, effect, fixed, random

from mmgibbs.data.prepare import prepare
from mmgibbs.data.traits import load_analysis


def of_levels(cells, kind="fixed", values=False, **data):
    """Warnings of an analysis with one effect of these cells; values: records without one are left out."""
    frame = pl.DataFrame({"y": np.arange(len(cells)) % 7 + 0.5, "sex": cells}, schema_overrides={"sex": pl.String})
    dropping = {"without_value": "drop"} if values else {}
    if kind == "fixed":
        return prepare(analysis(frame, ["y"], {"sex": fixed("sex", traits=["y"], **dropping)}, **data)).warnings
    return prepare(analysis(frame, ["y"], random={"sex": random(**kind)}, **data)).warnings


def test_levels_that_differ_by_case_or_blanks_are_one_warning():
    (warning,) = of_levels(["male", "Male", "female", "male", "herd 1", "herd1", "HERD  1"])
    assert warning.startswith(
        "phenotypes: model.fixed.sex: levels of column 'sex' differ only in how they are written, and are different "
        "levels: 'male' (2 records) and 'Male' (1 record); "
        "'HERD  1' (1 record) and 'herd 1' (1 record) and 'herd1' (1 record)."
    )
    assert warning.endswith("write it in one way in the table, as 'male'")


@pytest.mark.parametrize(
    "cells",
    [
        ["1 1", "11"],
        ["a-b", "ab"],
        ["1.1", "1.2", "1.9", "1.10"],  # the tenth
        ["1,205", "1205"],
        ["1E5", "100000"],
    ],
)
def test_other_levels_are_left_alone(cells):
    assert of_levels(cells * 4) == ()


@pytest.mark.parametrize(
    ("cells", "first", "second"),
    [
        (["1", "1.0", "2", "2.0"], "1", "1.0"),  # two exports joined
        (["1", "2", "01", "02"], "01", "1"),
        (["1,0", "1", "2"], "1", "1,0"),
        (["north", "north\u200b", "south"], "north", "north\\u200b"),
        (["A-1", "A\u20131", "B-1"], "A-1", "A\u20131"),
        (["fu\u0308nf", "f\u00fcnf", "drei"], "fu\u0308nf", "f\u00fcnf"),
    ],
)
@pytest.mark.parametrize("kind", ["fixed", {"_": effect("sex", traits=["y"])}])
def test_one_level_in_two_spellings(cells, first, second, kind):
    (warning,) = of_levels(cells * 3, kind)
    assert f"'{first}' (3 records) and '{second}' (3 records)" in warning or (
        f"'{second}' (3 records) and '{first}' (3 records)" in warning
    )


@pytest.mark.parametrize(
    ("cells", "code"),
    [
        (["1", "2", "1", "2", "9"], "9"),  # sex
        (["1", "2", "3", "4", "5", "99"], "99"),  # parity
        (["a", "b", "-999"], "-999"),
    ],
)
def test_numbers_for_an_unknown_level(cells, code):
    (warning,) = of_levels(cells * 3)
    assert f"'{code}' (3 records)" in warning and f"write model.fixed.sex.missing: ['{code}'], and correct" in warning
    assert of_levels(cells * 3, missing=["", "NA", code], values=True) == ()


@pytest.mark.parametrize(
    "cells",
    [
        ["1", "2", "3", "4", "5", "6", "7", "8", "9"],
        ["101", "205", "333", "999"],  # herds
        ["-1", "0", "1"],
        ["1", "2", "3", "6"],
    ],
)
def test_numbers_that_are_levels(cells):
    assert of_levels(cells * 3) == ()


@pytest.mark.parametrize("cells", [["AA", "Aa", "aa"], ["T/T", "T/t", "t/t"], ["AABb", "AaBb", "aabb"]])
def test_genotypes_at_a_gene_are_different_levels(cells):
    assert of_levels(cells * 4) == ()
    assert "'Aa' (4 records) and 'A a' (2 records)" in of_levels(["Aa", "Aa", "A a"] * 2)[0]


def test_many_pairs_are_counted():
    (warning,) = of_levels([f"{c}{i}" for i in range(8) for c in "hH"] * 2)
    assert warning.count(" and 'h") == 5 and "; and 3 more such." in warning


@pytest.mark.parametrize("word", ["UNK", "unknown", "?", "na", "N/A", "."])
def test_words_for_unknown_are_named_with_the_key(word):
    (warning,) = of_levels(["m", "f", "m", word, word])
    assert "column 'sex' has 1 level that may mean a missing value and counts as any other" in warning
    assert f"'{word}' (2 records)" in warning
    assert f"write model.fixed.sex.missing: ['{word}'], and correct these records, or leave them out with" in warning
    kind = {"_": effect("sex", traits=["y"])}
    (warning,) = of_levels(["m", "f", "m", word, word], kind)
    assert warning.endswith(f"write model.random.sex.missing: ['{word}'] and model.random.sex.unknown_level: omit")
    kind["_"] |= {"unknown_level": "omit", "missing": [word]}
    assert of_levels(["m", "f", "m", word, word], kind) == ()


@pytest.mark.parametrize("word", ["none", "missing", "-", "0", "Nancy"])
def test_words_that_may_be_levels_are_none_for_unknown(word):
    assert of_levels(["m", "f", "m", word, word]) == ()


def test_ids_of_animals_are_no_classes(tmp_path):
    """The pedigree says how these are written: 'a' and 'A' are two animals."""
    (tmp_path / "two.csv").write_text("id,sire,dam\na,0,0\nA,0,0\nUNK,0,0\n")
    frame = pl.DataFrame({"calf": ["a", "A", "UNK"] * 3, "y": np.arange(9.0)})
    pedigree = random("pedigree", _=effect("calf", traits=["y"]))
    permanent = random(_=effect("calf", traits=["y"]))
    p = prepare(analysis(frame, ["y"], {}, {"g": pedigree, "pe": permanent}, pedigree=tmp_path / "two.csv"))
    assert p.warnings == ()


AR1 = {"kind": "ar1", "time": "day", "within": "site"}


def records():
    """Sites North and South, one of them in two spellings; places in time and in a field, animals in pens."""
    rng = np.random.default_rng(1)
    n = 48
    site = np.array(["North", "north", "South"])[np.arange(n) % 3]
    names = {"site": site, "herd": [f"h{i % 4}" for i in range(n)], "animal": [f"a{i}" for i in range(n)]}
    places = {"day": np.arange(n) // 3 + 1.0, "row": np.arange(n) // 12 + 1, "column": np.arange(n) // 3 % 4 + 1}
    return pl.DataFrame(names | places | {"x": rng.standard_normal(n), "y": rng.standard_normal(n)})


def source(random=None, fixed=None, residual=None, traits=None, **data):
    made = as_mapping(records(), traits or ["y"], random=random, fixed=fixed, method="reml")
    return made | {"data": made["data"] | data, "variances": {"residual": residual or {}}}


def of_term(**keys):
    return {"random": {"e": keys}}


KEYS = {
    "traits": {"traits": {"y": {"by": "site"}}},
    "traits where": {"traits": {f"y{s}": {"column": "y", "where": {"site": s}} for s in ("North", "north", "South")}},
    "model.fixed.site": {"fixed": {"site": {}}},
    "model.fixed.herd:site": {"fixed": {"herd:site": {}}},
    "model.fixed.x.by": {"fixed": {"x": {"kind": "covariate", "by": "site"}}},
    "model.random.site": {"random": {"site": {}}},
    "model.random.herd:site": {"random": {"herd:site": {}}},
    "model.random.e": of_term(levels=["site", "herd"]),
    "model.random.e.effects.mates.level.group": {
        "random": {
            "e": {"effects": {"own": {"level": "animal"}, "mates": {"level": {"group": "site", "of": "animal"}}}}
        }
    },
    "variances.residual.by": {"residual": {"by": "site"}},
    "variances.residual.relationship.within": {"residual": {"relationship": AR1}},
    "variances.residual.classes.h0.relationship.within": {
        "residual": {"by": "herd", "classes": {"h0": {"relationship": AR1}}}
    },
    "model.random.e.relationship.within": of_term(relationship=AR1),
    "model.random.e.relationship.within field": of_term(
        relationship={"kind": "ar1", "row": "row", "column": "column", "within": "site"}
    ),
    "model.random.e.relationship.within walk": of_term(
        relationship={"kind": "random_walk", "of": "day", "within": "site", "order": 1}
    ),
    "model.random.e.relationship.within curve": of_term(relationship={"kind": "spline", "of": "day", "within": "site"}),
    "model.random.e.relationship.within surface": of_term(
        relationship={"kind": "spline", "row": "row", "column": "column", "part": "surface", "within": "site"}
    ),
}


@pytest.mark.parametrize("key", KEYS)
def test_two_spellings_are_warned_of_once(key):
    said = [w for w in prepare(load_analysis(source(**KEYS[key]))).warnings if "differ only" in w]
    (warning,) = said
    assert "levels of column 'site' differ only in how they are written" in warning
    assert "'North' (16 records) and 'north' (16 records)" in warning
    assert f" {key.split()[0]}: " in warning


def test_groups_of_parents_are_warned_of():
    animals = records()["animal"].to_list()
    pedigree = pl.DataFrame(
        {"id": animals, "sire": [None] * 48, "dam": [None] * 48, "group": ["G1", "g1", "G2", "G2"] * 12},
        schema_overrides={"sire": pl.String, "dam": pl.String},
    )
    analysis = source({"animal": {"relationship": "pedigree"}}, pedigree=pedigree, groups={"column": "group"})
    (warning,) = [w for w in prepare(load_analysis(analysis)).warnings if "differ only" in w]
    assert warning.startswith("data.groups.column: groups differ only in how they are written")
    assert "'G1' and 'g1'" in warning


def test_similar_names_that_are_different_are_left_alone():
    names = np.array(["F1", "F2", "F11", "F1b"])[np.arange(48) % 4]
    analysis = source(traits={"y": {"by": "site"}}, residual={})
    analysis["data"]["phenotypes"] = records().with_columns(site=pl.Series(names))
    assert not [w for w in prepare(load_analysis(analysis)).warnings if "written" in w]


def test_codes_for_unknown_environments_are_warned_of():
    analysis = source(traits={"y": {"by": "site"}})
    analysis["data"]["phenotypes"] = records().with_columns(pl.col("site").replace({"north": "unknown"}))
    (warning,) = [w for w in prepare(load_analysis(analysis)).warnings if "may mean a missing value" in w]
    assert "traits: column 'site' has 1 level that may mean a missing value" in warning
