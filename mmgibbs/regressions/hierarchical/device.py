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

from mmgibbs.draws.purpose import (
    REGRESSION_COEFFICIENT,
    REGRESSION_HYPER,
    REGRESSION_LATENT,
    REGRESSION_SLICE,
    stream,
)
from mmgibbs.machine.device import make_struct
from mmgibbs.regressions.graph_chains import (
    NAMESPACE,
    Buffers,
    Constants,
    GraphChains,
    Program,
    Shapes,
    as_doubles,
    assemble_source,
)
from mmgibbs.regressions.hierarchical.kernels import FIFTH, MAX_CANDIDATES, ROUNDING
from mmgibbs.regressions.hierarchical.population import GROUPS_OF_A_PIECE
from mmgibbs.regressions.protocol import Keys

if TYPE_CHECKING:
    from mmgibbs.regressions.hierarchical.slice import HierarchicalSliceSampler

FOLDER = Path(__file__).resolve().parent / "cuda"
VISITS = {"slice": "slice.cu", "polya_gamma": "polya_gamma.cu"}
SLICE_GROUPS = {"logit": f"{NAMESPACE}::slice_groups<false>", "poisson": f"{NAMESPACE}::slice_groups<true>"}
POLYA_GAMMA_GROUPS = f"{NAMESPACE}::polya_gamma_groups"
DRAW_ROWS, DRAW_HYPERPARAMETERS, INVERT_COVARIANCES = (
    f"{NAMESPACE}::{name}" for name in ("draw_rows", "draw_hyperparameters", "invert_covariances")
)
SLICE, LATENT, COEFFICIENT = (
    stream(purpose, 0) for purpose in (REGRESSION_SLICE, REGRESSION_LATENT, REGRESSION_COEFFICIENT)
)
POPULATION, COVARIANCE = stream(REGRESSION_HYPER, 0), stream(REGRESSION_HYPER, 1)
VISIT_THREADS, POPULATION_THREADS = 128, 256  # of a block, as in the kernels
MAX_COEFFICIENTS = 500  # of a group
MAX_SHARED_ROWS, MAX_SHARED_COEFFICIENTS = 512, 32  # beyond which they lie in global memory
MAX_BLOCKS = 16_384  # of the visits: a block takes several groups where there are more
MAX_SCRATCH_BYTES = 1 << 30


def make_source(columns: npt.DTypeLike, method: str) -> str:
    """Make the text of the kernels of a method, for predictors that are stored as this type."""
    constants: dict[str, int | float] = {
        "int MAX_COEFFICIENTS": MAX_COEFFICIENTS,
        "word32 GROUPS_OF_A_PIECE": GROUPS_OF_A_PIECE,
    }
    if method == "slice":
        constants |= {"double FIFTH": FIFTH, "double ROUNDING": ROUNDING, "int MAX_CANDIDATES": MAX_CANDIDATES}
    headers = ("polya_gamma", "phases", "small_matrices", "inverse_wishart")
    files = ("chains.cuh", "visit.cuh", VISITS[method], "population.cu")
    text = "".join((FOLDER / name).read_text(encoding="utf-8") for name in files)
    return assemble_source(headers, {"VALUE": columns}, constants, text)


def list_kernels(family: str, method: str) -> list[str]:
    """List the kernels of a model, as C++ names them, in the order of a sweep; then the one before the first sweep."""
    visit = SLICE_GROUPS[family] if method == "slice" else POLYA_GAMMA_GROUPS
    return [visit, DRAW_ROWS, DRAW_HYPERPARAMETERS, INVERT_COVARIANCES]


class HierarchicalChains(GraphChains):
    """The chains of a `HierarchicalSliceSampler` on a device."""

    remedy = "use precision: single, fewer chains, save_groups: false, or device: cpu"

    def __init__(self, sampler: HierarchicalSliceSampler, keys: Keys, burn_in: int, thin: int):
        self.sampler, C, (G, q), d = sampler, len(keys), sampler.Z.shape, sampler.d
        shapes: Shapes = {"population": (C, q, d), "covariance": (C, d, d), "beta": (C, G, d)}
        kept = [name for name in shapes if name != "beta" or sampler.options.save_groups]
        super().__init__(keys, burn_in, thin, shapes, kept)
        self._plan_visits()

    def write_program(self) -> Program:
        """See DeviceGraphChains."""
        o = self.sampler.options
        return Program(make_source(self.sampler.groups.columns.dtype, o.method), list_kernels(o.family, o.method))

    def count_operations(self) -> float:
        """See DeviceGraphChains: coefficients times rows; besides, in polya_gamma, a triangle of X'WX."""
        s = self.sampler
        of_row = 2 * s.D + (s.D * (s.D + 1) if s.options.method == "polya_gamma" else 0)
        return float(len(self.keys) * s.M * s.predictors.n * of_row)

    def _plan_visits(self) -> None:
        """Blocks and threads of the visits, and what each block needs besides shared memory."""
        s, n_visits = self.sampler, len(self.keys) * len(self.sampler.Z)
        self.longest = int(np.diff(s.groups.ptr).max())
        if s.options.method == "slice":
            self.scratch_values = self.longest if self.longest > MAX_SHARED_ROWS else 0
            self.threads = min(VISIT_THREADS, max(32, 1 << (self.longest - 1).bit_length() >> 1))
        else:
            self.scratch_values, self.threads = 2 * self.longest + (s.D + 1) * s.D, VISIT_THREADS
        blocks = MAX_SCRATCH_BYTES // (8 * self.scratch_values) if self.scratch_values else MAX_BLOCKS
        self.blocks = max(1, min(n_visits, MAX_BLOCKS, blocks))

    def collect_constants(self) -> Constants:
        """See DeviceGraphChains."""
        s, g = self.sampler, self.sampler.groups
        constants = {name: getattr(g, name) for name in ("columns", "ptr", "centre", "factor", "reach", "fifth")}
        constants |= {"cross": g.cross.reshape(len(g.cross), s.d), "information": s.information}
        constants |= {"Z": s.Z, "W": s.W, "U": s.U, "eigenvalues": s.eigenvalues}
        return constants | ({"trials": g.trials} if (g.trials != 1).any() else {})

    def list_buffers(self) -> Buffers:
        """See DeviceGraphChains."""
        C, (G, q), d = len(self.keys), self.sampler.Z.shape, self.sampler.d
        shapes = {"Q": (C, d, d), "rows": (C, q, d), "away": (C, G, d), "scratch": (self.blocks, self.scratch_values)}
        work = (C, q + 1, 3, d + 1, d) if d > MAX_SHARED_COEFFICIENTS else (0,)
        return as_doubles(shapes | {"work": work})

    def make_structures(self) -> None:
        """The structures of cuda/chains.cuh, with the same fields in the same order."""
        names = list_kernels(self.sampler.options.family, self.sampler.options.method)
        self._visit, self._rows, self._hyperparameters, self._invert = (self.kernels[name] for name in names)
        s, at = self.sampler, self.arena.address
        o, of_groups = s.options, ("columns", "ptr", "centre", "factor", "trials", "cross", "reach", "fifth")
        groups: dict[str, Any] = {name: at(name) if name in self.arena else 0 for name in of_groups}
        self.groups = make_struct(
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
        self.prior = make_struct(
            **{name: at(name) for name in ("Z", "W", "U", "eigenvalues")},
            nu=np.float64(s.nu + len(s.Z)),
            scale=np.float64(s.prior_scale),
            ridge=np.float64(s.ridge),
            q=np.int32(s.Z.shape[1]),
        )
        state = ("beta", "population", "covariance", "Q", "rows", "away")
        self.chains = make_struct(
            **{name: at(name) for name in state},
            work=at("work") if s.d > MAX_SHARED_COEFFICIENTS else 0,
            sweep=at("sweep"),
            chain=at("chain"),
            covariance_place=np.uint64(self.places["covariance"]),
            beta_place=np.uint64(self.places.get("beta", 0)),
            seed=np.uint32(self.keys.seed),
            d=np.int32(s.d),
        )

    def prepare(self) -> None:
        """Q of every chain."""
        self._invert(len(self.keys), POPULATION_THREADS, self.chains, np.int32(self.sampler.Z.shape[1]))

    def launch_sweep(self) -> None:
        """See GraphChains."""
        C, (G, q) = len(self.keys), self.sampler.Z.shape
        everything = self.groups, self.prior, self.chains, self.slots
        streams = (SLICE,) if self.sampler.options.method == "slice" else (LATENT, COEFFICIENT)
        self._visit(self.blocks, self.threads, *everything, np.uint32(C * G), *map(np.uint32, streams))
        self._rows(C * q, POPULATION_THREADS, *everything[:-1], np.uint32(POPULATION))
        self._hyperparameters(C, POPULATION_THREADS, *everything, np.uint32(COVARIANCE))
