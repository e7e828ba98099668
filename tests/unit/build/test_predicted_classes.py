"""Classes of traits that are not normal, from the run to the page."""

import polars as pl
import pytest
from helpers.other_traits import tables

import mmgibbs
from mmgibbs.report.finished import read_finished
from mmgibbs.report.make import make_report
from mmgibbs.report.other_traits import extreme_words

TRAITS = {
    "alive": {"type": "binary"},
    "score": {"type": "ordinal", "categories": [1, 2, 3]},
    "cases": {"type": "count", "exposure": "months"},
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Nobody of herd h0 is alive."""
    phenotypes, pedigree = tables()
    phenotypes = phenotypes.with_columns(
        pl.when(pl.col("herd") == "h0").then(pl.lit(0)).otherwise(pl.col("alive")).alias("alive")
    )
    path = tmp_path_factory.mktemp("classes") / "run"
    config = {
        "name": "classes",
        "data": {"phenotypes": phenotypes, "pedigree": pedigree},
        "traits": TRAITS,
        "model": {"fixed": {"herd": {}}, "random": {"genetic": {"level": "animal", "relationship": "pedigree"}}},
        "sampler": {"chains": 2, "burn_in": 20, "samples": 60, "thin": 1, "seed": 4},
        "output": {"directory": str(path), "probabilities": ["alive"]},
    }
    return mmgibbs.run(config, overwrite=True, progress=False)


def test_the_table(finished):
    frame = pl.read_csv(finished.directory / "predicted_classes.csv", schema_overrides={"category": pl.String})
    of_score = frame.filter(trait="score")
    assert of_score["level"].to_list() == [h for h in ("h0", "h1", "h2") for _ in range(3)]
    table = tables()[0]
    for level, category, seen in of_score.select("level", "category", "observed").iter_rows():
        own = table.filter(herd=level)
        assert seen == pytest.approx((own["score"] == int(category)).mean())
    assert (frame["low"] <= frame["predicted"]).all() and (frame["predicted"] <= frame["high"]).all()
    cases = frame.filter(trait="cases")
    assert cases["category"].null_count() == 3 and cases["records"].to_list() == [30, 30, 30]


def test_what_the_page_shows(finished):
    liabilities = finished.info["liabilities"]
    assert liabilities["score"]["thresholds"][0] == 0 and len(liabilities["score"]["thresholds"]) == 2
    assert sum(liabilities["alive"]["incidence"]) == pytest.approx(1.0)
    assert 0 <= liabilities["score"]["threshold_acceptance"] <= 1
    run = read_finished(finished.directory)
    (said,) = extreme_words(run)
    assert said.startswith("alive: all records of 1 of the 3 levels of herd (h0) lie in one end category")
    page = make_report([finished.directory]).read_text(encoding="utf-8")
    assert "Categories and counts" in page and "Liability and thresholds of score" in page
    assert "Mean counts by herd" in page and "P(1)" in page and "share of 1, observed and predicted" in page
