"""The multinomial logit by Polya-Gamma variables on a GPU: three kernels a category, for all chains."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from mmgibbs.draws.purpose import REGRESSION_COEFFICIENT, REGRESSION_LATENT, stream
from mmgibbs.draws.source import cuda_source
from mmgibbs.machine.device import Device, Shape, struct
from mmgibbs.regressions.graph_chains import C_TYPES, RING_TEXT, GraphChains
from mmgibbs.regressions.protocol import Keys
from mmgibbs.regressions.spd import SpdFactors

if TYPE_CHECKING:
    from mmgibbs.regressions.multinomial.polya_gamma import MultinomialPGSampler

TEXT = (Path(__file__).resolve().parents[1] / "cuda" / "multinomial.cu").read_text(encoding="utf-8")
NAMES = ("draw_weights", "fill_curvature", "draw_category")
THREADS, ROWS = 256, 32  # of a block, as in the kernels
MAX_COLUMNS = 128  # of Z, so that ROWS rows of it lie in shared memory
MAX_PIECES, MAX_SUMS_BYTES, MAX_BLOCKS = 1024, 1 << 29, 4096
REMEDY = "use fewer chains or predictors, a narrower type of the predictors, or device: cpu"


def source(values: npt.DTypeLike, real: npt.DTypeLike) -> str:
    """The text of all kernels: `values` is the type of the predictors, `real` that in which they are multiplied."""
    types = f"typedef {C_TYPES[np.dtype(values).name]} VALUE;\ntypedef {C_TYPES[np.dtype(real).name]} REAL;\n"
    constant = f"namespace mmgibbs {{\nconst int MAX_COLUMNS = {MAX_COLUMNS};\n}}\n"
    return cuda_source("polya_gamma", "spd") + RING_TEXT + types + constant + TEXT


class MultinomialChains(GraphChains):
    """The chains of a `MultinomialPGSampler` on a device."""

    def __init__(self, sampler: MultinomialPGSampler, device: Device | None, keys: Keys, burn_in: int, thin: int):
        self.sampler, C = sampler, len(keys)
        self.n_categories, self.d = sampler.prior_shift.shape
        super().__init__(device, keys, burn_in, thin, {"beta": (C, self.n_categories, self.d)}, ("beta",), REMEDY)
        self.factors = SpdFactors(C, self.d, self.d + 1)
        most = max(1, min(MAX_PIECES, MAX_SUMS_BYTES // (8 * C * (self.d + 1) * self.d)))
        self.rows_of_piece = ROWS * -(-sampler.X.n // (ROWS * most))
        self.n_pieces = -(-sampler.X.n // self.rows_of_piece)
        text = source(sampler.X.values.dtype, sampler.rows.real)
        self.compile(text, [f"mmgibbs::{name}" for name in NAMES], self.factors if self.factors.panels > 1 else None)
        self.allocate(self._constants(), self._buffers())
        at = self.arena.address
        self.factors.place(at("matrices"), at("diagonals"), at("arrived"))
        self._make_structure()

    def _constants(self) -> dict[str, np.ndarray]:
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

    def _buffers(self) -> dict[str, tuple[Shape, npt.DTypeLike]]:
        C, d = len(self.keys), self.d
        shapes: dict[str, Shape] = {
            "logits": (C, self.n_categories, self.sampler.X.n),
            "sums": (C, self.n_pieces, d + 1, d),
            "solved": (C, d),
        }
        doubles = {name: (shape, np.float64) for name, shape in (shapes | self.factors.shapes).items()}
        return {**doubles, "arrived": (1, np.uint32)}

    def _make_structure(self) -> None:
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
        self.struct = struct(**fields, **{name: np.int32(size) for name, size in sizes.items()})

    def launch_sweep(self) -> None:
        """See GraphChains."""
        C, elements = len(self.keys), len(self.keys) * (self.d + 1) * self.d
        for category in map(np.int32, range(self.n_categories)):
            self._launch("draw_weights", self.n_pieces, self.struct, category)
            blocks = min(-(-elements // THREADS), MAX_BLOCKS)
            self._launch("fill_curvature", blocks, self.struct, self.factors.struct, category)
            if self.factors.panels > 1:
                self.factors.launch(self.kernels, self.queue.device.multiprocessors)
            self._launch("draw_category", C, self.struct, self.factors.struct, self.slots, category)

    def _launch(self, name: str, blocks: int, *arguments: Any) -> None:
        self.kernels[f"mmgibbs::{name}"](blocks, THREADS, *arguments)
