"""Tables of whom to select: units and notes that fit their columns."""

from pathlib import Path

import polars as pl

from mmgibbs.report.decisions import decision_tables
from mmgibbs.report.finished import Finished

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
RESPONSE = pl.DataFrame(
    {"criterion": "gain", "top": 5.0, "selected": 3, "by_mean": 6.0, "by_p_top": 5.0, "perfect": 8.0, "perfect_sd": 1.0}
)


def tables():
    run = Finished(Path("."), {}, pl.DataFrame(), decisions=DECISIONS, response=RESPONSE)
    (of,) = decision_tables(run, 20)
    return of["candidates"], of["response"]


def test_what_is_attained_is_in_per_cent():
    response = tables()[1]
    assert response.columns[-1].label == "Attained %" and response.rows[0][-1].text == "75"


def test_notes_name_the_columns_that_they_are_about():
    response = tables()[1]
    assert "first two" not in response.note and "in the unit of gain" in response.note
    assert "attained is the gain by mean in per cent of it." in response.note
    assert response.note.startswith("By mean, by P(best) and with perfect knowledge:")
    assert {"By mean", "By P(best)", "Perfect knowledge", "SD"} <= {c.label for c in response.columns}


def test_rank_intervals_begin_at_the_first_rank():
    candidates = tables()[0]
    assert candidates.columns[-1].label == "Rank interval, 1 to 9"
    assert [(row[-1].low, row[-1].high) for row in candidates.rows] == [(0, 37.5), (25, 100)]
