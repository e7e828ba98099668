"""The chains of a hierarchical model on a GPU: three kernels a sweep, all chains in lockstep.

    slice_groups or polya_gamma_groups   a block draws the coefficients of one group of one chain
    draw_rows                            a block draws one row of U'Delta of one chain
    draw_hyperparameters                 a block draws V of one chain

A sweep is recorded once as a graph. With slice steps the chains are those of the host, bit for bit: what is drawn
depends on decisions alone, and population and covariance add in the host's order.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from mmgibbs.draws.source import cuda_source
from mmgibbs.machine.arena import Arena
from mmgibbs.machine.device import Device, Shape, struct
from mmgibbs.machine.gpu_queue import GpuQueue
from mmgibbs.machine.ring import Ring, count_slots
from mmgibbs.regressions.hierarchical.kernels import FIFTH, MOST_CANDIDATES, ROUNDING
from mmgibbs.regressions.hierarchical.population import GROUPS_OF_A_PIECE
from mmgibbs.regressions.protocol import Keys, State

if TYPE_CHECKING:
    from mmgibbs.regressions.hierarchical.slice import HierarchicalSliceSampler

FOLDER = Path(__file__).resolve().parent / "cuda"
VISITS = {"slice": "slice.cu", "polya_gamma": "polya_gamma.cu"}
C_TYPES = {"float64": "double", "float32": "float", "uint8": "unsigned char", "int8": "signed char"}
SLICE_GROUPS = {"logit": "mmgibbs::slice_groups<false>", "poisson": "mmgibbs::slice_groups<true>"}
POLYA_GAMMA_GROUPS = "mmgibbs::polya_gamma_groups"
DRAW_ROWS, DRAW_HYPERPARAMETERS, INVERT_COVARIANCES = (
    f"mmgibbs::{name}" for name in ("draw_rows", "draw_hyperparameters", "invert_covariances")
)
VISIT_THREADS, POPULATION_THREADS = 128, 256  # of a block, as in the kernels
MAX_COEFFICIENTS = 500  # of a group
MAX_SHARED_ROWS, MAX_SHARED_COEFFICIENTS = 512, 32  # beyond which they lie in global memory
MAX_BLOCKS = 16_384  # of the visits: a block takes several groups where there are more
MAX_SCRATCH_BYTES = 1 << 30
REMEDY = "use precision: single, fewer chains, save_groups: false, or device: cpu"


def source(columns: npt.DTypeLike, method: str) -> str:
    """The text of the kernels of a method, for predictors that are stored as this type."""
    constants: dict[str, int | float] = {
        "int MAX_COEFFICIENTS": MAX_COEFFICIENTS,
        "word32 GROUPS_OF_A_PIECE": GROUPS_OF_A_PIECE,
    }
    if method == "slice":
        constants |= {"double FIFTH": FIFTH, "double ROUNDING": ROUNDING, "int MAX_CANDIDATES": MOST_CANDIDATES}
    lines = "".join(f"const {name} = {value!r};\n" for name, value in constants.items())
    text = f"typedef {C_TYPES[np.dtype(columns).name]} VALUE;\nnamespace mmgibbs {{\n{lines}}}\n"
    files = [(FOLDER / name).read_text(encoding="utf-8") for name in ("chains.cuh", "visit.cuh", VISITS[method])]
    files.append((FOLDER / "population.cu").read_text(encoding="utf-8"))
    return cuda_source("polya_gamma", "phases", "small_matrices", "inverse_wishart") + text + "".join(files)


def kernel_names(family: str, method: str) -> list[str]:
    """The kernels of a model, as C++ names them, in the order of a sweep; then the one before the first sweep."""
    visit = SLICE_GROUPS[family] if method == "slice" else POLYA_GAMMA_GROUPS
    return [visit, DRAW_ROWS, DRAW_HYPERPARAMETERS, INVERT_COVARIANCES]


class HierarchicalChains:
    """The chains of a `HierarchicalSliceSampler` on a device, and the ring of their kept draws.

    `burn_in` sweeps are thrown away, then every `thin`-th is kept. DeviceError where the device has too little memory.
    """

    def __init__(self, sampler: HierarchicalSliceSampler, device: Device | None, keys: Keys, burn_in: int, thin: int):
        self.sampler, self.keys, self.burn_in, self.thin = sampler, keys, burn_in, thin
        self.queue = GpuQueue(device, REMEDY)
        self._plan()
        names = kernel_names(sampler.options.family, sampler.options.method)
        kernels = self.queue.kernels(source(sampler.groups.columns.dtype, sampler.options.method), names)
        self._visit, self._rows, self._hyperparameters, self._invert = (kernels[name] for name in names)
        self.arena = Arena(self.queue, self._constants(), self._buffers())
        self._make_structures()
        self.ring = Ring(self.queue, self.arena["slots"])

    def _plan(self) -> None:
        """Shapes of the state, places in a slot of the ring, blocks and threads of the visits."""
        s, C = self.sampler, len(self.keys)
        G, q = s.Z.shape
        self.shapes: dict[str, tuple[int, ...]] = {"population": (C, q, s.d), "covariance": (C, s.d, s.d)}
        if s.options.save_groups:
            self.shapes["beta"] = (C, G, s.d)
        ends = np.cumsum([np.prod(shape) for shape in self.shapes.values()])
        self.places = dict(zip(self.shapes, np.concatenate([[0], ends[:-1]]).tolist(), strict=True))
        self.slot_values = int(ends[-1])
        self.longest = int(np.diff(s.groups.ptr).max())
        if s.options.method == "slice":
            self.scratch_values = self.longest if self.longest > MAX_SHARED_ROWS else 0
            self.threads = min(VISIT_THREADS, max(32, 1 << (self.longest - 1).bit_length() >> 1))
        else:
            self.scratch_values, self.threads = 2 * self.longest + (s.D + 1) * s.D, VISIT_THREADS
        held = MAX_SCRATCH_BYTES // (8 * self.scratch_values) if self.scratch_values else MAX_BLOCKS
        self.blocks = max(1, min(C * G, MAX_BLOCKS, held))

    def _constants(self) -> dict[str, np.ndarray]:
        s, g = self.sampler, self.sampler.groups
        constants = {name: getattr(g, name) for name in ("columns", "ptr", "centre", "factor", "reach", "fifth")}
        constants |= {"cross": g.cross.reshape(len(g.cross), s.d), "information": s.information}
        constants |= {"Z": s.Z, "W": s.W, "U": s.U, "eigenvalues": s.eigenvalues}
        if (g.trials != 1).any():
            constants["trials"] = g.trials
        return constants | {"chain": np.array(self.keys.chains, np.uint32)}

    def _buffers(self) -> dict[str, tuple[Shape, npt.DTypeLike]]:
        C, (G, q), d = len(self.keys), self.sampler.Z.shape, self.sampler.d
        shapes: dict[str, Shape] = self.shapes | {"beta": (C, G, d), "Q": (C, d, d), "rows": (C, q, d)}
        shapes |= {"away": (C, G, d), "scratch": (self.blocks, self.scratch_values)}
        shapes["work"] = (C, q + 1, 3, d + 1, d) if d > MAX_SHARED_COEFFICIENTS else (0,)
        shapes["slots"] = (count_slots(8 * self.slot_values), self.slot_values)
        return {name: (shape, np.float64) for name, shape in shapes.items()} | {"sweep": (C, np.uint32)}

    def _make_structures(self) -> None:
        """The structures of cuda/chains.cuh, with the same fields in the same order."""
        s, at = self.sampler, self.arena.address
        o, of_groups = s.options, ("columns", "ptr", "centre", "factor", "trials", "cross", "reach", "fifth")
        groups: dict[str, Any] = {name: at(name) if name in self.arena else 0 for name in of_groups}
        self.groups = struct(
            **groups,
            information=at("information"),
            scratch=at("scratch"),
            scratch_values=np.uint64(self.scratch_values),
            width=np.float64(o.width),
            n_groups=np.uint32(len(s.Z)),
            longest=np.uint32(self.longest),
            n_columns=np.int32(s.D),
            n_classes=np.int32(s.M),
            most_steps=np.int32(o.most_steps),
        )
        self.prior = struct(
            **{name: at(name) for name in ("Z", "W", "U", "eigenvalues")},
            nu=np.float64(s.nu + len(s.Z)),
            scale=np.float64(s.prior_scale),
            ridge=np.float64(s.ridge),
            q=np.int32(s.Z.shape[1]),
        )
        state = ("beta", "population", "covariance", "Q", "rows", "away")
        self.chains = struct(
            **{name: at(name) for name in state},
            work=at("work") if s.d > MAX_SHARED_COEFFICIENTS else 0,
            sweep=at("sweep"),
            chain=at("chain"),
            seed=np.uint32(self.keys.seed),
            d=np.int32(s.d),
        )
        self.slots = struct(
            slots=at("slots"),
            slot_values=np.uint64(self.slot_values),
            covariance=np.uint64(self.places["covariance"]),
            beta=np.uint64(self.places.get("beta", 0)),
            n_slots=np.uint32(self.arena["slots"].shape[0]),
            burn_in=np.uint32(self.burn_in),
            thin=np.uint32(self.thin),
        )

    def load(self, state: State, number: int) -> None:
        """Take the state after sweep `number`, host arrays."""
        for name in ("beta", "population", "covariance"):
            self.queue.write(self.arena[name], np.ascontiguousarray(state[name], np.float64))
        self.queue.write(self.arena["sweep"], np.full(len(self.keys), number + 1, np.uint32))
        self._invert(len(self.keys), POPULATION_THREADS, self.chains, np.int32(self.sampler.Z.shape[1]))
        self.ring = Ring(self.queue, self.arena["slots"], max(0, number - self.burn_in) // self.thin)

    def sweep(self) -> None:
        """Queue one sweep of all chains; nothing is waited for."""
        self.queue.repeat("sweep", self._launch_sweep)

    def _launch_sweep(self) -> None:
        from mmgibbs.regressions.hierarchical.slice import COEFFICIENT, COVARIANCE, LATENT, POPULATION, SLICE

        C, (G, q) = len(self.keys), self.sampler.Z.shape
        everything = self.groups, self.prior, self.chains, self.slots
        streams = (SLICE,) if self.sampler.options.method == "slice" else (LATENT, COEFFICIENT)
        self._visit(self.blocks, self.threads, *everything, np.uint32(C * G), *map(np.uint32, streams))
        self._rows(C * q, POPULATION_THREADS, *everything[:-1], np.uint32(POPULATION))
        self._hyperparameters(C, POPULATION_THREADS, *everything, np.uint32(COVARIANCE))

    def fetch(self) -> State:
        """Wait for the sweeps that were queued; the state after the last."""
        return {name: self.queue.read(self.arena[name]) for name in ("beta", "population", "covariance")}

    def take_kept(self) -> list[State]:
        """Wait for the sweeps that were queued; the kept states that were not taken before, beta where it is kept."""
        return [self._state_in(values) for values in self.ring.take()]

    def _state_in(self, values: np.ndarray) -> State:
        """The state in a slot of the ring."""
        places = self.places.items()
        return {n: values[a : a + int(np.prod(self.shapes[n]))].reshape(self.shapes[n]) for n, a in places}
