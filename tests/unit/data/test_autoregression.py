"""Levels of an autoregression from the columns of the records, and what of them is refused or warned of."""

import numpy as np
import polars as pl
import pytest
from helpers.analyses import as_mapping

import mmgibbs
from mmgibbs.config import load_config
from mmgibbs.data.prepare import prepare
from mmgibbs.errors import ConfigError, DataError

PLOTS = pl.DataFrame(
    {
        "trial": ["A"] * 6 + ["B"] * 4,
        "row": [1, 1, 1, 2, 2, 2, 4, 4, 5, 5],
        "column": [1, 2, 3, 1, 2, 3, 7, 8, 7, 8],
        "day": [0.5, 1, 2, 0.5, 1, 2, 1, 2, 3, 4],
        "y": [1.0, 2, 3, 4, 5, 6, 7, 8, 9, 11],
    }
)
FIELD = {"kind": "ar1", "row": "row", "column": "column", "within": "trial"}


def analysis(relationship=FIELD, records=PLOTS, method="reml", term=None, **variances):
    random = {"field": {"relationship": relationship} | (term or {})}
    return as_mapping(records, random=random, variances=variances, method=method)


def prepared(*args, **keys):
    return prepare(load_config(analysis(*args, **keys)))


def test_levels_are_all_plots_of_each_trial_row_by_row():
    records = PLOTS.filter(pl.int_range(pl.len()) != 4)  # a plot without a record stays a level
    of = prepared(records=records)
    assert of.levels[-1].ids.to_list() == [
        *(f"A:{r}:{c}" for r in (1, 2) for c in (1, 2, 3)),
        *(f"B:{r}:{c}" for r in (4, 5) for c in (7, 8)),
    ]
    np.testing.assert_array_equal(of.design.terms[-1].effects[0].level, [0, 1, 2, 3, 5, 6, 7, 8, 9])
    assert of.warnings == ()


def test_times_are_levels_within_each_trial_and_steps_apart_by_the_smallest_distance():
    of = prepared({"kind": "ar1", "time": "day", "within": "trial"})
    assert of.levels[-1].ids.to_list() == ["A:0.5", "A:1", "A:2", "B:1", "B:2", "B:3", "B:4"]
    structure = of.design.terms[-1].relationship.structure
    assert structure.step == 0.5
    np.testing.assert_array_equal(structure.gap, [0, 1, 2, 0, 2, 2, 2])
    other = prepared({"kind": "ar1", "time": "day", "within": "trial", "step": 2})
    np.testing.assert_array_equal(other.design.terms[-1].relationship.structure.gap, [0, 0.25, 0.5, 0, 0.5, 0.5, 0.5])


@pytest.mark.parametrize(
    ("records", "relationship", "message"),
    [
        (PLOTS.with_columns(row=pl.col("row") + 0.5), FIELD, r"row 1: found 1\.5 in column 'row'.*whole number"),
        (PLOTS.with_columns(column=pl.lit("x")), FIELD, r"'x' in column 'column' \(model.*relationship.column\)"),
        (PLOTS.filter(pl.col("row").is_in([1, 4])), FIELD, r"found one row in every trial \(column 'row'.*needed two"),
        (
            PLOTS.with_columns(row=pl.when(pl.col("row") == 2).then(10_001).otherwise("row")),
            FIELD,
            r"found 10,001 rows and .* columns in 'A'.*needed the numbers of rows and columns within a trial",
        ),
        (PLOTS.unique("trial"), {"kind": "ar1", "time": "day", "within": "trial"}, r"every level of 'trial' has one"),
        (PLOTS.drop("row"), FIELD, r"there is no column 'row' \(model\.random\.field"),
    ],
)
def test_places_that_do_not_fit_are_named(records, relationship, message):
    with pytest.raises(DataError, match=message):
        prepared(relationship, records)


def test_two_records_of_a_plot_are_warned_of_where_trials_are_taken_for_one():
    both = PLOTS.with_columns(
        row=pl.Series([1, 1, 1, 2, 2, 2, 1, 1, 2, 2]), column=pl.Series([1, 2, 3, 1, 2, 3, 1, 2, 1, 2])
    )
    whole = {key: value for key, value in FIELD.items() if key != "within"}
    (warning,) = prepared(whole, both).warnings
    assert "rows 1 and 7 are of one plot, '1:1'" in warning
    assert "records of 4 plots in all" in warning
    assert prepared(FIELD, both).warnings == ()


def test_a_record_without_a_place_is_refused_or_omitted():
    records = PLOTS.with_columns(row=pl.when(pl.int_range(pl.len()) != 2).then("row"))
    with pytest.raises(DataError, match=r"row 3: found no known level in column 'row' \(model.*relationship.row\)"):
        prepared(records=records)
    of = prepared(records=records, term={"unknown_level": "omit"})
    assert np.flatnonzero(of.design.terms[-1].effects[0].level < 0).tolist() == [2]


@pytest.mark.parametrize(
    ("relationship", "keys", "message"),
    [
        ("ar1", {}, r"relationship: found no direction, needed row, column or both, or time"),
        ({"kind": "ar1", "within": "trial"}, {}, r"found no direction"),
        ({"kind": "ar1", "row": "row", "time": "day"}, {}, r"time: cannot be combined with row or column"),
        ({"kind": "ar1", "row": "row", "step": 1.5}, {}, r"step: found 1\.5, needed a whole number of rows"),
        ({"kind": "ar1", "row": "row", "column": "row"}, {}, r"found one column twice"),
        (FIELD | {"rho": {"time": 0.3}}, {}, r"rho\.time: found without time: COLUMN, needed row and column"),
        (FIELD | {"rho": 1.2}, {}, r"rho: found 1\.2, needed"),
        (FIELD | {"fixed": True}, {}, r"rho: missing, needed the known correlation"),
        (FIELD | {"rho": {"row": 0.3}, "fixed": True}, {}, r"rho\.column: missing, needed the known correlation"),
        (FIELD, {"method": "blup", "field": 1, "residual": 1}, r"rho: missing, needed \{row: R, column: R\} for"),
        (FIELD, {"term": {"level": "trial"}}, r"level: found 'trial', which cannot be combined with relationship ar1"),
    ],
)
def test_keys_that_do_not_fit_are_named(relationship, keys, message):
    with pytest.raises(ConfigError, match=message):
        load_config(analysis(relationship, **keys))


def test_other_engines_refuse_correlations_that_are_estimated(tmp_path):
    of = analysis(method="gibbs", field=1, residual=1)
    of["sampler"] |= {"engine": "structured", "samples": 10, "burn_in": 10}
    of["output"]["directory"] = str(tmp_path / "run")
    with pytest.raises(ConfigError, match=r"found structured, which cannot be combined with correlations that are est"):
        mmgibbs.run(of)
