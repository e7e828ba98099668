"""Over a small pedigree a loop takes Python milliseconds, and compiling the loop takes a tenth of a second or more."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import FunctionType
from typing import Any

import numpy as np
from numba.core.dispatcher import Dispatcher

MOST_STEPS = 10_000  # of a loop; Python takes some 2 microseconds for each. 0: everything is compiled


def by_size(kernel: Dispatcher, steps: int) -> Callable[..., Any]:
    """The kernel; or for at most MOST_STEPS the function that it is compiled from, which gives the same to the bit
    where whole numbers do not overflow (Python keeps their types, Numba widens them)."""
    return kernel if steps > MOST_STEPS or kernel.signatures else interpreted(kernel)


@cache
def interpreted(kernel: Dispatcher) -> Callable[..., Any]:
    """The Python function of a kernel, which calls those of other kernels in their places."""
    function = kernel.py_func
    known = dict(function.__globals__)
    for name in function.__code__.co_names:
        if isinstance(known.get(name), Dispatcher):
            known[name] = interpreted(known[name])
    plain = FunctionType(function.__code__, known, function.__name__, function.__defaults__, function.__closure__)
    return np.errstate(all="ignore")(plain)  # as kernels with error_model="numpy"
