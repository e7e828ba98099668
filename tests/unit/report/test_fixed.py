"""Levels on the page: their order, the scales of the bars of fixed effects, and what is said of traits not normal."""

from pathlib import Path

import polars as pl
import pytest
from helpers.finished_run import describe_random

from mmgibbs.data.levels import natural_order
from mmgibbs.report import plots
from mmgibbs.report.finished import Finished
from mmgibbs.report.fixed import _table, bar_scale, fixed_effects, fixed_scale_words, fixed_title
from mmgibbs.report.html_tables import Bar, bars
from mmgibbs.report.model_words import _classes_clause
from mmgibbs.report.other_traits import describe_scales, non_normal_rows

BOTH = "Fixed effects and unknown-parent groups"


def solutions(levels, means, sds, trait="weight"):
    return pl.DataFrame({"level": levels, "trait": trait, "mean": means, "sd": sds}, schema_overrides={"mean": float})


def test_levels_are_in_natural_order():
    mixed = ["10+", "<2", "2", "5-9", "bull", "-1", "F10:slope", "F2:slope", "1.5", "H1-2000", "10", "H1-1999"]
    ordered = ["-1", "1.5", "<2", "2", "5-9", "10", "10+", "F2:slope", "F10:slope", "H1-1999", "H1-2000", "bull"]
    assert [mixed[i] for i in natural_order(mixed)] == ordered
    by = {"analysis": {"variances": {"residual": {"by": "age"}}}, "data": {"residual_classes": {"10": 5, "2": 9}}}
    assert _classes_clause(by) == ", one for each class of age (2, 10)"
    table = _table("dam_age", solutions(["10+", "2", "3"], [1.0, 2.0, 3.0], [0.1] * 3), solved=False)
    assert [row[0] for row in table.rows] == ["2", "3", "10+"]


@pytest.mark.parametrize(
    ("traits", "said"),
    [
        ({"a": {"type": "normal"}, "b": {"type": "censored", "log": False}}, ""),
        ({"b": {"type": "ordinal"}}, "They are on the scale of the trait (for b, that of its liability)."),
        (
            {"a": {"type": "count"}, "b": {"type": "censored", "log": True}},
            "They are on the scale of the trait (for a, that of its log rate; for b, that of its logarithm). "
            "A difference of d on a log scale is a factor of exp(d) of a and b.",
        ),
        ({"a": {"type": "normal"}, "without": {"type": "count"}}, ""),  # no fixed effects on it
    ],
)
def test_solutions_that_are_not_on_the_scale_of_records_say_so(traits, said):
    frame = pl.concat([solutions(["x", "y"], [1.0, 2.0], [0.1] * 2, name) for name in traits if name != "without"])
    frame = frame.with_columns(term=pl.lit("herd"), effect=pl.lit(""))
    run = Finished(Path("."), {"analysis": {"traits": traits}}, pl.DataFrame(), frame)
    assert fixed_scale_words(run) == said


def test_reference_levels_are_told_from_others_at_0():
    frame = solutions(["a", "b", "c"], [0.0, 2.0, 0.0], [0.0, 0.1, 0.0])
    frame = frame.with_columns(term=pl.lit("herd"), effect=pl.lit(""))
    record = {"reference_levels": {"fixed": {"herd": {"weight": "a"}}, "groups": {}}}
    (table,) = fixed_effects(Finished(Path("."), record, pl.DataFrame(), frame))
    assert [row[1].text for row in table.rows if row[1].value == 0] == ["reference, 0", "set to 0"]


def test_one_wide_interval_does_not_set_the_scale():
    levels = ["a", "b", "c", "d"]
    table = _table("herd", solutions(levels, [10.0, 11.0, 12.0, 500.0], [0.5, 0.5, 0.5, 400.0]), solved=False)
    drawn = [row[-1] for row in table.rows]
    assert all(bar.high - bar.low > 40 and not bar.beyond for bar in drawn[:3])
    assert drawn[3].beyond == ("low", "high") and drawn[3].mean is None and (drawn[3].low, drawn[3].high) == (0, 100)
    assert "The bars run from 9.02 to 12.98." in table.note and "A bar with an arrow goes on beyond" in table.note


def test_scales_of_bars():
    (row,) = _table("intercept", solutions(["1"], [600.0], [5.0]), solved=False).rows
    assert row[-1].zero == 0 and row[-1].low > 95
    assert bar_scale([None], [None]) is None
    assert bar_scale([2.0, 1.5], [3.0, 2.5], held=True) == (0.0, 3.0)
    assert bar_scale([2.0, 1.5], [3.0, 2.5]) == (1.5, 3.0)
    assert bar_scale([200.0, 201.0], [205.0, 206.0], held=True) == (200.0, 206.0)
    age = _table("age", solutions(["x^1", "x^2"], [0.6, -0.07], [0.04, 0.01]), solved=False)
    assert "0.000 to 0.678 (x^1) and \u22120.090 to 0.000 (x^2)." in age.note and "The thin line is 0." in age.note
    of_gain = solutions(["a", "b"], [100, 200], [9.0] * 2, "gain")
    both = pl.concat([solutions(["a", "b"], [1.0, 2.0], [0.1] * 2), of_gain])
    note = _table("herd", both, solved=True).note
    assert "(weight) and" in note and "(gain)" in note
    assert bars([5.0], [4.0], [6.0], (0.0, 1.0)) == [Bar(100.0, 100.0, None, 0.0, ("high",))]


@pytest.mark.parametrize(
    ("effect", "title", "said"),
    [
        ("random", BOTH, "Random effects, with the variances of genetic. The bars"),
        ("metafounders", BOTH, "Base populations (metafounders): random effects"),
        ("fixed", "Fixed effects", "The bars run from"),
    ],
)
def test_random_unknown_parent_groups_are_no_fixed_effects(effect, title, said):
    frame = solutions(["H1", "H2", "hill", "sea", "7"], [10.0, 11.0, -0.4, 0.4, 1.0], [0.5] * 5)
    terms, effects = ["herd"] * 2 + ["genetic"] * 3, ["", "", "group", "group", ""]
    frame = frame.with_columns(term=pl.Series(terms), effect=pl.Series(effects))
    analysis = {"data": {"groups": {"effect": effect}}, "model": {"random": {"genetic": {"relationship": "pedigree"}}}}
    run = Finished(Path("."), {"analysis": analysis, "relationships": describe_random(analysis)}, pl.DataFrame(), frame)
    herd, groups = fixed_effects(run)
    assert (herd.caption, groups.caption) == ("herd", "genetic: unknown-parent groups")
    assert len(herd.rows) == len(groups.rows) == 2
    assert groups.note.startswith(said) and herd.note.startswith("The bars run from")
    assert fixed_title(run) == title
    alone = Finished(Path("."), run.record, pl.DataFrame(), frame.filter(term="genetic"))
    assert fixed_title(alone) == ("Fixed effects" if effect == "fixed" else "Unknown-parent groups")
    assert fixed_title(Finished(Path("."), {}, pl.DataFrame())) == "Fixed effects"


def test_classes_of_other_traits_are_in_natural_order_with_their_categories():
    rows = [(level, category) for level in ("10+", "2") for category in ("dead", "alive", "sold")]
    frame = pl.DataFrame(rows, schema=["level", "category"], orient="row").with_columns(
        trait=pl.lit("fate"), effect=pl.lit("age"), records=10, observed=0.3, predicted=0.3, low=0.2, high=0.4
    )
    run = Finished(Path("."), {}, pl.DataFrame(), predicted=frame)
    (shown,) = non_normal_rows(run, plots.Figures())
    assert [(row[1], row[3]) for row in shown["table"].rows] == sorted(rows, key=lambda r: r[0] == "10+")


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
