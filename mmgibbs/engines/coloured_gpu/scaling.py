"""Linear changes theta_l -> M theta_l of all levels of a term on a device: how records see them, and the moves.

On the CPU: equations/scaling.py. The kernels are in kernels/moves.cu and products.cu. Records move first, then levels.
"""

from __future__ import annotations

import weakref
from functools import partial

import numpy as np

from mmgibbs.engines.coloured_gpu.device_state import DeviceState
from mmgibbs.engines.coloured_gpu.sizes import THREADS, count_blocks, lower, scaling_strands
from mmgibbs.engines.coloured_gpu.source import kernel
from mmgibbs.equations.scaling import Elements
from mmgibbs.machine.device import DeviceArray, make_struct


class ResidentScaling:
    """The changes of the terms of an engine, and what they are made with."""

    def __init__(self, engine: DeviceState):
        self.engine: DeviceState = weakref.proxy(engine)  # which keeps this object
        self.queue, self.design = engine.queue, engine.equations.design
        sizes = [t.n_components for t in self.design.terms]
        self._change = [self.queue.empty(k * k + 1, np.float64) for k in sizes]  # D = M - I, and 1 where it is not 0
        self._moved_levels: dict[tuple[int, ...], DeviceArray] = {}
        self._levels_of_records: dict[int, DeviceArray] = {}
        most_effects = max(len(t.effects) for t in self.design.terms)
        self._levels_of_one_term = self.queue.empty(self.design.n_records * most_effects, np.uint32)
        self._elements: dict[tuple[int, Elements], tuple[np.ndarray, list[DeviceArray]]] = {}
        self._deviations: dict[int, DeviceArray] = {}

    def products(self, term: int, elements: Elements) -> tuple[np.ndarray, np.ndarray]:
        """H (p, p) and s (p,) of `engine.scaling_products`."""
        p, deviation = len(elements), self._find_deviation(term)
        n_sums = lower(p) + p

        def work() -> None:
            self.engine.fold(n_sums, self.engine.sum_buffers[0], self.launch_products(term, elements, deviation))

        self._find_levels(term)
        self._find_elements(term, elements)
        self.queue.repeat(("scaling", term, elements), work)
        sums = self.engine.read_sums(n_sums)
        return fill_symmetric(sums[: lower(p)], p), sums[lower(p) :].copy()

    def launch_products(self, term: int, elements: Elements, deviation: DeviceArray | None = None) -> int:
        """Queue the sums of `products`, in so many parts each as it returns."""
        levels, effects = self._find_levels(term)
        n_sums = lower(len(elements)) + len(elements)
        strands = scaling_strands(self.design.n_records, n_sums)
        self.engine.launch_term(
            term, "scaling_strands", -(-n_sums // THREADS) * strands,
            self.engine.resident.terms[term].struct, self.engine.resident.records, levels, effects, deviation,
            self._find_elements(term, elements), np.uint32(strands), self.engine.sum_buffers[0],
        )  # fmt: skip
        return strands

    def transform(self, term: int, M: np.ndarray) -> None:
        """theta_l <- M theta_l for every level (with fixed groups: the deviations from their mean), and e follows."""
        deviation = self._find_deviation(term)
        self.queue.write(self._change[term], np.append(np.asarray(M, float) - np.eye(len(M)), 1.0))
        self._find_levels(term)
        self.queue.repeat(("move", term), partial(self._launch_moves, term, deviation))

    def change_address(self, term: int) -> int:
        """Return the address of the D of the moves of a term."""
        return self.queue.address(self._change[term])

    def _launch_moves(self, term: int, deviation: DeviceArray | None) -> None:
        self.launch_record_moves(term, deviation)
        self.launch_level_moves((term,), deviation)

    def launch_record_moves(self, term: int, deviation: DeviceArray | None = None) -> None:
        """Queue the moves of the residuals where the levels of a term are to move by D deviation."""
        self._launch_records(term, self.make_moved_term(term, deviation))

    def launch_subtraction(self, term: int) -> None:
        """Queue e_r -= W_r theta: the part of a term in e = y - W theta."""
        self._launch_records(term, self._make_moved_term(term, None, None, is_kept=False))

    def _launch_records(self, term: int, moved: np.ndarray) -> None:
        blocks = count_blocks(self.design.n_records)
        self.engine.launch_term(term, "move_records", blocks, moved, self.engine.resident.records)

    def launch_level_moves(self, terms: tuple[int, ...], deviation: DeviceArray | None = None) -> None:
        """Queue the moves of the levels of some terms by D deviation, of one term where there is a deviation."""
        if terms not in self._moved_levels:
            structs = [self._make_moved_levels(i, deviation) for i in terms]
            self._moved_levels[terms] = self.queue.upload(np.concatenate(structs).view(np.uint8))
        blocks = count_blocks(sum(self.design.terms[i].n_levels for i in terms))
        self.engine.launch_blocks(kernel("move_levels"), blocks, self._moved_levels[terms], np.int32(len(terms)))

    # Structures of the kernels

    def make_moved_term(self, term: int, deviation: DeviceArray | None = None) -> np.ndarray:
        """struct MovedTerm of moves.cu: every level of a term moves by D deviation, by D theta where there is none."""
        return self._make_moved_term(term, self._change[term], deviation, is_kept=True)

    def _make_moved_term(
        self, term: int, D: DeviceArray | None, deviation: DeviceArray | None, is_kept: bool
    ) -> np.ndarray:
        levels, effects = self._find_levels(term, is_kept)
        address = lambda buffer: 0 if buffer is None else self.queue.address(buffer)
        return make_struct(
            term=self.engine.resident.terms[term].struct[0],
            levels=address(levels),
            D=address(D),
            deviation=address(deviation),
            effects=effects,
        )

    def _make_moved_levels(self, term: int, deviation: DeviceArray | None) -> np.ndarray:
        """struct MovedLevels of moves.cu."""
        t = self.design.terms[term]
        return make_struct(
            theta=self.queue.address(self.engine.resident.terms[term].theta),
            D=self.change_address(term),
            deviation=0 if deviation is None else self.queue.address(deviation),
            n=np.uint32(t.n_levels),
            k=np.int32(t.n_components),
        )

    def _find_elements(self, term: int, elements: Elements) -> np.ndarray:
        """struct Elements of products.cu, made when first asked for."""
        if (term, elements) not in self._elements:
            lists, (c, component) = self.engine.equations.terms[term], np.array(elements, np.int64).T
            regressor = lists.regressor[c]
            effect = self.design.terms[term].regressor_effect[regressor]
            parts = {"effect": effect, "regressor": regressor, "component": component, "trait": lists.trait[c]}
            buffers = [self.queue.upload(part.astype(np.int32)) for part in parts.values()]
            addresses = map(self.queue.address, buffers)
            struct = make_struct(**dict(zip(parts, addresses, strict=True)), p=np.int32(len(elements)))
            self._elements[term, elements] = struct, buffers
        return self._elements[term, elements][0]

    def _find_levels(self, term: int, is_kept: bool = True) -> tuple[DeviceArray, np.int32]:
        """The level that each record meets (n, effects), and how many effects. is_kept: made once."""
        t, n = self.design.terms[term], self.design.n_records
        effects = np.int32(len(t.effects))
        if term in self._levels_of_records:
            return self._levels_of_records[term], effects
        if is_kept:
            levels = self._levels_of_records[term] = self.queue.empty((n, int(effects)), np.uint32)
        else:
            levels = self._levels_of_one_term[: n * int(effects)]
        self.queue.fill(levels, 0xFF)  # UNKNOWN
        q, struct = np.uint32(t.n_levels), self.engine.resident.terms[term].struct
        self.engine.launch_term(term, "record_levels", count_blocks(q), struct, q, effects, levels)
        return levels, effects

    def _find_deviation(self, term: int) -> DeviceArray | None:
        """Return what M multiplies: None for Theta itself; Theta - Q g, made on the host, with fixed groups."""
        t = self.design.terms[term]
        if not t.groups_fixed:
            return None
        equations = self.engine.equations
        theta = self.queue.read(self.engine.resident.terms[term].theta).reshape(t.n_levels, t.n_components)
        parents_first = np.argsort(equations.terms[term].code)
        deviation = t.relationship.deviations(equations.relationships[term], parents_first, theta)
        if term not in self._deviations:
            self._deviations[term] = self.queue.upload(deviation)
        else:
            self.queue.write(self._deviations[term], deviation)
        return self._deviations[term]


def fill_symmetric(triangle: np.ndarray, k: int) -> np.ndarray:
    """The symmetric matrix of a lower triangle, row by row."""
    out = np.empty((k, k))
    out[np.tril_indices(k)] = triangle
    return np.tril(out) + np.tril(out, -1).T
