"""Does the posterior of a multinomial logit exist where its prior is flat? (Albert & Anderson 1984)

With a flat prior on some coefficients the posterior is proper if and only if no direction B of these coefficients,
other than 0, keeps every observed class on top,

    z_i b_y >= z_i b_k    for every row i, every class y seen in it and every class k    (b_K = 0):

along one that does, the likelihood never falls (the classes are separated, completely or in part): it is looked for by
the linear programmes of `mmgibbs.posterior.separation`. Columns of Z that are linearly dependent are looked for first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from mmgibbs.errors import ModelError
from mmgibbs.posterior import separation
from mmgibbs.regressions.predictors import Predictors

DEPENDENT = 1e-11  # smallest eigenvalue of the correlations of linearly dependent columns


OF_SLOPES = "needed a prior_precision above 0"
OF_INTERCEPTS = "needed an intercept_precision above 0"


def refuse_improper(
    X: Predictors, response: np.ndarray, flat: np.ndarray, name: str, classes: Sequence[Any] | None = None
) -> None:
    """ModelError with the reason where the posterior is improper; response: codes (n,) or counts (n, K).

    flat: (K - 1, p) or, with an intercept last, (K - 1, p + 1): the coefficients whose prior is flat. classes: their
    labels. The option that is named is the one whose prior is flat and leaves no posterior.
    """
    if not flat.any():
        return
    categories = len(flat)
    columns = np.flatnonzero(flat.any(axis=0))
    seen = response > 0 if response.ndim == 2 else response[:, None] == np.arange(categories + 1)
    used = seen.any(axis=1)
    slopes = columns[columns < X.p]
    Z = np.ones((X.n, columns.size))
    for first, last, block in X.blocks():
        Z[first:last, : slopes.size] = (block[:, slopes] - X.centre[slopes]) / X.scale[slopes]
    Z, seen, names = Z[used], seen[used], [*X.names, "intercept"]
    size = np.abs(Z).max(axis=0)
    Z /= np.where(size > 0, size, 1.0)
    of_intercepts = np.where(columns == X.p, flat[:, columns], False)
    some_unseen = of_intercepts.any() and not seen.any(axis=0).all()
    if some_unseen and separating_direction(Z, seen, of_intercepts) is not None:
        raise ModelError(explain_unseen_class(seen, name, classes))
    for pattern in np.unique(flat[:, columns], axis=0):
        dependent = _dependent_column(Z[:, pattern]) if pattern.any() else None
        if dependent is not None:
            column = names[columns[np.flatnonzero(pattern)[dependent]]]
            raise ModelError(
                f"predictors: column '{column}' is a linear combination of others, and their prior is flat: no "
                f"posterior exists; {OF_SLOPES}"
            )
    B = separating_direction(Z, seen, flat[:, columns])
    if B is not None:
        of_slopes = np.where(columns < X.p, np.abs(B).max(axis=1), 0.0)  # intercepts alone separate nothing, see above
        column = names[columns[of_slopes.argmax()]]
        raise ModelError(
            f"{name}: the classes are separated, above all by '{column}': its coefficient could grow without end, "
            f"and with a flat prior no posterior exists; {OF_SLOPES}"
        )


def explain_unseen_class(seen: np.ndarray, name: str, classes: Sequence[Any] | None) -> str:
    """Explain that flat intercepts leave no posterior where some class was never seen."""
    unused = np.flatnonzero(~seen.any(axis=0)).tolist()
    labels = [f"{k + 1}" if classes is None or classes[k] == k else f"{k + 1} ({classes[k]})" for k in unused]
    which = f"class {labels[0]} has" if len(labels) == 1 else f"classes {', '.join(labels)} have"
    return (
        f"{name}: {which} no trials, so that an intercept could grow without end, and with a flat prior no posterior "
        f"exists; {OF_INTERCEPTS}, or counts of the other classes alone"
    )


def separating_direction(Z: np.ndarray, seen: np.ndarray, flat: np.ndarray) -> np.ndarray | None:
    """B (f, K), the last column 0, that keeps every seen class on top and one strictly; None where there is none.

    Z: (n, f), |Z| <= 1, columns linearly independent; seen: (n, K) bool; flat: (K - 1, f), the elements of B that may
    differ from 0. ModelError where so many rows matter that the linear programmes do not end.
    """
    f, K = Z.shape[1], seen.shape[1]
    unknown = np.full((f, K), -1)  # their numbers, -1 where B is 0
    unknown[:, :-1].T[flat] = np.arange(flat.sum())
    x = separation.separating_direction(
        _ClassesOnTop(Z, seen, unknown), f"{OF_SLOPES}, and of intercepts an intercept_precision"
    )
    return None if x is None else np.where(unknown >= 0, x[unknown], 0.0)


class _ClassesOnTop:
    """z_i (b_y - b_k) >= 0: see separation.Constraints."""

    def __init__(self, Z: np.ndarray, seen: np.ndarray, unknown: np.ndarray):
        self.Z, self.seen, self.unknown, self.n = Z, seen, unknown, len(Z)

    def gain(self) -> np.ndarray:
        unknown, K = self.unknown, self.seen.shape[1]
        gain = np.zeros(unknown.max() + 1)
        gain[unknown[unknown >= 0]] = (self.Z.T @ (K * self.seen - self.seen.sum(axis=1, keepdims=True)))[unknown >= 0]
        return gain

    def rows(self, records: np.ndarray) -> csr_array:
        return _constraints(self.Z[records], self.seen[records], self.unknown)

    def broken(self, x: np.ndarray) -> np.ndarray:
        E = self.Z @ np.where(self.unknown >= 0, x[self.unknown], 0.0)
        return E.max(axis=1) - np.where(self.seen, E, np.inf).min(axis=1)


def _constraints(Z: np.ndarray, seen: np.ndarray, unknown: np.ndarray) -> csr_array:
    """z_i (b_y - b_k) by the numbers of the unknowns: a row for each seen class y of row i and each other class k."""
    i, y = np.nonzero(seen)
    rows, columns, values = [], [], []
    for k in range(seen.shape[1]):
        rows_of_others = np.flatnonzero(y != k)
        for sign, which in (
            (1.0, unknown[:, y[rows_of_others]].T),
            (-1.0, np.broadcast_to(unknown[:, k], (rows_of_others.size, len(unknown)))),
        ):
            at, column = np.nonzero(which >= 0)
            rows.append(rows_of_others[at] + k * i.size)
            columns.append(which[at, column])
            values.append(sign * Z[i[rows_of_others[at]], column])
    where = np.unique(np.concatenate(rows), return_inverse=True)[1]
    return csr_array(
        (np.concatenate(values), (where, np.concatenate(columns))), shape=(where.max() + 1, unknown.max() + 1)
    )


def _dependent_column(Z: np.ndarray) -> int | None:
    """A column of Z that the others make up; None where there is none."""
    gram = Z.T @ Z
    size = np.sqrt(np.diag(gram))
    if not size.all():
        return int(size.argmin())
    values, vectors = np.linalg.eigh(gram / np.outer(size, size))
    return int(np.abs(vectors[:, 0]).argmax()) if values[0] < DEPENDENT * len(size) else None
