"""The multinomial logit by Hamiltonian Monte Carlo on a GPU: two kernels a leapfrog step for all chains, or three.

A trajectory is queued as graphs of STEPS_OF_GRAPHS steps. While step sizes and lengths are learnt the host waits once a
trajectory, for the number of its steps; afterwards it knows them. A new Hessian is computed by the host.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from mmgibbs.draws.purpose import REGRESSION_ACCEPT, REGRESSION_MOMENTUM, stream
from mmgibbs.machine.device import Shape, make_struct
from mmgibbs.regressions.graph_chains import (
    NAMESPACE,
    Buffers,
    Constants,
    DeviceGraphChains,
    Program,
    Shapes,
    as_doubles,
    assemble_source,
)
from mmgibbs.regressions.multinomial.hamiltonian import LEARNING_RATE, WANTED_ACCEPTANCE, KroneckerMass, jitter
from mmgibbs.regressions.protocol import Keys, State

if TYPE_CHECKING:
    from mmgibbs.regressions.multinomial.hmc import MultinomialHMCSampler

FOLDER = Path(__file__).resolve().parents[1] / "cuda"
NAMES = ("plan", "draw_momentum", "start_momentum", "softmax_rows", "kick", "drift", "weigh", "accept", "learn")
THREADS, ROWS, COLUMNS = 256, 64, 32  # of a block, rows that it takes at a time, and columns, as in the kernels
MAX_PIECES, MAX_SUMS_BYTES = 256, 1 << 29  # of the rows: a block each, and the bytes of their sums
STEPS_OF_GRAPHS = (16, 4, 1)  # leapfrog steps
FACTORS = ("S", "A", "root_S", "root_A", "inverse_S", "inverse_A")  # of a mass matrix that is no diagonal
# of the structure, in its order
BUFFERS = (
    "values", "trials", "column_centre", "column_scale", "totals", "prior_scale", "inverse", *FACTORS, "z", "momentum",
    "velocity", "tried", "tried_gradient", "slopes", "work", "weighed", "logits", "row_partitions", "sums",
    "partitions", "position", "gradient", "log_density", "acceptance", "steps", "temperature", "log_step",
    "mean_log_step", "log_length", "mean_log_length", "shortfall", "square_slope", "centre", "variance", "step_size",
    "ratio", "planned", "slope", "turns", "sweep", "chain",
)  # fmt: skip
FACTS = ("log_density", "acceptance", "steps")  # of a trajectory
LEARNT = ("log_step", "mean_log_step", "log_length", "mean_log_length", "shortfall", "square_slope")


def make_source(values: npt.DTypeLike, real: npt.DTypeLike) -> str:
    """Make the text of all kernels: `values` is the type of the predictors, `real` that of their products."""
    constants = {"double WANTED_ACCEPTANCE": WANTED_ACCEPTANCE, "double LEARNING_RATE": LEARNING_RATE}
    text = "".join((FOLDER / name).read_text(encoding="utf-8") for name in ("softmax_rows.cu", "hmc.cu"))
    return assemble_source(("normal", "small_matrices"), {"VALUE": values, "REAL": real}, constants, text)


class MultinomialHMCChains(DeviceGraphChains):
    """The chains of a `MultinomialHMCSampler` on a device."""

    remedy = "use fewer chains or predictors, mass: diagonal, a narrower type of the predictors, or device: cpu"
    unit = "a leapfrog step of all chains"

    def __init__(self, sampler: MultinomialHMCSampler, keys: Keys, burn_in: int, thin: int):
        self.sampler, self.C, self.K1, self.d = sampler, len(keys), sampler.K - 1, sampler.D
        self.number = 0  # of the last trajectory that was queued
        self.has_factors, self.learns_masses = sampler.options.mass == "hessian", sampler.has_learnt_masses
        kept = ["position", *FACTS, *(("mean_log_step", "mean_log_length") if sampler.adaptive else ())]
        super().__init__(keys, burn_in, thin, self._state_shapes(), kept)
        X, n_columns = sampler.X, self.C * self.K1
        max_pieces = max(1, min(MAX_PIECES, MAX_SUMS_BYTES // (8 * n_columns * (self.d + ROWS))))
        self.rows_of_piece = ROWS * -(-X.n // (ROWS * max_pieces))
        self.n_pieces = -(-X.n // self.rows_of_piece)
        self.n_masses = self.C if sampler.options.adaptation == "separate" else 1
        self.passes = self._passes_of_step()

    def _passes_of_step(self) -> dict[str, float]:
        """Count the passes of `softmax_rows`, `kick` and `drift` over each array."""
        changed = ("sums", "momentum", "tried")  # read and written
        once = ["values", "trials", "totals", "tried_gradient", "slopes", "inverse_S", "inverse_A", "velocity"]
        once.append("variance" if self.learns_masses else "inverse")
        return dict.fromkeys((*BUFFERS, *self.shapes), 0.0) | dict.fromkeys(once, 1) | dict.fromkeys(changed, 2)

    def write_program(self) -> Program:
        """See DeviceGraphChains."""
        text = make_source(self.sampler.X.values.dtype, self.sampler.real)
        return Program(text, [f"{NAMESPACE}::{name}" for name in NAMES])

    def count_operations(self) -> float:
        """See DeviceGraphChains: logits, gradient, and the velocity where the mass matrix is no diagonal."""
        coefficients = self.C * self.K1 * self.d
        of_masses = 2 * coefficients * (self.K1 + self.d) if self.has_factors else 0
        return 4 * self.sampler.X.n * coefficients + of_masses

    def _state_shapes(self) -> Shapes:
        coefficients = (self.C, self.K1, self.d)
        shapes: Shapes = {"position": coefficients, "gradient": coefficients} | dict.fromkeys(FACTS, (self.C,))
        if not self.sampler.adaptive:
            return shapes | {"temperature": (self.C,)}
        shapes |= dict.fromkeys(LEARNT, (self.C,)) | {"centre": coefficients}
        extra = "at" if self.has_factors else "variance" if self.learns_masses else None
        return shapes | ({} if extra is None else {extra: coefficients})

    def collect_constants(self) -> Constants:
        """See DeviceGraphChains."""
        s, likelihood = self.sampler, self.sampler.likelihood
        constants = {
            "values": np.ascontiguousarray(s.X.values),
            "column_centre": np.asarray(s.X.centre, np.float64),
            "column_scale": np.asarray(s.X.scale, np.float64),
            "totals": np.asarray(likelihood.totals, np.float64),
            "prior_scale": np.asarray(s.scale, np.float64),
        }
        if likelihood.trials is not None:
            constants["trials"] = likelihood.trials.astype(np.float64)
        if not (self.has_factors or self.learns_masses):
            variance = np.ones((1, 1, 1)) if s.options.mass == "identity" else s.variance
            constants["inverse"] = np.broadcast_to(variance, (self.C, self.K1, self.d)).astype(np.float64)
        return constants

    def list_buffers(self) -> Buffers:
        """See DeviceGraphChains."""
        C, K1, d, n_columns = self.C, self.K1, self.d, self.C * self.K1
        shapes: dict[str, Shape] = dict.fromkeys(("z", "momentum", "tried", "tried_gradient"), (C, K1, d))
        shapes |= dict.fromkeys(("step_size", "ratio", "planned", "slope"), (C,))
        shapes |= {"logits": (self.n_pieces, n_columns, ROWS), "row_partitions": (self.n_pieces, C, ROWS)}
        shapes |= {"sums": (self.n_pieces, n_columns, d), "partitions": (self.n_pieces, C)}
        if self.has_factors:
            shapes |= {"velocity": (C, K1, d), "work": (2, C, K1, d), "weighed": (2, C, K1, d)}
            shapes |= {name: (self.n_masses, *((K1, K1) if name.endswith("S") else (d, d))) for name in FACTORS}
        return {**as_doubles(shapes), "slopes": ((C, K1, d), self.sampler.real), "turns": (2, np.uint32)}

    def make_structures(self) -> None:
        """struct Trajectory of cuda/softmax_rows.cu, with the same fields in the same order."""
        s, o = self.sampler, self.sampler.options
        place = [self.places.get(name, 0) for name in ("position", *FACTS, "mean_log_step", "mean_log_length")]
        words = {
            "momenta": stream(REGRESSION_MOMENTUM, 0),
            "decisions": stream(REGRESSION_ACCEPT, 0),
            "seed": self.keys.seed,
            "burn_in": self.burn_in,
        }
        sizes = {
            "n": s.X.n,
            "p": s.X.p,
            "d": self.d,
            "n_categories": self.K1,
            "n_chains": self.C,
            "n_masses": self.n_masses,
            "rows_of_piece": self.rows_of_piece,
            "n_pieces": self.n_pieces,
            "most_steps": o.leapfrog_steps,
            "is_cauchy": o.prior == "cauchy",
            "is_pooled": o.adaptation == "pooled",
        }
        fields: dict[str, Any] = {name: self.arena.address(name) if name in self.arena else 0 for name in BUFFERS}
        if self.learns_masses:
            fields["inverse"] = fields["variance"]
        fields |= {"first_step": np.float64(s.first_step), "places": np.array(place, np.uint64)}
        fields |= {name: np.uint32(number) for name, number in words.items()}
        self.struct = make_struct(**fields, **{name: np.int32(size) for name, size in sizes.items()})

    # Sweeps

    def load(self, state: State, number: int) -> None:
        """See DeviceGraphChains."""
        self.number = number
        super().load(state, number)

    def prepare(self) -> None:
        """See DeviceGraphChains: mass matrix, step sizes and lengths."""
        self.launch("plan", 1, self.struct)
        self._ratio: np.ndarray | None = None
        self._write_masses()

    def sweep(self) -> None:
        """Queue one trajectory of all chains; while it is learnt how long one is, the host waits first."""
        s = self.sampler
        self.number += 1
        if self.number - 1 in s.renewals and "at" in self.shapes:
            self._write_masses()
        learns = s.adaptive and self.number <= self.burn_in
        self.queue.repeat("start", self._launch_start)
        n_left = self._count_steps()
        for n_steps in STEPS_OF_GRAPHS:
            for _ in range(n_left // n_steps):
                self.queue.repeat(("steps", n_steps), partial(self._launch_steps, n_steps))
            n_left %= n_steps
        self.queue.repeat(("end", learns), partial(self._launch_end, learns))
        if learns:
            self._ratio = None
            if self.number in s.renewals and "at" in self.shapes:
                self.queue.copy(self.arena["centre"], self.arena["at"])

    def _count_steps(self) -> int:
        """Leapfrog steps of the longest trajectory of this sweep."""
        most = self.sampler.options.leapfrog_steps
        if not self.sampler.adaptive:
            return most
        if self._ratio is None:
            self._ratio = self.queue.read(self.arena["ratio"])
        steps = np.ceil(jitter(self.number) * self._ratio)
        return int(np.where(steps > 1, np.minimum(steps, most), 1).max())

    def _write_masses(self) -> None:
        if not self.has_factors:
            return
        state = {"at": self.queue.read(self.arena["at"])} if "at" in self.shapes else {}
        mass = self.sampler.select_mass(state)
        assert isinstance(mass, KroneckerMass)
        for name in FACTORS:
            factor = getattr(mass, name)
            self.queue.write(self.arena[name], np.broadcast_to(factor, self.arena[name].shape))

    def _launch_start(self) -> None:
        self.launch("draw_momentum", -(-self.C * self.K1 * self.d // THREADS), self.struct)
        if self.has_factors:
            self.launch("start_momentum", self._n_tiles, self.struct)
            self.launch("drift", self._n_tiles, self.struct)

    def _launch_steps(self, n_steps: int) -> None:
        for _ in range(n_steps):
            self.launch("softmax_rows", self.n_pieces, self.struct)
            self.launch("kick", -(-self.C * self.K1 * self.d // COLUMNS), self.struct)
            if self.has_factors:
                self.launch("drift", self._n_tiles, self.struct)

    def _launch_end(self, learns: bool) -> None:
        if learns and self.has_factors:
            self.launch("weigh", 2 * self._n_tiles, self.struct)
        self.launch("accept", self.C, self.struct, self.slots)
        if learns:
            self.launch("learn", -(-self.K1 * self.d // THREADS), self.struct)

    @property
    def _n_tiles(self) -> int:
        """Blocks of a product with M, or its inverse or root."""
        return self.C * -(-self.d // COLUMNS)
