"""The dense block of a term's K^-1 on a device: its values, tiles and work space (kernels/dense.cu)."""

from __future__ import annotations

import weakref

import numpy as np

from mmgibbs.engines.coloured_gpu.device_state import DeviceState
from mmgibbs.engines.coloured_gpu.source import dense_kernels
from mmgibbs.equations.dense import DenseLevels
from mmgibbs.equations.structured import StructuredEquations
from mmgibbs.machine.device import make_struct

TILE = 128  # levels: threads of a block, as in level.cu
NO_DENSE = make_struct(rows=0, n=np.uint32(0), first=np.uint32(0))  # struct DenseRows


def system_bytes(k: int) -> int:
    """Count the bytes of the equations of a level."""
    return 8 * (k * k + 4 * k)


class ResidentDense:
    """The dense block of term i of an engine."""

    def __init__(self, engine: DeviceState, i: int, dense: DenseLevels):
        self.engine: DeviceState = weakref.proxy(engine)  # which keeps this object
        self.term, queue = i, engine.queue
        k, n_traits = engine.equations.design.terms[i].n_components, engine.equations.design.n_traits
        self.n, first = len(dense.values), int(dense.positions[0])
        self._names = dense_kernels(k, n_traits, type(engine.equations.relationships[i]), dense.values.dtype)
        upload = lambda: queue.upload(np.ascontiguousarray(dense.values))
        self._values = engine.shared.find(("dense block", i), upload)
        self._rows = queue.empty(self.n * k, np.float64)
        self._systems = queue.empty(TILE * system_bytes(k), np.uint8)
        coupled = find_coupled(engine.equations, i, dense)
        self._coupled = queue.upload(coupled)
        self._has_coupled = [bool(coupled[a : a + TILE].any()) for a in range(0, self.n, TILE)]
        shape = {"n": np.uint32(self.n), "first": np.uint32(first)}
        values, rows = queue.address(self._values), queue.address(self._rows)
        self._struct = make_struct(values=values, rows=rows, **shape)
        self.rows_struct = make_struct(rows=rows, **shape)

    def launch_rows(self, first_row: int = 0, n_rows: int | None = None) -> None:
        """Queue S theta of some rows, or of all."""
        theta = self.engine.resident.terms[self.term].theta
        n = self.n if n_rows is None else n_rows
        self.engine.launch_blocks(self._names["dense_rows"], n, self._struct, theta, np.uint32(first_row))

    def launch_draws(self, draws: tuple) -> None:
        """Queue the draws of all levels, tile after tile; draws: what every kernel that draws is given last."""
        term, records = self.engine.resident.terms[self.term], self.engine.resident.records
        for has_coupled, first in zip(self._has_coupled, range(0, self.n, TILE), strict=True):
            n = min(TILE, self.n - first)
            self.launch_rows(first, n)
            given = (term.struct, term.kin, records, self._struct, np.uint32(first), np.uint32(n))
            coupled = self._coupled if has_coupled else None
            self.engine.launch_blocks(self._names["draw_tile"], 1, *given, coupled, self._systems, *draws)


def find_coupled(equations: StructuredEquations, i: int, dense: DenseLevels) -> np.ndarray:
    """Mark levels that meet a record, or an entry of K^-1, with another level of their tile, (n,) uint8."""
    lists, first, n = equations.terms[i], int(dense.positions[0]), len(dense.values)
    coupled = np.zeros(n, np.uint8)
    place = np.empty(lists.code.size, np.int64)  # in the sweep, of each level in model order
    place[lists.code] = np.arange(lists.code.size)
    indptr, indices, _ = equations.design.terms[i].relationship.lists_csr()
    rows = place[np.repeat(np.arange(lists.code.size), np.diff(indptr))] - first
    columns = place[indices] - first
    is_pair = (rows >= 0) & (columns >= 0) & (rows != columns) & (rows // TILE == columns // TILE)
    coupled[rows[is_pair]] = 1
    if lists.visit_effect.size:  # else a record meets one level
        visits = np.diff(lists.visit_ptr[first : first + n + 1]).astype(np.int64)
        level = np.arange(n).repeat(visits)
        record = lists.visit_record[int(lists.visit_ptr[first]) :].astype(np.int64)
        order = np.lexsort((level, level // TILE, record))
        level, record = level[order], record[order]
        meets = (record[1:] == record[:-1]) & (level[1:] != level[:-1]) & (level[1:] // TILE == level[:-1] // TILE)
        coupled[level[1:][meets]] = coupled[level[:-1][meets]] = 1
    return coupled
