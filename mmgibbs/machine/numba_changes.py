"""What is changed of Numba as it is imported: where two processes that compile at once would mix up their files, and
work that it does hundreds of thousands of times for nothing. What is compiled stays the same.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType


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

    def __init__(self, changes: dict[str, Callable[[ModuleType], None]]):
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


def name_kernels_by_process(caching: ModuleType) -> None:
    """Give the files of kernels the number of the process that compiles them.

    Numba numbers the forms of a function by an index that it reads and writes without a lock: of two processes that
    compile different forms at once, the index may name one and the file hold the other. With names of their own the
    worst is an entry that is lost, and compiled again.
    """
    plain = caching.IndexDataCacheFile._data_name
    caching.IndexDataCacheFile._data_name = lambda self, number: f"{os.getpid()}.{plain(self, number)}"


def compare_only_options_that_are_set(targetconfig: ModuleType) -> None:
    """Options of a kernel, which Numba looks its helpers up by: it makes a table of all twenty each time, most of them
    defaults. The names are the same for all options of a kind, so their hash is, too. A later Numba that keeps them in
    another way is left as it is."""
    kind = targetconfig.TargetConfig
    if getattr(kind, "__slots__", None) != ["_values"] or not hasattr(kind, "options"):
        return
    whole = kind.__eq__
    hashes: dict[type, int] = {}

    def same(self: object, other: object) -> bool:
        if type(self) is type(other) and self._values == other._values:  # type: ignore[attr-defined]
            return True
        return whole(self, other)

    def hash_of_names(self: object) -> int:
        if type(self) not in hashes:
            hashes[type(self)] = hash(tuple(sorted(self.options)))  # type: ignore[attr-defined]
        return hashes[type(self)]

    kind.__eq__, kind.__hash__ = same, hash_of_names


def tell_only_who_listens(event: ModuleType) -> None:
    """Of each call of LLVM Numba tells whoever listens to that; mostly nobody does. A later Numba that keeps listeners
    in another way is left as it is."""
    listeners, kinds = getattr(event, "_registered", None), getattr(event, "_builtin_kinds", None)
    if listeners is None or kinds is None:
        return
    start, end = event.start_event, event.end_event

    def start_event(kind: str, data: object = None) -> None:
        if listeners.get(kind) or kind not in kinds:
            start(kind, data)

    def end_event(kind: str, data: object = None, exc_details: tuple | None = None) -> None:
        if listeners.get(kind) or kind not in kinds:
            end(kind, data, exc_details)

    event.start_event, event.end_event = start_event, end_event  # type: ignore[attr-defined]


CHANGES: dict[str, Callable[[ModuleType], None]] = {
    "numba.core.caching": name_kernels_by_process,
    "numba.core.targetconfig": compare_only_options_that_are_set,
    "numba.core.event": tell_only_who_listens,
}
