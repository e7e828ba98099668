"""What a sweep of a probit regression asks of the rows: z and Z'z in one pass over X, linear predictors, log
likelihoods.

    eta_i = a + x_i beta,    z_i ~ TN(eta_i, 1; > 0 where y_i = 1, < 0 elsewhere)
    log L = sum_i log Phi(s_i eta_i),    s_i = +-1

The rows are cut into pieces at places that only n and p decide; each piece is worked through in groups of rows
that stay in the cache (eta, z and X'z of a group before the next is read, for every chain), and the pieces' sums are
added in their order. So the number of threads changes no bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import numpy.typing as npt

from mmgibbs.draws.purpose import REGRESSION_LATENT, stream
from mmgibbs.regressions.arrays.base import Arrays, added
from mmgibbs.regressions.horseshoe.latent import latent_rows, linear_predictors
from mmgibbs.regressions.predictors import ROW_BLOCK_BYTES, Predictors
from mmgibbs.regressions.protocol import Array, Keys

DEVICE_BLOCK_BYTES = 1 << 26  # a block of rows on a GPU, widened to the working type
PIECES = 64  # of the rows in a pass
GRAM_PIECES = 4  # of the rows in a cross-product, which has p^2 sums
ROWS = 8192  # rows of a log likelihood summed at a time
LATENT = stream(REGRESSION_LATENT, 0)


@dataclass
class Latent:
    """Functions of z that the coefficients need. C chains."""

    right: Array  # (C, p + 1): Z'z of the standardised columns, then 1'z
    square: Array  # (C,): z'z
    z: Array | None  # (C, n), where it was asked for


class ProbitRows:
    """The predictors and the sides of 0 on which z lies. `real`: type of the products with X; sums are float64."""

    def __init__(self, X: Predictors, positive: np.ndarray, arrays: Arrays, real: npt.DTypeLike = np.float64):
        self.X, self.arrays, self.real, self.n, self.p = X, arrays, real, X.n, X.p
        self.on_host = arrays.device == "cpu"
        self.values, self.positive = arrays.asarray(X.values), arrays.asarray(positive)
        self.sign = arrays.xp.where(self.positive, 1.0, -1.0)
        self.centre, self.scale = arrays.asarray(X.centre), arrays.asarray(X.scale)
        block = ROW_BLOCK_BYTES if self.on_host else DEVICE_BLOCK_BYTES
        self.block_rows = max(1, block // (np.dtype(real).itemsize * self.p))

    def latent(self, beta: Array, intercept: Array, keys: Keys, sweep: int, keep: bool = False) -> Latent:
        """A draw of z given beta (C, p) and intercept (C,) of the standardised columns; z itself is kept on request."""
        xp, C = self.arrays.xp, len(keys)
        b, a = map(xp.ascontiguousarray, self._raw(beta, intercept))
        pieces = self._pieces(PIECES)
        sums = xp.zeros((len(pieces), C, self.p + 2))  # X'z, 1'z, z'z
        z = xp.empty((C, self.n)) if keep or not self.on_host else None
        if not self.on_host:
            z = self.arrays.truncated_normals(
                keys, sweep, LATENT, self.eta(beta[:, None], intercept[:, None])[:, 0], self.positive
            )
        chains = np.array(keys.chains, np.uint64)

        def work_on_host(piece: int) -> None:
            for rows, X in self._kernel_arrays(*pieces[piece]):
                side, chunk = self.positive[rows], np.empty((C, len(X)))
                latent_rows(X, b, a, side, sweep, rows.start, LATENT, keys.seed, chains, chunk, sums[piece])
                if z is not None:
                    z[:, rows] = chunk

        def work_on_device(piece: int) -> None:
            assert z is not None
            for rows, X in self._blocks(*pieces[piece]):
                for c in range(C):
                    draw = z[c, rows]
                    sums[piece, c, : self.p] += draw.astype(self.real, copy=False) @ X
                    sums[piece, c, self.p] += draw.sum()
                    sums[piece, c, self.p + 1] += draw @ draw

        self._run_threads(work_on_host if self.on_host else work_on_device, len(pieces))
        total = sums.sum(0)
        right = total[:, :-1]
        right[:, :-1] = (right[:, :-1] - self.centre * right[:, -1:]) / self.scale
        return Latent(right, total[:, -1], z)

    def eta(self, beta: Array, intercept: Array) -> Array:
        """(C, k, n): intercept + Z beta for beta (C, k, p), intercept (C, k)."""
        C, k, p = beta.shape
        xp = self.arrays.xp
        b, a = map(xp.ascontiguousarray, self._raw(beta.reshape(C * k, p), intercept.reshape(-1)))
        pieces, out = self._pieces(PIECES), xp.empty((C * k, self.n))

        def work_on_host(piece: int) -> None:
            for rows, X in self._kernel_arrays(*pieces[piece]):
                chunk = np.empty((C * k, len(X)))
                linear_predictors(X, b, a, chunk)
                out[:, rows] = chunk

        def work_on_device(piece: int) -> None:
            for rows, X in self._blocks(*pieces[piece]):
                for j in range(C * k):
                    out[j, rows] = (X @ b[j]).astype(np.float64) + a[j]

        self._run_threads(work_on_host if self.on_host else work_on_device, len(pieces))
        return out.reshape(C, k, self.n)

    def transposed(self, v: Array) -> Array:
        """(p + 1,): Z'v, then 1'v, for v (n,)."""
        pieces = self._pieces(PIECES)
        sums = self.arrays.xp.zeros((len(pieces), self.p + 1))

        def work(piece: int) -> None:
            for rows, X in self._blocks(*pieces[piece]):
                sums[piece, :-1] += v[rows].astype(self.real) @ X
                sums[piece, -1] += v[rows].sum()

        self._run_threads(work, len(pieces))
        right = sums.sum(0)
        right[:-1] = (right[:-1] - self.centre * right[-1]) / self.scale
        return right

    def log_likelihood(self, eta: Callable[[slice], Array]) -> Array:
        """(C,) of linear predictors that `eta(rows)` gives, (C, rows) for a slice of rows."""
        step = ROWS if self.on_host else self.n
        pieces = [slice(first, min(first + step, self.n)) for first in range(0, self.n, step)]
        parts: dict[int, Array] = {}

        def work(piece: int) -> None:
            rows = pieces[piece]
            parts[piece] = self.arrays.log_ndtr(self.sign[rows] * eta(rows)).sum(-1)

        self._run_threads(work, len(pieces))
        return added(parts[piece] for piece in range(len(pieces)))

    def gram(self, weights: np.ndarray | None = None) -> np.ndarray:
        """(p + 1, p + 1) float64 on the host: [Z 1]' diag(w) [Z 1]."""
        pieces, X = self._pieces(GRAM_PIECES), self.X
        w = np.ones(self.n) if weights is None else weights
        squares: dict[int, np.ndarray] = {}
        borders: dict[int, np.ndarray] = {}

        def work(piece: int) -> None:
            first, last = pieces[piece]
            rows = replace(X, values=X.values[first:last])
            square = rows.gram(None if weights is None else w[first:last], self.real)
            squares[piece], borders[piece] = square, rows.transposed_times(w[first:last, None])[:, 0]

        self._run_threads(work, len(pieces))
        out = np.empty((self.p + 1, self.p + 1))
        out[:-1, :-1] = added(squares[piece] for piece in range(len(pieces)))
        out[:-1, -1] = out[-1, :-1] = added(borders[piece] for piece in range(len(pieces)))
        out[-1, -1] = w.sum()
        return out

    def _raw(self, beta: Array, intercept: Array) -> tuple[Array, Array]:
        """Coefficients of the columns as they lie, in the working type, and what is added to each row."""
        raw = beta / self.scale
        return raw.astype(self.real), intercept - (raw * self.centre).sum(-1)

    def _pieces(self, most: int) -> list[tuple[int, int]]:
        """(first, last) row of at most so many pieces, whole blocks each."""
        blocks = -(-self.n // self.block_rows)
        rows = -(-blocks // most) * self.block_rows
        return [(first, min(first + rows, self.n)) for first in range(0, self.n, rows)]

    def _blocks(self, first: int, last: int) -> Iterator[tuple[slice, Array]]:
        """(rows, X of these rows in the working type) of a block at a time."""
        for start in range(first, last, self.block_rows):
            rows = slice(start, min(start + self.block_rows, last))
            yield rows, self.values[rows].astype(self.real, order="C", copy=False)

    def _kernel_arrays(self, first: int, last: int) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield the arrays for kernels: X of all rows at once, uncopied, where it lies in memory row after row."""
        if self.values.flags.c_contiguous and self.values.dtype.isnative:
            yield slice(first, last), np.asarray(self.values[first:last])  # no memory map
        else:
            yield from self._blocks(first, last)

    def _run_threads(self, work: Callable[[int], None], pieces: int) -> None:
        if self.on_host:
            self.arrays.at_once([partial(work, piece) for piece in range(pieces)])
        else:
            for piece in range(pieces):
                work(piece)
