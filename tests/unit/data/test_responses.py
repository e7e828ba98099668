"""Traits that are not normal as tables have them: categories, bounds and counts read right, bad ones named by row."""

import numpy as np
import polars as pl
import pytest
from helpers.analyses import analysis

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
ORDINAL = {"type": "ordinal", "column": "score", "categories": ["easy", "assisted", "difficult"]}
BY_STATUS = {"type": "censored", "column": "days", "censored": "status", "values": {"right": "culled", "none": "dead"}}
BOUNDS = {"type": "censored", "lower": "low", "upper": "high"}


def design(trait, **changes):
    frame = pl.DataFrame({name: changes.get(name, values) for name, values in TABLE.items()})
    return prepare(analysis(frame, [{"t": trait}])).design


def test_ordinal():
    (r,) = design(ORDINAL).responses
    assert r.labels == ("easy", "assisted", "difficult") and r.unit_residual
    np.testing.assert_array_equal(r.category, [0, 0, 1, 2, 0])  # the record without a score is left out
    cuts = r.start_of_cuts()
    assert cuts[1] == 0 and np.all(np.diff(cuts) > 0)
    start = r.start()
    assert np.all((cuts[r.category] < start) & (start < cuts[r.category + 1]))


def test_categories_that_are_numbers_need_no_list():
    (r,) = design({"type": "ordinal", "column": "score"}, score=["1", "10", "2", "2", "1", "10"]).responses
    assert r.labels == ("1", "2", "10")
    np.testing.assert_array_equal(r.category, [0, 2, 1, 1, 0, 2])


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


def test_bounds():
    d = design(BOUNDS)
    (r,) = d.responses
    centre = sum(value for *_, value in d.offsets)  # such a trait is centred, its bounds with it
    np.testing.assert_allclose(r.lower + centre, [3, 4, -np.inf, 2, 1])
    np.testing.assert_allclose(r.upper + centre, [3, np.inf, 5, 2.5, 1])
    np.testing.assert_allclose(d.y[:, 0] + centre, [3, 4, 5, 2.25, 1])


def test_bounds_by_status_and_logarithms():
    d = design(BY_STATUS | {"log": True})
    (r,) = d.responses
    centre = sum(value for *_, value in d.offsets)
    np.testing.assert_allclose(np.exp(r.lower + centre), [10, 20, 30, 50, 60])
    np.testing.assert_array_equal(np.isfinite(r.upper), [True, False, True, False, True])


def test_counts():
    d = design({"type": "count", "column": "cases", "exposure": "months"})
    (r,) = d.responses
    np.testing.assert_array_equal(r.count, [0, 1, 2, 0, 5])
    centre = sum(value for *_, value in d.offsets)
    np.testing.assert_allclose(r.exposure, np.exp(centre) * np.array([1, 2, 0.5, 1, 1]))
    np.testing.assert_allclose(d.y[:, 0] + centre, np.log((r.count + 0.5) / np.array([1, 2, 0.5, 1, 1])))


BAD = [
    ({"type": "binary", "column": "alive"}, {"alive": [1, 0, 2, 1, 0, 1]}, ["row 3", "'2'", "'alive'", "two values"]),
    ({"type": "binary", "column": "alive"}, {"alive": [1] * 6}, ["'1' alone", "needed two values"]),
    ({"type": "binary", "column": "score"}, {"score": list("ababab")}, ["traits.t.positive"]),
    ({"type": "binary", "column": "alive", "positive": 3}, {}, ["found no '3'", "one of two values"]),
    (ORDINAL, {"score": ["easy", "hard", "assisted", "difficult", "easy", "easy"]}, ["row 2", "'hard'", "easy"]),
    (ORDINAL, {"score": ["easy", "easy", "difficult", "difficult", "easy", "easy"]}, ["no record of 'assisted'"]),
    ({"type": "ordinal", "column": "score"}, {}, ["'assisted'", "no number", "traits.t.categories"]),
    (BOUNDS, {"high": [2.0, None, 5.0, 2.5, None, 1.0]}, ["row 1", "3 and 2", "not above the upper"]),
    ({"type": "ordinal", "column": "score", "categories": ["a|b", "c", "d"]}, {"score": list("cdcdcd")}, ["'|'"]),
    (
        BOUNDS | {"log": True},
        {"low": [0.0, 4.0, None, 2.0, None, 1.0], "high": [None] * 2 + [5.0, 2.5, None, 1.0]},
        ["row 1", "0 or more"],
    ),
    (BOUNDS | {"log": True}, {"high": [3.0, None, 0.0, 2.5, None, 1.0]}, ["row 3", "found 0", "above 0"]),
    (BY_STATUS, {"status": ["dead", "sold", "dead", "dead", "culled", "dead"]}, ["row 2", "'sold'", "'culled'"]),
    ({"type": "count", "column": "cases"}, {"cases": [0, -1, 2, 0, 5, 1]}, ["row 2", "-1", "whole number from 0"]),
    ({"type": "count", "column": "cases"}, {"cases": [0.0, 1.5, 2.0, 0.0, 5.0, 1.0]}, ["row 2", "1.5"]),
    ({"type": "count", "column": "cases", "exposure": "months"}, {"months": [0.0] + [1.0] * 5}, ["row 1", "above 0"]),
    ({"type": "count", "column": "cases", "exposure": "weeks"}, {}, ["no column 'weeks'", "traits.t.exposure"]),
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
    ({"type": "gamma"}, "needed normal, binary, ordinal, censored or count"),
]


@pytest.mark.parametrize(("trait", "said"), BAD_KEYS)
def test_bad_keys(trait, said):
    with pytest.raises(ConfigError) as caught:
        design(trait)
    assert said in str(caught.value)
