"""Years of birth: from years, dates as numbers and fractions; grouped where there are many."""

import polars as pl
from helpers.validation_data import analysis_of, beef_frames, small_beef

import mmgibbs.data.prepared
from mmgibbs.build.trends import birth_year_averages
from mmgibbs.config import load_config
from mmgibbs.data.births import birth_years, group_years
from mmgibbs.data.prepare import prepare


def test_years_of_births():
    births = pl.Series([2001.0, 2001.7, 20110304.0, None])
    assert birth_years(births).to_list() == [2001, 2001, 2011, None]
    assert birth_years(pl.Series([None, None], dtype=pl.Float64)).to_list() == [None, None]


def test_years_are_grouped_where_there_are_many():
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
