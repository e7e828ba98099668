"""Correlations as a matrix on the page: a table that is a heat map, each cell in the colour of its correlation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl

from mmgibbs.report.html_tables import Column, Number, Table, figure, known, number
from mmgibbs.results.relationships import CovarianceMatrix, covariance_matrices
from mmgibbs.results.tables import was_drawn

MAX_COMPONENTS = 40  # of a matrix that is shown
MIN_SORTED = 6  # components from which similar ones are moved together


def correlation_tables(summary: pl.DataFrame) -> list[Table]:
    """Make a table for each term whose components covary."""
    drawn = was_drawn(summary)
    return [_table(m, drawn) for m in covariance_matrices(summary) if len(m.labels) <= MAX_COMPONENTS]


def _table(matrix: CovarianceMatrix, drawn: bool) -> Table:
    matrix = sorted_by_similarity(matrix)
    k = len(matrix.labels)
    columns = [Column(""), *(Column(label, "number") for label in matrix.labels)]
    rows = [[label, *(_cell(matrix, i, j) for j in range(k))] for i, label in enumerate(matrix.labels)]
    error = "posterior standard deviation" if drawn else "standard error"
    note = (
        f"Below the diagonal the correlation, above it its {error}, on it the variance. The colour is that of the "
        "correlation, the deeper the further from 0: blue above 0, orange below."
    )
    return Table(f"Correlations: {matrix.name}", columns, rows, note)


def sorted_by_similarity(matrix: CovarianceMatrix) -> CovarianceMatrix:
    """Put components of high correlation beside each other, where there are many and all correlations are known."""
    k = len(matrix.labels)
    if k < MIN_SORTED or not np.isfinite(matrix.correlations).all():
        return matrix
    distances = 1.0 - matrix.correlations[np.triu_indices(k, 1)]
    from scipy.cluster.hierarchy import leaves_list, linkage  # late: a tenth of a second of every page

    order = leaves_list(linkage(np.maximum(distances, 0.0), "average", optimal_ordering=True))
    both = np.ix_(order, order)
    return CovarianceMatrix(
        matrix.name,
        tuple(matrix.labels[i] for i in order),
        matrix.variances[order],
        matrix.covariances[both],
        matrix.correlations[both],
        matrix.correlation_sds[both],
    )


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
