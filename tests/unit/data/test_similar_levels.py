"""Levels that are alike, and words for unknown, are warned of."""

import numpy as np
import polars as pl
import pytest
from helpers.analyses import analysis, effect, fixed, random

from mmgibbs.data.prepare import prepare


def of_levels(cells, kind="fixed", values=False, **data):
    """Warnings of an analysis with one effect of these cells; values: records without one are left out."""
    frame = pl.DataFrame({"y": np.arange(len(cells)) % 7 + 0.5, "sex": cells}, schema_overrides={"sex": pl.String})
    dropping = {"without_value": "drop"} if values else {}
    effects = (
        {"fixed": {"sex": fixed("sex", traits=["y"], **dropping)}}
        if kind == "fixed"
        else {"random": {"sex": random(**kind)}}
    )
    return prepare(analysis(frame, ["y"], **effects, **data)).warnings


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
        ["m", "n"],
        ["1", "1.5"],
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
        (["0.5", "0.50", "1"], "0.5", "0.50"),  # doses
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


def test_spellings_of_the_levels_of_a_slope_and_of_residual_classes():
    frame = pl.DataFrame({"y": [1.5, 2.5, 3.0, 4.5] * 3, "x": np.arange(12.0) ** 2, "h": ["1", "1.0", "2", "2"] * 3})
    warnings = prepare(analysis(frame, ["y"], {"x": fixed("x", "covariate", by="h", traits=["y"])})).warnings
    assert [w[:48] for w in warnings] == ["phenotypes: model.fixed.x.by: levels of column '"]


@pytest.mark.parametrize(
    ("cells", "code"),
    [
        (["1", "2", "1", "2", "9"], "9"),  # sex
        (["0", "1", "1", "0", "-9"], "-9"),
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
        ["1", "3", "5", "9"],
        ["101", "205", "333", "999"],  # herds
        ["-1", "0", "1"],
        ["7", "8", "9"],
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
