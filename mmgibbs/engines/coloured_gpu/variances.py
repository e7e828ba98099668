"""Covariance matrices that the device draws: a sweep with sampled variances is one graph, and nothing is waited for.

The steps of the sampler launch their kernels (kernels/variances.cu) while the graph is made: see device_sweep.py.
Numbers of sweeps, matrices and kept draws lie in device memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from mmgibbs.draws.purpose import INTERWEAVE, VARIANCE, stream
from mmgibbs.engines.augment import block_of_trait, count_records_per_block, expand_classes
from mmgibbs.engines.coloured_gpu.sizes import count_blocks, count_strands, lower, residual_sums, scaling_strands
from mmgibbs.engines.coloured_gpu.source import kernel
from mmgibbs.engines.device_sweep import VariancePlan
from mmgibbs.machine.device import Argument, DeviceArray, make_struct
from mmgibbs.machine.ring import Ring, count_slots
from mmgibbs.models.covariance import CovarianceModel
from mmgibbs.models.residual import ClassBlocks, stack_classes

if TYPE_CHECKING:
    from mmgibbs.engines.coloured_gpu.engine import StructuredGpuEngine

NONE_LOST = np.uint64(2**64 - 1)
Key = tuple[int, int]  # (seed, chain)


class ResidentVariances:
    """The sampled matrices of one chain on the device of its engine: see device_sweep.DeviceVariances."""

    def __init__(self, engine: StructuredGpuEngine, plan: VariancePlan):
        self.engine, self.plan, self.queue = engine, plan, engine.queue
        design = engine.equations.design
        self.by_class = expand_classes(self._residual_blocks(), len(design.patterns))
        self._kept_alive: list[DeviceArray] = []
        sizes = [design.terms[i].n_components for i in plan.terms]
        T, n_classes = design.n_traits, len(plan.residual.matrices)
        # of the values of a draw: matrices of terms, those of the residuals, whether each scaling was accepted
        self._shapes = [*((k, k) for k in sizes), (n_classes, T, T), (len(plan.scaled),)]
        self._first = np.cumsum([0, *map(np.prod, self._shapes)]).tolist()
        self.values = self.queue.empty(self._first[-1], np.float64)
        self.lost = self.queue.upload(np.full(1, NONE_LOST))
        self._place_kept_draws()
        self._sums = {i: self._make_sums(i) for i in plan.terms}
        number = {term: n for n, term in enumerate(plan.terms)}
        of_terms = [self._term_matrix(n, term) for term, n in number.items()]
        of_residuals = [self._residual_matrix(c) for c in range(n_classes)]
        self._matrices = self._upload_structs(of_terms) if of_terms else None
        self._residuals = self._upload_structs(of_residuals)
        self._matrix_of_term = {
            term: np.uint64(self.queue.address(self._matrices) + n * of_terms[0].nbytes)  # type: ignore[arg-type]
            for term, n in number.items()
        }
        self._patterns = self._make_patterns()
        self._scalings = {i: self._make_scaling(n, i) for n, i in enumerate(plan.scaled)}

    # Structures

    def _residual_blocks(self) -> ClassBlocks | tuple[tuple[int, ...], ...]:
        of_class = tuple(m.blocks for m in self.plan.residual.matrices)
        if not self.plan.residual.classes:
            return of_class[0]
        return ClassBlocks(of_class, self.engine.equations.design.class_of_pattern)

    def _place_kept_draws(self) -> None:
        n_slots = count_slots(8 * self.values.size)
        self._slots = self.queue.empty((n_slots, self.values.size), np.float64)
        ring = make_struct(
            slots=self.queue.address(self._slots),
            slot_values=np.uint64(self.values.size),
            n_slots=np.uint32(n_slots),
            burn_in=np.uint32(self.plan.burn_in),
            thin=np.uint32(self.plan.thin),
        )
        values, n_values = self.queue.address(self.values), np.uint32(self.values.size)
        self._kept = make_struct(values=values, n_values=n_values, ring=ring[0])
        self.ring = Ring(self.queue, self._slots)

    def _hold(self, array: np.ndarray) -> int:
        """Address of a copy of an array on the device."""
        self._kept_alive.append(self.queue.upload(np.ascontiguousarray(array)))
        return self.queue.address(self._kept_alive[-1])

    def _reserve(self, size: int, dtype: type = np.float64) -> int:
        """Address of an array on the device."""
        self._kept_alive.append(self.queue.empty(max(1, size), dtype))
        return self.queue.address(self._kept_alive[-1])

    def _upload_structs(self, structs: list[np.ndarray]) -> DeviceArray:
        return self.queue.upload(np.concatenate(structs).view(np.uint8))

    def _address_of_value(self, group: int, element: int = 0) -> int:
        return self.queue.address(self.values) + 8 * (self._first[group] + element)

    def _make_sums(self, term: int) -> tuple[int, DeviceArray]:
        """In how many parts the sums of a quadratic form come, and where."""
        t = self.engine.equations.design.terms[term]
        size = lower(t.n_components)
        n_parts = count_blocks(count_strands(t.n_levels, size))
        return n_parts, self.queue.empty((size, n_parts), np.float64)

    def _matrix(
        self, model: CovarianceModel, counts: np.ndarray, now: int, inverse: int, strands: tuple[int, int], site: dict
    ) -> np.ndarray:
        """struct Matrix of kernels/variances.cu; counts: levels or records behind each block."""
        k = len(model.start)
        first = np.cumsum([0, *map(len, model.blocks)])
        return make_struct(
            now=now,
            inverse=inverse,
            scale=self._hold(np.zeros((k, k)) if model.scale is None else np.asarray(model.scale, np.float64)),
            degrees=self._hold(np.array([nu for nu, _ in model.block_priors]) + counts),
            members=self._hold(np.concatenate(model.blocks).astype(np.int32)),
            first=self._hold(first.astype(np.int32)),
            strands=strands[0],
            work=self._reserve(8 * k * k),
            n_strands=np.uint32(strands[1]),
            **{name: np.uint32(value) for name, value in site.items()},
            k=np.int32(k),
            n_blocks=np.int32(len(model.blocks)),
            is_sampled=np.int32(not model.fixed),
        )

    def _term_matrix(self, n: int, term: int) -> np.ndarray:
        model, n_levels = self.plan.terms[term]
        n_strands, sums = self._sums[term]
        counts = np.full(len(model.blocks), float(n_levels))
        inverse = int(self.engine.resident.terms[term].struct["Ginv"][0])
        site = {"stream": stream(VARIANCE, term), "first_row": 0, "number": n}
        strands = self.queue.address(sums), n_strands
        return self._matrix(model, counts, self._address_of_value(n), inverse, strands, site)

    def _residual_matrix(self, c: int) -> np.ndarray:
        design, T = self.engine.equations.design, self.engine.equations.design.n_traits
        counts = count_records_per_block(self.engine.records_per_pattern, design.patterns, self.by_class)[c]
        n_parts = count_blocks(count_strands(design.n_records, residual_sums(design)))
        site = {"stream": stream(VARIANCE, len(design.terms)), "first_row": c * T, "number": len(self.plan.terms) + c}
        sums = self.engine.residual_sums_address + 8 * lower(T) * n_parts * c
        now = self._address_of_value(len(self.plan.terms), c * T * T)
        return self._matrix(self.plan.residual.matrices[c], counts, now, self._reserve(T * T), (sums, n_parts), site)

    def _make_patterns(self) -> np.ndarray:
        """struct Patterns of kernels/variances.cu."""
        engine, (n, T) = self.engine, self.engine.equations.design.patterns.shape
        blocks = block_of_trait(tuple(tuple(map(tuple, b)) for b in self.by_class.of_class), T)
        fill, noise = engine.augmentation_addresses
        return make_struct(
            observed=self._hold(engine.equations.design.patterns.astype(np.uint8)),
            matrix=self._hold(self.by_class.class_of_pattern.astype(np.int32)),
            block=self._hold(blocks.astype(np.int32)),
            Rinv=int(engine.resident.records["Rinv"][0]),
            fill=fill,
            noise=noise,
            work=self._reserve(n * T * T),
            traits=self._reserve(n * T, np.int32),
            n=np.int32(n),
            T=np.int32(T),
        )

    def _make_scaling(self, n: int, term: int) -> np.ndarray:
        """struct Scaling of kernels/variances.cu."""
        scaled, engine = self.plan.scaled[term], self.engine
        p, (row, column) = len(scaled.elements), np.array(scaled.elements, np.int32).T
        return make_struct(
            row=self._hold(row),
            column=self._hold(column),
            exponents=self._hold(np.asarray(scaled.exponents, np.float64)),
            strands=engine.scaling_sums_address,
            work=self._reserve((2 * p + 2) * p),
            change=engine.change_address(term),
            accepted=self._address_of_value(len(self.plan.terms) + 1, n),
            n_strands=np.uint32(scaling_strands(engine.equations.design.n_records, lower(p) + p)),
            stream=np.uint32(stream(INTERWEAVE, term)),
            p=np.int32(p),
        )

    # State

    def load(self, G: Sequence[np.ndarray | None], R: np.ndarray, number: int, key: Key) -> None:
        """Take the matrices before sweep `number`, which the engine has taken, too."""
        matrices = [np.asarray(G[term], np.float64).ravel() for term in self.plan.terms]
        accepted = np.zeros(len(self.plan.scaled))
        self.queue.write(self.values, np.concatenate([*matrices, stack_classes(R).ravel(), accepted]))
        self.engine.set_counter(number, key)
        n_matrices, counter = np.int32(len(self.plan.terms)), self.engine.resident.counter
        given = self._matrices, n_matrices, self._residuals, self._patterns
        self._launch("invert_matrices", 1, *given, counter, self.lost)
        self.engine.launch_class_precisions()
        n_kept = max(0, number - 1 - self.plan.burn_in) // self.plan.thin
        self.ring = Ring(self.queue, self._slots, n_kept)

    def split(self, values: np.ndarray) -> tuple[dict[int, np.ndarray], np.ndarray, dict[int, float]]:
        """G of the sampled terms, R, and whether each scaling was accepted, of the values of a draw."""
        parts = [v.reshape(s) for v, s in zip(np.split(values, self._first[1:-1]), self._shapes, strict=True)]
        R = parts[-2] if self.plan.residual.classes else parts[-2][0]
        G = dict(zip(self.plan.terms, parts[:-2], strict=True))
        return G, R, dict(zip(self.plan.scaled, parts[-1].tolist(), strict=True))

    def read(self) -> tuple[dict[int, np.ndarray], np.ndarray]:
        """Wait for what was launched; G of the sampled terms, and R."""
        G, R, _ = self.split(self.queue.read(self.values))
        return G, R

    def find_lost(self) -> tuple[int, int] | None:
        """Wait for what was launched; the first sweep and the number of a matrix that could not be drawn."""
        lost = int(self.queue.read(self.lost)[0])
        return None if lost == int(NONE_LOST) else (lost >> 32, lost & 0xFFFFFFFF)

    # Sweeps

    def repeat(self, name: str, launch: Callable[[], None]) -> None:
        """Queue the kernels of a sweep, or of a part of it: recorded once."""
        self.queue.repeat(name, launch)
        self.engine.forget_sums()

    def launch_locations(self) -> None:
        """All location effects."""
        self.engine.launch_sweep()

    def launch_products(self, term: int) -> None:
        """The sums of squares and products of a term; behind those of the last term all matrices are drawn."""
        self.engine.launch_quadratic_form(term, self._sums[term][1])
        if term == list(self.plan.terms)[-1]:
            counter = self.engine.resident.counter
            self._launch("draw_covariances", len(self.plan.terms), self._matrices, counter, self.lost)

    def launch_scaling(self, term: int) -> None:
        """Interweaving of a term."""
        self.engine.launch_scaling_products(term, self.plan.scaled[term].elements)
        matrix, counter = self._matrix_of_term[term], self.engine.resident.counter
        self._launch("draw_scaling", 1, matrix, self._scalings[term], counter, self.lost)
        if term != self._last_scaled or not self.plan.samples_residual:  # else the residual products move the records
            self.engine.launch_record_moves(term)
        if term == self._last_scaled and not self.plan.samples_residual:
            self.engine.launch_level_moves(tuple(self.plan.scaled))

    @property
    def _last_scaled(self) -> int | None:
        return list(self.plan.scaled)[-1] if self.plan.scaled else None

    def launch_residuals(self) -> None:
        """Sums of the residuals, where R is sampled, and what is left to move."""
        if self.plan.samples_residual:
            self.engine.launch_residual_products(self._last_scaled)
            if self.plan.scaled:
                self.engine.launch_level_moves(tuple(self.plan.scaled))

    def launch_end(self) -> None:
        """R given its sums, the kept draw and the number of the next sweep."""
        counter = self.engine.resident.counter
        if not self.plan.samples_residual:
            self._launch("end_sweep", 1, self._kept, counter)
            return
        n_matrices = np.int32(len(self.plan.residual.matrices))
        given = self._residuals, n_matrices, self._patterns, self._kept, np.int32(1), counter, self.lost
        self._launch("draw_residuals", 1, *given)
        self.engine.launch_class_precisions()

    def _launch(self, name: str, blocks: int, *arguments: Argument) -> None:
        self.engine.launch_blocks(kernel(name), blocks, *arguments)
