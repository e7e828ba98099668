"""Dates where numbers are needed are named as dates; years of birth, from dates as numbers and fractions."""

import datetime

import polars as pl
import pytest
from helpers.analyses import analysis, fixed
from helpers.validation_data import analysis_of, beef_frames, small_beef

import mmgibbs.data.prepared
from mmgibbs.build.trends import birth_year_averages
from mmgibbs.config import load_config
from mmgibbs.data.dates import are_dates_as_numbers, birth_years, group_years
from mmgibbs.data.prepare import prepare
from mmgibbs.errors import DataError


@pytest.mark.parametrize(
    "cells",
    [
        ["2019-04-12", "2019-11-03"],
        ["12.04.2019", "3.11.2019"],
        ["4/12/19", "11/30/2019"],
        ["2019-04-12 08:30", "2019-11-03T17:05:00"],
        [datetime.date(2019, 4, 12), datetime.date(2019, 11, 3)],
    ],
)
def test_dates_are_named_where_numbers_are_needed(cells):
    frame = pl.DataFrame({"y": [1.0, 2.0, 3.0], "day": [*cells, None]})
    with pytest.raises(DataError, match=r"\(traits.day\); needed a number, and a date is none: an age in days"):
        prepare(analysis(frame, ["day"]))
    with pytest.raises(DataError, match=r"model.fixed.day\); needed a number, and a date is none: days since.* season"):
        prepare(analysis(frame[:2], ["y"], {"day": fixed("day", "covariate", traits=["y"])}))
    with pytest.raises(DataError, match=r"\(data.weights\); needed a number, and a date is none$"):
        prepare(analysis(frame[:1], ["y"], weights="day"))
    with pytest.raises(DataError, match=r"\(traits.day\); needed a number, and a date is none"):
        prepare(analysis(frame, [{"day": {"type": "ordinal"}}]))


@pytest.mark.parametrize("cell", ["1.2.12", "2019-13-41", "3-4-12", "A1", "99/99/99", "12 Apx 2019"])
def test_what_is_no_date_is_not_called_one(cell):
    with pytest.raises(DataError, match="found") as refused:
        prepare(analysis(pl.DataFrame({"y": [cell, cell]}), ["y"]))
    assert "date" not in str(refused.value)


def test_a_date_among_numbers_may_come_from_a_spreadsheet():
    with pytest.raises(DataError, match=r"found '03.05.2024' .* needed a finite number, .* made a date of a number\?"):
        prepare(analysis(pl.DataFrame({"y": ["3.4", "03.05.2024", "3.6"]}), ["y"]))


@pytest.mark.parametrize(
    ("values", "are_dates"),
    [
        (["20110304", "20110331", "20120101"], True),
        (["04032011", "31122012", "1022010"], True),
        (["20110304", "20111304", "20120101"], False),  # no month 13
        (["2011", "2012", "2013"], False),
        (["20110304", "20110304"], False),
        (["40606", "40607", "40700"], False),  # days since 1900 are times
    ],
)
def test_dates_as_numbers(values, are_dates):
    assert are_dates_as_numbers(pl.Series(values)) is are_dates


def test_dates_as_numbers_where_the_name_says_so():
    six = pl.Series(["110304", "120229", "991231"])
    assert are_dates_as_numbers(six, is_named=True) and not are_dates_as_numbers(six)
    day = [20110101 + 100 * (i % 12) + i % 28 for i in range(40)]
    frame = pl.DataFrame({"y": [30 + i % 7 + i / 10 for i in range(40)], "day": day})
    for kind in ("covariate", "class"):
        warnings = prepare(analysis(frame, ["y"], {"day": fixed("day", kind, traits=["y"])})).warnings
        dates = [w for w in warnings if "column 'day' has dates written as numbers (20110101)" in w]
        assert len(dates) == (kind == "covariate")


def test_years_of_births_are_grouped_where_there_are_many():
    births = pl.Series([2001.0, 2001.7, 20110304.0, None])
    assert birth_years(births).to_list() == [2001, 2001, 2011, None]
    assert birth_years(pl.Series([None, None], dtype=pl.Float64)).to_list() == [None, None]
    years = pl.Series([None, *range(1900, 2020)])
    assert group_years(years, 121).equals(years) and group_years(years.slice(0, 50), 60).equals(years.slice(0, 50))
    grouped = group_years(years)
    assert grouped[0] is None and grouped.drop_nulls().n_unique() == 60
    assert grouped[1:5].to_list() == [1900, 1900, 1902, 1902]
    assert group_years(pl.Series([None, None], dtype=pl.Int64)).null_count() == 2


def test_they_are_derived_once_for_all_that_use_them(monkeypatch):
    calls, derive = [], birth_years
    monkeypatch.setattr(mmgibbs.data.prepared, "birth_years", lambda births: calls.append(1) or derive(births))
    phenotypes, pedigree = beef_frames(small_beef(160, 3, 4))
    prepared = prepare(load_config(analysis_of(phenotypes, pedigree, group="herd")))
    years = prepared.birth_years
    ids = pl.DataFrame({"animal": prepared.pedigree.ids.head(len(years)), "year": years})
    both = ids.join(pedigree, on="animal")
    assert both.height == 160 and (both["year"] == both["birth"]).all()
    assert birth_year_averages(years).labels == tuple(str(y) for y in sorted(set(pedigree["birth"])))
    assert prepared.birth_years is years and calls == [1]
    without = prepare(load_config(analysis_of(phenotypes, pedigree.drop("birth"), group="herd")))
    assert without.birth_years is None and birth_year_averages(without.birth_years) is None
