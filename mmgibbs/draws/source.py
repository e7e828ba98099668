"""The CUDA C++ twins of the draws as one string: CuPy's cache key ignores included files, so they are written out."""

from __future__ import annotations

import re
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
NAMES = (
    "elementary",
    "philox",
    "normal",
    "exponential",
    "over_relaxation",
    "gamma",
    "truncated_normal",
    "normal_interval",
    "inverse_gaussian",
    "polya_gamma",
    "poisson_log_normal",
)
BLOCK_NAMES = ("phases", "small_matrices", "inverse_wishart", "rounds", "spd", "ring")  # no draws of a single thread
_INCLUDE = re.compile(r'^#include "(\w+)\.cuh"\n', re.MULTILINE)


def cuda_source(*names: str) -> str:
    """The headers `names` (e.g. "normal", "gamma") and those they include, each once, before the ones that need it.

    Compile with --fmad=false (NVRTC) or -ffp-contract=off (g++, after host_shim.h): then every draw equals Numba's bit
    for bit. All functions are in namespace mmgibbs and take the arguments of their Python namesakes; pairs come back by
    reference. Do not write `using namespace mmgibbs`: its log and exp would meet CUDA's.
    ValueError for a name that is not one of NAMES or BLOCK_NAMES.
    """
    parts: dict[str, str] = {}

    def add(name: str) -> None:
        if name not in NAMES + BLOCK_NAMES:
            raise ValueError(f"CUDA header of a draw: found {name!r}, needed one of {', '.join(NAMES + BLOCK_NAMES)}")
        if name in parts:
            return
        text = (FOLDER / f"{name}.cuh").read_text(encoding="utf-8")
        for included in _INCLUDE.findall(text):
            add(included)
        parts[name] = _INCLUDE.sub("", text).replace("#pragma once\n", "")

    for name in names:
        add(name)
    return "\n".join(parts.values())
