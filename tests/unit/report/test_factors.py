"""The table of factors on the page."""

import polars as pl

from mmgibbs.report.factors import factor_tables, is_of_factors
from mmgibbs.report.page import make_parameter_tables
from mmgibbs.results.tables import SUMMARY_COLUMNS


def summary():
    rows = {"line.var[a]": (2.0, 0.1), "line.var[b]": (1.0, 0.1)}
    for i, c in enumerate("ab"):
        rows |= {f"line.loading[{c}:{j}]": (1.0 + i + j, 0.25) for j in (1, 2)}
    rows |= {f"line.specific[{c}]": (0.5, 0.2 if c == "a" else None) for c in "ab"}
    rows |= {f"line.explained[{c}]": (0.75, 0.1) for c in "ab"} | {f"line.explained[{j}]": (0.4, 0.1) for j in (1, 2)}
    rows |= {"line.rho": (0.3, 0.1)}
    columns = {"parameter": list(rows)} | dict(zip(("mean", "sd"), zip(*rows.values(), strict=True), strict=True))
    frame = pl.DataFrame(columns, schema_overrides={"mean": pl.Float64, "sd": pl.Float64})
    return frame.with_columns(pl.lit(0.5).alias(c) for c in SUMMARY_COLUMNS if c not in frame.columns)


def test_one_row_a_component_and_one_of_shares():
    (table,) = factor_tables(summary())
    assert [c.label for c in table.columns] == [
        "Component",
        "Factor 1",
        "Factor 2",
        "Specific variance",
        "Explained, %",
    ]
    assert [row[0] for row in table.rows] == ["a", "b", "All, %"]
    assert table.rows[1][2].value == 4.0 and table.rows[1][2].text == "4.00 ± 0.250"
    assert table.rows[1][3].text == "0.500"  # on the boundary: no error
    assert table.rows[0][4].text == "75.0" and table.rows[2][1].text == "40.0"


def test_its_parameters_are_not_listed_again():
    assert is_of_factors("line.loading[a:1]") and not is_of_factors("line.rho")
    names = [str(row[0]) for table in make_parameter_tables(summary()) for row in table.rows]
    assert "line.rho" in names and not any("loading" in name or "explained" in name for name in names)


def test_other_terms_have_no_table():
    assert factor_tables(summary().filter(~pl.col("parameter").str.contains("loading|specific|explained"))) == []
