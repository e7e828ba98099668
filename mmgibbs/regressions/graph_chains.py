"""Chains of a regression on a GPU whose sweep is a graph of kernels: what they share, whatever the regression."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from mmgibbs.draws.source import cuda_source
from mmgibbs.machine.arena import Arena, count_bytes
from mmgibbs.machine.device import Device, Shape, make_struct
from mmgibbs.machine.gpu_queue import GpuQueue
from mmgibbs.machine.ring import Ring, count_slots
from mmgibbs.regressions.protocol import Keys, State, SweepCounts
from mmgibbs.regressions.spd import SpdFactors

C_TYPES = {"float64": "double", "float32": "float", "uint8": "unsigned char", "int8": "signed char"}
NAMESPACE = "mmgibbs"  # of all kernels
THREADS = 256  # of a block, where a kernel does not say another number
MAX_BLOCKS = 4096  # of kernels whose threads take several elements
TRIANGLE_PASSES = 2  # over a matrix: made, factored (read and written) and solved with, half of it each time
UNCOUNTED = ("slots", "diagonals")  # of a sweep: kept draws, and parts of matrices, which are counted already
Shapes = dict[str, tuple[int, ...]]
Constants = dict[str, np.ndarray]
Buffers = dict[str, tuple[Shape, npt.DTypeLike]]


class Program(NamedTuple):
    """The text of the kernels, and the names of those that a sweep launches."""

    text: str
    names: Sequence[str]


def assemble_source(
    headers: Sequence[str],
    types: Mapping[str, npt.DTypeLike],
    constants: Mapping[str, float],
    text: str,
) -> str:
    """Assemble the text of all kernels of a regression.

    headers: of draws/source.py; types: as which the text knows types of NumPy, such as VALUE; constants: by type and
    name, such as "int MAX_TRIES"; text: the kernels.
    """
    type_names = "".join(f"typedef {C_TYPES[np.dtype(dtype).name]} {name};\n" for name, dtype in types.items())
    declarations = "".join(f"const {name} = {value!r};\n" for name, value in constants.items())
    shared = cuda_source(*headers, "ring") + type_names
    return f"{shared}namespace {NAMESPACE} {{\n{declarations}}}\n{text}"


def as_doubles(shapes: Mapping[str, Shape]) -> dict[str, tuple[Shape, npt.DTypeLike]]:
    """Buffers of an arena: float64 of these shapes."""
    return {name: (shape, np.float64) for name, shape in shapes.items()}


def count_blocks(n_elements: int) -> int:
    """Blocks of a kernel with a thread for each element, or for several."""
    return min(-(-n_elements // THREADS), MAX_BLOCKS)


class DeviceGraphChains(ABC):
    """Chains in lockstep on a device, and the ring of their kept draws. See protocol.DeviceChains.

    shapes: of the state, float64, by name; kept: the names whose draws `log` needs, in the order of a slot. `burn_in`
    sweeps are thrown away, then every `thin`-th is kept. factors: of matrices, where a sweep needs any. All that is
    counted is known before `open`, which asks for a device.

    Every kernel finds the number of its sweep in the buffer "sweep", (C,) uint32, which the last kernel of a sweep
    raises; "chain", (C,) uint32, has the chains' numbers.
    """

    remedy: ClassVar[str]  # what a user can do where the device has too little memory
    unit: ClassVar[str] = "a sweep of all chains"  # whose bytes and operations are counted
    factors_single_panels = False  # whether a kernel of the text does, so that these need no rounds
    passes: Mapping[str, float]  # how often a sweep reads or writes all of a buffer, where that is not once

    def __init__(
        self,
        keys: Keys,
        burn_in: int,
        thin: int,
        shapes: Shapes,
        kept: Sequence[str],
        factors: SpdFactors | None = None,
    ):
        self.keys, self.burn_in, self.thin, self.shapes, self.kept = keys, burn_in, thin, shapes, kept
        self.factors, self.passes = factors, {}
        sizes = [int(np.prod(shapes[name])) for name in kept]
        places = np.concatenate([[0], np.cumsum(sizes)])
        self.places = dict(zip(kept, places[:-1].tolist(), strict=True))
        self.slot_values = int(places[-1])

    @abstractmethod
    def write_program(self) -> Program:
        """Write the kernels."""

    @abstractmethod
    def collect_constants(self) -> Constants:
        """Collect the data, as kernels read them."""

    @abstractmethod
    def list_buffers(self) -> Buffers:
        """List what kernels write besides the state, the ring and the factors."""

    @abstractmethod
    def make_structures(self) -> None:
        """Make the structures that kernels take by value, from the addresses of the arena."""

    @abstractmethod
    def count_operations(self) -> float:
        """Count additions and multiplications of a sweep: those of products and factors, no draws."""

    def _list_memory(self) -> tuple[Constants, Buffers]:
        """List the buffers of the arena: data, state, ring, factors and the further arrays of the kernels."""
        C = len(self.keys)
        slots = (count_slots(8 * self.slot_values), self.slot_values)
        buffers: Buffers = {**as_doubles(self.shapes), **self.list_buffers(), "slots": (slots, np.float64)}
        buffers |= {"sweep": (C, np.uint32)}
        if self.factors is not None:
            buffers |= {**as_doubles(self.factors.shapes), "arrived": (1, np.uint32)}
        return {**self.collect_constants(), "chain": np.array(self.keys.chains, np.uint32)}, buffers

    def count_bytes(self) -> int:
        """See protocol.DeviceChains."""
        return count_bytes(*self._list_memory())

    def count_sweep(self) -> SweepCounts:
        """See protocol.DeviceChains: each buffer is read or written as often as `passes` says."""
        constants, buffers = self._list_memory()
        sizes = {name: values.nbytes for name, values in constants.items()}
        sizes |= {name: int(np.prod(shape)) * np.dtype(dtype).itemsize for name, (shape, dtype) in buffers.items()}
        passes = {"matrices": TRIANGLE_PASSES} | dict(self.passes) | dict.fromkeys(UNCOUNTED, 0)
        moved = sum(passes.get(name, 1) * size for name, size in sizes.items())
        return SweepCounts(int(moved), int(self.count_operations()), self.unit)

    def open(self, device: Device | None) -> Self:
        """Compile the kernels, and allocate. DeviceError where the device has too little memory."""
        constants, buffers = self._list_memory()
        self.queue = GpuQueue(device, self.remedy)
        self.arena = Arena(self.queue, constants, buffers)
        program, factors = self.write_program(), self.factors
        self.kernels = self.queue.kernels(program.text, list(program.names))
        if factors is not None and not (self.factors_single_panels and factors.panels == 1):
            name = [factors.kernel_name]
            self.kernels |= self.queue.kernels(program.text, name, cooperative=factors.is_cooperative)
        self.slots = make_struct(
            slots=self.arena.address("slots"),
            slot_values=np.uint64(self.slot_values),
            n_slots=np.uint32(self.arena["slots"].shape[0]),
            burn_in=np.uint32(self.burn_in),
            thin=np.uint32(self.thin),
        )
        self.ring = Ring(self.queue, self.arena["slots"])
        if factors is not None:
            factors.place(*(self.arena.address(name) for name in ("matrices", "diagonals", "arrived")))
        self.make_structures()
        return self

    def launch(self, name: str, blocks: int, *arguments: Any) -> None:
        """Launch a kernel with THREADS threads a block; name: that of the text, without its namespace."""
        self.kernels[f"{NAMESPACE}::{name}"](blocks, THREADS, *arguments)

    def prepare(self) -> None:  # noqa: B027  nothing where the state is all that a sweep reads
        """Compute what the first sweep reads besides the state."""

    def load(self, state: State, number: int) -> None:
        """Take the state after sweep `number`, host arrays."""
        for name in self.shapes:
            self.queue.write(self.arena[name], np.ascontiguousarray(state[name], np.float64))
        self.queue.write(self.arena["sweep"], np.full(len(self.keys), number + 1, np.uint32))
        self.prepare()
        self.ring = Ring(self.queue, self.arena["slots"], max(0, number - self.burn_in) // self.thin)

    @abstractmethod
    def sweep(self) -> None:
        """Queue one sweep of all chains."""

    def fetch(self) -> State:
        """Wait for the sweeps that were queued; the state after the last."""
        return {name: self.queue.read(self.arena[name]) for name in self.shapes}

    def take_kept(self) -> list[State]:
        """Wait for the sweeps that were queued; the kept states that were not taken before."""
        return [self._split_slot(values) for values in self.ring.take()]

    def _split_slot(self, values: np.ndarray) -> State:
        """Views of the arrays in a slot of the ring, by name."""
        ends = {name: place + int(np.prod(self.shapes[name])) for name, place in self.places.items()}
        return {n: values[place : ends[n]].reshape(self.shapes[n]) for n, place in self.places.items()}


class GraphChains(DeviceGraphChains):
    """Chains whose sweep is one graph."""

    @abstractmethod
    def launch_sweep(self) -> None:
        """Launch the kernels of a sweep, the same with the same arguments every time."""

    def sweep(self) -> None:
        """Queue one sweep of all chains; nothing is waited for."""
        self.queue.repeat("sweep", self.launch_sweep)
