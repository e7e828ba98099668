"""Tables of estimates as a terminal shows them: as many digits as mean something."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import polars as pl

from mmgibbs.report.html_tables import count_decimals, decimals, figure
from mmgibbs.report.parameters import bound_as_0
from mmgibbs.results.relationships import CovarianceMatrix, covariance_matrices
from mmgibbs.results.tables import was_drawn

MAX_COMPONENTS, MAX_MATRICES = 10, 12  # of the matrices that a terminal shows
MOST_OF_ERRORS = 8  # decimals; smaller numbers are shown in powers of ten
ESTIMATED = {"mean": "estimate", "sd": "standard error"}  # what these columns hold where nothing was drawn
SHOWN = ("parameter", "mean", "sd", "mcse", "ess_bulk", "rhat", "hpd_low", "hpd_high")
MOST_ROWS = 16  # of the table at the end of a run
VARIANCES, RATIOS = r"\.var\[", r"^(h2|total_h2|h2_observed|incidence)\["


def most_wanted(summary: pl.DataFrame) -> pl.DataFrame:
    """Choose what fits into MOST_ROWS: all rows, variances and ratios, fewer of these; else those furthest from 0."""
    kinds = (rf"{VARIANCES}|{RATIOS}|^ratio\[", f"{VARIANCES}|{RATIOS}", RATIOS)
    patterns = ["", *(rf"{kind}|^[^\[]+$" for kind in kinds)]  # and functions, whose names have no brackets
    found = (summary.filter(pl.col("parameter").str.contains(pattern)) for pattern in patterns)
    wanted = next((rows for rows in found if 0 < rows.height <= MOST_ROWS), summary)
    ratio = (pl.col("mean").abs() / pl.col("sd")).fill_null(0).fill_nan(0)
    return wanted.with_row_index("row").sort(ratio, descending=True).head(MOST_ROWS).sort("row").drop("row")


def summary_as_text(summary: pl.DataFrame, brief: bool = False) -> str:
    """Write all rows of the summary, to two digits of their standard deviations, or of their standard errors (REML).

    Columns of which nothing is known are left out, but mean and sd; of a value that was given the mean alone is shown.
    What was not drawn is headed as what it is, estimates and their standard errors; on its boundary it is 0. brief:
    without the Monte Carlo error.
    """
    asked = [c for c in SHOWN if not (brief and c == "mcse")]
    shown = bound_as_0(summary).select(c for c in asked if c in asked[:3] or summary[c].null_count() < summary.height)
    shown = shown.with_columns(sd=pl.when(pl.col("sd") != 0).then("sd"))
    if not was_drawn(summary):
        return table_as_text(shown.rename(ESTIMATED), ESTIMATED["mean"], ESTIMATED["sd"])
    places = {"ess_bulk": [0] * shown.height, "rhat": [3] * shown.height}
    if "mcse" in shown.columns:
        places["mcse"] = [decimals(error) for error in shown["mcse"]]
    return table_as_text(shown, "mean", "sd", places)


def matrices_as_text(summary: pl.DataFrame) -> list[str]:
    """The covariance matrices of several components, each as a matrix; of some with very many components none."""
    matrices = [m for m in covariance_matrices(summary) if len(m.labels) <= MAX_COMPONENTS]
    return [_matrix_as_text(m) for m in matrices[:MAX_MATRICES]]


def _matrix_as_text(matrix: CovarianceMatrix) -> str:
    """Variances on the diagonal, covariances below it, correlations above; blank where the model has none."""
    k = len(matrix.labels)
    cells = [
        [
            with_decimals(float(matrix.correlations[i, j]), 2)
            if j > i
            else figure(float(matrix.covariances[i, j])).replace("\u2212", "-")
            if not math.isnan(matrix.covariances[i, j])
            else ""
            for j in range(k)
        ]
        for i in range(k)
    ]
    widths = [max(len(label), *(len(row[j]) for row in cells)) for j, label in enumerate(matrix.labels)]
    first = max(map(len, matrix.labels))
    lines = [" " * first] + [label.ljust(first) for label in matrix.labels]
    for j, (label, width) in enumerate(zip(matrix.labels, widths, strict=True)):
        column = [label, *(row[j] for row in cells)]
        lines = [f"{line}  {text.rjust(width)}" for line, text in zip(lines, column, strict=True)]
    head = f"{matrix.name}: variances on the diagonal, covariances below it, correlations above"
    return "\n".join([head, *(line.rstrip() for line in lines)])


def table_as_text(
    table: pl.DataFrame, estimate: str, error: str, places: Mapping[str, Sequence[int]] | None = None
) -> str:
    """A table with a column of estimates and one of their errors.

    Real numbers are shown to two digits of the error of their row, unless `places` has their decimals; whole
    numbers with commas; what is unknown is blank.
    """
    row_decimals = [count_decimals(e, se) for e, se in table.select(estimate, error).iter_rows()]
    cells = {
        column.name: column.to_list()
        if column.dtype == pl.String
        else _aligned(
            column, [0] * len(column) if column.dtype.is_integer() else (places or {}).get(column.name, row_decimals)
        )
        for column in table
    }
    with pl.Config(
        tbl_rows=-1,
        tbl_cols=-1,
        tbl_hide_dataframe_shape=True,
        tbl_hide_column_data_types=True,
        tbl_width_chars=200,
        fmt_str_lengths=120,
    ):
        return str(pl.DataFrame(cells, schema=dict.fromkeys(cells, pl.String)).fill_null(""))


def with_decimals(value: float | None, places: int) -> str:
    """'1,234.5', '' where unknown; in powers of ten where the most decimals that are shown leave only zeros."""
    if value is None or math.isnan(value):
        return ""
    text = f"{value:,.{places}f}"
    if text.strip("-0."):
        return text
    return f"{value:.1e}" if value and places >= MOST_OF_ERRORS else text.removeprefix("-")


def _aligned(values: Iterable[float | None], places: Sequence[int]) -> list[str]:
    """Numbers with their decimal points in one line."""
    texts = [with_decimals(v, p) for v, p in zip(values, places, strict=True)]
    tails = [len(t) - t.index(".") if "." in t else 0 for t in texts]
    texts = [t + " " * (max(tails) - tail) for t, tail in zip(texts, tails, strict=True)]
    width = max(map(len, texts), default=0)
    return [t.rjust(width) for t in texts]
