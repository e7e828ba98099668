"""Covariance matrices of a summary as matrices: on a terminal, and as a table that is a heat map."""

import numpy as np
import polars as pl
import pytest
from helpers.finished_run import write_run
from helpers.html_page import Page

from mmgibbs.report import make
from mmgibbs.report.matrices import correlation_tables, sorted_by_similarity
from mmgibbs.report.terminal import MAX_COMPONENTS, matrices_as_text
from mmgibbs.results.matrices import CovarianceMatrix, covariance_matrices
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
    write_run(tmp_path / "single")
    assert "Correlations: " not in make.make_report([tmp_path / "single"]).read_text()


def test_similar_components_are_beside_each_other():
    """Two groups of three, mixed in the summary: correlations .9 within, 0 between."""
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


def test_few_components_keep_their_order():
    matrix = CovarianceMatrix("g", ("b", "a"), np.ones(2), np.eye(2), np.eye(2), np.zeros((2, 2)))
    assert sorted_by_similarity(matrix) is matrix
