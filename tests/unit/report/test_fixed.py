"""Levels on the page: the order in which they are listed."""

from pathlib import Path

import polars as pl
import pytest

pytest.importorskip("matplotlib")

from mmgibbs.report import plots
from mmgibbs.report.finished import Finished
from mmgibbs.report.fixed import _table
from mmgibbs.report.order import in_natural_order
from mmgibbs.report.other_traits import other_traits
from mmgibbs.report.words import _by_class


def solutions(levels, means, sds, trait="weight"):
    return pl.DataFrame({"level": levels, "trait": trait, "mean": means, "sd": sds}, schema_overrides={"mean": float})


def test_levels_are_in_natural_order():
    mixed = ["10+", "2", "5-9", "bull", "-1", "F10:slope", "F2:slope", "1.5", "H1-2000", "10", "H1-1999"]
    ordered = ["-1", "1.5", "2", "5-9", "10", "10+", "F2:slope", "F10:slope", "H1-1999", "H1-2000", "bull"]
    assert [mixed[i] for i in in_natural_order(mixed)] == ordered
    by = {"analysis": {"variances": {"residual": {"by": "age"}}}, "data": {"residual_classes": {"10": 5, "2": 9}}}
    assert _by_class(by) == ", one for each class of age (2, 10)"
    table = _table("dam_age", solutions(["10+", "2", "3"], [1.0, 2.0, 3.0], [0.1] * 3), solved=False)
    assert [row[0] for row in table.rows] == ["2", "3", "10+"]


def test_classes_of_other_traits_are_in_natural_order_with_their_categories():
    rows = [(level, category) for level in ("10+", "2") for category in ("dead", "alive", "sold")]
    frame = pl.DataFrame(rows, schema=["level", "category"], orient="row").with_columns(
        trait=pl.lit("fate"), effect=pl.lit("age"), records=10, observed=0.3, predicted=0.3, low=0.2, high=0.4
    )
    run = Finished(Path("."), {}, pl.DataFrame(), predicted=frame)
    (shown,) = other_traits(run, plots.Figures())
    assert [(row[1], row[3]) for row in shown["table"].rows] == sorted(rows, key=lambda r: r[0] == "10+")
