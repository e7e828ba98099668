"""Reliabilities: rounding is 0, negative ones are counted once and said everywhere."""

import json

import numpy as np
import polars as pl
import pytest
from helpers.finished_run import describe_random

import mmgibbs
from mmgibbs.cli import main
from mmgibbs.report.findings import said_at_the_end
from mmgibbs.results.tables import count_negative, negative_reliabilities, reliabilities


@pytest.mark.parametrize(
    "pev, prior, expected",
    [(2.0 + 1e-9, 2.0, 0.0), (1.0, 1.0, 0.0), (1.001, 1.0, -0.001), (0.25, 1.0, 0.75), (0.5, 0.0, np.nan)],
)
def test_rounding_is_zero_and_what_is_negative_stays(pev, prior, expected):
    (found,) = reliabilities(np.array([pev]), np.array([prior]))
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-15)
    assert not (expected == 0 and (found != 0 or np.signbit(found)))


def test_all_that_are_below_zero_are_counted_once_one_is_shown_so():
    assert count_negative(pl.Series([0.5, -0.004, None])) is None
    assert count_negative(pl.Series([], dtype=pl.Float64)) is None
    assert count_negative(pl.Series([0.5, -0.004, None, -0.2, 0.0])) == {"negative": 2, "of": 4, "lowest": -0.2}


def test_breeding_values_alone_are_counted():
    analysis = {"model": {"random": {"genetic": {"relationship": "pedigree"}, "litter": {}}}}
    record = {"analysis": analysis, "relationships": describe_random(analysis)}
    rows = [("genetic", "", -0.1), ("litter", "", -0.2), ("snps", "gebv", -0.3), ("genetic+snps", "total", 0.5)]
    frame = pl.DataFrame(rows, schema=["term", "effect", "reliability"], orient="row")
    found = negative_reliabilities(frame, record)
    assert found["of"] in (2, 3) and found["lowest"] == -0.3
    assert negative_reliabilities(frame.drop("reliability"), record) is None
    assert negative_reliabilities(None, record) is None


def analysis(folder, n=12):
    """Few records and a fixed variance that is far too small, so that many reliabilities are negative."""
    rng = np.random.default_rng(2)
    ids, parents = [f"a{i}" for i in range(n)], lambda of_six: [None] * 6 + [of_six] * (n - 6)
    records = pl.DataFrame({"animal": ids, "y": rng.normal(size=n) * 3})
    pedigree = pl.DataFrame({"id": ids, "sire": parents("a0"), "dam": parents("a1")})
    return {
        "data": {"phenotypes": records, "pedigree": pedigree},
        "traits": ["y"],
        "model": {"random": {"animal": {"relationship": "pedigree"}}},
        "variances": {"animal": {"start": 1.0, "fixed": True}, "residual": {"start": 100.0, "fixed": True}},
        "sampler": {"chains": 2, "burn_in": 5, "samples": 20, "thin": 1, "seed": 1},
        "output": {"directory": str(folder)},
    }


def test_page_console_and_record_say_the_same_count(tmp_path, capsys):
    result = mmgibbs.run(analysis(tmp_path / "run"), progress=False)
    negative = (result.solutions["reliability"] < 0).sum()
    known = result.solutions["reliability"].count()
    told = f"{negative} of {known} reliabilities of breeding values are below 0"
    assert negative > 1
    assert json.loads((tmp_path / "run" / "run.json").read_text())["negative_reliabilities"]["negative"] == negative
    assert sum(told in line for line in said_at_the_end(result.summary, result.info)) == 1
    assert told in repr(result)
    assert main(["report", str(tmp_path / "run")]) == 0
    page = (tmp_path / "run" / "report.html").read_text()
    assert page.count(told) == 1
    capsys.readouterr()


def test_exact_values_of_animals_without_information_are_zero_and_silent(tmp_path):
    given = analysis(tmp_path / "run")
    more = pl.DataFrame({"id": ["x", "y"], "sire": [None, "x"], "dam": [None, None]})
    given["data"]["pedigree"] = pl.concat([given["data"]["pedigree"], more], how="vertical_relaxed")
    given["sampler"] = {"method": "blup"}
    result = mmgibbs.run(given, progress=False)
    reliability = result.solutions["reliability"].drop_nulls()
    assert reliability.min() == 0.0 and "negative_reliabilities" not in result.info
    assert not any("below 0" in line for line in said_at_the_end(result.summary, result.info))
