"""An entry for Python to a function that kernels alone call: called as it is, it would end the process."""

from collections.abc import Callable
from functools import cache

from numba import njit
from numba.core.dispatcher import Dispatcher


@cache
def from_python(part: Dispatcher) -> Callable:
    """A kernel that calls the part and does nothing else."""

    @njit
    def entry(*arguments):
        return part(*arguments)

    return entry
