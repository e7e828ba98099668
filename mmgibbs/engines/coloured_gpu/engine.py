"""The structured engine on a GPU: the whole state is resident; a colour is one kernel, three more where lists are long.

The chain is that of the other engines on the colour partition: bit for bit where every list is short, up to the
rounding of sums else. A sweep is recorded once as a graph and repeated; what changes from sweep to sweep (its number,
G^-1, R^-1) lies in device memory. Only small matrices reach the host: products of Theta and of residuals, and chosen
levels, or all of them when asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from mmgibbs.draws.purpose import AUGMENT, stream
from mmgibbs.engines.augment import augmentation, count_records_per_block, expand_classes
from mmgibbs.engines.base import refuse_singular
from mmgibbs.engines.coloured.engine import refuse_other_partitions
from mmgibbs.engines.coloured_gpu.dense import NO_DENSE, ResidentDense
from mmgibbs.engines.coloured_gpu.liabilities import ResidentResponses
from mmgibbs.engines.coloured_gpu.markers import (
    PASSES,
    ResidentEffects,
    ResidentMarkerPasses,
    marker_bytes,
    marker_source,
)
from mmgibbs.engines.coloured_gpu.moments import ResidentMoments
from mmgibbs.engines.coloured_gpu.resident import Colour, Resident
from mmgibbs.engines.coloured_gpu.scaling import ResidentScaling, fill_symmetric
from mmgibbs.engines.coloured_gpu.sizes import (
    THREADS,
    bytes_per_sweep,
    count_blocks,
    count_strands,
    lower,
    resident_bytes,
    residual_sums,
    scaling_sums,
    strand_sums,
    sums_in_blocks,
)
from mmgibbs.engines.coloured_gpu.source import REAL, kernel, model_kernels, specialisations, term_kernels
from mmgibbs.engines.coloured_gpu.variances import ResidentVariances
from mmgibbs.engines.device_sweep import VariancePlan
from mmgibbs.engines.facts import DeviceTraffic, EngineFacts
from mmgibbs.engines.state import replaced_y
from mmgibbs.equations.base import precisions
from mmgibbs.equations.dense import DenseLevels
from mmgibbs.equations.scaling import Elements, Scaling
from mmgibbs.equations.structured import StructuredEquations
from mmgibbs.errors import DeviceError
from mmgibbs.machine.device import Argument, Device, DeviceArray, make_struct, refuse_beyond_device
from mmgibbs.machine.gpu_queue import GpuQueue
from mmgibbs.machine.shared_arrays import SharedArrays
from mmgibbs.models.gpu_rules import Asked, describe_gpu_refusal
from mmgibbs.models.relationships.identity import IdentityLists
from mmgibbs.models.residual import Blocks, ClassBlocks

REMEDY = "use precision: single, engine: hybrid (which copies blocks as it needs them), or device: cpu"
FEW_PIECES = 16  # that a thread adds while a block of threads would still share them out
NONE_FAILED = np.uint64(2**64 - 1)


class StructuredGpuEngine(EngineFacts):
    """Coloured sweeps on a device (mmgibbs.machine.device.Device; the current one where None).

    State: Theta per term and e, in sweep order, in the equations' precision, on the device. beside: the engine of
    another chain of the same equations, whose lists this one reads too. ModelError for another partition than colours;
    DeviceError without a GPU, or where the state does not fit on it."""

    name = "structured"
    runs_side_by_side = True
    less_device_memory = "precision: single, engine: hybrid, or "

    def __init__(
        self,
        equations: StructuredEquations,
        update: str = "level",
        device: Device | None = None,
        beside: StructuredGpuEngine | None = None,
    ):
        refuse_other_partitions(equations)
        refused = describe_gpu_refusal(Asked("gibbs", self.name, equations.design))
        if refused:
            raise DeviceError(f"device: {refused}")
        self.equations, self.joint, self._y = equations, np.int32(update == "level"), equations.records.y
        self.queue = queue = GpuQueue(device, REMEDY)
        what = f"the lists and the state of {equations.n_equations:,} equations"
        eq, T = equations, equations.design.n_traits
        self.shared: SharedArrays = SharedArrays(queue) if beside is None else beside.shared
        self.shared.wait()
        refuse_beyond_device(self.count_device_bytes(eq), queue.free_bytes(), what, REMEDY)
        text, names = model_kernels(eq)
        self._kernels = queue.kernels(text, names)
        self.resident = Resident(eq, queue, self.shared)
        self._names = [term_kernels(k, T, kin) for k, kin in specialisations(eq)]
        self._dense = {i: ResidentDense(self, i, d) for i, d in enumerate(eq.dense) if isinstance(d, DenseLevels)}
        sizes = [t.n_components for t in eq.design.terms]
        self._n_products = max(2, residual_sums(eq.design), sum(map(lower, sizes)), *map(scaling_sums, sizes))
        self._products = queue.empty(self._n_products + 1, np.float64)  # the last one holds the first level that failed
        failed = np.array([queue.address(self._products) + 8 * self._n_products], np.uint64)
        self._draws = self.joint, self.resident.counter, failed  # what every kernel that draws is given last
        self._scratch = queue.empty(strand_sums(eq.design), np.float64)
        blocks = max(n_sums * count_blocks(count_strands(m, n_sums)) for m, n_sums in sums_in_blocks(eq.design))
        self._block_sums = queue.empty(blocks, np.float64)
        self._ordered = queue.empty(max(t.n_levels * t.n_components for t in eq.design.terms), eq.real)
        n_patterns = len(eq.design.patterns)
        self.augmentation = queue.empty((2, n_patterns, T, T), np.float64)  # fill and noise (augment.py)
        self._complete = queue.upload(np.logical_and.reduce(eq.design.patterns, axis=1).astype(np.uint8))
        self.records_per_pattern = np.bincount(eq.records.pattern, minlength=n_patterns)
        of_classes = [term.classes for term in self.resident.terms if term.classes is not None]
        self._n_classes = sum(term.n_classes for term in self.resident.terms)
        self._classes = queue.upload(np.concatenate(of_classes).view(np.uint8)) if of_classes else None
        self._n_terms_with_classes = np.int32(len(of_classes))
        self.class_of_pattern = queue.upload(eq.design.class_of_pattern.astype(np.int32))
        self.scaling = ResidentScaling(self)
        self._counter: tuple[int, int, int] | None = None
        self._quadratics: dict[int, np.ndarray] = {}
        self._asked: list[int] = []
        if eq.design.markers:
            passes = [kernel(name) for name in PASSES]
            self._kernels |= queue.kernels(marker_source(eq.real, eq.records.pattern.dtype), passes)
        self.marker_passes = ResidentMarkerPasses(self)
        self._n_effects = 0  # terms of SNP effects that were made
        self.start()

    @staticmethod
    def count_device_bytes(equations: StructuredEquations, interweaved: Sequence[int] = ()) -> int:
        """Count the bytes of the whole state, which stays on the device."""
        return resident_bytes(equations, interweaved) + marker_bytes(equations.design, equations.real)

    @staticmethod
    def count_device_traffic(equations: StructuredEquations, needed: int, free: int) -> DeviceTraffic:
        """Count what a sweep of the effects moves."""
        return DeviceTraffic("a sweep of the effects", bytes_per_sweep(equations), {})

    # State

    def start(self, theta: list[np.ndarray] | None = None) -> None:
        """Take Theta (model order; zero where None) and compute e = y - W theta."""
        eq = self.equations
        for i, (term, lists) in enumerate(zip(self.resident.terms, eq.terms, strict=True)):
            shape = (eq.design.terms[i].n_levels, eq.design.terms[i].n_components)
            ordered = np.zeros(shape, eq.real) if theta is None else np.asarray(theta[i])[lists.code].astype(eq.real)
            self.queue.write(term.theta, ordered)
        self.queue.write(self._products, np.full(self._n_products + 1, NONE_FAILED).view(np.float64))
        self._quadratics.clear()
        self.refresh()

    def refresh(self) -> None:
        """e = y - W theta from scratch: rounding drift ends here."""
        self.queue.copy(self.resident.y, self.resident.e)
        self.marker_passes.subtract_offsets()
        for i in range(len(self.resident.terms)):
            self.scaling.launch_subtraction(i)

    def replace_y(self, trait: int, y: np.ndarray) -> None:
        """Replace the records y (n,) of one trait in this chain, in model order, and recompute the residuals."""
        self._y = replaced_y(self.equations, self.y, trait, y)
        self.queue.write(self.resident.y, self._y)
        self.refresh()

    @property
    def y(self) -> np.ndarray:
        """(n, T) in sweep order, those of the equations themselves where the chain has no others.

        Waits where there are liabilities."""
        return self.queue.read(self.resident.y) if self.equations.design.responses else self._y

    @property
    def e(self) -> np.ndarray:
        """(n, T) residuals in sweep order: waits."""
        return self.queue.read(self.resident.e)

    @property
    def theta(self) -> list[np.ndarray]:
        """(q, k) per term in sweep order: waits."""
        return [self.queue.read(term.theta) for term in self.resident.terms]

    def fetch(self) -> list[np.ndarray]:
        """Copy theta to the host, (q, k) float64 per term, in model order."""
        out = []
        for i, term in enumerate(self.equations.design.terms):
            q, k = np.uint32(term.n_levels), np.int32(term.n_components)
            size = int(q) * int(k)
            scatter = (self.resident.terms[i].theta, self.resident.terms[i].code, q, k, np.int32(1), self._ordered)
            self.launch(kernel("move_rows", value=REAL[self.equations.real]), size, *scatter)
            out.append(self.queue.read(self._ordered[:size]).astype(np.float64).reshape(int(q), int(k)))
        self.refuse_failed()
        return out

    def refuse_failed(self) -> None:
        """Wait for all that was asked for; ModelError where a sweep met a level that it could not draw."""
        self._read_products()

    def state(self) -> dict[str, np.ndarray]:
        """Theta per term and e, sweep order, as the host's engines have them."""
        theta = {f"theta.{i}": self.queue.read(term.theta) for i, term in enumerate(self.resident.terms)}
        self._read_products()
        y = self.y
        changed = {} if y is self.equations.records.y else {"y": y}
        return {"e": self.e, **changed, **self.marker_passes.state_arrays(), **theta}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        self._y = np.array(state["y"]) if "y" in state else self.equations.records.y
        self.queue.write(self.resident.y, self._y)
        self.queue.write(self.resident.e, state["e"])
        self.marker_passes.restore(state)
        for i, term in enumerate(self.resident.terms):
            self.queue.write(term.theta, state[f"theta.{i}"])
        self._quadratics.clear()

    def moments(self, batch_length: int) -> ResidentMoments:
        """Moments of all locations, kept on the device; batch_length: that of posterior.moments.Moments."""
        return ResidentMoments(self, batch_length)

    # Sweeps

    def set_variances(self, G: Sequence[np.ndarray | None], R: np.ndarray) -> None:
        self.R = np.array(R, dtype=float)
        self.Ginv, self.Rinv = precisions(self.equations.design, G, self.R)
        self.resident.set_coefficients(self.Ginv, self.Rinv)
        if self._n_classes:
            self.queue.repeat("classes", self.launch_class_precisions)

    def launch_class_precisions(self) -> None:
        """Queue the data part of P of the classes of levels."""
        if self._n_classes:
            Rinv, T = np.uint64(self.resident.records["Rinv"][0]), np.int32(self.equations.design.n_traits)
            given = self._classes, self._n_terms_with_classes, Rinv, T
            self.launch_blocks(kernel("class_precisions"), count_blocks(self._n_classes), *given)

    def sweep(self, number: int, key: tuple[int, int]) -> None:
        """Run one Gibbs sweep through the colours; `number` and key = (seed, chain) select its random numbers.

        It is asked for, not waited for: what next brings values to the host reports a level that could not be drawn."""
        self.set_counter(number, key)
        self.queue.repeat("sweep", self.launch_sweep)
        self._quadratics.clear()

    def launch_sweep(self) -> None:
        """Queue the kernels of a sweep, colour by colour."""
        places: dict[int, int] = {}
        for block in self.equations.partition.blocks:
            place = places[block.term] = places.get(block.term, -1) + 1
            if block.dense:
                self._dense[block.term].launch_draws(self._draws)
                continue
            colour = self.resident.terms[block.term].colours[place]
            if colour.n_long:
                self._draw_long(block.term, colour)
            if colour.has_short:
                self._draw_short(block.term, colour)

    def _draw_long(self, i: int, colour: Colour) -> None:
        term, records, draws = self.resident.terms[i], self.resident.records, self._draws
        lists = (term.struct, term.kin, records, colour.long)
        self.launch_term(i, "sum_pieces", colour.n_pieces, *lists)
        if colour.most_pieces > FEW_PIECES:
            self.launch_term(i, "draw_long_levels", colour.n_long, *lists, *draws)
        else:
            n = np.uint32(colour.n_long)
            self.launch_term(i, "draw_levels_of_few_pieces", count_blocks(n), *lists, n, *draws)
        if colour.n_visit_pieces:
            self.launch_term(i, "move_pieces", colour.n_visit_pieces, term.struct, records, colour.long)

    def _draw_short(self, i: int, colour: Colour) -> None:
        term, levels = self.resident.terms[i], (colour.first, colour.last)
        lists = (term.struct, term.kin, self.resident.records, colour.long)
        self.launch_term(i, "sweep_levels", count_blocks(colour.last - colour.first), *lists, *levels, *self._draws)

    def wait(self) -> None:
        """Wait until all queued work is done."""
        self.queue.synchronize()

    # Products

    def quadratic_form(self, term: int) -> np.ndarray:
        """Theta' K^-1 Theta. The forms of all terms that were ever asked for are made and brought over together."""
        if term not in self._quadratics:
            if term not in self._asked:
                self._asked.append(term)
            self._make_quadratics()
        return self._quadratics[term].copy()

    def _make_quadratics(self) -> None:
        self.queue.repeat(("quadratic forms", *self._asked), self._sum_quadratics)
        products, first = self._read_products(), 0
        for i in self._asked:
            k = self.equations.design.terms[i].n_components
            self._quadratics[i] = fill_symmetric(products[first : first + lower(k)], k)
            first += lower(k)

    def _sum_quadratics(self) -> None:
        first = 0
        for i in self._asked:
            size = lower(self.equations.design.terms[i].n_components)
            self.fold(size, self._block_sums, self.launch_quadratic_form(i, self._block_sums), first)
            first += size

    def launch_quadratic_form(self, i: int, sums: DeviceArray) -> int:
        """Queue the sums of Theta' K^-1 Theta of a term, in so many parts each as it returns."""
        term, t = self.resident.terms[i], self.equations.design.terms[i]
        strands = count_strands(t.n_levels, lower(t.n_components))
        n, dense = (np.uint32(t.n_levels), np.uint32(strands)), NO_DENSE
        if i in self._dense:
            self._dense[i].launch_rows()
            dense = self._dense[i].rows_struct
        given = term.struct, term.kin, dense, *n, self._scratch, sums
        self.launch_term(i, "quadratic_strands", count_blocks(strands), *given)
        return count_blocks(strands)

    def residual_products(
        self, number: int, key: tuple[int, int], blocks: Blocks | ClassBlocks
    ) -> tuple[np.ndarray, np.ndarray | list[np.ndarray]]:
        """sum_r w_r e_r e_r' with missing residuals augmented, and the records behind each block (see augment.py)."""
        design = self.equations.design
        self.queue.write(self.augmentation, np.stack(augmentation(self.R, design.patterns, blocks)))
        self.set_counter(number, key)
        self.queue.repeat("residual products", self._sum_residuals)
        products = self._read_products()[: residual_sums(design)].reshape(-1, lower(design.n_traits))
        matrices = np.stack([fill_symmetric(sums, design.n_traits) for sums in products])
        by_class = expand_classes(blocks, len(design.patterns))
        counts = count_records_per_block(self.records_per_pattern, design.patterns, by_class)
        return (matrices, counts) if by_class is blocks else (matrices[0], counts[0])

    def _sum_residuals(self) -> None:
        self.fold(residual_sums(self.equations.design), self._block_sums, self.launch_residual_products())

    def launch_residual_products(self, moved_term: int | None = None) -> int:
        """Queue the sums of `residual_products`, in so many parts each as it returns; the levels of a term move first,
        where one is given: their records here, they themselves by `launch_level_moves`.
        """
        n, T = self.equations.records.y.shape
        strands = count_strands(n, residual_sums(self.equations.design))
        given = (
            self.resident.records, self._augmentation_struct, self.resident.counter, np.uint32(strands), self._scratch,
            self._block_sums,
        )  # fmt: skip
        if moved_term is None:
            self.launch_blocks(kernel("residual_strands", T), count_blocks(strands), *given)
        else:
            moved = self.scaling.make_moved_term(moved_term)
            self.launch_term(moved_term, "moved_residual_strands", count_blocks(strands), moved, *given)
        return count_blocks(strands)

    @cached_property
    def _augmentation_struct(self) -> np.ndarray:
        """struct Augmentation of products.cu."""
        fill, noise = self.augmentation_addresses
        return make_struct(
            fill=fill,
            noise=noise,
            complete=self.queue.address(self._complete),
            class_of_pattern=self.queue.address(self.class_of_pattern),
            n_classes=np.int32(max(1, len(self.equations.design.residual_classes))),
            stream=np.uint32(stream(AUGMENT, 0)),
        )

    @property
    def augmentation_addresses(self) -> tuple[int, int]:
        """Addresses of `fill` and `noise` of the missing residuals (augment.py)."""
        n_patterns, T = self.equations.design.patterns.shape
        fill = self.queue.address(self.augmentation)
        return fill, fill + 8 * n_patterns * T * T

    def scaling_products(self, term: int, elements: Elements) -> tuple[np.ndarray, np.ndarray]:
        """H (p, p) and s (p,): how the records see theta_l -> M theta_l (see equations/scaling.py)."""
        return self.scaling.products(term, elements)

    def transform_term(self, term: int, M: np.ndarray) -> None:
        """theta_l <- M theta_l for every level (with fixed groups: the deviations from their mean), and e follows."""
        self.scaling.transform(term, M)
        self._quadratics.pop(term, None)

    def loading_products(self, term: int, scores: np.ndarray, elements: Elements) -> tuple[np.ndarray, np.ndarray]:
        """H (p, p) and s (p,): how the records see theta_l -> theta_l + D f_l (see engines/base.py), by the host."""
        return self._scaling_by_records.products(term, elements, scores, self.e, self.Rinv)

    @cached_property
    def _scaling_by_records(self) -> Scaling:
        return Scaling(self.equations)

    def move_term(self, term: int, theta: np.ndarray) -> None:
        """Theta (q, k) of one term, sweep order, is another; e follows."""
        self.queue.write(self.resident.terms[term].theta, theta.astype(self.equations.real))
        self._quadratics.pop(term, None)
        self.refresh()

    def fold(self, n: int, parts: DeviceArray, n_parts: int, first: int = 0) -> None:
        """Queue n sums of so many parts each: into the products, from the first."""
        self.launch_blocks(kernel("fold_strands"), n, parts, np.uint32(n_parts), self._products[first:])

    def _read_products(self) -> np.ndarray:
        """Wait for the last sums and return them; ModelError as in refuse_failed."""
        products = self.queue.read(self._products)
        failed = products.view(np.uint64)[-1]
        if failed != NONE_FAILED:
            refuse_singular(self.equations, int(failed >> np.uint64(32)), int(failed & np.uint64(0xFFFFFFFF)))
        return products

    # Liabilities

    @cached_property
    def responses(self) -> ResidentResponses:
        """Responses of the design on the device."""
        return ResidentResponses(self)

    def sums_of_products(self, term: int) -> np.ndarray:
        """Theta' Theta, (k, k) of a fixed term: it has no relationship, so that this is its quadratic form."""
        assert isinstance(self.equations.relationships[term], IdentityLists)
        return self.quadratic_form(term)

    @property
    def sum_buffers(self) -> tuple[DeviceArray, DeviceArray]:
        """Sums of strands, and of blocks of them."""
        return self._scratch, self._block_sums

    def fold_sums(self, n: int, parts: int) -> None:
        """Queue n sums of what blocks left, so many parts each."""
        self.fold(n, self._block_sums, parts)

    def read_sums(self, n: int) -> np.ndarray:
        """Wait for the sums that were folded last and return them."""
        return self._read_products()[:n]

    # SNP effects

    @property
    def real(self) -> np.dtype:
        """Type of e and of the sums of animals."""
        return self.equations.real

    def make_effects(self, *arguments: Any) -> ResidentEffects:
        """The effects of a term of SNP effects on the device: see ResidentEffects."""
        self._n_effects += 1
        return ResidentEffects(self, self._n_effects, *arguments)

    # What a sweep with variances drawn on the device is made of (variances.py)

    def make_variances(self, plan: VariancePlan) -> ResidentVariances:
        """Make the matrices that are drawn on the device."""
        return ResidentVariances(self, plan)

    def forget_quadratic_forms(self) -> None:
        """Forget Theta' K^-1 Theta: Theta moved on."""
        self._quadratics.clear()

    def forget_sums(self) -> None:
        """Forget what the host knows of the state, which moved on."""
        self._quadratics.clear()
        self._counter = None

    @property
    def residual_sums_address(self) -> int:
        """Address of the sums of `launch_residual_products`."""
        return self.queue.address(self._block_sums)

    @property
    def scaling_sums_address(self) -> int:
        """Address of the sums of `launch_scaling_products`."""
        return self.queue.address(self._scratch)

    # Launches

    def set_counter(self, number: int, key: tuple[int, int]) -> None:
        """Queue which draws the next kernels use."""
        if self._counter != (number, *key):
            self._counter = (number, *key)
            self._kernels[kernel("set_counter")](1, 1, self.resident.counter, *map(np.uint32, self._counter))

    def launch(self, name: str, n: int, *arguments: Argument) -> None:
        """Queue a kernel (see source.kernel) on n threads."""
        self.launch_blocks(name, count_blocks(n), *arguments)

    def launch_term(self, i: int, name: str, blocks: int, *arguments: Argument) -> None:
        """Queue the kernel of a term on so many blocks."""
        self.launch_blocks(self._names[i][name], blocks, *arguments)

    def launch_blocks(self, name: str, blocks: int, *arguments: Argument) -> None:
        """Queue a kernel (see source.kernel) on so many blocks."""
        self._kernels[name](int(blocks), THREADS, *arguments)
