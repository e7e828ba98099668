"""Levels of curves from the columns of the records, and what of them is refused or warned of."""

import numpy as np
import polars as pl
import pytest
from helpers.analyses import as_mapping

import mmgibbs
from mmgibbs.config import load_config
from mmgibbs.data import random_walks
from mmgibbs.data.prepare import prepare
from mmgibbs.errors import ConfigError, DataError
from mmgibbs.runs import estimates

RECORDS = pl.DataFrame(
    {"animal": ["a"] * 5 + ["b"] * 4, "day": [1.0, 2.5, 2.5, 4, 9, 2, 3, 5, 9], "y": [1.0, 2, 3, 4, 5, 6, 7, 8, 10]}
)
CURVE = {"kind": "random_walk", "of": "day"}
LINE = {"day": {"kind": "covariate"}}


def analysis(relationship=CURVE, records=RECORDS, fixed=LINE, term=None, method="reml"):
    random = {"curve": {"relationship": relationship} | (term or {})}
    return as_mapping(records, fixed=fixed, random=random, method=method)


def prepared(*args, **keys):
    return prepare(load_config(analysis(*args, **keys)))


def test_levels_are_the_values_but_the_first_and_slopes_are_not_reported():
    of = prepared()
    labels = of.levels[-1]
    assert labels.ids.to_list() == [f"{day}{end}" for day in ("2", "2.5", "3", "4", "5", "9") for end in ("", ":slope")]
    np.testing.assert_array_equal(labels.order, [0, 2, 4, 6, 8, 10])
    np.testing.assert_array_equal(of.design.terms[-1].effects[0].level, [-1, 2, 2, 6, 10, 0, 4, 8, 10])
    assert of.warnings == ()


def test_each_class_has_a_curve_that_begins_at_its_first_value():
    of = prepared(CURVE | {"order": 1, "within": "animal"}, fixed={"animal": {}})
    assert of.levels[-1].ids.to_list() == ["a:2.5", "a:4", "a:9", "b:3", "b:5", "b:9"]
    np.testing.assert_array_equal(of.design.terms[-1].effects[0].level, [-1, 0, 0, 1, 2, -1, 3, 4, 5])
    relationship = of.design.terms[-1].relationship
    np.testing.assert_allclose(relationship.gap * relationship.unit, [1.5, 1.5, 5, 1, 2, 4])
    np.testing.assert_array_equal(relationship.is_first, [True, False, False, True, False, False])


def test_a_smooth_curve_without_a_slope_or_of_many_points_is_said(monkeypatch):
    (warning,) = prepared(fixed={}).warnings
    assert "curve over day begins with slope 0 for y" in warning and "{day: {kind: covariate}}" in warning
    assert prepared(CURVE | {"order": 1}, fixed={}).warnings == ()
    assert prepared(CURVE | {"within": "animal"}, fixed={"animal": {}}).warnings == ()
    monkeypatch.setattr(random_walks, "MAX_POINTS", 6)
    assert any("no curves of 7 points" in note for note in prepared().design.notes)
    monkeypatch.setattr(random_walks, "MAX_POINTS", 7)
    assert not any("no curves" in note for note in prepared().design.notes)


@pytest.mark.parametrize(("apart", "is_refused"), [(3.3e-4, True), (3.6e-4, False)])
def test_values_may_be_as_close_as_three_tenthousandths_of_the_mean_gap(apart, is_refused):
    """Eight values over 8 days are 8 / 7 apart on average."""
    records = RECORDS.with_columns(day=pl.col("day") + apart * (pl.int_range(pl.len()) == 2))
    if is_refused:
        with pytest.raises(DataError, match="too close for a curve"):
            prepared(records=records)
    else:
        assert len(prepared(records=records).levels[-1].curve.values) == 8


def test_a_curve_times_a_covariate_has_no_means_and_a_note(tmp_path):
    term = {"relationship": CURVE | {"order": 1}, "effects": {"slope": {"level": "day", "covariates": ["x"]}}}
    source = analysis(records=RECORDS.with_columns(x=pl.col("y") ** 2), method="blup")
    source["model"]["random"]["curve"] = term
    source |= {"variances": {"curve": 1, "residual": 1}, "output": {"directory": str(tmp_path / "run")}}
    run = mmgibbs.run(source, progress=False)
    assert run.smooths is None and any("no curves of an effect with covariates" in note for note in run.info["notes"])
    assert run.info["engine"] == "direct" and "curve" in run.info["effective_dimensions"]


@pytest.mark.parametrize(
    ("records", "relationship", "message"),
    [
        (RECORDS.with_columns(day=7.0), CURVE, r"at most 1 distinct value in column 'day' \(.*\.of\); needed at least"),
        (RECORDS.filter(pl.col("day").is_in([1.0, 9.0])), CURVE, r"at most 2 distinct values .*needed at least 3 for"),
        (
            RECORDS.unique("animal"),
            CURVE | {"order": 1, "within": "animal"},
            r"at most 1 distinct value in column 'day' in any level of 'animal'.*that is not a constant",
        ),
        (
            RECORDS.with_columns(day=pl.col("day") + pl.when(pl.int_range(pl.len()) == 2).then(1e-7).otherwise(0)),
            CURVE,
            r"found 2\.5 and 2\.5000001 in column 'day'.*needed values rounded to multiples of 0\.01",
        ),
        (RECORDS.with_columns(day=pl.lit("x")), CURVE, r"found 'x' in column 'day' \(model\.random\.curve\.relatio"),
        (RECORDS.rename({"day": "time"}), CURVE, r"there is no column 'day'"),
    ],
)
def test_values_that_do_not_fit_are_named(records, relationship, message):
    with pytest.raises(DataError, match=message):
        prepared(relationship, records, fixed={})


@pytest.mark.parametrize(
    ("relationship", "keys", "message"),
    [
        ("random_walk", {}, r"relationship\.of: missing"),
        (CURVE | {"order": 3}, {}, r"order: found 3, needed"),
        (CURVE | {"within": "day"}, {}, r"within: found the column of `of`"),
        (CURVE | {"rho": 0.3}, {}, r"rho"),
        (CURVE, {"term": {"level": "animal"}}, r"level: found 'animal', which cannot be combined with relationship"),
    ],
)
def test_keys_that_do_not_fit_are_named(relationship, keys, message):
    with pytest.raises(ConfigError, match=message):
        load_config(analysis(relationship, **keys))


def test_a_record_without_a_value_is_refused_or_omitted():
    records = RECORDS.with_columns(day=pl.when(pl.int_range(pl.len()) != 3).then("day"))
    with pytest.raises(DataError, match=r"row 4: found no known level in column 'day'"):
        prepared(records=records, fixed={})
    of = prepared(CURVE | {"order": 1}, records, {}, {"unknown_level": "omit"})
    assert of.design.terms[-1].effects[0].level[3] == -1 and of.levels[-1].curve.number[3] == -1


def test_effective_dimensions_of_too_many_equations_are_left_out_with_a_note(tmp_path, monkeypatch):
    monkeypatch.setattr(estimates, "MAX_EQUATIONS", 5)
    source = analysis(method="blup") | {"variances": {"curve": 1, "residual": 1}}
    source["output"] = {"directory": str(tmp_path / "run")}
    run = mmgibbs.run(source, progress=False)
    assert "effective_dimensions" not in run.info
    assert any("effective dimensions are not computed: a factor of 14 equations" in note for note in run.info["notes"])
