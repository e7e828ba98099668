"""Correlations as a matrix on the page: a table that is a heat map, each cell in the colour of its correlation."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from mmgibbs.report.html_tables import Column, Number, Table, figure, known, number
from mmgibbs.results.matrices import CovarianceMatrix, covariance_matrices
from mmgibbs.results.tables import was_drawn

MAX_COMPONENTS = 40  # of a matrix that is shown


def correlation_tables(summary: pl.DataFrame) -> list[Table]:
    """One for each term whose components covary."""
    drawn = was_drawn(summary)
    return [_table(m, drawn) for m in covariance_matrices(summary) if len(m.labels) <= MAX_COMPONENTS]


def _table(matrix: CovarianceMatrix, drawn: bool) -> Table:
    k = len(matrix.labels)
    columns = [Column(""), *(Column(label, "number") for label in matrix.labels)]
    rows = [[label, *(_cell(matrix, i, j) for j in range(k))] for i, label in enumerate(matrix.labels)]
    error = "posterior standard deviation" if drawn else "standard error"
    note = (
        f"Below the diagonal the correlation, above it its {error}, on it the variance. The colour is that of the "
        "correlation, the deeper the further from 0: blue above 0, orange below."
    )
    return Table(f"Correlations: {matrix.name}", columns, rows, note)


def _cell(matrix: CovarianceMatrix, i: int, j: int) -> Number | None:
    """Row i, column j."""
    if i == j:
        variance = float(matrix.variances[i])
        return Number(figure(variance), variance) if known(variance) else None
    correlation, sd = float(matrix.correlations[i, j]), float(matrix.correlation_sds[i, j])
    shown = correlation if j < i else sd
    if not known(shown):
        return Number("", None) if not known(correlation) else replace(Number("", None), heat=correlation)
    return Number(number(shown, 2), shown, heat=correlation)
