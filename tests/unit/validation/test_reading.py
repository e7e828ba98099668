"""The file of records is parsed once in a validation: not for each fold, nor again for the design or for doubles."""

import polars as pl
import pytest
from helpers.validation_data import analysis_of, beef_frames, small_beef

import mmgibbs
from mmgibbs.config import load_config
from mmgibbs.data import phenotypes as phenotypes_module
from mmgibbs.data.phenotypes import read_phenotypes
from mmgibbs.data.prepare import prepare


@pytest.fixture
def analysis(tmp_path):
    """With fractions, and rows that are the same as earlier ones in the columns that are used."""
    phenotypes, pedigree = beef_frames(small_beef(160, 3, 4))
    phenotypes = pl.concat([phenotypes, phenotypes.head(5)]).with_row_index("barn")
    phenotypes.write_csv(tmp_path / "phenotypes.csv")
    wanted = analysis_of(phenotypes, pedigree, group="herd")
    wanted["data"]["phenotypes"] = str(tmp_path / "phenotypes.csv")
    return wanted


def test_a_validation_parses_the_records_once(analysis, tmp_path, monkeypatch):
    opened, open_table = [], phenotypes_module.open_table
    monkeypatch.setattr(
        phenotypes_module, "open_table", lambda source, *more: opened.append(source) or open_table(source, *more)
    )
    mmgibbs.validate(analysis, folds=3, replicates=0, cutoff=2003, progress=False, report=False, output=tmp_path / "o")
    assert [str(s) for s in opened if not isinstance(s, pl.DataFrame)] == [str(tmp_path / "phenotypes.csv")]


def test_the_design_is_that_of_the_file(analysis):
    loaded = load_config(analysis)
    read, given = prepare(loaded), prepare(loaded, table=read_phenotypes(loaded.data))
    assert given.counts == read.counts and given.warnings == read.warnings
    assert (given.design.y == read.design.y).all() and given.design.notes == read.design.notes
    for one, other in zip(given.levels, read.levels, strict=True):
        assert one.ids.equals(other.ids)
