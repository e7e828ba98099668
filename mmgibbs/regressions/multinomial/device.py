"""The multinomial logit by Polya-Gamma variables on a GPU: three kernels a category, for all chains."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from mmgibbs.draws.purpose import REGRESSION_COEFFICIENT, REGRESSION_LATENT, stream
from mmgibbs.machine.device import Shape, make_struct
from mmgibbs.regressions.graph_chains import (
    NAMESPACE,
    TRIANGLE_PASSES,
    Buffers,
    Constants,
    GraphChains,
    Program,
    as_doubles,
    assemble_source,
    count_blocks,
)
from mmgibbs.regressions.protocol import Keys
from mmgibbs.regressions.spd import SpdFactors

if TYPE_CHECKING:
    from mmgibbs.regressions.multinomial.polya_gamma import MultinomialPGSampler

TEXT = (Path(__file__).resolve().parents[1] / "cuda" / "multinomial.cu").read_text(encoding="utf-8")
NAMES = ("draw_weights", "fill_curvature", "draw_category")
ROWS = 32  # that a block takes at a time, as in the kernels
MAX_COLUMNS = 128  # of Z, so that ROWS rows of it lie in shared memory
MAX_PIECES, MAX_SUMS_BYTES = 1024, 1 << 29  # of the rows: a block each, and the bytes of their sums


def make_source(values: npt.DTypeLike, real: npt.DTypeLike) -> str:
    """Make the text of all kernels: `values` is the type of the predictors, `real` that of their products."""
    types, constants = {"VALUE": values, "REAL": real}, {"int MAX_COLUMNS": MAX_COLUMNS}
    return assemble_source(("polya_gamma", "spd"), types, constants, TEXT)


class MultinomialChains(GraphChains):
    """The chains of a `MultinomialPGSampler` on a device."""

    remedy = "use fewer chains or predictors, a narrower type of the predictors, or device: cpu"
    factors_single_panels = True
    factors: SpdFactors

    def __init__(self, sampler: MultinomialPGSampler, keys: Keys, burn_in: int, thin: int):
        self.sampler, C = sampler, len(keys)
        self.n_categories, self.d = sampler.prior_shift.shape
        K1, d = self.n_categories, self.d
        super().__init__(keys, burn_in, thin, {"beta": (C, K1, d)}, ("beta",), SpdFactors(C, d, d + 1))
        max_pieces = max(1, min(MAX_PIECES, MAX_SUMS_BYTES // (8 * C * (self.d + 1) * self.d)))
        self.rows_of_piece = ROWS * -(-sampler.X.n // (ROWS * max_pieces))
        self.n_pieces = -(-sampler.X.n // self.rows_of_piece)
        self.passes = dict.fromkeys(("values", "trials", "solved"), float(K1))
        self.passes |= {"logits": K1 + 1, "precision": 0.5}  # all are read for each category; a triangle
        self.passes |= {"sums": K1, "matrices": TRIANGLE_PASSES * K1}  # triangles, which are written and read

    def write_program(self) -> Program:
        """See DeviceGraphChains."""
        text = make_source(self.sampler.X.values.dtype, self.sampler.rows.real)
        return Program(text, [f"{NAMESPACE}::{name}" for name in NAMES])

    def count_operations(self) -> float:
        """See DeviceGraphChains: of each category the logits, Z' diag(omega) Z, a triangle, and the factor."""
        of_rows = len(self.keys) * self.sampler.X.n * (2 * self.d + self.d * (self.d + 1))
        return self.n_categories * (of_rows + self.factors.n_operations)

    def collect_constants(self) -> Constants:
        """See DeviceGraphChains."""
        s, rows = self.sampler, self.sampler.rows
        successes = [rows.successes(j, slice(None)) for j in range(self.n_categories)]
        constants = {
            "values": np.ascontiguousarray(s.X.values),
            "successes": np.stack(successes, axis=1).astype(np.int32),
            "centre": np.asarray(s.X.centre, np.float64),
            "scale": np.asarray(s.X.scale, np.float64),
            "precision": np.ascontiguousarray(s.prior_precision),
            "shift": np.ascontiguousarray(s.prior_shift),
        }
        return constants | ({"trials": rows.trials.astype(np.int32)} if (rows.trials != 1).any() else {})

    def list_buffers(self) -> Buffers:
        """See DeviceGraphChains."""
        C, d = len(self.keys), self.d
        shapes: dict[str, Shape] = {
            "logits": (C, self.n_categories, self.sampler.X.n),
            "sums": (C, self.n_pieces, d + 1, d),
            "solved": (C, d),
        }
        return as_doubles(shapes)

    def make_structures(self) -> None:
        """struct Multinomial of cuda/multinomial.cu, with the same fields in the same order."""
        buffers = (
            "values", "successes", "trials", "centre", "scale", "precision", "shift", "logits", "sums", "solved",
            "beta", "sweep", "chain", "arrived",
        )  # fmt: skip
        streams = {"latent": stream(REGRESSION_LATENT, 0), "coefficients": stream(REGRESSION_COEFFICIENT, 0)}
        sizes = {
            "n": self.sampler.X.n,
            "p": self.sampler.X.p,
            "d": self.d,
            "n_categories": self.n_categories,
            "n_chains": len(self.keys),
            "rows_of_piece": self.rows_of_piece,
            "n_pieces": self.n_pieces,
        }
        fields: dict[str, Any] = {name: self.arena.address(name) if name in self.arena else 0 for name in buffers}
        fields |= {name: np.uint32(number) for name, number in streams.items()} | {"seed": np.uint32(self.keys.seed)}
        self.struct = make_struct(**fields, **{name: np.int32(size) for name, size in sizes.items()})

    def launch_sweep(self) -> None:
        """See GraphChains."""
        C, elements = len(self.keys), len(self.keys) * (self.d + 1) * self.d
        for category in map(np.int32, range(self.n_categories)):
            self.launch("draw_weights", self.n_pieces, self.struct, category)
            self.launch("fill_curvature", count_blocks(elements), self.struct, self.factors.struct, category)
            if self.factors.panels > 1:
                self.factors.launch(self.kernels, self.queue.device.multiprocessors)
            self.launch("draw_category", C, self.struct, self.factors.struct, self.slots, category)
