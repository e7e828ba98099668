"""The summary as a terminal shows it."""

import math
from pathlib import Path

import polars as pl

from mmgibbs.report.notebook import as_html
from mmgibbs.report.page import make_parameter_tables
from mmgibbs.report.parameters import bound_as_0
from mmgibbs.report.terminal import MOST_ROWS, SHOWN, most_wanted, summary_as_text, table_as_text

ROWS = [
    ("animal.var[weight]", 413.4945, 67.2058, 1.7377, 1491.99, 1.0043, 275.3968, 533.7065),
    ("animal.cov[weight,height]", -0.0008, 0.0312, 0.00042, 11.2, 1.1, -0.0608, 0.0592),
    ("residual.var[sick]", 1.0, 0.0, None, None, None, None, None),
    ("residual.var[height]", 2.75, 0.0, None, None, None, None, None),
]


def cells(text):
    lines = [line.strip("│").split("┆") for line in text.splitlines() if line.startswith("│")]
    return [[cell.strip() for cell in line] for line in lines]


def table(rows):
    return pl.DataFrame(rows, schema=SHOWN, orient="row")


def test_digits_follow_the_standard_deviation_and_given_values_stand_alone():
    head, *rows = cells(summary_as_text(table(ROWS)))
    assert head == list(SHOWN)
    assert rows[0] == ["animal.var[weight]", "413", "67", "1.7", "1,492", "1.004", "275", "534"]
    assert rows[1] == ["animal.cov[weight,height]", "-0.001", "0.031", "0.00042", "11", "1.100", "-0.061", "0.059"]
    assert rows[2] == ["residual.var[sick]", "1", "", "", "", "", "", ""]
    assert rows[3][:3] == ["residual.var[height]", "2.75", ""]


def test_estimates_that_were_not_drawn_are_headed_as_such_and_have_two_digits_of_their_errors():
    rows = [("animal.var[weight]", 0.2369012, 0.0434321), ("residual.var[sick]", 1.0, 0.0), ("edge", 0.0, None)]
    rows = [(*row, None, None, None, None, None) for row in rows]
    reml = table(rows).with_columns(median=pl.lit(None, pl.Float64))
    assert cells(summary_as_text(reml)) == [
        ["parameter", "estimate", "standard error"],
        ["animal.var[weight]", "0.237", "0.043"],
        ["residual.var[sick]", "1", ""],
        ["edge", "0", ""],
    ]
    of_draws = reml.with_columns(median=pl.col("mean"))
    assert cells(summary_as_text(of_draws))[0] == ["parameter", "mean", "sd"]


def test_estimates_on_their_boundary_are_0():
    """Not small variances that have a standard error, were given or are those of a trait in other units."""
    rows = [
        ("genetic.var[direct:milk]", 120.5, 30.1),
        ("genetic.var[maternal:milk]", 8.53834e-06, None),
        ("genetic.cov[direct:milk,maternal:milk]", 0.00123456, None),
        ("residual.var[milk]", 300.25, 20.0),
        ("genetic.var[direct:fat]", 4.1e-6, None),  # in tonnes: the data leave no standard error
        ("residual.var[fat]", 9.3e-6, 1e-6),
        ("herd.var[milk]", 1e-5, 0.0),
        ("ratio[genetic.maternal:milk]", 2.03e-8, None),
        ("residual.cov[milk,fat|in]", 0.5, None),
        ("residual.var[fat|in]", 1e-12, None),
    ]
    summary = table([(*row, None, None, None, None, None) for row in rows])
    summary = summary.with_columns(pl.lit(None, pl.Float64).alias(c) for c in ("median", "ess_tail"))
    shown = {row[0]: row[1] for row in cells(summary_as_text(summary))[1:]}
    expected = "120 0 0 300 0.0000041 0.0000093 0.00001 0 0 0"
    assert [shown[name] for name, *_ in rows] == expected.split()
    on_page = {row[0]: row[1].text.strip() for t in make_parameter_tables(summary) for row in t.rows}
    assert {on_page[name] for name, *_ in rows[1:3]} == {"0"} == {on_page["ratio[genetic.maternal:milk]"]}
    assert '<td style="text-align:right">0</td>' in as_html(summary, {}, Path("."))
    drawn = summary.with_columns(median=pl.col("mean"))
    assert bound_as_0(drawn).equals(drawn)


def test_units_of_covariates_and_names_of_classes_do_not_decide_what_is_on_the_boundary():
    rows = [
        ("farm.var[s.0:milk]", 917.0, 169.0),  # of a covariate between 0 and 0.01
        ("a.var[milk]", 0.027, None),  # with b.var the data determine their sum alone
        ("residual.var[milk|1.1:30]", 4.2, 0.2),
        ("residual.var[milk|12:45]", 1e-12, None),
    ]
    summary = table([(*row, None, None, None, None, None) for row in rows])
    summary = summary.with_columns(median=pl.lit(None, pl.Float64))
    assert bound_as_0(summary)["mean"].to_list() == [917.0, 0.027, 4.2, 0.0]


def test_numbers_of_all_sizes():
    lines = [line for line in summary_as_text(table(ROWS)).splitlines() if line.startswith("│")][1:]
    column = [line.split("┆")[1] for line in lines]
    assert len({cell.index(".") for cell in column if "." in cell}) == 1 and len(set(map(len, column))) == 1
    head, row = cells(summary_as_text(table([("r", -0.00004, 0.1, None, None, None, None, None)])))
    assert head == ["parameter", "mean", "sd"] and row == ["r", "0.00", "0.10"]
    given = [1234567.8, 1e-7, 1.5e-7, 2e-30, 0.0, 20.0]
    rows = [(f"v{i}", v, 0.0, None, None, None, None, None) for i, v in enumerate(given)]
    rows += [("r", 1.5, 0.5, 4e-12, 3.2, math.inf, 1.0, 2.0)]
    shown = cells(summary_as_text(table(rows)))[1:]
    assert [row[1] for row in shown] == ["1,234,568", "0.0000001", "0.00000015", "2.0e-30", "0", "20", "1.50"]
    assert shown[-1][2:] == ["0.50", "4.0e-12", "3", "inf", "1.00", "2.00"]


def test_a_table_of_statistics():
    found = pl.DataFrame(
        {"statistic": ["auc", "bias"], "estimate": [0.75123, 0.0001], "se": [0.0162, None], "n": [2848, None]},
        schema_overrides={"n": pl.Int64},
    )
    expected = [["auc", "0.751", "0.016", "2,848"], ["bias", "0.0001", "", ""]]
    assert cells(table_as_text(found, "estimate", "se"))[1:] == expected


def test_variances_and_heritabilities_are_shown_first():
    def shown(names):
        rows = [(name, 1.0, 0.1, None, None, None, None, None) for name in names]
        return most_wanted(table(rows))["parameter"].to_list()

    few = ["genetic.var[a]", "genetic.cov[a,b]", "genetic.corr[a,b]", "residual.var[a]", "h2[a]", "pi[snps]"]
    assert shown(few) == few
    more = few + [f"genetic.cov[a,t{i}]" for i in range(20)]
    assert shown(more) == ["genetic.var[a]", "residual.var[a]", "h2[a]"]
    many = [f"g.var[t{i}]" for i in range(20)] + [f"h2[t{i}]" for i in range(4)]
    assert shown(many) == many[20:]
    others = table([(f"beta[x{i}]", float(i), 1.0, None, None, None, None, None) for i in range(30)])
    assert most_wanted(others)["parameter"].to_list() == [f"beta[x{i}]" for i in range(30 - MOST_ROWS, 30)]
    drawn = table([("genetic.var[a]", 1.0, 0.1, 0.01, 900.0, 1.0, 0.8, 1.2)])
    assert "mcse" in summary_as_text(drawn) and "mcse" not in summary_as_text(drawn, brief=True)
