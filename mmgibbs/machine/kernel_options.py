"""What compiled functions (kernels) ask of Numba, said once: what each option means, and the sets of them in use.

    nogil                   other threads run meanwhile
    error_model="numpy"     a division by 0 gives inf or nan; Numba's own model checks each division, and raises
    no_cfunc_wrapper        without the function that callers in C would need: there are none
    no_cpython_wrapper      without the function to call it from Python by, which checks every array that it takes: of
                            functions that kernels alone call. A call from Python would end the process
    pipeline_class          PartOfKernel: without machine code of their own either (pedigree/parts_of_kernels.py)
    _nrt=False              without counts of references to arrays; such a function can make no array but `on_stack`
                            (engines/intrinsics.py)
    forceinline             the compiler puts the function into each that calls it
    fastmath                what arithmetic may differ from that written down, to the last bits. False: nothing.
                            {"contract"}: a product and a sum may be rounded once. {"reassoc", "contract", "nsz"}: sums
                            in another order, in the lanes of vector instructions; these functions write out that they
                            may, for the draws depend on it
    cache                   kept between runs (kernel_cache.py). Not in the sets, but at each function: tests compile
                            changed copies of a module, which no file holds. Functions that one kernel alone calls
                            are kept in it, and need none

Either wrapper takes up to as long to compile as the function itself. What a function does not state of fastmath,
error_model, forceinline and _nrt it takes over from the caller that it is first compiled for, and is then kept like
that for all others: so draws state that they are exact.

The kernels of the package `pedigree`, which can be used alone, have sets of their own (pedigree/kernel_options.py).
"""

from __future__ import annotations

from typing import Any

from pedigree.parts_of_kernels import PartOfKernel

KERNEL: dict[str, Any] = dict(nogil=True, error_model="numpy")
# Of what the first command of a new installation waits for, and of most else that Python calls
ENTRY: dict[str, Any] = KERNEL | dict(no_cfunc_wrapper=True)
# Of functions that kernels alone call
WITHIN: dict[str, Any] = ENTRY | dict(no_cpython_wrapper=True, _nrt=False, pipeline_class=PartOfKernel)
# Of draws and their parts: the same bits on every machine, for every caller
DRAW: dict[str, Any] = ENTRY | dict(fastmath=False)
DRAW_WITHIN: dict[str, Any] = DRAW | dict(no_cpython_wrapper=True, pipeline_class=PartOfKernel)
