"""Traits that are not normal as tables have them: categories, bounds and counts read right, bad ones named by row."""

import numpy as np
import polars as pl
import pytest
from helpers.analyses import analysis

from mmgibbs.config import load_config
from mmgibbs.data.prepare import prepare
from mmgibbs.errors import ConfigError, DataError

TABLE = {
    "animal": list("abcdef"),
    "score": ["easy", "easy", "assisted", "difficult", None, "easy"],
    "alive": [1, 0, 1, 1, 0, None],
    "low": [3.0, 4.0, None, 2.0, None, 1.0],
    "high": [3.0, None, 5.0, 2.5, None, 1.0],
    "days": [10.0, 20.0, 30.0, None, 50.0, 60.0],
    "status": ["dead", "culled", "dead", "dead", "culled", "dead"],
    "cases": [0, 1, 2, 0, 5, None],
    "months": [1.0, 2.0, 0.5, 1.0, 1.0, 1.0],
}
BINARY, COUNT = {"type": "binary", "column": "alive"}, {"type": "count", "column": "cases"}
SCORE, RATE = {"type": "ordinal", "column": "score"}, COUNT | {"exposure": "months"}
ORDINAL = {"type": "ordinal", "column": "score", "categories": ["easy", "assisted", "difficult"]}
BY_STATUS = {"type": "censored", "column": "days", "censored": "status", "values": {"right": "culled", "none": "dead"}}
BOUNDS = {"type": "censored", "lower": "low", "upper": "high"}


def design(trait, **changes):
    frame = pl.DataFrame({name: changes.get(name, values) for name, values in TABLE.items()})
    return prepare(analysis(frame, [{"t": trait}])).design


def test_ordinal_categories():
    (r,) = design(ORDINAL).responses
    assert r.labels == ("easy", "assisted", "difficult") and r.has_unit_residual
    np.testing.assert_array_equal(r.category, [0, 0, 1, 2, 0])  # the record without a score is left out
    cuts = r.start_of_cuts()
    assert cuts[1] == 0 and np.all(np.diff(cuts) > 0)
    start = r.start()
    assert np.all((cuts[r.category] < start) & (start < cuts[r.category + 1]))
    (r,) = design({"type": "ordinal", "column": "score"}, score=["1", "10", "2", "2", "1", "10"]).responses
    assert r.labels == ("1", "2", "10")
    np.testing.assert_array_equal(r.category, [0, 2, 1, 1, 0, 2])


@pytest.mark.parametrize(
    "keys", [{"type": "ordinal"}, {"type": "binary"}, {"type": "binary", "positive": "yes"}, ORDINAL]
)
def test_categories_without_a_record(keys):
    with pytest.raises(DataError, match=r"found no record of trait 't' \(column 'score'\); needed at least one"):
        design({"column": "score", **keys}, score=pl.Series([None] * 6, dtype=pl.String))


@pytest.mark.parametrize(
    ("keys", "values", "expected"),
    [
        ({}, [1, 0, 1, 1, 0, None], [1, 0, 1, 1, 0]),
        ({}, [2, 1, 2, 2, 1, 2], [1, 0, 1, 1, 0, 1]),
        ({"positive": "yes"}, ["yes", "no", "yes", "no", "no", "yes"], [1, 0, 1, 0, 0, 1]),
        ({"positive": 0}, [1, 0, 1, 1, 0, 1], [0, 1, 0, 0, 1, 0]),
        ({"positive": 1}, ["1.0", "0.0", "1", "1.0", "0", "1"], [1, 0, 1, 1, 0, 1]),
        ({"missing": [0]}, ["1.0", "2.0", "0.0", "2", "1", "2"], [0, 1, 1, 0, 1]),
    ],
)
def test_binary(keys, values, expected):
    (r,) = design({"type": "binary", "column": "alive"} | keys, alive=values).responses
    np.testing.assert_array_equal(r.category, expected)


def test_bounds_of_columns_and_of_a_status():
    d = design(BOUNDS)
    (r,) = d.responses
    centre = sum(value for *_, value in d.offsets)  # such a trait is centred, its bounds with it
    np.testing.assert_allclose(r.lower + centre, [3, 4, -np.inf, 2, 1])
    np.testing.assert_allclose(r.upper + centre, [3, np.inf, 5, 2.5, 1])
    np.testing.assert_allclose(d.y[:, 0] + centre, [3, 4, 5, 2.25, 1])
    d = design(BY_STATUS | {"log": True})
    (r,) = d.responses
    centre = sum(value for *_, value in d.offsets)
    np.testing.assert_allclose(np.exp(r.lower + centre), [10, 20, 30, 50, 60])
    np.testing.assert_array_equal(np.isfinite(r.upper), [True, False, True, False, True])
    trait = {"type": "censored", "column": "days", "censored": "status", "values": {"right": [0], "none": [1]}}
    (r,) = design(trait, status=["1.0", "0", "1", "1.0", "0.0", "1"]).responses
    np.testing.assert_array_equal(np.isinf(r.upper), [False, True, False, True, False])


def test_counts():
    d = design({"type": "count", "column": "cases", "exposure": "months"})
    (r,) = d.responses
    np.testing.assert_array_equal(r.count, [0, 1, 2, 0, 5])
    centre = sum(value for *_, value in d.offsets)
    np.testing.assert_allclose(r.exposure, np.exp(centre) * np.array([1, 2, 0.5, 1, 1]))
    np.testing.assert_allclose(d.y[:, 0] + centre, np.log((r.count + 0.5) / np.array([1, 2, 0.5, 1, 1])))


@pytest.mark.parametrize(
    ("positive", "cells"),
    [
        (True, [True, False, True, True, False, None]),
        ("True", [True, False, True, True, False, None]),
        ("true", ["True", "False", "True", "TRUE", "false", None]),
        ("TRUE", ["true", "false", "true", "true", "false", ""]),
    ],
)
def test_true_and_false_however_they_are_written(positive, cells):
    (r,) = design({"type": "binary", "column": "alive", "positive": positive}, alive=cells).responses
    np.testing.assert_array_equal(r.category, [1, 0, 1, 1, 0])


def test_infinite_bounds_are_open():
    given = design(BOUNDS, low=["3", "4", "-inf", "2", "", "1"], high=[3.0, np.inf, 5.0, 2.5, None, 1.0])
    (r,), (empty,) = given.responses, design(BOUNDS).responses
    np.testing.assert_array_equal(r.lower, empty.lower)
    np.testing.assert_array_equal(r.upper, empty.upper)


def test_a_category_is_not_taken_away_by_missing_values_of_all_columns():
    """0 as a missing value of BLUPF90 files against scores from 0."""
    trait = {"type": "ordinal", "column": "alive", "categories": [0, 1]}
    with pytest.raises(ConfigError, match="data.missing: found '0', which is a category of traits.t too"):
        analysis(pl.DataFrame(TABLE), [{"t": trait}], missing=["", "0"])


def test_two_traits_of_the_same_bounds_are_refused():
    with pytest.raises(ConfigError, match=r"traits.b: trait 'a' has its columns 'low' and 'high' already"):
        analysis(pl.DataFrame(TABLE), [{"a": BOUNDS}, {"b": BOUNDS}])


def test_a_prior_of_a_variance_that_is_1_is_refused():
    config = {
        "name": "prior",
        "data": {"phenotypes": pl.DataFrame(TABLE)},
        "traits": {"t": {"type": "binary", "column": "alive"}},
        "model": {},
        "variances": {"residual": {"prior": {"df": 4, "scale": 3}}},
    }
    with pytest.raises(ConfigError, match=r"variances.residual.prior: found a prior of the residual variance of t"):
        load_config(config)


EXTREME = {
    "herd": list("xxyyzz"),
    "alive": [1, 0, 1, 1, 0, 0],
    "days": [10.0, 20.0, 30.0, 40.0, 50.0, 60.0],
    "status": ["dead", "culled", "culled", "culled", "dead", "dead"],
    "cases": [0, 1, 0, 0, 5, 0],
}
LEVELS = [
    ({"type": "binary", "column": "alive"}, "2 of 3 levels", "in one end category ('y', 'z')", "10"),
    (BY_STATUS, "1 of 3 levels", "censored on one side ('y')", "4000"),
    (BY_STATUS | {"log": True}, "1 of 3 levels", "censored on one side ('y')", "10"),
    ({"type": "count", "column": "cases"}, "1 of 3 levels", "counts of 0 ('y')", "10"),
]


@pytest.mark.parametrize(("trait", "count", "shown", "variance"), LEVELS)
def test_levels_without_a_posterior_are_refused(trait, count, shown, variance):
    """The more extreme their effect, the better it fits: under a flat prior, and no other."""
    frame = pl.DataFrame(EXTREME)
    with pytest.raises(DataError) as caught:
        prepare(analysis(frame, [{"t": trait}], {"herd": {"prior": "flat"}}))
    for text in (f"found {count} of model.fixed.herd whose records of trait 't' are all {shown}", "or levels joined"):
        assert text in str(caught.value)
    assert f"model.fixed.herd.prior: {{variance: {variance}}}" in str(caught.value)
    prepare(analysis(frame, [{"t": trait}], {"herd": {"prior": {"variance": float(variance)}}}))


BAD = [
    (BINARY, {"alive": [1, 0, 2, 1, 0, 1]}, ["row 3", "'2'", "'alive'", "two values"]),
    ({"type": "binary", "column": "score"}, {"score": list("ababab")}, ["traits.t.positive"]),
    (BINARY | {"positive": 3}, {}, ["found no '3'", "one of two values"]),
    (ORDINAL, {"score": ["easy", "hard", "assisted", "difficult", "easy", "easy"]}, ["row 2", "'hard'", "easy"]),
    (ORDINAL, {"score": ["easy", "easy", "difficult", "difficult", "easy", "easy"]}, ["no record of 'assisted'"]),
    (SCORE, {}, ["'assisted'", "not a number", "traits.t.categories"]),
    (BOUNDS, {"high": [2.0, None, 5.0, 2.5, None, 1.0]}, ["row 1", "3 and 2", "not above the upper"]),
    (SCORE | {"categories": ["a|b", "c", "d"]}, {"score": list("cdcdcd")}, ["'|'"]),
    (BOUNDS | {"log": True}, {"low": [0.0, *[4.0] * 5], "high": [None] * 2 + [5.0] * 4}, ["row 1", "0 or more"]),
    (BOUNDS | {"log": True}, {"high": [3.0, None, 0.0, 2.5, None, 1.0]}, ["row 3", "found 0", "above 0"]),
    (BY_STATUS, {"status": ["dead", "sold", "dead", "dead", "culled", "dead"]}, ["row 2", "'sold'", "'culled'"]),
    (COUNT, {"cases": [0, -1, 2, 0, 5, 1]}, ["row 2", "-1", "whole number from 0"]),
    (RATE, {"months": [0.0] + [1.0] * 5}, ["row 1", "above 0"]),
    (COUNT | {"exposure": "weeks"}, {}, ["no column 'weeks'", "traits.t.exposure"]),
    (RATE, {"months": [1.0, None] + [1.0] * 4}, ["row 2", "no value", "'months'", "above 0"]),
    (COUNT, {"cases": [0] * 6}, ["no count above 0 in column 'cases'"]),
    (COUNT, {"cases": ["0", "two", "1", "0", "5", "1"]}, ["row 2", "'two'"]),
    ({"type": "ordinal", "column": "alive"}, {"alive": [2] * 6}, ["found 1 category in column 'alive'", "two or more"]),
    (SCORE, {"score": ["1", "inf", "2", "3", "1", "2"]}, ["'inf'", "not a number", "traits.t.categories"]),
    (BINARY, {"alive": ["1", "1e400"] * 3}, ["'1e400'", "traits.t.positive"]),
    (BINARY, {"alive": [None] * 6}, ["no record of trait 't'", "not missing (empty, NA)"]),
    (BINARY | {"positive": "y"}, {"alive": ["yes", "no"] * 3}, ["no 'y'", "'no', 'yes'"]),
    (BINARY, {"alive": [True, False] * 3}, ["'false', 'true'", "traits.t.positive"]),
    (
        BINARY | {"positive": "yes"},
        {"alive": ["yes", "no", "Yes", "no", "yes", "no"]},
        ["row 3", "'Yes'", "one of two values"],
    ),
    (SCORE | {"categories": ["a\nb", "c", "d"]}, {"score": list("cdcdcd")}, [r"'\n'", "a parameter's name"]),
    (BY_STATUS, {"status": ["dead", None, "dead", "dead", "culled", "dead"]}, ["row 2", "no value", "'culled'"]),
    (BY_STATUS, {"status": ["culled"] * 6}, ["trait 't' with an upper bound", "at least a value"]),
    (BOUNDS, {"low": [None] * 6}, ["trait 't' with a lower bound", "at most a value"]),
]


@pytest.mark.parametrize(("trait", "changes", "said"), BAD)
def test_bad_tables(trait, changes, said):
    with pytest.raises(DataError) as caught:
        design(trait, **changes)
    for text in said:
        assert text in str(caught.value)


BAD_KEYS = [
    ({"type": "ordinal", "positive": 1}, "positive: cannot be combined with type: ordinal"),
    ({"type": "binary", "exposure": "months"}, "exposure: cannot be combined with type: binary"),
    ({"type": "censored"}, "found censored without bounds"),
    ({"type": "censored", "lower": "low"}, "upper: missing, needed the columns of both bounds"),
    ({"type": "censored", "column": "days", "censored": "status"}, "values: missing"),
    (BOUNDS | {"censored": "status"}, "censored: cannot be combined with lower and upper"),
    (ORDINAL | {"missing": ["easy"]}, "found 'easy', which is a category too"),
    (ORDINAL | {"categories": ["easy"]}, "found 1, needed two or more"),
    (BY_STATUS | {"values": {"right": ["x"], "none": ["x"]}}, "which is also in right"),
    (BOUNDS | {"column": "days"}, "column: cannot be combined with lower and upper"),
    (SCORE | {"categories": [1, "1.0", 2]}, "found '1' and '1.0', which mean the same; needed each once"),
    (SCORE | {"categories": [1, 2, 3], "missing": ["1.0"]}, "missing: found '1', which is a category too"),
    (BINARY | {"positive": 0, "missing": [0]}, "found '0', which is a category too"),
    (BY_STATUS | {"values": {"right": [1], "none": ["1.0"]}}, "which is also in right"),
]


@pytest.mark.parametrize(("trait", "said"), BAD_KEYS)
def test_bad_keys(trait, said):
    with pytest.raises(ConfigError) as caught:
        design(trait)
    assert said in str(caught.value)
