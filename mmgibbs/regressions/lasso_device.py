"""The Bayesian lasso on a GPU: three kernels and the factor (p <= n), or five and the factor, for all chains."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from mmgibbs.draws.purpose import (
    REGRESSION_COEFFICIENT,
    REGRESSION_GLOBAL_SCALE,
    REGRESSION_LOCAL_SCALE,
    REGRESSION_RESIDUAL,
    stream,
)
from mmgibbs.draws.shrinkage import SMALLEST
from mmgibbs.machine.device import make_struct
from mmgibbs.regressions.graph_chains import (
    NAMESPACE,
    Buffers,
    Constants,
    GraphChains,
    Program,
    assemble_source,
    count_blocks,
)
from mmgibbs.regressions.protocol import Keys
from mmgibbs.regressions.spd import TILE, SpdFactors

if TYPE_CHECKING:
    from mmgibbs.regressions.lasso import LassoSampler

TEXT = (Path(__file__).resolve().parent / "cuda" / "lasso.cu").read_text(encoding="utf-8")
LARGEST_PIVOT = 1e14  # of M: coefficients leave one part in ten million of the response
BY_GRAM = ("fill_gram", "draw_by_gram", "draw_scales")
BY_ROWS = ("scale_rows", "fill_row_gram", "draw_residuals", "draw_by_rows", "draw_scales")
COEFFICIENTS, NOISE, INTERCEPT = (np.uint32(stream(REGRESSION_COEFFICIENT, k)) for k in (0, 1, 2))
RESIDUAL, LOCAL, GLOBAL = (
    np.uint32(stream(purpose, 0)) for purpose in (REGRESSION_RESIDUAL, REGRESSION_LOCAL_SCALE, REGRESSION_GLOBAL_SCALE)
)


def make_source(values: npt.DTypeLike, real: npt.DTypeLike) -> str:
    """Make the text of all kernels: `values` is the type of the predictors, `real` that of their products."""
    constants = {"double SMALLEST_COEFFICIENT": SMALLEST, "double LARGEST_PIVOT": LARGEST_PIVOT}
    return assemble_source(("gamma", "inverse_gaussian", "spd"), {"VALUE": values, "REAL": real}, constants, TEXT)


class LassoChains(GraphChains):
    """The chains of a `LassoSampler` on a device."""

    remedy = "use fewer chains or predictors, precision: single, or device: cpu"
    factors: SpdFactors

    def __init__(self, sampler: LassoSampler, keys: Keys, burn_in: int, thin: int):
        self.sampler, C, p = sampler, len(keys), sampler.p
        single = dict.fromkeys(("sigma2", "lambda2", "alpha"), (C, 1))
        kept = ("beta", "sigma2", "lambda2", "alpha")
        self.n = sampler.X.n if sampler.is_wide else 0  # rows of the matrices, where those are of rows
        factors = SpdFactors(C, self.n, self.n + 2) if sampler.is_wide else SpdFactors(C, p, p + 1)
        super().__init__(keys, burn_in, thin, {"beta": (C, p), "tau2": (C, p), **single}, kept, factors)
        self.passes = {"gram": 0.5, "H": 3}  # a triangle is read; H is written, and read for the matrix and the draw

    def write_program(self) -> Program:
        """See DeviceGraphChains."""
        names = BY_ROWS if self.n else BY_GRAM
        text = make_source(self.sampler.X.values.dtype, self.sampler.real)
        return Program(text, [f"{NAMESPACE}::{name}" for name in names])

    def collect_constants(self) -> Constants:
        """See DeviceGraphChains."""
        of_rows, of_gram = ("values", "centre", "scale", "y", "root"), ("gram", "right", "reference", "residual_right")
        names = of_rows if self.n else of_gram
        constants = {name: getattr(self.sampler.fit, name) for name in names}
        return {name: values for name, values in constants.items() if values is not None}

    def count_operations(self) -> float:
        """See DeviceGraphChains: of rows, a triangle of HH' and H times two vectors."""
        of_rows = len(self.keys) * self.n * self.sampler.p * (self.n + 1 + 4)
        return self.factors.n_operations + of_rows

    def list_buffers(self) -> Buffers:
        """See DeviceGraphChains."""
        C, p = len(self.keys), self.sampler.p
        buffers: Buffers = {"residuals": ((C, self.n or p), np.float64)}
        if self.n:
            buffers["H"] = ((C, self.n, p), self.sampler.real)
        return buffers

    def make_structures(self) -> None:
        """struct Lasso of cuda/lasso.cu, with the same fields in the same order."""
        s, o = self.sampler, self.sampler.options
        buffers = (
            "gram", "right", "reference", "residual_right", "values", "centre", "scale", "root", "y", "H", "residuals",
            "beta", "tau2", "sigma2", "lambda2", "alpha", "sweep", "chain", "arrived",
        )  # fmt: skip
        addresses: dict[str, Any] = {name: self.arena.address(name) if name in self.arena else 0 for name in buffers}
        numbers = {
            "residual_square": getattr(s.fit, "residual_square", 0.0),
            "mean": s.mean,
            "n_records": s.n,
            "residual_shape": o.residual_shape + 0.5 * (s.n - 1),
            "residual_scale": o.residual_scale,
            "penalty_shape": o.penalty_shape + s.p,
            "penalty_rate": o.penalty_rate,
        }
        self.struct = make_struct(
            **addresses,
            **{name: np.float64(value) for name, value in numbers.items()},
            places=np.array([self.places[name] for name in self.kept], np.uint64),
            seed=np.uint32(self.keys.seed),
            n=np.int32(self.n),
            p=np.int32(s.p),
            is_penalty_sampled=np.int32(o.penalty is None),
        )

    def launch_sweep(self) -> None:
        """See GraphChains."""
        C, p, both = len(self.keys), self.sampler.p, (self.struct, self.factors.struct)
        if self.n:
            tiles = -(-self.n // TILE)
            self.launch("scale_rows", count_blocks(C * self.n * p), *both)
            self.launch("fill_row_gram", C * tiles * (tiles + 1), *both, COEFFICIENTS, NOISE)
        else:
            self.launch("fill_gram", count_blocks(C * p * (p + 1)), *both)
        self.factors.launch(self.kernels, self.queue.device.multiprocessors)
        if self.n:
            self.launch("draw_residuals", C, *both, RESIDUAL)
            self.launch("draw_by_rows", count_blocks(C * p), *both, COEFFICIENTS)
        else:
            self.launch("draw_by_gram", C, *both, RESIDUAL, COEFFICIENTS)
        self.launch("draw_scales", C, self.struct, self.slots, INTERCEPT, LOCAL, GLOBAL)
