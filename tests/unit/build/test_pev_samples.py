"""`sampler.pev_samples`: PEV of BLUP by Monte Carlo, where it is used, what is said of it, what it does not go with."""

import json

import numpy as np
import polars as pl
import pytest
from helpers.small_analysis import command, refused, write_files

RUN = ("run", "analysis.yaml", "--quiet", "--no-report")
SAMPLED = ("--set", "sampler.pev_samples=200")


@pytest.fixture
def folder(tmp_path):
    write_files(tmp_path, {})
    return tmp_path


def solutions(folder):
    return pl.read_parquet(folder / "run" / "solutions.parquet")


def test_it_is_used_where_pev_is_not_computed(folder):
    assert command(folder, *RUN).code == 0
    exact = solutions(folder)
    assert "pev_mcse" not in exact.columns
    assert command(folder, *RUN, "--overwrite", *SAMPLED, "--set", "sampler.pev_limit=1").code == 0
    found = solutions(folder)
    assert found.drop("pev_mcse").columns == exact.columns
    np.testing.assert_allclose(found["mean"], exact["mean"], rtol=1e-9)
    off = (found["sd"] ** 2 - exact["sd"] ** 2) / found["pev_mcse"]
    assert off.drop_nulls().abs().max() < 5 and off.drop_nulls().len() == (exact["sd"] > 0).sum()
    genetic = found.filter(term="genetic")
    assert (genetic["pev_mcse"] < 0.1 * genetic["pev"]).all()
    record = json.loads((folder / "run" / "run.json").read_text())
    (note,) = [n for n in record["notes"] if "Monte Carlo" in n]
    assert "from 200 samples" in note and "27 equations are above sampler.pev_limit 1" in note
    errors = record["monte_carlo_pev"]["errors"]["genetic"]
    assert 0 < errors["mean"] <= errors["largest"] < 0.1
    again = folder / "again"
    more = ("--set", "sampler.pev_limit=1", "--set", "sampler.threads=2", "--output", str(again))
    assert command(folder, *RUN, *SAMPLED, *more).code == 0
    np.testing.assert_allclose(pl.read_parquet(again / "solutions.parquet")["sd"], found["sd"], rtol=1e-9)


def test_without_it_the_note_says_that_it_is_there(folder):
    assert command(folder, *RUN, "--set", "sampler.pev_limit=1").code == 0
    (note,) = [n for n in json.loads((folder / "run" / "run.json").read_text())["notes"] if "blank" in n]
    assert "sampler.pev_samples" in note


@pytest.mark.parametrize("method", ["gibbs", "reml"])
def test_other_methods_are_refused_by_name(folder, method):
    message = refused(folder, *SAMPLED, "--set", f"sampler.method={method}")
    assert f"sampler.pev_samples: found 200, which cannot be combined with method: {method}" in message
