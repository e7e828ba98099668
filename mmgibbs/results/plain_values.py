"""Values as JSON knows them."""

from __future__ import annotations

import datetime
import math
import os
from collections.abc import Mapping
from typing import Any

import numpy as np


def plain(value: object) -> Any:
    """`value` in what JSON knows: NumPy numbers and arrays, paths, dates, sets; numbers that are not finite: null."""
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted(plain(v) for v in value)
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, (datetime.date, datetime.datetime)):
        return value.isoformat()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    raise TypeError(f"run.json cannot hold a {type(value).__name__}: {value!r}")
