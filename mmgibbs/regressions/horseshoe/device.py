"""The horseshoe probit on a GPU, p <= n and no collapsed draw: four kernels and the factor, for all chains."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from mmgibbs.draws.purpose import (
    REGRESSION_GLOBAL_AUXILIARY,
    REGRESSION_GLOBAL_SCALE,
    REGRESSION_HYPER,
    REGRESSION_LOCAL_AUXILIARY,
    REGRESSION_LOCAL_SCALE,
    REGRESSION_RESCALE,
    stream,
)
from mmgibbs.draws.source import cuda_source
from mmgibbs.machine.device import Device, Shape, struct
from mmgibbs.regressions.graph_chains import C_TYPES, RING_TEXT, GraphChains, Shapes
from mmgibbs.regressions.horseshoe.coefficients import COEFFICIENTS
from mmgibbs.regressions.horseshoe.prior import LARGEST_PRECISION, LOG_WIDTH
from mmgibbs.regressions.horseshoe.rows import LATENT
from mmgibbs.regressions.horseshoe.slice import MOST_TRIES
from mmgibbs.regressions.protocol import Keys
from mmgibbs.regressions.spd import SpdFactors

if TYPE_CHECKING:
    from mmgibbs.regressions.horseshoe.probit import HorseshoeProbitSampler

TEXT = (Path(__file__).resolve().parents[1] / "cuda" / "horseshoe.cu").read_text(encoding="utf-8")
NAMES = ("draw_latent", "fill_precision", "draw_coefficients", "draw_shrinkage")
THREADS = 256  # of a block, as in the kernels
ROWS = 32  # that a block takes at a time
MAX_PIECES, MAX_BLOCKS = 512, 4096
REMEDY = "use fewer chains or predictors, a narrower type of the predictors, or device: cpu"
PURPOSES = (
    REGRESSION_LOCAL_SCALE,
    REGRESSION_LOCAL_AUXILIARY,
    REGRESSION_GLOBAL_SCALE,
    REGRESSION_GLOBAL_AUXILIARY,
    REGRESSION_HYPER,
)
STREAMS = (LATENT, stream(REGRESSION_RESCALE, 0), COEFFICIENTS, *(stream(purpose, 0) for purpose in PURPOSES))


def source(values: npt.DTypeLike, real: npt.DTypeLike) -> str:
    """The text of all kernels: `values` is the type of the predictors, `real` that in which they are multiplied."""
    types = f"typedef {C_TYPES[np.dtype(values).name]} VALUE;\ntypedef {C_TYPES[np.dtype(real).name]} REAL;\n"
    numbers = {"LARGEST_PRECISION": LARGEST_PRECISION, "LOG_WIDTH": LOG_WIDTH}
    constants = {f"double {name}": value for name, value in numbers.items()} | {"int MAX_TRIES": MOST_TRIES}
    lines = "".join(f"const {name} = {value!r};\n" for name, value in constants.items())
    draws = cuda_source("exponential", "truncated_normal", "polya_gamma", "spd")
    return draws + RING_TEXT + types + f"namespace mmgibbs {{\n{lines}}}\n" + TEXT


class HorseshoeChains(GraphChains):
    """The chains of a `HorseshoeProbitSampler` on a device."""

    def __init__(self, sampler: HorseshoeProbitSampler, device: Device | None, keys: Keys, burn_in: int, thin: int):
        self.sampler, C, p = sampler, len(keys), sampler.p
        shapes: Shapes = dict.fromkeys(("beta", "local", "local_auxiliary"), (C, p))
        shapes |= dict.fromkeys(("intercept", "global", "global_auxiliary", "slab", "tries"), (C,))
        super().__init__(device, keys, burn_in, thin, shapes, ("beta", "intercept", "global", "slab"), REMEDY)
        self.factors = SpdFactors(C, p + 1, p + 2)
        self.rows_of_piece = ROWS * -(-sampler.n // (ROWS * MAX_PIECES))
        self.n_pieces = -(-sampler.n // self.rows_of_piece)
        text = source(sampler.X.values.dtype, sampler.rows.real)
        self.compile(text, [f"mmgibbs::{name}" for name in NAMES], self.factors)
        self.allocate(self._constants(), self._buffers())
        at = self.arena.address
        self.factors.place(at("matrices"), at("diagonals"), at("arrived"))
        self._make_structures()

    def _constants(self) -> dict[str, np.ndarray]:
        rows = self.sampler.rows
        return {
            "values": np.ascontiguousarray(rows.values),
            "positive": np.asarray(rows.positive, np.uint8),
            "gram": self.sampler.gram,
            "centre": np.asarray(rows.centre, np.float64),
            "scale": np.asarray(rows.scale, np.float64),
        }

    def _buffers(self) -> dict[str, tuple[Shape, npt.DTypeLike]]:
        C, p = len(self.keys), self.sampler.p
        shapes: dict[str, Shape] = {"sums": (C, self.n_pieces, p + 2), "square": (C,), "both": (C, p + 1)}
        doubles = {name: (shape, np.float64) for name, shape in (shapes | self.factors.shapes).items()}
        return {**doubles, "arrived": (1, np.uint32)}

    def _make_structures(self) -> None:
        """The structures of cuda/horseshoe.cu, with the same fields in the same order."""
        s, o = self.sampler, self.sampler.options
        buffers = (
            "values", "positive", "gram", "centre", "scale", "sums", "square", "both", "beta", "intercept", "local",
            "local_auxiliary", "global", "global_auxiliary", "slab", "sweep", "chain", "arrived",
        )  # fmt: skip
        numbers = {
            "intercept_precision": 0.0 if o.intercept_prior_sd is None else o.intercept_prior_sd**-2,
            "global_precision": o.global_scale**-2,
            "slab_square": 0.0 if o.slab_scale is None else o.slab_scale**2,
            "slab_df": o.slab_df,
        }
        sizes = {
            "n": s.n,
            "p": s.p,
            "n_chains": len(self.keys),
            "rows_of_piece": self.rows_of_piece,
            "n_pieces": self.n_pieces,
            "has_expansion": o.expansion,
            "has_slab": o.slab_scale is not None,
        }
        fields: dict[str, Any] = {name: self.arena.address(name) for name in buffers}
        fields |= {name: np.float64(value) for name, value in numbers.items()}
        fields |= {"places": np.array([self.places[name] for name in self.kept], np.uint64)}
        fields |= {"seed": np.uint32(self.keys.seed)} | {name: np.int32(size) for name, size in sizes.items()}
        self.struct = struct(**fields)
        self.streams = struct(**{f"stream_{k}": np.uint32(number) for k, number in enumerate(STREAMS)})

    def launch_sweep(self) -> None:
        """See GraphChains."""
        C, elements = len(self.keys), len(self.keys) * self.factors.m * self.factors.n_rows
        self._launch("draw_latent", self.n_pieces, self.struct, self.streams)
        self._launch("fill_precision", min(-(-elements // THREADS), MAX_BLOCKS), self.struct, self.factors.struct)
        self.factors.launch(self.kernels, self.queue.device.multiprocessors)
        self._launch("draw_coefficients", C, self.struct, self.factors.struct, self.streams)
        self._launch("draw_shrinkage", C, self.struct, self.slots, self.streams)

    def _launch(self, name: str, blocks: int, *arguments: Any) -> None:
        self.kernels[f"mmgibbs::{name}"](blocks, THREADS, *arguments)
