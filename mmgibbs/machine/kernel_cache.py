"""Where compiled kernels are kept between runs: a folder for each state of the sources.

A kernel contains the functions that it calls, wherever they stand, but Numba holds a kept one against its own file
alone. After an upgrade it would keep the old form of a function or a constant that another file holds, without a
word. Hence the name of the folder: a digest of all files that have kernels, and of all that those import.
"""

from __future__ import annotations

import gc
import os
import re
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path

from mmgibbs.machine.numba_changes import change_numba

PREFIX = "mmgibbs-kernels-"
PACKAGES = ("mmgibbs", "pedigree")
_KERNELS = re.compile(rb"^\s*(?:from|import) numba", re.MULTILINE)
_IMPORTS = re.compile(
    rf"^\s*(?:from|import) ((?:{'|'.join(PACKAGES)})[.\w]*)(?: import (\([^)]*\)|.*))?$", re.MULTILINE
)
KEPT = 30 * 86400  # seconds that the folder of other sources stays after its last kernel: its processes may still run


def prepare_for_kernels() -> None:
    """Name the folder as soon as somebody imports Numba, and not before: what needs no kernel reads no sources."""
    if "numba" in sys.modules:
        use_folder_of_these_sources()
        change_numba()
    elif not any(isinstance(finder, _BeforeNumba) for finder in sys.meta_path):
        sys.meta_path.insert(0, _BeforeNumba())


class _BeforeNumba:
    """A finder of modules that finds none; it hears of Numba before Numba reads its settings, and then leaves."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name == "numba":
            sys.meta_path.remove(self)
            use_folder_of_these_sources()
            change_numba()


def use_folder_of_these_sources() -> None:
    """Tell Numba, which may be there already or be imported next, here or in processes that this one starts.

    A folder that the user has chosen (NUMBA_CACHE_DIR) holds ours; else it is below this package, or, where that cannot
    be written, in the user's cache.
    """
    folder = _base() / f"{PREFIX}{digest(Path(__file__).parents[2])}"
    if not folder.exists():
        _remove_outlived(folder.parent)
    os.environ["NUMBA_CACHE_DIR"] = str(folder)
    if "numba" in sys.modules:
        sys.modules["numba"].config.CACHE_DIR = str(folder)


@contextmanager
def garbage_waits() -> Iterator[None]:
    """While kernels are compiled Python looks for garbage thousands of times, a tenth of all the time that it takes:
    not within this block.
    """
    looked = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if looked:
            gc.enable()


def kernels_are_kept(of: str = "") -> bool:
    """Have kernels of these sources been compiled and kept before? of: the name of one that must be among them."""
    import_module("numba")  # which has the folder named
    return any(Path(os.environ.get("NUMBA_CACHE_DIR", "")).glob(f"*/*{of}*.nbc" if of else "*/*.nbc"))


def digest(root: Path) -> str:
    """Of the names and contents of the files that kernels are made from, among the packages in `root`:
    12 hexadecimal digits.
    """
    import hashlib  # takes longer than all that a help text needs

    found = hashlib.sha256()
    for name, content in sorted(sources_of_kernels(root).items()):
        found.update(f"{name} {len(content)}\n".encode())
        found.update(content)
    return found.hexdigest()[:12]


def sources_of_kernels(root: Path) -> dict[str, bytes]:
    """Module -> content, of the modules that name Numba and those that they import, directly or not."""
    modules = {}
    for package in PACKAGES:
        for path in (root / package).rglob("*.py"):
            modules[".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")] = (
                path.read_bytes()
            )
    found, waiting = {}, [name for name, content in modules.items() if _KERNELS.search(content)]
    while waiting:
        name = waiting.pop()
        if name in modules and name not in found:
            found[name] = modules[name]
            for module, names in _IMPORTS.findall(modules[name].decode()):
                waiting += [
                    module,
                    *(f"{module}.{n}" for n in re.findall(r"\w+", names)),
                ]  # `from package import module` too
    return found


def _base() -> Path:
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    if chosen:
        path = Path(chosen).absolute()
        return path.parent if path.name.startswith(PREFIX) else path  # ours, from the process that started this one
    here = Path(__file__).parents[1] / "__pycache__"
    if os.access(here if here.exists() else here.parent, os.W_OK):
        return here
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mmgibbs"


def _remove_outlived(base: Path) -> None:
    for folder in base.glob(f"{PREFIX}*"):
        with suppress(OSError):
            if time.time() - max(p.stat().st_mtime for p in (folder, *folder.iterdir())) > KEPT:
                shutil.rmtree(folder)
