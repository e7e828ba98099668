"""Is there a direction along which the likelihood never falls? Then a flat prior leaves no posterior.

Each record has linear constraints on the direction x of the coefficients that have a flat prior: along x its likelihood
does not fall where A x >= 0, and rises where one of them is above 0. A direction that keeps all of them and is above 0
in some separates the records, completely or in part (Albert & Anderson 1984). It is looked for by linear programmes
over the constraints of few records,

    maximise 1'A x    subject to A x >= 0, -1 <= x <= 1,

to which the records that their solution breaks are added, until none is (x separates) or the maximum is 0 (none does:
where the columns of A are linearly independent).
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from scipy.sparse import csr_array, hstack

from mmgibbs.errors import ModelError

BROKEN = 1e-6  # violation of a constraint that counts, for columns of size 1
SMALLEST_GAIN = 1e-9  # of the scaled programme, that counts as a separation
ROUNDING = 1e-12
FIRST_ROWS, MORE_ROWS, MOST_ROUNDS = 200, 500, 200


class Constraints(Protocol):
    """A x >= 0, some rows for each of n records."""

    @property
    def n(self) -> int: ...

    def gain(self) -> np.ndarray:
        """Compute 1'A over all records, (unknowns,)."""

    def rows(self, records: np.ndarray) -> csr_array:
        """A of these records."""

    def broken(self, x: np.ndarray) -> np.ndarray:
        """Measure by how much the worst constraint of each record is broken, (n,); 0 or less: it is not."""


def separating_direction(constraints: Constraints, needed: str) -> np.ndarray | None:
    """x (unknowns,) that separates the records, None where none does. ModelError where so many records matter that the
    programmes do not end; `needed` is said there.
    """
    from scipy.optimize import linprog

    gain = constraints.gain()
    if gain.size == 0 or np.abs(gain).max() < ROUNDING * constraints.n:
        return None
    gain /= np.abs(gain).max()
    chosen = np.random.default_rng(0).permutation(constraints.n)[: FIRST_ROWS + 5 * gain.size]
    for _ in range(MOST_ROUNDS):
        A = constraints.rows(chosen)
        # the stubs know of no sparse A_ub
        answer = linprog(-gain, A_ub=-A, b_ub=np.zeros(A.shape[0]), bounds=(-1, 1), method="highs")  # type: ignore[call-overload]
        if -answer.fun < SMALLEST_GAIN:
            return None
        worst = _worst(constraints, answer.x)
        if worst.size == 0:
            return answer.x
        chosen = np.union1d(chosen, worst)
    raise ModelError(
        f"{MOST_ROUNDS} linear programmes could not decide whether the classes are separated, which a flat prior "
        f"does not allow; {needed}"
    )


def simplest(constraints: Constraints, x: np.ndarray) -> np.ndarray:
    """A direction of few coefficients that separates as x does: the one of least sum |x|, with the same gain."""
    from scipy.optimize import linprog

    gain = constraints.gain()
    gain /= np.abs(gain).max()
    chosen = np.argsort(constraints.broken(x))[: FIRST_ROWS + 5 * gain.size]
    for _ in range(MOST_ROUNDS):
        A = constraints.rows(chosen)
        signs, least = hstack([-A, A]).tocsr(), np.concatenate([gain, -gain])[None]
        answer = linprog(  # type: ignore[call-overload]
            np.ones(2 * gain.size), A_ub=signs, b_ub=np.zeros(A.shape[0]), A_eq=least, b_eq=[gain @ x], method="highs"
        )
        if answer.x is None:
            return x
        direction = answer.x[: gain.size] - answer.x[gain.size :]
        worst = _worst(constraints, direction)
        if worst.size == 0:
            return direction
        chosen = np.union1d(chosen, worst)
    return x


def _worst(constraints: Constraints, x: np.ndarray) -> np.ndarray:
    """Find the records whose constraints are broken most."""
    broken = constraints.broken(x)
    worst = np.argsort(-broken)[:MORE_ROWS]
    return worst[broken[worst] > BROKEN]
