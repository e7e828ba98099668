"""Matrices of a summary: on a terminal, as a heat map, one triangle of each; and the table of factors."""

import numpy as np
import polars as pl
import pytest
from helpers.finished_run import write_run
from helpers.html_page import Page

from mmgibbs.report import make
from mmgibbs.report.factors import factor_tables, is_of_factors
from mmgibbs.report.findings import chain_findings
from mmgibbs.report.matrices import correlation_tables, sorted_by_similarity
from mmgibbs.report.page import make_parameter_tables
from mmgibbs.report.parameters import lower_triangle
from mmgibbs.report.terminal import MAX_COMPONENTS, matrices_as_text
from mmgibbs.results.relationships import CovarianceMatrix, covariance_matrices
from mmgibbs.results.tables import SUMMARY_COLUMNS


def summary(rows):
    """rows: name -> (mean, sd)."""
    columns = {"parameter": list(rows)} | dict(zip(("mean", "sd"), zip(*rows.values(), strict=True), strict=True))
    frame = pl.DataFrame(columns, schema_overrides={"mean": pl.Float64, "sd": pl.Float64})
    return frame.with_columns(pl.lit(0.5).alias(c) for c in SUMMARY_COLUMNS if c not in frame.columns)


def rows_of(term, labels, ending="", what="", without=()):
    out = {f"{term}.{what}var[{a}{ending}]": (4.0 + i, 0.5) for i, a in enumerate(labels)}
    pairs = [(a, b) for i, a in enumerate(labels) for b in labels[i + 1 :] if (a, b) not in without]
    out |= {f"{term}.{what}cov[{a},{b}{ending}]": (-1.5, 0.3) for a, b in pairs}
    return out | {f"{term}.{what}corr[{a},{b}{ending}]": (-0.3, 0.06) for a, b in pairs}


@pytest.mark.parametrize(
    ("term", "labels", "ending", "what", "name"),
    [
        ("genetic", ("milk", "fat", "protein"), "", "", "genetic"),
        ("genetic", ("direct:weaning", "maternal:weaning"), "", "", "genetic"),
        ("animal", ("curve.0:milk", "curve.1:milk", "curve.2:milk"), "", "", "animal"),
        ("residual", ("a", "b"), "|outdoor", "", "residual, outdoor"),
        ("snps", ("milk", "fat"), "", "effect_", "snps, effects of a SNP"),
        ("my.term", ("yield, 305 d", "fat, %"), "", "", "my.term"),
    ],
)
def test_matrices_are_put_together_from_their_elements(term, labels, ending, what, name):
    (matrix,) = covariance_matrices(summary(rows_of(term, labels, ending, what)))
    assert (matrix.name, matrix.labels) == (name, labels)
    k = len(labels)
    off = ~np.eye(k, dtype=bool)
    assert np.all(matrix.covariances[off] == -1.5) and np.all(matrix.correlations[off] == -0.3)
    assert np.all(matrix.correlation_sds[off] == 0.06) and np.all(np.diag(matrix.correlations) == 1)
    assert np.array_equal(np.diag(matrix.covariances), 4.0 + np.arange(k))


def test_what_is_no_matrix_is_none():
    assert covariance_matrices(summary({"animal.var[y]": (1.0, 0.1), "residual.var[y]": (2.0, 0.1)})) == []
    assert covariance_matrices(summary({"genetic.var[a]": (1.0, 0.1), "genetic.var[b]": (2.0, 0.1)})) == []  # diagonal
    assert covariance_matrices(summary({"h2[a]": (0.3, 0.1), "beta[x,y]": (2.0, 0.1), "sigma2": (1.0, None)})) == []
    assert matrices_as_text(summary({"animal.var[y]": (1.0, 0.1)})) == []


def test_a_terminal_shows_rows_and_columns():
    labels = ("milk", "fat", "protein")
    (text,) = matrices_as_text(summary(rows_of("genetic", labels, without=[("milk", "protein")])))
    head, names, *rows = text.splitlines()
    assert head == "genetic: variances on the diagonal, covariances below it, correlations above"
    assert names.split() == list(labels)
    assert [row.split() for row in rows] == [
        ["milk", "4.00", "-0.30"],  # protein does not covary with milk
        ["fat", "-1.50", "5.00", "-0.30"],
        ["protein", "-1.50", "6.00"],
    ]
    ends = [names.index(label) + len(label) for label in labels]
    assert rows[0].rindex("-0.30") + 5 == ends[1] and rows[2].rindex("6.00") + 4 == ends[2]


def test_matrices_too_large_for_a_terminal_are_left_to_the_page():
    labels = [f"t{i}" for i in range(MAX_COMPONENTS + 1)]
    assert matrices_as_text(summary(rows_of("genetic", labels))) == []
    (table,) = correlation_tables(summary(rows_of("genetic", labels)))
    assert len(table.rows) == len(labels)


def test_the_page_has_a_heat_map(tmp_path):
    folder = write_run(tmp_path / "run")
    table = summary(rows_of("genetic", ("milk", "fat")) | rows_of("residual", ("milk", "fat")))
    table.write_parquet(folder / "summary.parquet")
    text = make.make_report([folder]).read_text()
    assert text.count('style="--heat:30%"') == 4 and 'class="number heat below"' in text
    page = Page(folder / "report.html")
    assert "Correlations: genetic" in page.text and "Below the diagonal the correlation, above it its" in page.text


def test_similar_components_are_beside_each_other():
    labels = ["a1", "b1", "a2", "b2", "a3", "b3"]
    group = np.array([label[0] for label in labels])
    correlations = np.where(group[:, None] == group, 0.9, 0.0)
    np.fill_diagonal(correlations, 1.0)
    matrix = CovarianceMatrix("line", tuple(labels), np.ones(6), correlations, correlations, np.full((6, 6), 0.1))
    ordered = sorted_by_similarity(matrix)
    assert {ordered.labels[:3], ordered.labels[3:]} != {ordered.labels}
    assert len({label[0] for label in ordered.labels[:3]}) == 1 and sorted(ordered.labels) == sorted(labels)
    position = [ordered.labels.index(label) for label in labels]
    np.testing.assert_array_equal(ordered.correlations[np.ix_(position, position)], correlations)
    matrix = CovarianceMatrix("g", ("b", "a"), np.ones(2), np.eye(2), np.eye(2), np.zeros((2, 2)))
    assert sorted_by_similarity(matrix) is matrix


def rows_of_summary(rows):
    return pl.DataFrame(
        [{"parameter": name, "mean": mean, "sd": sd} for name, mean, sd in rows],
        {"parameter": pl.String, "mean": pl.Float64, "sd": pl.Float64},
    )


def test_what_is_shown_once():
    whole = rows_of_summary(
        [
            ("covariance[slope,slope]", 1.0, 0.1),
            ("covariance[slope,intercept]", 0.2, 0.3),
            ("covariance[intercept,slope]", 0.2, 0.3),
            ("covariance[intercept,intercept]", 2.0, 0.1),
            ("tau", None, None),
        ]
    )
    shown = lower_triangle(whole)["parameter"].to_list()
    assert shown == [f"covariance[{of}]" for of in ("slope,slope", "intercept,slope", "intercept,intercept")] + ["tau"]
    names = ["beta[a,b]", "beta[b,a]"]
    assert lower_triangle(rows_of_summary([(name, 0.0, 0.0) for name in names]))["parameter"].to_list() == names
    names = [f"V[{a},{b}]" for a in ("x,yes", "x,no") for b in ("x,yes", "x,no")]
    shown = lower_triangle(rows_of_summary([(name, 1.0 if k in (1, 2) else k, 0.5) for k, name in enumerate(names)]))
    assert shown["parameter"].to_list() == ["V[x,yes,x,yes]", "V[x,no,x,yes]", "V[x,no,x,no]"]
    rows = [("beta[a,b]", 0.2, 0.3), ("beta[b,a]", 0.4, 0.3), ("beta[a,a]", 0.2, 0.3), ("corr[a,b]", 0.1, 0.2)]
    table = rows_of_summary(rows)
    assert lower_triangle(table).equals(table) and lower_triangle(rows_of_summary([])).is_empty()


def test_it_counts_once_in_warnings():
    rows = [("V[a,a]", 1.0, 0.1), ("V[a,b]", 0.2, 0.3), ("V[b,a]", 0.2, 0.3), ("V[b,b]", 2.0, 0.1)]
    table = rows_of_summary(rows).with_columns(rhat=1.2, ess_bulk=500.0, ess_tail=500.0)
    (found,) = chain_findings(table, {})
    assert "for 3 of 3 parameters" in found.fact


def of_factors():
    rows = {"line.var[a]": (2.0, 0.1), "line.var[b]": (1.0, 0.1)}
    for i, c in enumerate("ab"):
        rows |= {f"line.loading[{c}:{j}]": (1.0 + i + j, 0.25) for j in (1, 2)}
    rows |= {f"line.specific[{c}]": (0.5, 0.2 if c == "a" else None) for c in "ab"}
    rows |= {f"line.explained[{c}]": (0.75, 0.1) for c in "ab"} | {f"line.explained[{j}]": (0.4, 0.1) for j in (1, 2)}
    rows |= {"line.rho": (0.3, 0.1)}
    columns = {"parameter": list(rows)} | dict(zip(("mean", "sd"), zip(*rows.values(), strict=True), strict=True))
    frame = pl.DataFrame(columns, schema_overrides={"mean": pl.Float64, "sd": pl.Float64})
    return frame.with_columns(pl.lit(0.5).alias(c) for c in SUMMARY_COLUMNS if c not in frame.columns)


def test_a_table_of_factors():
    (table,) = factor_tables(of_factors())
    heads = ["Component", "Factor 1", "Factor 2", "Specific variance", "Explained, %"]
    assert [c.label for c in table.columns] == heads
    assert [row[0] for row in table.rows] == ["a", "b", "All, %"]
    assert table.rows[1][2].value == 4.0 and table.rows[1][2].text == "4.00 ± 0.250"
    assert table.rows[1][3].text == "0.500"  # on the boundary: no error
    assert table.rows[0][4].text == "75.0" and table.rows[2][1].text == "40.0"
    assert is_of_factors("line.loading[a:1]") and not is_of_factors("line.rho")
    names = [str(row[0]) for table in make_parameter_tables(of_factors()) for row in table.rows]
    assert "line.rho" in names and not any("loading" in name or "explained" in name for name in names)
    assert factor_tables(of_factors().filter(~pl.col("parameter").str.contains("loading|specific|explained"))) == []
