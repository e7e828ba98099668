"""What is changed of Numba as it is imported: where two processes that compile at once would mix up their files, and
work that it does hundreds of thousands of times for nothing. What is compiled stays the same.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from inspect import signature
from types import ModuleType
from typing import Any


def change_numba() -> None:
    """Each module of CHANGES at once where it has been imported, else as it is."""
    waiting = {}
    for name, change in CHANGES.items():
        if name in sys.modules:
            change(import_module(name))  # once another thread has read it
        else:
            waiting[name] = change
    if waiting:
        sys.meta_path.insert(0, _AsTheyAreImported(waiting))


class _AsTheyAreImported:
    """A finder of these modules, which changes each once it has been read, and leaves after the last."""

    def __init__(self, changes: dict[str, Callable[[Any], None]]):
        self.changes = changes

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if name not in self.changes:
            return None
        spec = PathFinder.find_spec(name, path)  # type: ignore[arg-type]
        if spec is None or spec.loader is None:
            return None
        read = spec.loader.exec_module

        def read_and_change(module: ModuleType) -> None:
            read(module)
            change = self.changes.pop(name, None)
            if change is not None:
                change(module)
            if not self.changes:
                sys.meta_path = [finder for finder in sys.meta_path if finder is not self]

        spec.loader.exec_module = read_and_change  # type: ignore[method-assign]
        return spec


def name_kernels_by_process(caching: Any) -> None:
    """Give the files of kernels the number of the process that compiles them.

    Numba numbers the forms of a function by an index that it reads and writes without a lock: of two processes that
    compile different forms at once, the index may name one and the file hold the other. With names of their own the
    worst is an entry that is lost, and compiled again.
    """
    plain = caching.IndexDataCacheFile._data_name
    caching.IndexDataCacheFile._data_name = lambda self, number: f"{os.getpid()}.{plain(self, number)}"


def compare_only_options_that_are_set(targetconfig: Any) -> None:
    """Options of a kernel, which Numba looks its helpers up by: it makes a table of all twenty each time, most of them
    defaults, by asking for one after another. The names are the same for all options of a kind, so their hash is, too.
    A later Numba that keeps them in another way is left as it is."""
    kind: Any = getattr(targetconfig, "TargetConfig", None)
    if getattr(kind, "__slots__", None) != ["_values"] or not hasattr(kind, "options"):
        return
    defaults: dict[type, dict[str, object]] = {}
    hashes: dict[type, int] = {}

    def values(self: Any) -> dict[str, object]:
        if type(self) not in defaults:
            defaults[type(self)] = {name: option.default for name, option in self.options.items()}
        return {**defaults[type(self)], **self._values}

    def same(self: Any, other: Any) -> bool:
        if not isinstance(other, kind):
            return NotImplemented
        if type(self) is type(other) and self._values == other._values:
            return True
        return values(self) == values(other)

    def hash_of_names(self: Any) -> int:
        if type(self) not in hashes:
            hashes[type(self)] = hash(tuple(sorted(self.options)))
        return hashes[type(self)]

    kind.values, kind.__eq__, kind.__hash__ = values, same, hash_of_names


def tell_only_who_listens(event: Any) -> None:
    """Of each call of LLVM Numba tells whoever listens to that: mostly nobody but a clock of its own for each function
    that is being compiled, whose time goes into the function's metadata. It is not installed. A later Numba that keeps
    listeners in another way is left as it is."""
    listeners, kinds = getattr(event, "_registered", None), getattr(event, "_builtin_kinds", None)
    if listeners is None or kinds is None or not hasattr(event, "install_timer"):
        return
    start, end, timer = event.start_event, event.end_event, event.install_timer

    def start_event(kind: str, data: object = None) -> None:
        if listeners.get(kind) or kind not in kinds:
            start(kind, data)

    def end_event(kind: str, data: object = None, exc_details: tuple | None = None) -> None:
        if listeners.get(kind) or kind not in kinds:
            end(kind, data, exc_details)

    def install_timer(kind: str, callback: Callable[[float], object]) -> AbstractContextManager:
        of_numba = kind == "numba:llvm_lock" and getattr(callback, "__name__", "") == "cb_llvm"
        return nullcontext() if of_numba else timer(kind, callback)

    event.start_event, event.end_event = start_event, end_event
    event.install_timer = install_timer


def _parameters(function: Callable) -> list[str]:
    return list(signature(function).parameters)


def find_lives_of_variables_when_asked(postproc: Any) -> None:
    """After most passes Numba finds the variables that are alive where each block of a function begins. Who reads them
    comes after the last pass, which finds them again, or is a generator; the lives behind them are found once they are
    asked for. A later Numba that does it in another way is left as it is."""
    kind: Any = getattr(postproc, "PostProcessor", None)
    if not hasattr(postproc, "VariableLifetime") or kind is None:
        return
    whole = kind.run
    if _parameters(whole) != ["self", "emit_dels", "extend_lifetimes"]:
        return

    def run(self: Any, emit_dels: bool = False, extend_lifetimes: bool = False) -> None:
        code = self.func_ir
        if emit_dels or code.is_generator:
            whole(self, emit_dels, extend_lifetimes)
            return
        code.blocks = postproc.transforms.canonicalize_cfg(code.blocks)
        code.variable_lifetime = postproc.VariableLifetime(code.blocks)
        code.generator_info = None

    kind.run = run


def simplify_only_functions_with_a_body(codegen: Any) -> None:
    """Numba has LLVM simplify each function of a module, and makes ready for it each time; most are mere names of
    functions elsewhere. A later Numba that does it in another way is left as it is."""
    kind: Any = getattr(codegen, "CPUCodeLibrary", None)
    makes_passes: Any = getattr(getattr(codegen, "CPUCodegen", None), "_function_pass_manager", None)
    if not hasattr(kind, "_optimize_functions") or makes_passes is None:
        return
    whole = kind._optimize_functions
    if _parameters(whole) != ["self", "ll_module"] or _parameters(makes_passes) != ["self", "kwargs"]:
        return

    def optimize_functions(self: Any, module: Any) -> None:
        if codegen.config.LLVM_PASS_TIMINGS:
            whole(self, module)
            return
        module.data_layout = self._codegen._data_layout
        for function in module.functions:
            if not function.is_declaration:
                passes, builder = self._codegen._function_pass_manager()
                passes.run(function, builder)

    kind._optimize_functions = optimize_functions


def arrays_alone_have_operators_of_arrays(npydecl: Any) -> None:
    """For each operator Numba asks first whether it is NumPy's of arrays: of single numbers too, whose loop among those
    of NumPy it looks up and throws away. A later Numba that does it in another way is left as it is."""
    kind: Any = getattr(npydecl, "NumpyRulesArrayOperator", None)
    types: Any = getattr(npydecl, "types", None)
    if not hasattr(kind, "generic") or not hasattr(types, "ArrayCompatible"):
        return
    whole = kind.generic

    def generic(self: Any, args: tuple, kws: dict) -> Any:
        plain = [x.type if isinstance(x, types.Optional) else x for x in args]
        arrays = any(isinstance(x, types.ArrayCompatible) for x in plain)
        return whole(self, args, kws) if arrays else None

    kind.generic = generic


def load_blas_when_it_is_used(linalg: Any) -> None:
    """Before its first kernel Numba imports scipy.linalg, a fifth of a second, to know whether np.dot will work. What
    uses np.dot imports it then; until then it is enough that there is a SciPy. A later Numba that does it in another
    way is left as it is."""
    if not hasattr(linalg, "ensure_blas"):
        return
    whole = linalg.ensure_blas

    def ensure_blas() -> None:
        asks = sys.modules.get("numba.np.arraymath")
        if asks is None or hasattr(asks, "_HAVE_BLAS") or find_spec("scipy") is None:
            whole()

    linalg.ensure_blas = ensure_blas


CHANGES: dict[str, Callable[[Any], None]] = {
    "numba.core.caching": name_kernels_by_process,
    "numba.core.targetconfig": compare_only_options_that_are_set,
    "numba.core.event": tell_only_who_listens,
    "numba.core.postproc": find_lives_of_variables_when_asked,
    "numba.core.codegen": simplify_only_functions_with_a_body,
    "numba.core.typing.npydecl": arrays_alone_have_operators_of_arrays,
    "numba.np.linalg": load_blas_when_it_is_used,
}
