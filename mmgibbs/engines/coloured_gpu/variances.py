"""Covariance matrices that the device draws: a sweep with sampled variances is one graph, and nothing is waited for.

The steps of the sampler launch their kernels (kernels/variances.cu) while the graph is made: see device_sweep.py.
Numbers of sweeps, matrices and kept draws lie in device memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count
from typing import Protocol

import numpy as np

from mmgibbs.draws.purpose import AUXILIARY, INTERWEAVE, LIABILITY_SCALE, RESIDUAL_SCALE, THRESHOLD, VARIANCE, stream
from mmgibbs.engines.augment import block_of_trait, count_records_per_block, expand_classes
from mmgibbs.engines.coloured_gpu.device_state import DeviceState
from mmgibbs.engines.coloured_gpu.liabilities import ResidentResponses
from mmgibbs.engines.coloured_gpu.scaling import ResidentScaling
from mmgibbs.engines.coloured_gpu.sizes import count_blocks, count_strands, lower, residual_sums, scaling_strands
from mmgibbs.engines.coloured_gpu.source import kernel
from mmgibbs.engines.device_sweep import (
    RESIDUAL,
    AuxiliaryVariables,
    ScaledResidual,
    VariancePlan,
    accepted_name,
    auxiliary_name,
    cuts_name,
    log_step_name,
    moved_name,
    scale_moved_name,
    scale_step_name,
)
from mmgibbs.machine.device import Argument, DeviceArray, make_struct
from mmgibbs.machine.ring import Ring, count_slots
from mmgibbs.models.covariance import CovarianceModel
from mmgibbs.models.residual import ClassBlocks

COUNTER = count()
NONE_LOST = np.uint64(2**64 - 1)
Key = tuple[int, int]  # (seed, chain)


class VariancesState(DeviceState, Protocol):
    """The state of a sweep whose variances are drawn on the device."""

    scaling: ResidentScaling
    records_per_pattern: np.ndarray

    @property
    def responses(self) -> ResidentResponses: ...

    @property
    def augmentation_addresses(self) -> tuple[int, int]: ...

    @property
    def residual_sums_address(self) -> int: ...

    @property
    def scaling_sums_address(self) -> int: ...

    def launch_sweep(self) -> None: ...

    def launch_class_precisions(self) -> None: ...

    def launch_quadratic_form(self, i: int, sums: DeviceArray) -> int: ...

    def launch_residual_products(self, moved_term: int | None = None) -> int: ...

    def forget_sums(self) -> None: ...


class ResidentVariances:
    """The sampled matrices of one chain on the device of its engine: see device_sweep.DeviceVariances."""

    def __init__(self, engine: VariancesState, plan: VariancePlan):
        self.engine, self.plan, self.queue = engine, plan, engine.queue
        self._number = next(COUNTER)  # of these buffers: graphs that were recorded with others are not repeated
        design = engine.equations.design
        self.by_class = expand_classes(self._residual_blocks(), len(design.patterns))
        self._kept_alive: list[DeviceArray] = []
        self._first = np.cumsum([0, *(int(np.prod(shape)) for shape in plan.values.values())]).tolist()
        self.values = self.queue.empty(self._first[-1], np.float64)
        self.lost = self.queue.upload(np.full(1, NONE_LOST))
        self._place_kept_draws()
        self._sums = {i: self._make_sums(i) for i in {*plan.terms, *(i for of in plan.traits for i, _ in of.staying)}}
        of_terms = [self._term_matrix(n, term) for n, term in enumerate(plan.terms)]
        of_residuals = [self._residual_matrix(c) for c in range(len(plan.residual.matrices))]
        self._structs = {entry.name: matrix for entry, matrix in zip(plan.terms.values(), of_terms, strict=True)}
        self._structs[RESIDUAL] = of_residuals[0]
        self._matrices = self._upload_structs(of_terms) if of_terms else None
        self._residuals = self._upload_structs(of_residuals)
        self._residual_structs = of_residuals
        self._matrix_of_term = {
            term: np.uint64(self.queue.address(self._matrices) + n * of_terms[0].nbytes)  # type: ignore[arg-type]
            for n, term in enumerate(plan.terms)
        }
        self._responses = [engine.responses.passes[of.response] for of in plan.traits]
        self._patterns = self._make_patterns()
        self._scalings = {i: self._make_scaling(i) for i in plan.scaled}
        self._auxiliaries = [self._make_auxiliaries(of) for of in plan.auxiliaries]
        self._auxiliary_structs = self._upload_structs(self._auxiliaries) if self._auxiliaries else None
        self._scales = [self.queue.empty(1, np.float64) for _ in plan.traits]
        self._traits = [self._make_trait(n) for n in range(len(plan.traits))]
        self._residual_scales = [
            [self._make_residual_scale(n, scale) for scale in of.residual_scales] for n, of in enumerate(plan.traits)
        ]

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

    def _address_of_value(self, name: str) -> int:
        return self.queue.address(self.values) + 8 * self._first[list(self.plan.values).index(name)]

    def _make_sums(self, term: int) -> tuple[int, DeviceArray]:
        """Allocate the sums of a quadratic form; return the number of their parts and the buffer."""
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
            scale=self._hold(np.asarray(model.prior.scale_matrix(k), np.float64)),
            degrees=self._hold(np.array([nu for nu, _ in model.inverse_wisharts]) + counts),
            members=self._hold(np.concatenate(model.blocks).astype(np.int32)),
            first=self._hold(first.astype(np.int32)),
            unit=self._hold(np.array([find_unit(block, model.unit) for block in model.blocks], np.int32)),
            strands=strands[0],
            work=self._reserve(12 * k * k),
            n_strands=np.uint32(strands[1]),
            **{name: np.uint32(value) for name, value in site.items()},
            k=np.int32(k),
            n_blocks=np.int32(len(model.blocks)),
            is_sampled=np.int32(not model.fixed),
        )

    def _term_matrix(self, n: int, term: int) -> np.ndarray:
        name, model, n_levels = self.plan.terms[term]
        n_strands, sums = self._sums[term]
        counts = np.full(len(model.blocks), float(n_levels))
        inverse = int(self.engine.resident.terms[term].struct["Ginv"][0])
        site = {"stream": stream(VARIANCE, term), "first_row": 0, "number": n}
        strands = self.queue.address(sums), n_strands
        return self._matrix(model, counts, self._address_of_value(name), inverse, strands, site)

    def _residual_matrix(self, c: int) -> np.ndarray:
        design, T = self.engine.equations.design, self.engine.equations.design.n_traits
        counts = count_records_per_block(self.engine.records_per_pattern, design.patterns, self.by_class)[c]
        n_parts = count_blocks(count_strands(design.n_records, residual_sums(design)))
        site = {"stream": stream(VARIANCE, len(design.terms)), "first_row": c * T, "number": len(self.plan.terms) + c}
        sums = self.engine.residual_sums_address + 8 * lower(T) * n_parts * c
        now = self._address_of_value(RESIDUAL) + 8 * c * T * T
        return self._matrix(self.plan.residual.matrices[c], counts, now, self._reserve(T * T), (sums, n_parts), site)

    def _make_patterns(self) -> np.ndarray:
        """struct Patterns of kernels/variances.cu."""
        responses = [response.struct for response in self._responses]
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
            responses=self._hold(np.concatenate(responses).view(np.uint8)) if responses else 0,
            n=np.int32(n),
            T=np.int32(T),
            n_responses=np.int32(len(self._responses)),
        )

    def _make_auxiliaries(self, of: AuxiliaryVariables) -> np.ndarray:
        """struct Auxiliaries of kernels/variances.cu."""
        matrix = self._structs[of.matrix] if of.residual_class is None else self._residual_structs[of.residual_class]
        mixture, k = of.covariance.prior.mixture, len(of.covariance.start)
        assert mixture is not None, "others have no auxiliary variables"
        return make_struct(
            values=self._address_of_value(auxiliary_name(of.matrix)),
            scale=int(matrix["scale"][0]),
            now=int(matrix["now"][0]),
            inverse=int(matrix["inverse"][0]),
            sizes=self._hold(of.covariance.size_of_block.astype(np.float64)),
            precisions=self._hold(1 / mixture.unit),
            nu=np.float64(mixture.nu),
            factor=np.float64(mixture.factor),
            extra_shape=np.float64(mixture.extra_shape),
            stream=np.uint32(stream(AUXILIARY, of.term)),
            first_row=np.uint32(0 if of.residual_class is None else of.residual_class * k),
            k=np.int32(k),
            is_inverse=np.int32(mixture.is_inverse),
            is_of_one=np.int32(mixture.is_of_one),
        )

    def _make_scaling(self, term: int) -> np.ndarray:
        """struct Scaling of kernels/variances.cu."""
        scaled, engine = self.plan.scaled[term], self.engine
        p, (row, column) = len(scaled.elements), np.array(scaled.elements, np.int32).T
        return make_struct(
            row=self._hold(row),
            column=self._hold(column),
            exponents=self._hold(np.asarray(scaled.exponents, np.float64)),
            strands=engine.scaling_sums_address,
            work=self._reserve((2 * p + 2) * p),
            change=engine.scaling.change_address(term),
            accepted=self._address_of_value(accepted_name(term)),
            n_strands=np.uint32(scaling_strands(engine.equations.design.n_records, lower(p) + p)),
            stream=np.uint32(stream(INTERWEAVE, term)),
            p=np.int32(p),
        )

    def _make_trait(self, number: int) -> np.ndarray:
        """struct Trait of kernels/liabilities.cu."""
        of, response = self.plan.traits[number], self._responses[number]
        struct = response.struct.copy()
        struct["cuts"] = self._address_of_value(cuts_name(of.response))
        terms = [self._make_prior_term(*entry, True) for entry in of.moving]
        terms += [self._make_prior_term(*entry, False) for entry in of.staying]
        uploaded = self._hold(np.concatenate(terms).view(np.uint8)) if terms else 0
        k = max((t.n_components for t in self.engine.equations.design.terms), default=1)
        return make_struct(
            of=struct[0],
            log_step=self._address_of_value(log_step_name(of.response)),
            has_moved=self._address_of_value(moved_name(of.response)),
            walk=self._reserve(1),
            g=self.queue.address(self._scales[number]),
            work=self._reserve(max(2, lower(k))),
            steps=self._hold(np.asarray(of.log_gap_steps, np.float64)) if of.log_gap_steps.size else 0,
            sums=self.queue.address(self.engine.sum_buffers[1]),
            terms=uploaded,
            power=np.float64(of.power),
            wanted=np.float64(of.wanted_acceptance),
            n_sums=np.uint32(count_blocks(response.strands)),
            threshold_stream=np.uint32(stream(THRESHOLD, of.response)),
            scale_stream=np.uint32(stream(LIABILITY_SCALE, of.response)),
            burn_in=np.uint32(self.plan.burn_in),
            n_gaps=np.int32(of.log_gap_steps.size),
            n_terms=np.int32(len(terms)),
        )

    def _make_residual_scale(self, number: int, scale: ScaledResidual) -> np.ndarray:
        """struct ResidualScale of kernels/liabilities.cu."""
        of, model = self.plan.traits[number], self.plan.residual.matrices[scale.of_class]
        block = next(block for block in model.blocks if of.trait in block)
        mask = np.zeros(len(model.start), np.uint8)
        mask[list(block)] = 1
        size = self._residual_structs[0].nbytes
        return make_struct(
            of=self._traits[number]["of"][0],
            matrix=self.queue.address(self._residuals) + size * scale.of_class,
            is_in_block=self._hold(mask),
            log_step=self._address_of_value(scale_step_name(scale.name)),
            has_moved=self._address_of_value(scale_moved_name(scale.name)),
            log_s=self._reserve(1),
            s=self._reserve(1),
            work=self._reserve(1),
            sums=self.queue.address(self.engine.sum_buffers[1]),
            step=np.float64(scale.step),
            wanted=np.float64(scale.wanted_acceptance),
            nu=np.float64(model.inverse_wishart(block)[0]),
            n_sums=np.uint32(count_blocks(self._responses[number].strands)),
            stream=np.uint32(stream(RESIDUAL_SCALE, of.response)),
            burn_in=np.uint32(self.plan.burn_in),
            of_class=np.int32(scale.of_class),
        )

    def _make_prior_term(self, term: int, components: tuple[int, ...], is_moving: bool) -> np.ndarray:
        """struct PriorTerm of kernels/liabilities.cu."""
        k = self.engine.equations.design.terms[term].n_components
        mask = np.zeros(k, np.uint8)
        mask[list(components)] = 1
        matrix = int(self._matrix_of_term[term]) if is_moving else 0
        n_parts, sums = (0, None) if is_moving else self._sums[term]
        numbers = {of.matrix: n for n, of in enumerate(self.plan.auxiliaries)}
        number = numbers.get(self.plan.terms[term].name) if is_moving else None
        auxiliaries = 0
        if number is not None and self._auxiliary_structs is not None:
            auxiliaries = self.queue.address(self._auxiliary_structs) + number * self._auxiliaries[0].nbytes
        return make_struct(
            matrix=matrix,
            auxiliaries=auxiliaries,
            precision=int(self.engine.resident.terms[term].struct["Ginv"][0]),
            strands=0 if sums is None else self.queue.address(sums),
            is_of_trait=self._hold(mask),
            n_strands=np.uint32(n_parts),
            k=np.int32(k),
        )

    # State

    def load(self, values: Mapping[str, np.ndarray], number: int, key: Key) -> None:
        """Take the values before sweep `number`; the engine has taken the matrices, too."""
        given = [np.broadcast_to(values.get(name, 0.0), shape) for name, shape in self.plan.values.items()]
        self.queue.write(self.values, np.concatenate([np.ravel(v).astype(np.float64) for v in given]))
        self.engine.set_counter(number, key)
        n_matrices, counter = np.int32(len(self.plan.terms)), self.engine.resident.counter
        if self._auxiliaries:
            self._launch("set_scales", 1, self._auxiliary_structs, np.int32(len(self._auxiliaries)))
        of_residuals = self._residuals, np.int32(len(self.plan.residual.matrices)), self._patterns
        self._launch("invert_matrices", 1, self._matrices, n_matrices, *of_residuals, counter, self.lost)
        self.engine.launch_class_precisions()
        n_kept = max(0, number - 1 - self.plan.burn_in) // self.plan.thin
        self.ring = Ring(self.queue, self._slots, n_kept)

    def split(self, values: np.ndarray) -> dict[str, np.ndarray]:
        """The values of a draw by name."""
        parts = np.split(values, self._first[1:-1])
        return {n: v.reshape(shape) for (n, shape), v in zip(self.plan.values.items(), parts, strict=True)}

    def read(self) -> dict[str, np.ndarray]:
        """Wait for what was launched; the values by name."""
        return self.split(self.queue.read(self.values))

    def find_lost(self) -> tuple[int, int] | None:
        """Wait for what was launched; the first sweep and the number of a matrix that could not be drawn."""
        lost = int(self.queue.read(self.lost)[0])
        return None if lost == int(NONE_LOST) else (lost >> 32, lost & 0xFFFFFFFF)

    # Sweeps

    def repeat(self, name: str, launch: Callable[[], None]) -> None:
        """Queue the kernels of a sweep, or of a part of it: recorded once."""
        self.queue.repeat((self._number, name), launch)
        self.engine.forget_sums()

    def launch_locations(self) -> None:
        """Launch the sweep of all location effects."""
        self.engine.launch_sweep()

    def launch_products(self, term: int) -> None:
        """Launch the sums of squares and products of a term; behind those of the last term all matrices are drawn."""
        self.engine.launch_quadratic_form(term, self._sums[term][1])
        if term == list(self.plan.terms)[-1]:
            counter = self.engine.resident.counter
            self._launch("draw_covariances", len(self.plan.terms), self._matrices, counter, self.lost)

    def launch_scaling(self, term: int) -> None:
        """Interweaving of a term."""
        self.engine.scaling.launch_products(term, self.plan.scaled[term].elements)
        matrix, counter = self._matrix_of_term[term], self.engine.resident.counter
        self._launch("draw_scaling", 1, matrix, self._scalings[term], counter, self.lost)
        if term != self._last_scaled or not self.plan.samples_residual:  # else the residual products move the records
            self.engine.scaling.launch_record_moves(term)
        if term == self._last_scaled and not self.plan.samples_residual:
            self.engine.scaling.launch_level_moves(tuple(self.plan.scaled))

    @property
    def _last_scaled(self) -> int | None:
        return list(self.plan.scaled)[-1] if self.plan.scaled else None

    def launch_residuals(self) -> None:
        """Sums of the residuals, where R is sampled, and what is left to move."""
        if self.plan.samples_residual:
            self.engine.launch_residual_products(self._last_scaled)
            if self.plan.scaled:
                self.engine.scaling.launch_level_moves(tuple(self.plan.scaled))

    def launch_trait(self, number: int) -> None:
        """Queue thresholds, liabilities and their scale, of a trait of the plan."""
        engine, counter = self.engine, self.engine.resident.counter
        of, response, trait = self.plan.traits[number], self._responses[number], self._traits[number]
        given = np.ascontiguousarray(trait["of"]), engine.resident.records
        if of.log_gap_steps.size:
            self._launch("propose_cuts", 1, trait, counter)
            response.launch_pass("compare_cuts", *given)
            self._launch("decide_cuts", 1, trait, counter)
        for scale in self._residual_scales[number]:
            self._launch("propose_residual_scale", 1, scale, counter)
            classes = engine.class_of_pattern, scale["of_class"][0], np.uint64(scale["s"][0])
            response.launch_pass("compare_residual_scales", *given, *classes)
            self._launch("decide_residual_scale", 1, scale, self._residuals, self._patterns, counter, self.lost)
        if self._residual_scales[number]:
            engine.launch_class_precisions()
        response.launch_pass("draw_liabilities", *given, counter)
        if of.is_scaled:
            for term, _ in of.staying:  # not over the sums of the liabilities, which are read next
                engine.launch_quadratic_form(term, self._sums[term][1])
            self._launch("decide_scale", 1, trait, counter, self.lost)
            engine.responses.launch_scale(of.trait, self._scales[number])

    def launch_end(self) -> None:
        """R given its sums, auxiliary variables, the kept draw and the number of the next sweep."""
        counter, has_auxiliaries = self.engine.resident.counter, bool(self._auxiliaries)
        if self.plan.samples_residual:
            n_matrices = np.int32(len(self.plan.residual.matrices))
            given = self._residuals, n_matrices, self._patterns, self._kept, np.int32(not has_auxiliaries), counter
            self._launch("draw_residuals", 1, *given, self.lost)
        elif not has_auxiliaries:
            self._launch("end_sweep", 1, self._kept, counter)
        if has_auxiliaries:
            n = np.int32(len(self._auxiliaries))
            self._launch("draw_auxiliaries", 1, self._auxiliary_structs, n, self._kept, counter)
        if self.plan.samples_residual:
            self.engine.launch_class_precisions()

    def _launch(self, name: str, blocks: int, *arguments: Argument) -> None:
        self.engine.launch_blocks(kernel(name), blocks, *arguments)


def find_unit(block: tuple[int, ...], unit: tuple[int, ...]) -> int:
    """Find the member of a block whose variance is 1 by convention; -1: none."""
    members = [i for i, component in enumerate(block) if component in unit]
    assert len(members) <= 1, "the host draws correlations of several"
    return members[0] if members else -1
