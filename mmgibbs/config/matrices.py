"""Covariance matrices of an analysis file: their size, symmetry and definiteness."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mmgibbs.config.fields import Rows
from mmgibbs.config.messages import Problems
from mmgibbs.models.structures import STRUCTURES

SYMMETRY_TOLERANCE = 1e-8  # relative
MIN_EIGENVALUE = 1e-12  # of a correlation matrix, at which it is singular
# beyond these sums of squares overflow, and a unit was mistaken
MIN_VARIANCE, MAX_VARIANCE = 1e-40, 1e40


def check_matrix(
    rows: Rows, labels: tuple[str, ...], structure: str, definite: bool, place: tuple[str, ...], problems: Problems
) -> Rows:
    """The symmetric matrix that is meant; a problem where it is none, or no covariance matrix of these components."""
    k = len(labels)
    widths = {len(row) for row in rows}
    if len(rows) != k or widths != {k}:
        if len(rows) == 1 and widths == {1}:
            got = f"the number {rows[0][0]:g}"
        elif len(widths) == 1:
            got = f"a {len(rows)} x {widths.pop()} matrix"
        else:
            got = f"a matrix with rows of {' and '.join(str(w) for w in sorted(widths))} numbers"
        problems.add(place, f"found {got}, needed {describe_size(labels)}")
        return rows
    matrix = np.array(rows, dtype=np.float64)
    kind = STRUCTURES[structure]
    definite = definite and not kind.is_singular
    message = _find_asymmetry(matrix, labels) or _find_indefiniteness(matrix, labels, definite)
    if message is None and not kind.has_covariances and np.any(matrix[~np.eye(k, dtype=bool)]):
        message = f"found covariances other than 0, needed 0 outside the diagonal for structure: {structure}"
    if message is not None:
        problems.add(place, message)
        return rows
    matrix = matrix / 2 + matrix.T / 2
    return tuple(tuple(float(v) for v in row) for row in matrix)


def describe_size(labels: Sequence[str]) -> str:
    """'a 2 x 2 matrix in the order direct:a, maternal:a'."""
    k = len(labels)
    shown = ", ".join(labels) if k <= 12 else f"{', '.join(labels[:12])}, ..."
    return f"one number (the variance of {labels[0]})" if k == 1 else f"a {k} x {k} matrix in the order {shown}"


def _find_asymmetry(matrix: np.ndarray, labels: Sequence[str]) -> str | None:
    """Message on the first two elements (i, j) and (j, i) that differ; None: the matrix is symmetric."""
    with np.errstate(over="ignore"):
        apart = np.abs(matrix - matrix.T) > SYMMETRY_TOLERANCE * np.maximum(np.abs(matrix), np.abs(matrix.T))
    if not apart.any():
        return None
    i, j = (int(v) for v in np.argwhere(apart)[0])
    above, below = f"({labels[i]}, {labels[j]})", f"({labels[j]}, {labels[i]})"
    message = f"found {matrix[i, j]:.10g} for {above} and {matrix[j, i]:.10g} for {below}"
    return f"{message}, needed a symmetric matrix"


def _find_indefiniteness(matrix: np.ndarray, labels: Sequence[str], definite: bool) -> str | None:
    """Judged on the correlations, so that the units of the traits do not matter. `definite`: zero is not enough."""
    needed = "a positive definite matrix" if definite else "a positive semi-definite matrix"
    variances = np.diag(matrix)
    for v, label in zip(variances, labels, strict=True):
        if v < 0 or (definite and v == 0):
            return (
                f"found the variance {v:.10g} for {label}, needed {'one above 0' if definite else 'one of 0 or more'}"
            )
        if v != 0 and not MIN_VARIANCE <= v <= MAX_VARIANCE:
            message = f"found the variance {v:.10g} for {label}"
            return f"{message}, needed one from {MIN_VARIANCE:g} to {MAX_VARIANCE:g} (another unit?)"
    is_positive = variances > 0
    for i, j in np.argwhere(matrix != 0):
        if i != j and not (is_positive[i] and is_positive[j]):
            pair = f"{labels[i]} and {labels[j]}"
            return f"found the covariance {matrix[i, j]:.10g} of {pair} where a variance is 0, needed 0"
    sd = np.sqrt(variances[is_positive])
    with np.errstate(over="ignore", under="ignore"):
        correlation = matrix[np.ix_(is_positive, is_positive)] / sd[:, None] / sd[None, :]
    names = [label for label, s in zip(labels, is_positive, strict=True) if s]
    for i, j in np.argwhere(np.abs(correlation) > 1 + (0 if definite else SYMMETRY_TOLERANCE)):
        if i != j:
            message = f"found the correlation {correlation[i, j]:.4g} between {names[i]} and {names[j]}"
            return f"{message}, needed one between -1 and 1 ({needed})"
    smallest = np.linalg.eigvalsh(correlation / 2 + correlation.T / 2)[0] if names else 0.0
    if (definite and smallest <= MIN_EIGENVALUE) or smallest < -SYMMETRY_TOLERANCE:
        message = "found a matrix whose correlations cannot occur together"
        return f"{message} (smallest eigenvalue {smallest:.3g} as correlations), needed {needed}"
    return None
