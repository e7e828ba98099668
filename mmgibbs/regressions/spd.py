"""Cholesky factors of large matrices on a device by rounds (draws/spd.cuh): nodes of a graph, or one launch."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from mmgibbs.machine.device import make_struct

PANEL, PANEL_ROWS, TILE, THREADS = 64, 32, 32, 256  # as in spd.cuh
MAX_ROUND_NODES = 50  # of a sweep's graph; more rounds are one cooperative launch
ONE_ROUND, ALL_ROUNDS = "mmgibbs::one_round<mmgibbs::Spd>", "mmgibbs::all_rounds<mmgibbs::Spd>"


class SpdFactors:
    """The factors of C matrices (m, m), each with right-hand sides as rows below it, n_rows in all."""

    def __init__(self, n_matrices: int, m: int, n_rows: int):
        self.n_matrices, self.m, self.n_rows = n_matrices, m, n_rows
        self.panels = -(-m // PANEL)
        self.n_rounds = 2 * self.panels - 1
        self.is_cooperative = self.n_rounds > MAX_ROUND_NODES

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Buffers that the factors need, float64."""
        C = self.n_matrices
        return {"matrices": (C, self.n_rows, self.m), "diagonals": (C, self.panels, PANEL, PANEL)}

    @property
    def n_operations(self) -> float:
        """Additions and multiplications of the factors, m^3 / 3 each."""
        return self.n_matrices * self.m**3 / 3

    @property
    def kernel_name(self) -> str:
        return ALL_ROUNDS if self.is_cooperative else ONE_ROUND

    def place(self, matrices: int, diagonals: int, arrived: int) -> None:
        """Take the addresses of the buffers, and of the counter of a cooperative launch, which is 0 before it."""
        sizes = {"m": self.m, "n_rows": self.n_rows, "n_matrices": self.n_matrices}
        self.struct = make_struct(A=matrices, diagonals=diagonals, **{name: np.int32(n) for name, n in sizes.items()})
        self.arrived = make_struct(address=arrived)

    def launch(self, kernels: Mapping[str, Callable], multiprocessors: int) -> None:
        """Launch the rounds."""
        blocks = [self.count_blocks(r) for r in range(self.n_rounds)]
        if self.is_cooperative:  # all blocks are on the device at once
            kernels[ALL_ROUNDS](min(max(blocks), multiprocessors), THREADS, self.struct, self.arrived)
            return
        for r, n_blocks in enumerate(blocks):
            kernels[ONE_ROUND](n_blocks, THREADS, self.struct, np.int32(r))

    def count_blocks(self, r: int) -> int:
        """Pieces of work in a round."""
        behind = min((r // 2 + 1) * PANEL, self.m)
        rows = self.n_rows - behind
        if r % 2 == 0:
            return self.n_matrices * max(1, -(-rows // PANEL_ROWS))
        return self.n_matrices * -(-rows // TILE) * -(-(self.m - behind) // TILE)
