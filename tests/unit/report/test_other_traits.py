"""What a page says of traits that are not normal holds of the kinds of traits that the run has."""

from pathlib import Path

import polars as pl
import pytest

pytest.importorskip("matplotlib")

from mmgibbs.report import plots
from mmgibbs.report.finished import Finished
from mmgibbs.report.other_traits import describe_scales, non_normal_rows

CATEGORIES = {"trait": ["ease"] * 2, "category": ["easy", "difficult"]}
COUNTS = {"trait": ["cases"] * 2, "category": [None, None]}


def words(*traits):
    frames = [pl.DataFrame(t, {"trait": pl.String, "category": pl.String}) for t in traits]
    return describe_scales(Finished(Path("run"), {}, pl.DataFrame(), predicted=pl.concat(frames)))


@pytest.mark.parametrize(
    ("traits", "has", "lacks"),
    [
        ([CATEGORIES], ["liability behind each record of ease.", "incidence", "observed shares lie"], ["log rate"]),
        (
            [COUNTS],
            ["log rate behind each count of cases,", "observed mean counts lie"],
            ["liability", "incidence", "share"],
        ),
        ([CATEGORIES, COUNTS], ["of ease.", "of cases,", "observed shares and mean counts lie"], ["ease and cases"]),
    ],
)
def test_liabilities_are_those_of_categories_and_log_rates_those_of_counts(traits, has, lacks):
    told = words(*traits)
    assert all(text in told for text in has) and not any(text in told for text in lacks)


@pytest.mark.parametrize(("effect", "label"), [("lactation", "number in the table"), ("", "all records")])
@pytest.mark.parametrize("category", [None, "ill"])
def test_the_axis_of_a_figure_has_the_numbers_of_its_table(category, effect, label):
    """They are no classes of a count."""
    of = {"effect": effect, "level": "3+", "records": 5, "observed": 1.2, "predicted": 1.1, "low": 0.8, "high": 1.5}
    categories = pl.Series("category", ["well", category] if category else [None], dtype=pl.String)
    frame = pl.DataFrame({"trait": "cases", "category": categories} | of)
    (shown,) = non_normal_rows(Finished(Path("run"), {}, pl.DataFrame(), predicted=frame), plots.Figures())
    ((_, svg, _),) = shown["figures"]
    assert f">{label}</text>" in svg and ">class</text>" not in svg


def test_normal_traits_have_no_such_words():
    assert describe_scales(Finished(Path("run"), {}, pl.DataFrame())) == ""
