"""Does the posterior of a multinomial logit exist where its prior is flat? (Albert & Anderson 1984)

With a flat prior on some coefficients the posterior is proper if and only if no direction B of these coefficients,
other than 0, keeps every observed class on top,

    z_i b_y >= z_i b_k    for every row i, every class y seen in it and every class k    (b_K = 0):

along one that does, the likelihood never falls (the classes are separated, completely or in part). Such a B is looked
for by linear programmes over few rows,

    maximise sum_i sum_y sum_k z_i (b_y - b_k)    subject to the constraints of these rows, -1 <= B <= 1,

to which the rows that their solution breaks are added, until none is (separated) or the maximum is 0. Then all z_i (b_y
- b_k) are 0, so B is 0 unless the columns of Z themselves are linearly dependent, which is looked for first.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array

from mmgibbs.errors import ModelError
from mmgibbs.regressions.predictors import Predictors

DEPENDENT = 1e-11  # smallest eigenvalue of the correlations of linearly dependent columns
BROKEN = 1e-6  # violation of a constraint that counts, for columns of size 1
SMALLEST_GAIN = 1e-9  # of the scaled programme, that counts as a separation
ROUNDING = 1e-12
FIRST_ROWS, MORE_ROWS, MOST_ROUNDS = 200, 500, 200


def refuse_improper(X: Predictors, response: np.ndarray, flat: np.ndarray, name: str) -> None:
    """ModelError with the reason where the posterior is improper; response: codes (n,) or counts (n, K).

    flat: (K - 1, p) or, with an intercept last, (K - 1, p + 1): the coefficients whose prior is flat.
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
    needed = "needed a prior_precision above 0"
    for pattern in np.unique(flat[:, columns], axis=0):
        dependent = _dependent_column(Z[:, pattern])
        if dependent is not None:
            column = names[columns[np.flatnonzero(pattern)[dependent]]]
            raise ModelError(
                f"predictors: column '{column}' is a linear combination of others, and their prior is flat: no "
                f"posterior exists; {needed}"
            )
    B = separating_direction(Z, seen, flat[:, columns])
    if B is not None:
        column = names[columns[np.abs(B).max(axis=1).argmax()]]
        raise ModelError(
            f"{name}: the classes are separated, above all by '{column}': its coefficient could grow without end, "
            f"and with a flat prior no posterior exists; {needed}"
        )


def separating_direction(Z: np.ndarray, seen: np.ndarray, flat: np.ndarray) -> np.ndarray | None:
    """B (f, K), the last column 0, that keeps every seen class on top and one strictly; None where there is none.

    Z: (n, f), |Z| <= 1, columns linearly independent; seen: (n, K) bool; flat: (K - 1, f), the elements of B that may
    differ from 0. ModelError where so many rows matter that the linear programmes do not end.
    """
    f, K = Z.shape[1], seen.shape[1]
    unknown = np.full((f, K), -1)  # their numbers, -1 where B is 0
    unknown[:, :-1].T[flat] = np.arange(flat.sum())
    gain = np.zeros(flat.sum())
    gain[unknown[unknown >= 0]] = (Z.T @ (K * seen - seen.sum(axis=1, keepdims=True)))[unknown >= 0]
    if np.abs(gain).max() < ROUNDING * len(Z):
        return None
    gain /= np.abs(gain).max()
    chosen = np.random.default_rng(0).permutation(len(Z))[: FIRST_ROWS + 5 * gain.size]
    for _ in range(MOST_ROUNDS):
        A = _constraints(Z[chosen], seen[chosen], unknown)
        # the stubs know of no sparse A_ub
        answer = linprog(-gain, A_ub=-A, b_ub=np.zeros(A.shape[0]), bounds=(-1, 1), method="highs")  # type: ignore[call-overload]
        if -answer.fun < SMALLEST_GAIN:
            return None
        B = np.where(unknown >= 0, answer.x[unknown], 0.0)
        E = Z @ B
        broken = E.max(axis=1) - np.where(seen, E, np.inf).min(axis=1)
        worst = np.argsort(-broken)[:MORE_ROWS]
        worst = worst[broken[worst] > BROKEN]
        if worst.size == 0:
            return B
        chosen = np.union1d(chosen, worst)
    raise ModelError(
        f"{MOST_ROUNDS} linear programmes could not decide whether the classes are separated, which a flat prior "
        "does not allow; "
        "needed a prior_precision above 0"
    )


def _constraints(Z: np.ndarray, seen: np.ndarray, unknown: np.ndarray) -> csr_array:
    """z_i (b_y - b_k) by the numbers of the unknowns: a row for each seen class y of row i and each other class k."""
    i, y = np.nonzero(seen)
    rows, columns, values = [], [], []
    for k in range(seen.shape[1]):
        other = np.flatnonzero(y != k)
        for sign, which in (
            (1.0, unknown[:, y[other]].T),
            (-1.0, np.broadcast_to(unknown[:, k], (other.size, len(unknown)))),
        ):
            at, column = np.nonzero(which >= 0)
            rows.append(other[at] + k * i.size)
            columns.append(which[at, column])
            values.append(sign * Z[i[other[at]], column])
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
