"""The CUDA C++ of the structured engine for one model: its text, and the kernels to take from it.

Kernels are templates: <K components, T traits, relationship>. A model needs the few that its terms ask for; CuPy keeps
what it compiled.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from mmgibbs.draws.source import cuda_source
from mmgibbs.equations.dense import DenseLevels
from mmgibbs.equations.structured import StructuredEquations
from mmgibbs.models.relationships.base import Lists

FOLDER = Path(__file__).resolve().parents[1] / "kernels"
HEADERS = ("phases", "inverse_wishart", "ring", "truncated_normal", "normal_interval", "poisson_log_normal")
FILES = ("level.cu", "structured.cu", "dense.cu", "moves.cu", "products.cu", "variances.cu", "liabilities.cu")
REAL = {np.dtype(np.float32): "float", np.dtype(np.float64): "double"}

OF_RELATIONSHIP = ("sweep_levels", "sum_pieces", "draw_long_levels", "draw_levels_of_few_pieces")  # <K, T, Kin>
OF_TERM = ("move_pieces", "move_records", "moved_residual_strands", "scaling_strands")  # <K, T>
OF_COMPONENTS = ("record_levels",)  # <K>
OF_VALUES = ("add_draw", "move_rows")  # <type of the values>
OF_VARIANCES = (
    "draw_covariances", "draw_scaling", "draw_residuals", "draw_auxiliaries", "end_sweep", "set_scales",
    "invert_matrices",
)  # fmt: skip
OF_LIABILITIES = (
    "draw_liabilities", "compare_cuts", "compare_residual_scales", "scale_columns", "propose_cuts", "decide_cuts",
    "decide_scale", "propose_residual_scale", "decide_residual_scale",
)  # fmt: skip
OF_TERMS = ("class_precisions", "move_levels")  # of all terms at once
OF_MOMENTS = ("close_batch", "widen", "rescale", "recentre", "add_offset")
OF_ALL = ("set_counter", "fold_strands", *OF_TERMS, *OF_VARIANCES, *OF_LIABILITIES, *OF_MOMENTS)


def source(real: np.dtype, pattern: np.dtype) -> str:
    """Return the text of all kernels.

    `real` is the type of stored values, `pattern` (uint8, uint32) of pattern numbers.
    """
    small = np.dtype(pattern) == np.uint8
    types = f"typedef {REAL[np.dtype(real)]} REAL;\ntypedef unsigned {'char' if small else 'int'} PATTERN;\n"
    return cuda_source(*HEADERS) + types + "".join((FOLDER / name).read_text(encoding="utf-8") for name in FILES)


def kernel(
    name: str,
    k: int | None = None,
    n_traits: int | None = None,
    kin: type[Lists] | None = None,
    value: str | None = None,
) -> str:
    """The name of a kernel as C++ writes it, template arguments included."""
    arguments = [str(a) for a in (k, n_traits, None if kin is None else kin.cuda(), value) if a is not None]
    return f"mmgibbs::{name}<{', '.join(arguments)}>" if arguments else f"mmgibbs::{name}"


def term_kernels(k: int, n_traits: int, kin: type[Lists]) -> dict[str, str]:
    """C++ names of the kernels of a term."""
    names = {name: kernel(name, k, n_traits, kin) for name in OF_RELATIONSHIP} | {
        "quadratic_strands": kernel("quadratic_strands", k, kin=kin)
    }
    return (
        names
        | {name: kernel(name, k, n_traits) for name in OF_TERM}
        | {name: kernel(name, k) for name in OF_COMPONENTS}
    )


def dense_kernels(k: int, n_traits: int, kin: type[Lists], values: np.dtype) -> dict[str, str]:
    """C++ names of the kernels of a dense block, whose values have this type."""
    return {
        "dense_rows": kernel("dense_rows", k, value=REAL[values]),
        "draw_tile": kernel("draw_tile", k, n_traits, kin, REAL[values]),
    }


def kernels(
    specialisations: Iterable[tuple[int, type[Lists]]],
    n_traits: int,
    real: np.dtype,
    dense: Iterable[tuple[int, type[Lists], np.dtype]] = (),
) -> list[str]:
    """List every kernel of a model.

    specialisations: (k, type of the relationship's lists) of its terms; dense: with the type of the values, of those
    with a dense block.
    """
    names = {kernel(name) for name in OF_ALL}
    names |= {kernel("residual_strands", n_traits)} | {
        kernel(name, value=value) for name in OF_VALUES for value in (REAL[real], "double")
    }
    for k, kin in specialisations:
        names |= set(term_kernels(k, n_traits, kin).values())
    for k, kin, values in dense:
        names |= set(dense_kernels(k, n_traits, kin, values).values())
    return sorted(names)


def specialisations(equations: StructuredEquations) -> list[tuple[int, type[Lists]]]:
    """List (k, type of the relationship's lists) of each term."""
    return [(t.n_components, type(K)) for t, K in zip(equations.design.terms, equations.relationships, strict=True)]


def model_kernels(equations: StructuredEquations) -> tuple[str, list[str]]:
    """Text and kernel names for one model."""
    text = source(equations.real, equations.records.pattern.dtype)
    dense = [
        (k, kin, block.values.dtype)
        for (k, kin), block in zip(specialisations(equations), equations.dense, strict=True)
        if isinstance(block, DenseLevels)
    ]
    return text, kernels(specialisations(equations), equations.design.n_traits, equations.real, dense)
