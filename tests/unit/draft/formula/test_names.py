"""Names of columns with blanks, dots, signs and words of Python in formulas."""

import re

import polars as pl
import pytest

import mmgibbs
from mmgibbs.draft.formula.columns import HiddenNames, write_name
from mmgibbs.errors import ConfigError

pytest.importorskip("formulaic")

NUMBERS = ["weight", "age d", "age.d", "a.b.", "100%", "µg"]
CLASSES = [
    "Ring no.",
    "Ring.no.",
    "year.of birth",
    "x..y",
    ".x",
    "in.herd",
    "if.x",
    "in",
    "it's",
    "a:b",
    "[x]",
    "age-x",
]
PLAIN = ("Ring.no.", "x..y", ".x", "in.herd", "if.x", "µg", "age.d", "a.b.")  # need no backticks


@pytest.fixture(scope="module")
def records():
    numbers = {name: [i * (3 + k) % 11 / 7 for i in range(40)] for k, name in enumerate(NUMBERS)}
    return pl.DataFrame(numbers | {name: [f"g{i * (k + 2) % 7}" for i in range(40)] for k, name in enumerate(CLASSES)})


def written(column):
    return column if column in PLAIN else f"`{column}`"


@pytest.mark.parametrize("column", CLASSES)
@pytest.mark.parametrize("form", ["{}", "factor({})", "as.factor({})", "(1 | {})", "(1 | iid({}))", "(1 | factor({}))"])
def test_a_class_of_any_name(records, column, form):
    model = mmgibbs.model(f"weight ~ {form.format(written(column))}", records).analysis["model"]
    ((name, keys),) = (model["fixed"] | model.get("random", {})).items()
    assert keys.get("level", keys.get("column", name)) == column


@pytest.mark.parametrize("column", NUMBERS[1:])
def test_a_covariate_of_any_name(records, column):
    name = written(column)
    fixed = lambda formula: mmgibbs.model(f"weight ~ {formula}", records).analysis["model"]["fixed"]
    assert fixed(name) == {column: {"kind": "covariate"}}
    curve = {column: {"kind": "covariate", "degree": 2}}
    for power in (f"poly({name}, 2)", f"{name} + I({name}**2)", f"{name} + I({name}^2)", f"`{column}` + {{{name}**2}}"):
        assert fixed(power) == curve, power


def test_traits_and_interactions_of_any_name(records, tmp_path):
    formula = "cbind(`age d`, a.b.) ~ Ring.no.:`year.of birth` + (age.d | `Ring no.`) + (1 | x..y/`it's`)"
    analysis = mmgibbs.model(formula, records).analysis
    assert analysis["traits"] == ["age d", "a.b."]
    assert analysis["model"] == {
        "fixed": {"Ring.no.:year.of birth": {}},
        "random": {
            "Ring no.": {"effects": {"rr": {"level": "Ring no.", "legendre": {"column": "age.d", "degree": 1}}}},
            "x..y": {"level": "x..y"},
            "x..y:it's": {"interaction": ["x..y", "it's"]},
        },
    }
    for formula in ("Ring.no.[g1] ~ 1", "`Ring no.`[g1] ~ 1", "`Ring no.`['g1'] ~ 1"):
        ((trait, keys),) = mmgibbs.model(formula, records).analysis["traits"].items()
        assert (trait[:4], keys) == ("Ring", {"type": "binary", "positive": "g1"})


@pytest.mark.parametrize("form", ["{}", "(1 | {})"])
@pytest.mark.parametrize("column", ["Ring no.", "Ring.no.", "year.of birth", "it's", "a:b", "[x]", "in"])
def test_the_file_that_is_printed_can_be_read(records, column, form, tmp_path):
    records.write_csv(tmp_path / "records.csv")
    model = mmgibbs.model(f"`age d` ~ {form.format(written(column))}", tmp_path / "records.csv")
    (tmp_path / "analysis.yaml").write_text(str(model), encoding="utf-8")
    assert mmgibbs.check(tmp_path / "analysis.yaml")["data"] == model.check()["data"]


ADVICE = {  # formula, what the message has
    "weight ~ Ring no.": "stands in backticks; expected `Ring no.`",
    "weight ~ (1 | Ring no.)": "expected `Ring no.`",
    "weight ~ poly(age d, 2)": "expected `age d`",
    "weight ~ age-x": "expected `age-x`",
    "weight ~ year.of.birth": "R calls 'year.of birth' so; expected `year.of birth`",
    "weight ~ X100.": "R calls '100%' so; expected `100%`",
    "weight ~ `year of birth`": "did you mean 'year.of birth'? Expected `year.of birth`",
    "weight ~ `Ring no`": "did you mean 'Ring no.'? Expected `Ring no.`",
    "weight ~ a:zz": "no column 'a'",
    "weight ~ factor(x y)": "a call in it, such as factor(...), cannot be read",
    "weight ~ x y": "Missing operator between 'x' and 'y', at 'x y'; expected + or another operator",
    "weight ~ (1 | `Ring no.`) + (1 | `Ring no.`)": "repeats the intercept of (1 | `Ring no.`)",
    "weight ~ (`Ring no.` | x..y)": "expected (1 | x..y) + (1 | x..y:`Ring no.`)",
    "weight ~ `age d` + I(`age d`**3)": "add I(`age d`**2)",
    "weight ~ log(`age d`)": "log(`age d`) is not supported",
    "weight ~ `age d": "expected `age d`",
    "weight ~ `x": "it ends before this is closed",
}


@pytest.mark.parametrize("formula", ADVICE)
def test_what_to_write_is_said(records, formula):
    with pytest.raises(ConfigError, match=re.escape(ADVICE[formula])) as error:
        mmgibbs.model(formula, records)
    assert "ʭ" not in str(error.value)


def test_advice_about_backticks_is_about_the_name_that_is_not_there(records):
    frame = records.with_columns(a=pl.col("Ring no."), b=pl.col("Ring no."))
    with pytest.raises(ConfigError, match="no column 'zz'; the columns are"):
        mmgibbs.model("weight ~ a:b + zz", frame)


def test_texts_and_numbers_stay_as_they_are():
    formula = "y['not so.'] ~ poly(x, 2.5) + 1.5 + f(\"a.b.\")"
    assert HiddenNames(formula).text == formula
    hidden = HiddenNames("`y 1` ~ as.factor(Ring.no.) + class")
    assert hidden.text == "_ʭ0_ ~ _ʭ1_(_ʭ2_) + _ʭ3_"
    assert hidden.describe(hidden.text) == "`y 1` ~ as.factor(Ring.no.) + class"
    assert hidden.restore("_ʭ0_") == "y 1"


def test_names_that_need_backticks():
    plain = ("age", "Ring.no.", ".x", "x..y", "class", "Größe", "x1")
    assert [write_name(name) for name in plain] == list(plain)
    for name in ("Ring no.", "1st", "in", "a-b", "True", "it's", ".", "_ x"):
        assert write_name(name) == f"`{name}`"
