"""Functions that kernels alone call are not translated to machine code of their own.

Numba puts the code of a function into each kernel that calls it and optimises the two together. It also optimises the
function by itself and translates it, which nothing ever runs: a fifth of all the time that compiling takes. Here such
a function stays LLVM code. What stands in for its machine code holds one variable, where Numba notes which Python
function it came from.
"""

from __future__ import annotations

from typing import Any

import llvmlite.binding as llvm
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler

_NOTED = "_ZN08NumbaEnv"  # how the names of those variables begin

# What this builds on is not public: where a later Numba has none of it, a part is compiled as any function
_KNOWN = {
    "_optimize_final_module",
    "_finalize_final_module",
    "_finalize_dynamic_globals",
    "_get_module_for_linking",
    "enable_object_caching",
} <= set(dir(JITCodeLibrary))


class _CodeForCallers(JITCodeLibrary):
    def _optimize_final_module(self) -> None:
        """With each caller."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()  # an address within the code is not to be kept between runs
        code = self._final_module
        noted = [f'@"{v.name}" = common global i8* null' for v in code.global_variables if v.name.startswith(_NOTED)]
        empty = str(self._codegen._create_empty_module(self.name))
        self._final_module = llvm.parse_assembly("\n".join([empty, *noted]))
        self._final_module.name = code.name
        super()._finalize_final_module()
        for function in code.functions:
            if not function.is_declaration and function.linkage == llvm.Linkage.external:
                function.linkage = "linkonce_odr"  # one of the copies in several kernels is kept, as Numba has it
        self._shared_module = code


class PartOfKernel(Compiler):
    """`pipeline_class` of a function without wrappers (no_cpython_wrapper, no_cfunc_wrapper)."""

    def __init__(self, typingctx: Any, targetctx: Any, library: Any, *rest: Any):
        if library is None and _KNOWN:
            library = _CodeForCallers(targetctx.codegen(), "part of a kernel")
            library.enable_object_caching()
        super().__init__(typingctx, targetctx, library, *rest)
