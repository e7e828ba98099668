"""The structured engine on a GPU: the whole state is resident; a colour is one kernel, three more where lists are long.

The chain is that of the other engines on the colour partition: bit for bit where every list is short, up to the
rounding of sums else. A sweep is recorded once as a graph and repeated; what changes from sweep to sweep (its number,
G^-1, R^-1) lies in device memory. Only small matrices reach the host: products of Theta and of residuals, and chosen
levels, or all of them when asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import ClassVar

import numpy as np

from mmgibbs.draws.purpose import AUGMENT, stream
from mmgibbs.engines.augment import augmentation
from mmgibbs.engines.base import refuse_singular, replaced_y
from mmgibbs.engines.coloured.engine import refuse_other_partitions
from mmgibbs.engines.coloured_gpu.moments import ResidentMoments
from mmgibbs.engines.coloured_gpu.resident import Colour, Resident
from mmgibbs.engines.coloured_gpu.sizes import (
    FOLDED,
    SUMS,
    count_strands,
    lower,
    refuse_too_large,
    scaling_strands,
    scaling_sums,
    strand_sums,
    too_many_components,
)
from mmgibbs.engines.coloured_gpu.source import REAL, kernel, model_kernels, specialisations, term_kernels
from mmgibbs.engines.dense import with_dense_block
from mmgibbs.engines.liabilities import first_trait_not_normal
from mmgibbs.engines.markers import with_markers
from mmgibbs.equations.base import precisions
from mmgibbs.equations.scaling import Elements
from mmgibbs.equations.structured import StructuredEquations
from mmgibbs.errors import DeviceError
from mmgibbs.machine.device import Argument, Device, DeviceArray, make_struct
from mmgibbs.machine.gpu_queue import GpuQueue
from mmgibbs.models.design import Design
from mmgibbs.models.residual import Blocks, ClassBlocks

THREADS = 128  # per block, as in structured.cu
FEW_PIECES = 16  # that a thread adds while a block of threads would still share them out
NONE_FAILED = np.uint64(2**64 - 1)


class StructuredGpuEngine:
    """Coloured sweeps on a device (mmgibbs.machine.device.Device; the current one where None).

    State: Theta per term and e, in sweep order, in the equations' precision, on the device. ModelError for another
    partition than colours; DeviceError without a GPU, or where the state does not fit on it."""

    name: ClassVar[str] = "structured"
    options: ClassVar[tuple[str, ...]] = ("update",)
    partitions: ClassVar[tuple[str, ...]] = ("colour",)

    def __init__(self, equations: StructuredEquations, update: str = "level", device: Device | None = None):
        refuse_other_partitions(equations)
        refused = self.refuses(equations.design)
        if refused:
            raise DeviceError(f"device: gpu: the structured engine cannot be combined with {refused}")
        self.equations, self.joint, self.y = equations, np.int32(update == "level"), equations.records.y
        self.queue = queue = GpuQueue(device, "use precision: single, engine: hybrid, or device: cpu")
        refuse_too_large(equations, queue)
        eq, T = equations, equations.design.n_traits
        text, names = model_kernels(eq)
        self._kernels = queue.kernels(text, names)
        self.resident = Resident(eq, queue)
        self._names = [term_kernels(k, T, kin) for k, kin in specialisations(eq)]
        sizes, n = [t.n_components for t in eq.design.terms], eq.design.n_records
        self._n_products = max(lower(T), sum(map(lower, sizes)), *map(scaling_sums, sizes))
        self._products = queue.empty(self._n_products + 1, np.float64)  # the last one holds the first level that failed
        failed = np.array([queue.address(self._products) + 8 * self._n_products], np.uint64)
        self._draws = self.joint, self.resident.counter, failed  # what every kernel that draws is given last
        self._scratch = queue.empty(strand_sums(eq.design), np.float64)
        self._folded = queue.empty(SUMS // FOLDED, np.float64)
        self._ordered = queue.empty(max(t.n_levels * t.n_components for t in eq.design.terms), eq.real)
        n_patterns = len(eq.design.patterns)
        self._augmentation = queue.empty((2, n_patterns, T, T), np.float64)  # fill and noise (augment.py)
        self._complete = queue.upload(np.logical_and.reduce(eq.design.patterns, axis=1).astype(np.uint8))
        self._per_pattern = np.bincount(eq.records.pattern, minlength=n_patterns)
        self._change = [queue.empty((k, k), np.float64) for k in sizes]  # D of transform_term
        self._levels_of_records: dict[int, DeviceArray] = {}
        self._levels_of_one_term = queue.empty(n * max(len(t.effects) for t in eq.design.terms), np.uint32)
        self._elements: dict[tuple[int, Elements], tuple[np.ndarray, list[DeviceArray]]] = {}
        self._deviations: dict[int, DeviceArray] = {}
        self._counter: tuple[int, int, int] | None = None
        self._quadratics: dict[int, np.ndarray] = {}
        self._asked: list[int] = []
        self.start()

    @staticmethod
    def refuses(design: Design) -> str | None:
        """See HostState.refuses."""
        if design.residual_classes:
            return "residual classes (variances.residual.by): its sums of residual products are one for all records"
        marked = with_markers(design) or with_dense_block(design)
        return marked or first_trait_not_normal(design) or too_many_components(design)

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
        for i in range(len(self.resident.terms)):
            self._move_records(i, None, None)

    def replace_y(self, trait: int, y: np.ndarray) -> None:
        """Own data of this chain for one trait, y (n,), records in model order; e is made anew."""
        self.y = replaced_y(self.equations, self.y, trait, y)
        self.queue.write(self.resident.y, self.y)
        self.refresh()

    def fetch(self) -> list[np.ndarray]:
        """(q, k) float64 per term, in model order."""
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
        own = {} if self.y is self.equations.records.y else {"y": self.y}
        return {"e": self.queue.read(self.resident.e), **own, **theta}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        self.y = np.array(state["y"]) if "y" in state else self.equations.records.y
        self.queue.write(self.resident.y, self.y)
        self.queue.write(self.resident.e, state["e"])
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
        if any(term.n_classes for term in self.resident.terms):
            self.queue.repeat("classes", self._class_precisions)

    def _class_precisions(self) -> None:
        for i, term in enumerate(self.resident.terms):
            if term.n_classes:
                n = np.uint32(term.n_classes)
                self._launch_term(
                    i, "class_precisions", _blocks(n), term.struct, self.resident.records, term.examples, n
                )

    def sweep(self, number: int, key: tuple[int, int]) -> None:
        """One Gibbs sweep through the colours; `number` and key = (seed, chain) say which draws to use.

        It is asked for, not waited for: what next brings values to the host reports a level that could not be drawn."""
        self._set_counter(number, key)
        self.queue.repeat("sweep", self._launch_sweep)
        self._quadratics.clear()

    def _launch_sweep(self) -> None:
        places: dict[int, int] = {}
        for block in self.equations.partition.blocks:
            place = places[block.term] = places.get(block.term, -1) + 1
            colour = self.resident.terms[block.term].colours[place]
            if colour.n_long:
                self._draw_long(block.term, colour)
            if colour.has_short:
                self._draw_short(block.term, colour)

    def _draw_long(self, i: int, colour: Colour) -> None:
        term, records, draws = self.resident.terms[i], self.resident.records, self._draws
        lists = (term.struct, term.kin, records, colour.long)
        self._launch_term(i, "sum_pieces", colour.n_pieces, *lists)
        if colour.most_pieces > FEW_PIECES:
            self._launch_term(i, "draw_long_levels", colour.n_long, *lists, *draws)
        else:
            n = np.uint32(colour.n_long)
            self._launch_term(i, "draw_levels_of_few_pieces", _blocks(n), *lists, n, *draws)
        if colour.n_visit_pieces:
            self._launch_term(i, "move_pieces", colour.n_visit_pieces, term.struct, records, colour.long)

    def _draw_short(self, i: int, colour: Colour) -> None:
        term, levels = self.resident.terms[i], (colour.first, colour.last)
        lists = (term.struct, term.kin, self.resident.records, colour.long)
        self._launch_term(i, "sweep_levels", _blocks(colour.last - colour.first), *lists, *levels, *self._draws)

    def _move_records(self, i: int, D: DeviceArray | None, deviation: DeviceArray | None) -> None:
        """e_r -= W_r change, where every level of a term moves by D deviation (D None: by theta itself)."""
        levels, effects = self._record_levels(i, kept=False)
        records, n = self.resident.records, self.equations.design.n_records
        self._launch_term(
            i, "move_records", _blocks(n), self.resident.terms[i].struct, records, levels, effects, D, deviation
        )

    def wait(self) -> None:
        """Until all that was asked for is done."""
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
            self._quadratics[i] = _square(products[first : first + lower(k)], k)
            first += lower(k)

    def _sum_quadratics(self) -> None:
        first = 0
        for i in self._asked:
            term, t = self.resident.terms[i], self.equations.design.terms[i]
            q, size = t.n_levels, lower(t.n_components)
            strands = count_strands(q, size)
            n = np.uint32(q), np.uint32(strands)
            self._launch_term(i, "quadratic_strands", _blocks(strands), term.struct, term.kin, *n, self._scratch)
            self._fold(size, strands, first)
            first += size

    def residual_products(
        self, number: int, key: tuple[int, int], blocks: Blocks | ClassBlocks
    ) -> tuple[np.ndarray, np.ndarray | list[np.ndarray]]:
        """sum_r w_r e_r e_r' with missing residuals augmented, and the records behind each block (see augment.py)."""
        eq, T = self.equations, self.equations.design.n_traits
        patterns = eq.design.patterns
        self.queue.write(self._augmentation, np.stack(augmentation(self.R, patterns, blocks)))
        self._set_counter(number, key)
        self.queue.repeat("residual products", self._sum_residuals)
        counts = np.array([self._per_pattern[patterns[:, list(block)].any(axis=1)].sum() for block in blocks])
        return _square(self._read_products()[: lower(T)], T), counts

    def _sum_residuals(self) -> None:
        n, T = self.equations.records.y.shape
        strands = count_strands(n, lower(T))
        self._launch(
            kernel("residual_strands", T), _blocks(strands), self.resident.records,
            self._augmentation[0], self._augmentation[1], self._complete,
            np.uint32(stream(AUGMENT, 0)), self.resident.counter, np.uint32(strands), self._scratch,
        )  # fmt: skip
        self._fold(lower(T), strands)

    def scaling_products(self, term: int, elements: Elements) -> tuple[np.ndarray, np.ndarray]:
        """H (p, p) and s (p,): how the records see theta_l -> M theta_l (see equations/scaling.py)."""
        p, (levels, effects) = len(elements), self._record_levels(term)
        sums = lower(p) + p
        strands = scaling_strands(self.equations.design.n_records, sums)
        given = (
            self.resident.terms[term].struct, self.resident.records, levels, effects, self._deviation(term),
            self._table(term, elements), np.uint32(strands), self._scratch,
        )  # fmt: skip

        def work() -> None:
            self._launch_term(term, "scaling_strands", -(-sums // THREADS) * strands, *given)
            self._fold(sums, strands)

        self.queue.repeat(("scaling", term, elements), work)
        products = self._read_products()
        return _square(products[: lower(p)], p), products[lower(p) : sums].copy()

    def _table(self, term: int, elements: Elements) -> np.ndarray:
        """struct Elements, made when first asked for."""
        if (term, elements) not in self._elements:
            lists, (c, component) = self.equations.terms[term], np.array(elements, np.int64).T
            regressor = lists.regressor[c]
            effect = self.equations.design.terms[term].regressor_effect[regressor]
            parts = {"effect": effect, "regressor": regressor, "component": component, "trait": lists.trait[c]}
            buffers = [self.queue.upload(part.astype(np.int32)) for part in parts.values()]
            addresses = map(self.queue.address, buffers)
            table = make_struct(**dict(zip(parts, addresses, strict=True)), p=np.int32(len(elements)))
            self._elements[term, elements] = table, buffers
        return self._elements[term, elements][0]

    def transform_term(self, term: int, M: np.ndarray) -> None:
        """theta_l <- M theta_l for every level (with fixed groups: the deviations from their mean), and e follows."""
        deviation = self._deviation(term)
        self.queue.write(self._change[term], np.asarray(M, float) - np.eye(len(M)))
        self._record_levels(term)
        self.queue.repeat(("move", term), partial(self._move_term, term, deviation))
        self._quadratics.pop(term, None)

    def _move_term(self, term: int, deviation: DeviceArray | None) -> None:
        q, resident = np.uint32(self.equations.design.terms[term].n_levels), self.resident.terms[term]
        self._move_records(term, self._change[term], deviation)
        self._launch_term(term, "move_levels", _blocks(q), resident.struct, q, self._change[term], deviation)

    def _record_levels(self, term: int, kept: bool = True) -> tuple[DeviceArray, np.int32]:
        """Buffer (n, effects) of the level that each record meets. kept: not made again when next asked for."""
        t, n = self.equations.design.terms[term], self.equations.design.n_records
        effects = np.int32(len(t.effects))
        if term in self._levels_of_records:
            return self._levels_of_records[term], effects
        if kept:
            levels = self._levels_of_records[term] = self.queue.empty((n, int(effects)), np.uint32)
        else:
            levels = self._levels_of_one_term[: n * int(effects)]
        self.queue.fill(levels, 0xFF)  # UNKNOWN
        q = np.uint32(t.n_levels)
        self._launch_term(term, "record_levels", _blocks(q), self.resident.terms[term].struct, q, effects, levels)
        return levels, effects

    def _deviation(self, term: int) -> DeviceArray | None:
        """What M multiplies: None for Theta itself; with fixed groups a buffer of Theta - Q g, made on the host."""
        t = self.equations.design.terms[term]
        if not t.groups_fixed:
            return None
        theta = self.queue.read(self.resident.terms[term].theta).reshape(t.n_levels, t.n_components)
        parents_first = np.argsort(self.equations.terms[term].code)
        deviation = t.relationship.deviations(self.equations.relationships[term], parents_first, theta)
        if term not in self._deviations:
            self._deviations[term] = self.queue.upload(deviation)
        else:
            self.queue.write(self._deviations[term], deviation)
        return self._deviations[term]

    def _fold(self, n: int, strands: int, first: int = 0) -> None:
        """The n sums of the strands in scratch, in two rounds where one block would have to wait for too many."""
        scratch, parts = self._scratch, strands // FOLDED
        if parts > 1 and strands % FOLDED == 0:
            self._launch(kernel("fold_strands"), n * parts, scratch, np.uint32(FOLDED), self._folded)
            scratch, strands = self._folded, parts
        self._launch(kernel("fold_strands"), n, scratch, np.uint32(strands), self._products[first:])

    def _read_products(self) -> np.ndarray:
        """What the last sums left, once all is done; ModelError as refuse_failed."""
        products = self.queue.read(self._products)
        failed = products.view(np.uint64)[-1]
        if failed != NONE_FAILED:
            refuse_singular(self.equations, int(failed >> np.uint64(32)), int(failed & np.uint64(0xFFFFFFFF)))
        return products

    # Launches

    def _set_counter(self, number: int, key: tuple[int, int]) -> None:
        if self._counter != (number, *key):
            self._counter = (number, *key)
            self._kernels[kernel("set_counter")](1, 1, self.resident.counter, *map(np.uint32, self._counter))

    def launch(self, name: str, n: int, *arguments: Argument) -> None:
        """Queue a kernel (see source.kernel) on n threads."""
        self._launch(name, _blocks(n), *arguments)

    def _launch_term(self, i: int, name: str, blocks: int, *arguments: Argument) -> None:
        self._launch(self._names[i][name], blocks, *arguments)

    def _launch(self, name: str, blocks: int, *arguments: Argument) -> None:
        self._kernels[name](int(blocks), THREADS, *arguments)


def _blocks(n: int | np.integer) -> int:
    return -(-int(n) // THREADS)


def _square(triangle: np.ndarray, k: int) -> np.ndarray:
    """The symmetric matrix of a lower triangle, row by row."""
    out = np.empty((k, k))
    out[np.tril_indices(k)] = triangle
    return np.tril(out) + np.tril(out, -1).T
