"""Levels that are alike, and words for unknown, are warned of."""

import numpy as np
import polars as pl
import pytest
from helpers.analyses import analysis, effect, fixed, random

from mmgibbs.data.prepare import prepare


def of_levels(cells, kind="fixed", **data):
    """Warnings of an analysis with one effect of these cells."""
    frame = pl.DataFrame({"y": np.arange(len(cells)) % 7 + 0.5, "sex": cells}, schema_overrides={"sex": pl.String})
    effects = {"fixed": {"sex": fixed("sex", traits=["y"])}} if kind == "fixed" else {"random": {"sex": random(**kind)}}
    return prepare(analysis(frame, ["y"], **effects, **data)).warnings


def test_levels_that_differ_by_case_or_blanks_are_one_warning():
    (warning,) = of_levels(["male", "Male", "female", "male", "herd 1", "herd1", "HERD  1"])
    assert warning.startswith(
        "phenotypes: model.fixed.sex: levels of column 'sex' differ by case or blanks alone, and are different levels: "
        "'male' (2 records) and 'Male' (1 record); 'HERD  1' (1 record) and 'herd 1' (1 record) and 'herd1' (1 record)."
    )
    assert warning.endswith("write it in one way in the table, as 'male'")


@pytest.mark.parametrize("cells", [["1 1", "11"], ["1", "01"], ["a-b", "ab"], ["m", "n"]])
def test_other_levels_are_left_alone(cells):
    assert of_levels(cells * 4) == ()


@pytest.mark.parametrize("cells", [["AA", "Aa", "aa"], ["T/T", "T/t", "t/t"], ["AABb", "AaBb", "aabb"]])
def test_genotypes_at_a_gene_are_different_levels(cells):
    assert of_levels(cells * 4) == ()
    assert "'Aa' (4 records) and 'A a' (2 records)" in of_levels(["Aa", "Aa", "A a"] * 2)[0]


def test_many_pairs_are_counted():
    (warning,) = of_levels([f"{c}{i}" for i in range(8) for c in "hH"])
    assert warning.count(" and 'h") == 5 and "; and 3 more such." in warning


@pytest.mark.parametrize("word", ["UNK", "unknown", "?", "na", "N/A", "."])
def test_words_for_unknown_are_named_with_the_key(word):
    (warning,) = of_levels(["m", "f", "m", word, word])
    assert "column 'sex' has 1 level that may mean a missing value and counts as any other" in warning
    assert f"'{word}' (2 records)" in warning and f"write data.missing: ['', 'NA', '{word}'], and correct" in warning
    kind = {"_": effect("sex", traits=["y"])}
    (warning,) = of_levels(["m", "f", "m", word, word], kind)
    assert warning.endswith(f"write data.missing: ['', 'NA', '{word}'] and model.random.sex.unknown_level: omit")
    kind["_"]["unknown_level"] = "omit"
    assert of_levels(["m", "f", "m", word, word], kind, missing=["", "NA", word]) == ()


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
