"""What the compiled functions of this package ask of Numba:

    nogil                   other threads run meanwhile
    error_model="numpy"     a division by 0 gives inf or nan, without a check of each division
    no_cfunc_wrapper        without the function that callers in C would need: there are none
    no_cpython_wrapper      without the function to call it from Python by, which takes as long to compile as it itself:
                            of functions that compiled ones alone call. A call from Python would end the process
    pipeline_class          PartOfKernel: without machine code of their own, which nothing would run
    _nrt=False              without counts of references to arrays, which would take longer than reading a field does

"cache", with which they are kept between runs, stands at each function: tests compile changed copies of a module, which
no file holds.
"""

from __future__ import annotations

from typing import Any

from pedigree.parts_of_kernels import PartOfKernel

LOOP: dict[str, Any] = dict(nogil=True, error_model="numpy", no_cfunc_wrapper=True)
WITHIN: dict[str, Any] = LOOP | dict(no_cpython_wrapper=True, pipeline_class=PartOfKernel)
