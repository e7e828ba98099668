"""Log likelihood and gradient of the multinomial logit for several chains, in one pass over X.

With logits E = Z B', the last class's fixed at 0, n_i trials in row i and the counts y_ij of the response,

    log p(y | B)   =  sum_jk B_kj T_kj - sum_i n_i log(1 + sum_k exp E_ik),        T = Y' Z
    d log p / d B  =  T - (n softmax(E))' Z

T is made once, so the pass needs no response. A block of rows is read once for all chains and stays in the cache:
widened to the working type, multiplied by the C (K - 1) rows of B, turned into probabilities in place, multiplied
again. Blocks depend on X alone and their sums are added in the order of the rows, in float64: threads change no bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import numpy.typing as npt

from mmgibbs.regressions.arrays.base import Host, added
from mmgibbs.regressions.predictors import Predictors
from mmgibbs.regressions.protocol import Array

PARTS = 32  # ranges of blocks that threads take
BLOCK_BYTES = 1 << 21  # a block of rows and its logits, in the working type
DRAWS_AT_A_TIME = 64  # in a prediction


class SoftmaxGradient:
    """totals: T (K - 1, D), D = p, or p + 1 with an intercept last; trials: (n,), None where all are 1."""

    def __init__(
        self,
        predictors: Predictors,
        totals: np.ndarray,
        trials: np.ndarray | None,
        intercept: bool,
        arrays: Host,
        real: npt.DTypeLike = np.float64,
    ):
        self.arrays, self.real, self.intercept = arrays, real, intercept
        self.totals, self.centre, self.scale = totals, predictors.centre, predictors.scale
        self.trials = None if trials is None else np.asarray(trials, real)
        self.X = np.asarray(predictors.values)
        row = np.dtype(real).itemsize * (predictors.p + len(totals))
        rows = max(1, BLOCK_BYTES // row)
        starts = range(0, predictors.n, rows)
        stripe = -(-len(starts) // PARTS)
        self.parts = [[slice(i, i + rows) for i in starts[k : k + stripe]] for k in range(0, len(starts), stripe)]

    def __call__(self, B: Array) -> tuple[Array, Array]:
        """(log likelihood (C,), gradient (C, K - 1, D)) at B (C, K - 1, D), of the standardised columns, float64."""
        p = self.X.shape[1]
        slopes = B[..., :p] / self.scale
        offset = -(slopes @ self.centre)
        if self.intercept:
            offset = offset + B[..., p]
        slopes, offset = slopes.astype(self.real), offset[..., None].astype(self.real)
        expected, mass, log_partition = (added(parts) for parts in zip(*self._parts(slopes, offset), strict=True))
        expected = (expected - mass[..., None] * self.centre) / self.scale
        if self.intercept:
            expected = np.concatenate([expected, mass[..., None]], axis=-1)
        return (B * self.totals).sum((1, 2)) - log_partition, self.totals - expected

    def _parts(self, slopes: Array, offset: Array) -> list[tuple[Array, Array, Array]]:
        done: dict[int, tuple[Array, Array, Array]] = {}

        def add_part(number: int) -> None:
            done[number] = self._sum_blocks(self.parts[number], slopes, offset)

        calls = [partial(add_part, number) for number in range(len(self.parts))]
        if len(calls) == 1:
            calls[0]()
        else:
            self.arrays.at_once(calls)
        return [done[number] for number in range(len(self.parts))]

    def _sum_blocks(self, blocks: Sequence[slice], slopes: Array, offset: Array) -> tuple[Array, Array, Array]:
        """Sums over some blocks of rows of (n softmax)' X, of n softmax, and of n log(1 + sum exp)."""
        C, K, p = slopes.shape
        products, mass, partition = np.zeros((C, K, p)), np.zeros((C, K)), np.zeros(C)
        with np.errstate(over="ignore", invalid="ignore"):  # a diverging trajectory is refused by its energy
            for rows in blocks:
                X = self.X[rows].astype(self.real, copy=False)
                E = np.matmul(slopes.reshape(C * K, p), X.T).reshape(C, K, len(X))
                E += offset
                log_sum = softmax(E)
                if self.trials is not None:
                    E *= self.trials[rows]
                    log_sum *= self.trials[rows]
                products += np.matmul(E.reshape(C * K, len(X)), X).reshape(C, K, p)
                mass += E.sum(2, dtype=np.float64)
                partition += log_sum.sum(1, dtype=np.float64)
        return products, mass, partition


def softmax(E: Array) -> Array:
    """Logits (C, K - 1, rows) to probabilities, in place; log(1 + sum exp E), (C, rows).

    The last class's logit is 0.
    """
    largest = np.maximum(E.max(1), 0)
    E -= largest[:, None]
    np.exp(E, out=E)
    total = E.sum(1)
    total += np.exp(-largest)
    E /= total[:, None]
    return np.log(total) + largest


def averaged_softmax(beta: np.ndarray, intercept: np.ndarray, predictors: Predictors) -> np.ndarray:
    """(n, K): probabilities averaged over the draws beta (m, p, K - 1) and intercept (m, K - 1), for X as given."""
    beta = np.moveaxis(beta, 1, 2)
    m, K, p = beta.shape
    out = np.empty((predictors.n, K + 1))
    for first, last, X in predictors.blocks():
        total = np.zeros((K, last - first))
        for d in range(0, m, DRAWS_AT_A_TIME):
            chunk = slice(d, d + DRAWS_AT_A_TIME)
            E = (beta[chunk].reshape(-1, p) @ X.T).reshape(-1, K, last - first) + intercept[chunk, :, None]
            softmax(E)
            total += E.sum(0)
        out[first:last, :-1] = total.T / m
    out[:, -1] = np.maximum(1 - out[:, :-1].sum(1), 0)
    return out


def totals(
    predictors: Predictors, response: np.ndarray, n_classes: int, intercept: bool, real: npt.DTypeLike = np.float64
) -> np.ndarray:
    """T = Y' Z, (K - 1, D) float64, of codes (n,) or counts (n, K)."""
    sums, counted = np.zeros((n_classes - 1, predictors.p)), np.zeros(n_classes - 1)
    for first, last, X in predictors.blocks(real):
        y = response[first:last]
        Y = y[:, :-1].astype(real) if y.ndim == 2 else (y[:, None] == np.arange(n_classes - 1)).astype(real)
        sums += Y.T @ X
        counted += Y.sum(0, dtype=np.float64)
    T = (sums - np.outer(counted, predictors.centre)) / predictors.scale
    return np.column_stack([T, counted]) if intercept else T
