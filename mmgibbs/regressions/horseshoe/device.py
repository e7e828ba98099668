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
from mmgibbs.machine.device import Shape, make_struct
from mmgibbs.regressions.graph_chains import (
    NAMESPACE,
    Buffers,
    Constants,
    GraphChains,
    Program,
    Shapes,
    as_doubles,
    assemble_source,
    count_blocks,
)
from mmgibbs.regressions.horseshoe.coefficients import COEFFICIENTS, SMALLEST_MISFIT
from mmgibbs.regressions.horseshoe.prior import LARGEST_PRECISION, LOG_WIDTH
from mmgibbs.regressions.horseshoe.rows import LATENT
from mmgibbs.regressions.horseshoe.slice import MAX_TRIES
from mmgibbs.regressions.protocol import Keys
from mmgibbs.regressions.spd import SpdFactors

if TYPE_CHECKING:
    from mmgibbs.regressions.horseshoe.probit import HorseshoeProbitSampler

TEXT = (Path(__file__).resolve().parents[1] / "cuda" / "horseshoe.cu").read_text(encoding="utf-8")
NAMES = ("draw_latent", "fill_precision", "draw_coefficients", "draw_shrinkage")
ROWS = 32  # that a block takes at a time
MAX_PIECES = 512  # of the rows: a block each
PURPOSES = (
    REGRESSION_LOCAL_SCALE,
    REGRESSION_LOCAL_AUXILIARY,
    REGRESSION_GLOBAL_SCALE,
    REGRESSION_GLOBAL_AUXILIARY,
    REGRESSION_HYPER,
)
STREAMS = (LATENT, stream(REGRESSION_RESCALE, 0), COEFFICIENTS, *(stream(purpose, 0) for purpose in PURPOSES))


def make_source(values: npt.DTypeLike, real: npt.DTypeLike) -> str:
    """Make the text of all kernels: `values` is the type of the predictors, `real` that of their products."""
    headers = ("exponential", "truncated_normal", "polya_gamma", "spd")
    constants = {
        "double LARGEST_PRECISION": LARGEST_PRECISION,
        "double SMALLEST_MISFIT": SMALLEST_MISFIT,
        "double LOG_WIDTH": LOG_WIDTH,
        "int MAX_TRIES": MAX_TRIES,
    }
    return assemble_source(headers, {"VALUE": values, "REAL": real}, constants, TEXT)


class HorseshoeChains(GraphChains):
    """The chains of a `HorseshoeProbitSampler` on a device."""

    remedy = "use fewer chains or predictors, a narrower type of the predictors, or device: cpu"
    factors: SpdFactors

    def __init__(self, sampler: HorseshoeProbitSampler, keys: Keys, burn_in: int, thin: int):
        self.sampler, C, p = sampler, len(keys), sampler.p
        shapes: Shapes = dict.fromkeys(("beta", "local", "local_auxiliary"), (C, p))
        shapes |= dict.fromkeys(("intercept", "global", "global_auxiliary", "slab", "tries"), (C,))
        kept = ("beta", "intercept", "global", "slab")
        super().__init__(keys, burn_in, thin, shapes, kept, SpdFactors(C, p + 1, p + 2))
        self.rows_of_piece = ROWS * -(-sampler.n // (ROWS * MAX_PIECES))
        self.n_pieces = -(-sampler.n // self.rows_of_piece)
        self.passes = {"gram": 0.5, "sums": 2}  # a triangle is read; sums are written, then added up

    def write_program(self) -> Program:
        """See DeviceGraphChains."""
        text = make_source(self.sampler.X.values.dtype, self.sampler.rows.real)
        return Program(text, [f"{NAMESPACE}::{name}" for name in NAMES])

    def count_operations(self) -> float:
        """See DeviceGraphChains: X times the coefficients, and X'z."""
        return self.factors.n_operations + 4 * len(self.keys) * self.sampler.n * self.sampler.p

    def collect_constants(self) -> Constants:
        """See DeviceGraphChains."""
        rows = self.sampler.rows
        return {
            "values": np.ascontiguousarray(rows.values),
            "positive": np.asarray(rows.positive, np.uint8),
            "gram": self.sampler.gram,
            "centre": np.asarray(rows.centre, np.float64),
            "scale": np.asarray(rows.scale, np.float64),
        }

    def list_buffers(self) -> Buffers:
        """See DeviceGraphChains."""
        C, p = len(self.keys), self.sampler.p
        shapes: dict[str, Shape] = {"sums": (C, self.n_pieces, p + 2), "square": (C,), "solution": (C, p + 1)}
        return as_doubles(shapes)

    def make_structures(self) -> None:
        """The structures of cuda/horseshoe.cu, with the same fields in the same order."""
        s, o = self.sampler, self.sampler.options
        buffers = (
            "values", "positive", "gram", "centre", "scale", "sums", "square", "solution", "beta", "intercept", "local",
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
        self.struct = make_struct(**fields)
        self.streams = make_struct(**{f"stream_{k}": np.uint32(number) for k, number in enumerate(STREAMS)})

    def launch_sweep(self) -> None:
        """See GraphChains."""
        C, elements = len(self.keys), len(self.keys) * self.factors.m * self.factors.n_rows
        self.launch("draw_latent", self.n_pieces, self.struct, self.streams)
        self.launch("fill_precision", count_blocks(elements), self.struct, self.factors.struct)
        self.factors.launch(self.kernels, self.queue.device.multiprocessors)
        self.launch("draw_coefficients", C, self.struct, self.factors.struct, self.streams)
        self.launch("draw_shrinkage", C, self.struct, self.slots, self.streams)
