"""`kernel`, the decorator of all compiled functions: `numba.njit` with the options of this project.

    @kernel
    def add(x, out):
        ...

Options of every kernel:

    nogil                   other threads run meanwhile
    error_model="numpy"     a division by 0 gives inf or nan; Numba's own model checks each division, and raises
    no_cfunc_wrapper        without a function for callers in C: there are none

Options that some kernels add:

    forceinline             the compiler puts the function into each that calls it
    fastmath                what arithmetic may differ from that written down, to the last bits. False: nothing.
                            {"contract"}: a product and a sum may be rounded once. {"reassoc", "contract", "nsz"}: sums
                            in another order, in the lanes of vector instructions; these functions write out that they
                            may, for the draws depend on it

What a function does not state of fastmath and error_model it takes over from the caller that it is first compiled for,
and is then kept like that for all others: so draws state that they are exact (fastmath=False).

Kernels are kept between runs (kernel_store.py). Only while `kernel` runs does Numba's setting name our folder: kernels
of other packages stay in theirs.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from numba import config, njit

from mmgibbs.pedigree.kernel_store import kernel_store

OPTIONS: dict[str, Any] = dict(nogil=True, error_model="numpy", no_cfunc_wrapper=True)


def kernel(function: Callable | None = None, **options: Any) -> Any:
    """Compile a function when it is first called, and keep the result.

    options: of `numba.njit`, beside those of every kernel. A function of no file, such as a changed copy that a test
    makes, is compiled and not kept.
    """
    if function is None:
        return lambda decorated: kernel(decorated, **options)
    settings = OPTIONS | options
    folder = kernel_store().folder if os.path.exists(function.__code__.co_filename) else None
    if folder is None:
        return njit(**settings)(function)
    with _numba_cache(folder):
        return njit(cache=True, **settings)(function)


@contextmanager
def _numba_cache(folder: Path) -> Iterator[None]:
    """Keep kernels that are made within the block in this folder."""
    ours = {"CACHE_DIR": str(folder), "CACHE_LOCATOR_CLASSES": ""}
    before = {name: getattr(config, name) for name in ours if hasattr(config, name)}
    try:
        for name in before:
            setattr(config, name, ours[name])
        yield
    finally:
        for name, value in before.items():
            setattr(config, name, value)
