"""Tables of animals: the highest and lowest, and whom to select."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from helpers.finished_run import analysis, write_run
from helpers.html_page import Page

from mmgibbs.report.breeding import _first, extreme
from mmgibbs.report.compare import write_comparison
from mmgibbs.report.decisions import decision_tables
from mmgibbs.report.findings import warnings
from mmgibbs.report.finished import Finished, read_finished
from mmgibbs.report.page import write_report

pytestmark = pytest.mark.usefixtures("undrawn")


@pytest.mark.parametrize("descending", [True, False])
@pytest.mark.parametrize("top", [1, 7, 20, 500])
@pytest.mark.parametrize("blank", [0.0, 0.3, 1.0])
def test_the_first_are_those_of_a_whole_sort(descending, top, blank):
    """Many means are equal (and come in their order), some are blank."""
    rng = np.random.default_rng(3)
    mean = pl.Series("mean", np.where(rng.random(300) < blank, np.nan, rng.integers(0, 12, 300)), nan_to_null=True)
    frame = pl.DataFrame([pl.Series("level", np.arange(300)), mean])
    whole = frame.drop_nulls("mean").sort("mean", descending=descending, maintain_order=True).head(top)
    assert _first(frame, top, descending).equals(whole)


@pytest.mark.parametrize(("inbreeding", "sires"), [([0.1, 0.0], [None, "s"]), ([0.0, 0.1], ["s", None])])
def test_the_highest_and_the_lowest_have_the_same_columns(inbreeding, sires):
    frame = pl.DataFrame({"level": ["a", "b"], "mean": [1.0, 2.0], "sd": [0.5, 0.5], "reliability": [0.3, None]})
    known = pl.DataFrame({"inbreeding": inbreeding, "year": [2001, None], "sire": sires, "dam": [None, None]})
    of = pl.concat([frame, known.cast({"dam": pl.String})], how="horizontal")
    high, low = ([c.label for c in extreme(of, "milk", 1, d, False).columns] for d in (True, False))
    assert high == low and {"F", "Reliability", "Born", "Sire"} < set(high) and "Dam" not in high
    between = pl.concat([of, of.with_columns(level=pl.lit("c"), mean=1.5, inbreeding=0.2)])
    own = pl.when(level="c").then("inbreeding").otherwise(0.0)
    none = extreme(between.with_columns(inbreeding=own), "milk", 1, True, False)
    assert [c.label for c in none.columns].index("F") > 0 and len(none.rows) == 1  # the inbred one is in neither table
    assert "F" not in [c.label for c in extreme(of.with_columns(inbreeding=0.0), "milk", 1, True, False).columns]


def test_bars_say_what_they_are_drawn_on():
    frame = pl.DataFrame({"level": ["a", "b", "c"], "mean": [1.0, 2.0, 9.0], "inbreeding": 0.0, "reliability": None})
    known = frame.with_columns(sd=pl.Series([1.0, 1.0, 1.0]))
    low = extreme(known, "milk", 2, False, False)
    assert low.note.startswith(
        "2 of 3; solutions.parquet has all of them. The bars run from \u22121.0 to 4.0. The thin l"
    )
    assert extreme(known, "milk", 3, True, False).note.startswith("The bars run from \u22121.0 to 11.0.")
    without = frame.with_columns(sd=pl.lit(None, pl.Float64))
    assert extreme(without, "milk", 3, True, True).note == ""


def test_columns_of_probabilities_leave_the_caption_as_it_is():
    values = {"level": ["a", "b"], "mean": [2.0, 1.0], "probability[1]": [0.9, 0.4]}
    unknown = dict.fromkeys(("sd", "reliability", "inbreeding"), pl.lit(None, pl.Float64))
    table = extreme(pl.DataFrame(values).with_columns(**unknown), "alive", 2, True, False)
    assert table.caption == "alive: the 2 highest breeding values"
    assert [column.label for column in table.columns][-1] == "P(1)"


def test_levels_without_a_pedigree_are_no_animals(tmp_path):
    own = analysis()
    own["model"]["random"] = {"genetic": {"relationship": "kinship.txt", "level": "line", "traits": ["birth"]}}
    folder = write_run(tmp_path / "run", analysis=own)
    page = Page(write_report(folder))
    assert page.table("direct, birth: the 20 highest")["head"][1] == "Line"
    told = [p["desc"] for p in page.plots if p["title"].startswith(("Distribution", "Genetic trend", "Reliability"))]
    assert told and any(" of 160 levels: from " in text for text in told)
    assert not any("animal" in text for text in told)
    both = Page(write_comparison([folder, folder], tmp_path / "both.html"))
    assert "160 levels in both runs" in both.text and "levels among the 20 highest" in both.text


def test_levels_with_a_pedigree_are_animals(tmp_path):
    run = read_finished(write_run(tmp_path / "run"))
    assert run.level_names("genetic") == ("animal", "Animal") and run.level_names("litter") == ("level", "Litter")
    few = replace(run, solutions=run.solutions.with_columns(ess=pl.lit(50.0)))
    (found,) = (f for f in warnings(few) if f.title.startswith("Monte Carlo"))
    assert found.text.endswith("Animals whose values lie close together may change places in a longer run.")


DECISIONS = pl.DataFrame(
    {
        "criterion": "gain",
        "level": ["a", "b"],
        "mean": [2.0, 1.0],
        "sd": [0.5, 0.5],
        "p_top_5": [0.9, 0.1],
        "rank_low": [1, 3],
        "rank_median": [2, 5],
        "rank_high": [4, 9],
    }
)
GAINS = {"by_mean": 6.0, "by_p_top": 5.0, "perfect": 8.0, "perfect_sd": 1.0}
RESPONSE = pl.DataFrame({"criterion": "gain", "top": 5.0, "selected": 3} | GAINS)


def test_tables_of_candidates_and_of_what_is_gained():
    run = Finished(Path("."), {}, pl.DataFrame(), decisions=DECISIONS, response=RESPONSE)
    (of,) = decision_tables(run, 20)
    response, candidates = of["response"], of["candidates"]
    assert [c.label for c in response.columns][-5:] == [
        "By mean",
        "By P(best)",
        "Perfect knowledge",
        "SD",
        "Attained %",
    ]
    assert response.rows[0][-1].text == "75"
    assert response.note.startswith("By mean, by P(best) and with perfect knowledge:")
    assert "first two" not in response.note and "in the unit of gain" in response.note
    assert "attained is the gain by mean in per cent of it." in response.note
    assert candidates.columns[-1].label == "Rank interval, 1 to 9"
    assert [(row[-1].low, row[-1].high) for row in candidates.rows] == [(0, 37.5), (25, 100)]
