"""The classic sampler: single-site Gibbs on the explicit C, one row after another. The baseline of every ratio, so it
is tuned.

    x_n ~ N((b_n - sum_{m != n} C_nm x_m) / C_nn, 1 / C_nn)

What made it fast (Zen 3 and 4): unsigned indices, reassociated row sums, values and x in float32 with sums in float64,
the x of later rows prefetched, the draws of many levels at once, the reciprocal diagonal formed beside them so that
divisions and square roots vectorise too.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks.sweep_rows import per_term, sweep_rows
from mmgibbs.draws.normal import fill_normals
from mmgibbs.draws.purpose import LOCATION, stream
from mmgibbs.engines.base import HostState, Key, refuse_singular
from mmgibbs.equations.structured import StructuredEquations
from mmgibbs.machine.intrinsics import prefetch
from mmgibbs.pedigree.kernels import kernel

CHUNK = 256  # levels whose normals are drawn together
AHEAD = np.uint64(256)  # elements: how early the x of later rows is asked for


class ClassicEngine(HostState):
    """Single-site sweeps over the rows of C in the order of the partition. Theta is held as x, row by row."""

    name = "classic"

    def __init__(self, equations: StructuredEquations, update: str = "site"):
        assert update == "site", "the classic sampler visits one equation after another"
        super().__init__(equations)
        self.rows = sweep_rows(equations)
        self.x = np.zeros(self.rows.first[-1], self.real)
        self._b_is_old = False
        self._streams = [stream(LOCATION, i) for i in range(len(equations.terms))]

    def take_y(self, y: np.ndarray) -> None:
        super().take_y(y)
        self._b_is_old = True

    def set_variances(self, G: Sequence[np.ndarray | None], R: np.ndarray) -> None:
        super().set_variances(G, R)
        self.rows.set_variances(G, R, self.y)
        self._b_is_old = False
        self._refuse_singular()

    def _refuse_singular(self) -> None:
        bad = np.flatnonzero(~(self.rows.diagonal > 0.0))
        if bad.size == 0:
            return
        for block, a, b in zip(self.equations.partition.blocks, self.rows.first[:-1], self.rows.first[1:], strict=True):
            width = block.last_component - block.first_component
            active = self.equations.terms[block.term].active
            for row in bad[(bad >= a) & (bad < b)]:
                position, c = block.first + int(row - a) // width, block.first_component + int(row - a) % width
                if active.size == 0 or active[position, c]:
                    refuse_singular(self.equations, block.term, position)

    def sweep(self, number: int, key: Key) -> None:
        rows, eq = self.rows, self.equations
        if self._b_is_old:
            rows.set_right_hand_side(self.Rinv, self.y)
            self._b_is_old = False
        for block, a, b in zip(eq.partition.blocks, rows.first[:-1], rows.first[1:], strict=True):
            sweep_rows_of_block(
                rows.indptr[a : b + 1], rows.indices, rows.values, rows.diagonal[a:b], rows.right_hand_side[a:b],
                self.x, np.uint64(a),
                eq.terms[block.term].code[block.first : block.last], block.first_component, block.last_component,
                number, self._streams[block.term], key[0], key[1],
            )  # fmt: skip
        self.moved()

    @property
    def theta(self) -> list[np.ndarray]:
        return per_term(self.equations.design, self.equations.partition, self.x, self.rows.first)

    def put_theta(self, term: int, theta: np.ndarray) -> None:
        for block, a, b in zip(self.equations.partition.blocks, self.rows.first[:-1], self.rows.first[1:], strict=True):
            if block.term == term:
                self.x[a:b] = theta[block.first : block.last, block.first_component : block.last_component].ravel()
        self.moved()


@kernel(fastmath={"reassoc", "contract", "nsz"}, forceinline=True)
def _row_times(indices, values, first, last, x):
    """sum_e values[e] x[indices[e]], first <= e < last."""
    total = 0.0
    for e in range(first, last):
        total += np.float64(values[e]) * np.float64(x[indices[e]])
    return total


@kernel
def sweep_rows_of_block(
    indptr, indices, values, diagonal, b, x, row, code, c_first, c_last, number, stream, seed, chain
):
    """Draw the equations row, row + 1, ... of one block: levels `code` (model order), components c_first ...

    c_last - 1.
    """
    width = np.uint64(c_last - c_first)
    n_levels = np.uint64(code.size)
    normals = np.empty((CHUNK, c_last))
    last = np.uint64(max(1, indices.size) - 1)
    scale, z = np.empty(CHUNK * width), np.empty(CHUNK * width)
    for chunk in range(np.uint64(0), n_levels, np.uint64(CHUNK)):
        end = min(n_levels, chunk + np.uint64(CHUNK))
        n = (end - chunk) * width
        at = chunk * width
        fill_normals(normals, number, code[chunk:end], stream, seed, chain)
        for i in range(end - chunk):
            for c in range(width):
                z[i * width + c] = normals[i, np.uint64(c_first) + c]
        for i in range(n):
            d = diagonal[at + i]
            scale[i] = 1.0 / d if d > 0.0 else 0.0  # 0: set to 0
            z[i] *= np.sqrt(scale[i])
        for i in range(n):
            # The components of one level lie side by side, so one address in four brings (nearly) every line of a later
            # row.
            for e in range(indptr[at + i] + AHEAD, indptr[at + i + np.uint64(1)] + AHEAD, np.uint64(4)):
                prefetch(x, indices[min(e, last)])
            s = b[at + i] - _row_times(indices, values, indptr[at + i], indptr[at + i + np.uint64(1)], x)
            x[row + at + i] = s * scale[i] + z[i]
