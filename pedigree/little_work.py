"""Over a small pedigree a loop takes Python milliseconds, and compiling the loop takes a tenth of a second or more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba.core.dispatcher import Dispatcher

MOST_STEPS = 30_000  # of the loops of a kernel, over all of its calls; Python takes 1 to 2 microseconds for each

_steps: Counter[Dispatcher] = Counter()  # that Python has taken, or was asked to take


def by_size(kernel: Dispatcher, steps: int) -> Callable[..., Any]:
    """The kernel; or, until its calls come to more than MOST_STEPS, the Python function that it is compiled from.

    Both give the same to the bit where whole numbers do not overflow and numbers with decimals are float64: NumPy keeps
    types where Numba takes wider ones. With MOST_STEPS < 0 everything is compiled.
    """
    _steps[kernel] += steps
    return kernel if _steps[kernel] > MOST_STEPS or kernel.signatures else interpreted(kernel)


@cache
def interpreted(kernel: Dispatcher) -> Callable[..., Any]:
    """The Python function of a kernel. TypeError where it calls another one, which might have no entry for Python."""
    function = kernel.py_func
    called = [name for name in function.__code__.co_names if isinstance(function.__globals__.get(name), Dispatcher)]
    if called:
        raise TypeError(f"{function.__qualname__} calls {called[0]}: needed a kernel that calls no other")
    return np.errstate(all="ignore")(function)  # as kernels with error_model="numpy"
