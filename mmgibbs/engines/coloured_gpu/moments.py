"""Moments of all locations on the user's scale, kept on the device: a kept draw moves nothing to the host.

The formulas are those of posterior/moments.py, whose `Moments.from_state` takes `ResidentMoments.state()`; the scale
is that of `Design.to_original_scale`. Levels are in sweep order until they are brought over.
"""

from __future__ import annotations

import numpy as np

from mmgibbs.engines.coloured_gpu.device_state import DeviceState
from mmgibbs.engines.coloured_gpu.source import REAL, kernel
from mmgibbs.machine.device import make_struct
from mmgibbs.models.design import CentringShift

PARTS = ("batch_mean", "within", "between_mean", "between")


class UserScale:
    """Theta per term as the user knows it: doubles for terms that a centring, rescaling or offset touches."""

    def __init__(self, engine: DeviceState):
        self.engine, design = engine, engine.equations.design
        touched = (
            {r.term for r in design.rescale}
            | {i for s in (*design.shifts, *design.base) for i in (s.target, s.source)}
            | {t for t, _, _ in design.offsets}
        )
        columns = [(r.term, c) for r in design.rescale for c in r.components]
        assert len(set(columns)) == len(columns), "a column is rescaled once"
        self.shapes = [(t.n_levels, t.n_components) for t in design.terms]
        queue = engine.queue
        self.buffers = [
            queue.empty(shape, np.float64) if i in touched else term.theta
            for i, (shape, term) in enumerate(zip(self.shapes, engine.resident.terms, strict=True))
        ]
        self._touched = sorted(touched)
        self._rescale = [
            (r.term, queue.upload(np.array(r.components, np.int32)), len(r.components), queue.upload(r.matrix))
            for r in design.rescale
        ]
        self._masks: list = []  # kept, as kernels know their addresses alone
        self._shifts, self._base = (
            [(self._column(s.target, s.component, s.moved), *self._shift(s)) for s in shifts]
            for shifts in (design.shifts, design.base)
        )
        self._offsets = [(self._column(t, c), np.float64(value)) for t, c, value in design.offsets]

    def _column(self, term: int, component: int, moved: np.ndarray | None = None) -> np.ndarray:
        """struct Column; moved: (q,) bool in model order, in place of the levels in force."""
        q, k = self.shapes[term]
        active = int(self.engine.resident.terms[term].struct["active"][0])
        if moved is not None:
            levels = moved[self.engine.equations.terms[term].code].astype(np.uint8)
            self._masks.append(self.engine.queue.upload(np.repeat(levels[:, None], k, axis=1)))
            active = self.engine.queue.address(self._masks[-1])
        return make_struct(
            theta=self.engine.queue.address(self.buffers[term]),
            active=active,
            n=np.uint32(q),
            k=np.int32(k),
            component=np.int32(component),
        )

    def _shift(self, s: CentringShift) -> tuple:
        """Arguments of `recentre` after its column; levels and means in sweep order."""
        queue, terms = self.engine.queue, self.engine.equations.terms
        position = np.argsort(terms[s.source].code)
        level = position[np.asarray(s.source_level)[terms[s.target].code]].astype(np.uint32)
        means = np.ascontiguousarray(np.asarray(s.means, np.float64)[terms[s.source].code])
        components = np.array(s.source_components, np.int32)
        k = np.int32(self.shapes[s.source][1])
        return (
            self.buffers[s.source],
            k,
            queue.upload(level),
            queue.upload(components),
            queue.upload(means),
            np.int32(components.size),
        )

    def update(self) -> None:
        """Update the buffers from the current Theta."""
        launch, terms = self.engine.launch, self.engine.resident.terms
        for i in self._touched:
            size = self.shapes[i][0] * self.shapes[i][1]
            launch(kernel("widen"), size, terms[i].theta, np.uint64(size), self.buffers[i])
        for i, columns, m, matrix in self._rescale:
            q, k = self.shapes[i]
            launch(
                kernel("rescale"),
                q,
                terms[i].theta,
                np.uint32(q),
                np.int32(k),
                columns,
                np.int32(m),
                matrix,
                self.buffers[i],
            )
        for column, *arguments in self._shifts:
            launch(kernel("recentre"), int(column["n"][0]), column, *arguments)
        for column, value in self._offsets:
            launch(kernel("add_offset"), int(column["n"][0]), column, value)
        for column, *arguments in self._base:
            launch(kernel("recentre"), int(column["n"][0]), column, *arguments)

    def value(self, term: int) -> str:
        """The type of a term's buffer, as C++ writes it."""
        return "double" if term in self._touched else REAL[self.engine.equations.real]


class ResidentMoments:
    """Running mean, M2 and batch means of every location of an engine.

    batch_length: that of posterior.moments.Moments."""

    def __init__(self, engine: DeviceState, batch_length: int):
        self.engine, self.batch_length, self.n_draws = engine, int(batch_length), 0
        self.scale = UserScale(engine)
        self._parts = [{part: engine.queue.empty(q * k, np.float64) for part in PARTS} for q, k in self.scale.shapes]
        self._chosen: dict[tuple, tuple] = {}

    @property
    def nbytes(self) -> int:
        return sum(8 * len(PARTS) * q * k for q, k in self.scale.shapes)

    def add(self) -> None:
        """Add the state of the engine as a draw."""
        self.scale.update()
        self.n_draws += 1
        in_batch = (self.n_draws - 1) % self.batch_length + 1
        for i, ((q, k), buffer, parts) in enumerate(
            zip(self.scale.shapes, self.scale.buffers, self._parts, strict=True)
        ):
            name, size = kernel("add_draw", value=self.scale.value(i)), q * k
            inverse = np.float64(1.0 / in_batch)
            self.engine.launch(name, size, buffer, np.uint64(size), inverse, parts["batch_mean"], parts["within"])
            if in_batch == self.batch_length:
                inverse = np.float64(1.0 / (self.n_draws // self.batch_length))
                means = (parts["batch_mean"], parts["between_mean"], parts["between"])
                self.engine.launch(kernel("close_batch"), size, np.uint64(size), inverse, *means)

    def levels(self, term: int, codes: np.ndarray) -> np.ndarray:
        """Return chosen levels of a term (model order) of the last draw, (levels, k) float64, on the user's scale."""
        key = (term, np.asarray(codes).tobytes())
        _q, k = self.scale.shapes[term]
        queue, value = self.engine.queue, self.scale.value(term)
        if key not in self._chosen:
            position = np.argsort(self.engine.equations.terms[term].code)[np.asarray(codes)].astype(np.uint32)
            dtype = np.float64 if value == "double" else self.engine.equations.real
            self._chosen[key] = queue.upload(position), queue.empty(position.size * k, dtype)
        position, rows = self._chosen[key]
        n = np.uint32(position.size)
        self.engine.launch(
            kernel("move_rows", value=value),
            int(n) * k,
            self.scale.buffers[term],
            position,
            n,
            np.int32(k),
            np.int32(0),
            rows,
        )
        return queue.read(rows).astype(np.float64).reshape(int(n), k)

    def state(self) -> dict[str, np.ndarray]:
        """Return the arrays of posterior.moments.Moments.state(), levels in model order.

        ModelError where a sweep met a level that it could not draw."""
        self.engine.refuse_failed()
        counts = np.array([self.batch_length, self.n_draws], np.int64)
        shapes = np.array([d for shape in self.scale.shapes for d in (len(shape), *shape)], np.int64)
        return {"counts": counts, "shapes": shapes} | {
            part: np.concatenate([self._ordered(i, part) for i in range(len(self._parts))]) for part in PARTS
        }

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Go on from what `state()`, or that of posterior.moments.Moments, has said."""
        self.batch_length, self.n_draws = (int(v) for v in state["counts"])
        bounds = np.cumsum([q * k for q, k in self.scale.shapes])[:-1]
        for part in PARTS:
            for i, values in enumerate(np.split(np.asarray(state[part], np.float64), bounds)):
                ordered = values.reshape(self.scale.shapes[i])[self.engine.equations.terms[i].code]
                self.engine.queue.write(self._parts[i][part], ordered)

    def _ordered(self, term: int, part: str) -> np.ndarray:
        found = self.engine.queue.read(self._parts[term][part]).reshape(self.scale.shapes[term])
        out = np.empty_like(found)
        out[self.engine.equations.terms[term].code] = found
        return out.ravel()
