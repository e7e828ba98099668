"""The hybrid engine of Golden, Lupo & Garrick: the main thread samples the diagonal blocks, others update right-hand
sides meanwhile.

    for each block i:  wait for r_i;  draw x_i from r_i and A_ii;  reset r_i = b_i;  hand x_i on:  r_k -= A_ki x_i  for
    every k != i

`order.py` says in which order, `host.py` (worker threads) and `device.py` (CUDA streams) run it. The chain is that of
the serial engine with the same partition, update and key; bit for bit the same for any number of threads and any
delay. Nothing drifts, since every right-hand side is summed anew in every sweep, and right-hand sides in progress are
no part of the state: primed anew they have the same bits. Variances that change every sweep cost one pass over the
values and a new priming of r: the updates that would be thrown away are then not made.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from mmgibbs.draws.purpose import LOCATION, stream
from mmgibbs.engines.base import HostState, Key, refuse_singular
from mmgibbs.engines.dense import with_dense_block
from mmgibbs.engines.facts import DeviceTraffic
from mmgibbs.engines.hybrid.device import DeviceUpdates
from mmgibbs.engines.hybrid.host import HostUpdates
from mmgibbs.engines.hybrid.kernels import factor_block, sample_block
from mmgibbs.engines.hybrid.order import UpdateOrder
from mmgibbs.engines.hybrid.sizes import matrix_bytes, vector_bytes
from mmgibbs.engines.liabilities import first_trait_not_normal
from mmgibbs.engines.markers import with_markers
from mmgibbs.engines.scores import with_scores
from mmgibbs.equations.explicit.row_blocks import row_blocks
from mmgibbs.equations.partition import Block
from mmgibbs.equations.records import compute_term_rhs
from mmgibbs.equations.structured import StructuredEquations
from mmgibbs.errors import ModelError
from mmgibbs.machine.device import Device
from mmgibbs.models.design import Design


class HybridEngine(HostState):
    """Row blocks of any partition; level updates where it keeps levels whole. Theta is held as x per block, in the
    equations' precision; r is float64.

    device: 'cpu' (worker threads; `threads` counts the main one), 'gpu' (CUDA streams; DeviceError where there is no
    device), or a `device.Device`. `notes` says what was chosen on the way.
    """

    name = "hybrid"
    options = ("update", "device", "threads")

    @staticmethod
    def refuses(design: Design) -> str | None:
        return with_markers(design) or with_dense_block(design) or first_trait_not_normal(design) or with_scores(design)

    @staticmethod
    def count_device_bytes(equations: StructuredEquations, interweaved: Sequence[int] = ()) -> int:
        """Count the bytes of vectors alone: what does not fit of the matrix is copied as it is needed."""
        return vector_bytes(equations)

    @staticmethod
    def count_device_traffic(equations: StructuredEquations, needed: int, free: int) -> DeviceTraffic:
        """Count the vectors and the matrix, which is read once in a sweep, where both fit."""
        matrix = matrix_bytes(equations)
        moved = needed + matrix
        return DeviceTraffic("a sweep of the effects", moved if moved <= free else None, {"matrix_bytes": matrix})

    def __init__(
        self,
        equations: StructuredEquations,
        update: str = "level",
        device: str | Device = "cpu",
        threads: int = 2,
    ):
        super().__init__(equations)
        self._threads = threads
        self.joint = update == "level"
        if self.joint and not equations.partition.keeps_complete_levels(equations.design):
            raise ModelError(
                f"sampler.partition: found '{equations.partition.kind}', which draws the components of a level "
                "separately and cannot be combined with update: level; needed update: site"
            )
        cuda = device if not isinstance(device, str) else None if device == "cpu" else Device()
        empty = np.empty if cuda is None else cuda.pinned
        self.row_blocks = row_blocks(equations, empty)
        blocks = equations.partition.blocks
        shapes = [(b.last - b.first, b.last_component - b.first_component) for b in blocks]
        self.x = [empty(shape, equations.real) for shape in shapes]
        self.b = [empty(shape, np.float64) for shape in shapes]
        self._factors = [np.empty((w * (w + 1) // 2, levels), equations.real) for levels, w in shapes]
        self._streams = [stream(LOCATION, i) for i in range(len(equations.terms))]
        self.updates: HostUpdates | DeviceUpdates
        if cuda is None:
            self.updates = HostUpdates(self.row_blocks, self.b, self.x, threads)
        else:
            self.updates = DeviceUpdates(self.row_blocks, self.b, self.x, cuda)
        self.order = UpdateOrder(len(blocks), self.row_blocks.slices, self.updates)
        self._finalize = weakref.finalize(self, self.updates.stop)
        self._sweeps_at_these_variances, self._variances_move = 0, False
        self._primed, self._b_is_old = False, False
        self.start()

    def take_y(self, y: np.ndarray) -> None:
        super().take_y(y)
        self.updates.discard()
        self._primed, self._b_is_old = False, True

    def set_variances(self, G: Sequence[np.ndarray | None], R: np.ndarray) -> None:
        """New values in the stored pattern; the next sweep primes the right-hand sides.

        ModelError where a level has no information.
        """
        self.updates.discard()
        self._variances_move = self._sweeps_at_these_variances == 1
        self._sweeps_at_these_variances, self._primed, self._b_is_old = 0, False, False
        super().set_variances(G, R)
        self.row_blocks.set_variances(self.Ginv, self.Rinv)
        terms = range(len(self.equations.terms))
        with ThreadPoolExecutor(self._threads) as pool:
            factored = pool.map(self._factor, terms)
            summed = pool.map(self._set_right_hand_side, terms)
            failures, _ = list(factored), list(summed)
        for term, failed in enumerate(failures):
            if failed >= 0:
                refuse_singular(self.equations, term, failed)
        self.updates.renew()

    def _factor(self, term: int) -> int:
        """Factor the own blocks of a term's levels; return -1, or the position whose block is not positive definite."""
        eq = self.equations
        for block, factor in zip(eq.partition.blocks, self._factors, strict=True):
            if block.term == term:
                failed = factor_block(
                    eq.terms[term], eq.relationships[term], self.Ginv[term], self.Rinv,
                    block.first, block.last, block.first_component, block.last_component, self.joint, factor,
                )  # fmt: skip
                if failed >= 0:
                    return failed
        return -1

    def _set_right_hand_side(self, term: int) -> None:
        """b = W' R^-1 y of the blocks of one term."""
        sums = compute_term_rhs(self.equations, term, self.Rinv, self.y)
        for block, b in zip(self.equations.partition.blocks, self.b, strict=True):
            if block.term == term:
                b[:] = sums[block.first : block.last, block.first_component : block.last_component]

    def sweep(self, number: int, key: Key) -> None:
        """Draw every block of the partition once; `number` and key = (seed, chain) say which draws to use."""
        if self._b_is_old:
            for term in range(len(self.equations.terms)):
                self._set_right_hand_side(term)
            self.updates.renew()
            self._b_is_old = False
        if not self._primed:
            self.order.prime()
        for i, block in enumerate(self.equations.partition.blocks):
            self.order.consume(i)
            self._sample(i, block, number, key)
            self.order.release(i, for_next_sweep=not self._variances_move)
        self._primed = not self._variances_move
        self._sweeps_at_these_variances += 1
        self.moved()

    def settle(self) -> None:
        """Wait for the updates that were left to others to do."""
        for i in range(len(self.x)):
            self.order.consume(i)

    def _sample(self, i: int, block: Block, number: int, key: Key) -> None:
        """Draw one block from its right-hand side."""
        code = self.equations.terms[block.term].code[block.first : block.last]
        sample_block(
            code, self.row_blocks.couplings[i], self._factors[i], self.joint, self.updates.r[i], self.x[i],
            block.first_component, number, self._streams[block.term], key[0], key[1],
        )  # fmt: skip

    @property
    def notes(self) -> list[str]:
        """Choices made on the way, for the user."""
        return self.updates.notes

    def close(self) -> None:
        """End the worker threads."""
        self.updates.stop()

    @property
    def theta(self) -> list[np.ndarray]:
        out = [np.empty((t.n_levels, t.n_components), self.equations.real) for t in self.equations.design.terms]
        for x, block in zip(self.x, self.equations.partition.blocks, strict=True):
            out[block.term][block.first : block.last, block.first_component : block.last_component] = x
        return out

    def put_theta(self, term: int, theta: np.ndarray) -> None:
        self.updates.discard()
        for x, block in zip(self.x, self.equations.partition.blocks, strict=True):
            if block.term == term:
                x[:] = theta[block.first : block.last, block.first_component : block.last_component]
        self._primed = False
        self.moved()
