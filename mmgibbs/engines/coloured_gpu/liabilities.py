"""Liabilities of traits that are not normal on a device: draws bit for bit those of the CPU, sums up to rounding.

The passes are those of engines/liabilities.py (kernels/liabilities.cu). y and e stay on the device; what a decision of
the sampler needs, a sum or two over the records, is brought over.
"""

from __future__ import annotations

import weakref
from functools import partial

import numpy as np

from mmgibbs.draws.purpose import LIABILITY, stream
from mmgibbs.engines.coloured_gpu.device_state import DeviceState
from mmgibbs.engines.coloured_gpu.sizes import count_blocks, count_strands
from mmgibbs.engines.coloured_gpu.source import kernel
from mmgibbs.engines.liabilities import conditional_residuals
from mmgibbs.machine.device import Argument, DeviceArray, make_struct
from mmgibbs.models.families import Response

N_SUMS = 2  # of a pass, at most
SCALED_COLUMN_BYTES = 24  # of struct ScaledColumn
Key = tuple[int, int]  # (seed, chain)


class ResidentResponse:
    """A response of the design on the device of its engine, records in sweep order."""

    def __init__(self, engine: DeviceState, response: Response):
        self.engine: DeviceState = weakref.proxy(engine)  # which keeps this object
        self.queue = engine.queue
        self.trait, self.is_categories = response.trait, bool(response.labels)
        n_patterns, T = engine.equations.design.patterns.shape
        n_cuts = len(response.labels) + 1
        ordered = response.keep(engine.equations.records.record.astype(np.int64))  # as the sweep has them
        columns = {name: a.astype(np.int16) if a.dtype.kind == "i" else a for name, a in ordered.columns().items()}
        self._records = {name: self.queue.upload(np.ascontiguousarray(a)) for name, a in columns.items()}
        self._cuts = self.queue.empty((2, n_cuts), np.float64)  # those in force, and those proposed
        self._conditional = self.queue.empty(n_patterns * (T + 1), np.float64)  # B, then s
        self._scale = self.queue.empty(1, np.float64)
        self._known: np.ndarray | None = None  # Rinv that B and s are of
        names = ("category", "lower", "upper", "count", "exposure")
        B, cuts = self.queue.address(self._conditional), self.queue.address(self._cuts)
        self.struct = make_struct(
            **{name: self.queue.address(self._records[name]) if name in columns else 0 for name in names},
            cuts=cuts,
            proposed=cuts + 8 * n_cuts,
            B=B,
            s=B + 8 * n_patterns * T,
            y=self.queue.address(engine.resident.y),
            stream=np.uint32(stream(LIABILITY, response.trait)),
            trait=np.int32(response.trait),
            T=np.int32(T),
        )
        self.strands = count_strands(engine.equations.design.n_records, N_SUMS)

    def take(self, cuts: np.ndarray, proposed: np.ndarray | None = None) -> None:
        """Bring over what the next pass depends on."""
        Rinv = self.engine.Rinv
        if self._known is not Rinv:
            B, s = conditional_residuals(Rinv, self.trait)
            self.queue.write(self._conditional, np.concatenate([B.ravel(), s]))
            self._known = Rinv
        if self.is_categories:
            self.queue.write(self._cuts, np.stack([cuts, cuts if proposed is None else proposed]))

    def draw(self, cuts: np.ndarray, number: int, key: Key) -> tuple[float, float]:
        """Draw every liability; (a, b) of their scale, of categories. Nothing is waited for but these."""
        self.take(cuts)
        self.engine.set_counter(number, key)
        counter = self.engine.resident.counter
        self._repeat("draw_liabilities", 2, self.struct, self.engine.resident.records, counter)
        if not self.is_categories:
            return 0.0, 0.0
        a, b = self.engine.read_sums(2).tolist()
        return a, b

    def compare_cuts(self, cuts: np.ndarray, proposed: np.ndarray) -> float:
        """log p(categories | proposed) - log p(categories | cuts), liabilities integrated out."""
        self.take(cuts, proposed)
        self._repeat("compare_cuts", 1, self.struct, self.engine.resident.records)
        return float(self.engine.read_sums(1)[0])

    def compare_residual_scales(self, cuts: np.ndarray, of_class: int, s: float) -> float:
        """log p(categories of the records of one class | s) - log p(... | 1), liabilities integrated out."""
        self.take(cuts)
        self.queue.write(self._scale, np.array([s]))
        classes = self.engine.class_of_pattern, np.int32(of_class), self._scale
        self._repeat("compare_residual_scales", 1, self.struct, self.engine.resident.records, *classes, of=of_class)
        return float(self.engine.read_sums(1)[0])

    def _repeat(self, name: str, n_sums: int, *arguments: DeviceArray | np.ndarray | np.generic, of: int = 0) -> None:
        """Queue a pass and its sums, recorded once; of: what tells passes of a name apart."""
        work = partial(self._launch, name, n_sums, arguments)
        self.queue.repeat((name, self.trait, of), work)

    def _launch(self, name: str, n_sums: int, arguments: tuple) -> None:
        self.launch_pass(name, *arguments)
        self.engine.fold_sums(n_sums, count_blocks(self.strands))

    def launch_pass(self, name: str, *arguments: Argument) -> None:
        """Queue a pass over the records, whose sums blocks leave."""
        scratch, sums = self.engine.sum_buffers
        blocks = count_blocks(self.strands)
        self.engine.launch_blocks(kernel(name), blocks, *arguments, np.uint32(self.strands), scratch, sums)


class ResidentResponses:
    """The responses of the design, on the device of its engine: see state.Responses."""

    def __init__(self, engine: DeviceState):
        self.engine: DeviceState = weakref.proxy(engine)  # which keeps this object
        self.queue = engine.queue
        self.passes = [ResidentResponse(engine, response) for response in engine.equations.design.responses]
        self._scaled_columns: dict[int, tuple[DeviceArray, int]] = {}
        self._scale = self.queue.empty(1, np.float64)

    def draw(self, response: int, cuts: np.ndarray, number: int, key: Key) -> tuple[float, float]:
        """Draw the liabilities: see state.Responses."""
        return self.passes[response].draw(cuts, number, key)

    def compare_cuts(self, response: int, cuts: np.ndarray, proposed: np.ndarray) -> float:
        """Compare proposed cuts: see state.Responses."""
        return self.passes[response].compare_cuts(cuts, proposed)

    def compare_residual_scales(self, response: int, cuts: np.ndarray, of_class: int, s: float) -> float:
        """Compare residual scales: see state.Responses."""
        return self.passes[response].compare_residual_scales(cuts, of_class, s)

    def scale_trait(self, trait: int, g: float) -> None:
        """y, e and theta of one trait times g."""
        self.queue.write(self._scale, np.array([g]))
        self.queue.repeat(("scale", trait), partial(self.launch_scale, trait, self._scale))
        self.engine.forget_quadratic_forms()

    def launch_scale(self, trait: int, g: DeviceArray) -> None:
        """Queue y, e and theta of one trait times what is in g then."""
        columns, n_rows = self._columns_of_trait(trait)
        n = np.int32(columns.size // SCALED_COLUMN_BYTES)
        self.engine.launch_blocks(kernel("scale_columns"), count_blocks(n_rows), columns, n, g)

    def _columns_of_trait(self, trait: int) -> tuple[DeviceArray, int]:
        """struct ScaledColumn of liabilities.cu, of y, e and every term, and their rows in all."""
        if trait not in self._scaled_columns:
            equations, resident = self.engine.equations, self.engine.resident
            n, T = equations.records.y.shape
            columns = [(rows, n, T, trait) for rows in (resident.y, resident.e)]
            for term, of_term in zip(equations.design.terms, resident.terms, strict=True):
                components = np.flatnonzero(term.component_trait == trait).tolist()
                columns += [(of_term.theta, term.n_levels, term.n_components, c) for c in components]
            structs = [
                make_struct(rows=self.queue.address(rows), n=np.uint32(m), k=np.int32(k), column=np.int32(c))
                for rows, m, k, c in columns
            ]
            uploaded = self.queue.upload(np.concatenate(structs).view(np.uint8))
            self._scaled_columns[trait] = uploaded, sum(m for _, m, _, _ in columns)
        return self._scaled_columns[trait]
