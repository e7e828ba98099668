"""Compiled kernels kept between runs: one zip file for each state of the sources, which all processes share.

Numba reads and writes the files of its cache without locks and without checks, so no two processes may share them.
Each process has a temporary folder for Numba, filled from the zip file; `save` adds what the process has compiled to
the zip file, under a lock and in one step. A damaged entry fails its checksum and is left out: that kernel is compiled
again.

A kernel contains the functions that it calls, wherever they stand, but Numba compares a kept kernel with its own
source file alone. Hence the name of the zip file has a digest of all files that kernels depend on.
"""

from __future__ import annotations

import atexit
import glob
import os
import re
import shutil
import sys
import tempfile
import threading
import time
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import BinaryIO

PREFIX = "mmgibbs-kernels-"
FOLDERS = ("mmgibbs", "mmgibbs/pedigree")  # the second is a link in a checkout, which rglob does not follow
MIN_FREE_BYTES = 64 << 20  # of a folder that kernels are written to
SAVE_SECONDS = 10.0  # that `save` waits for another process that saves
FIRST_RUN_SECONDS = 180.0  # that a first run waits for another first run, which compiles the same kernels
UNUSED_SECONDS = 30 * 86400.0  # after which files of other states of the sources are removed
_ENTRY = re.compile(r"(?P<kernel>[^/\\]+/[^/\\]+)\.(?:nbi|\d+\.nbc)")  # Numba's index of a kernel, and its code
Stamp = tuple[int, int] | None
_DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError, OSError)


class KernelStore:
    """The kernels of this process, and the zip file ("archive") that they are kept in.

    folder: where Numba keeps the kernels of this process; None where nothing can be written, and nothing is kept.
    """

    def __init__(self, name: str, folders: Sequence[Path]):
        """name: of the archive, without a suffix; folders: where it may stand, the preferred ones first."""
        self.name, self._candidates = name, list(folders)
        self.folder = _temporary_folder(folders)
        self._archive: Path | None = None
        self._checksums: dict[str, int] = {}  # of the files of this process that an archive holds too
        self._file_stamps: dict[str, Stamp] = {}  # of the same files, as they are in the folder
        self._archive_stamps: dict[Path, Stamp] = {}  # of the archives that were read
        self._mutex = threading.RLock()
        self._held: BinaryIO | None = None  # the lock of the archive, during a first run
        self.load()

    @property
    def archive(self) -> Path | None:
        """The archive of kernels, in the first folder that can be written.

        Else it is beside those of this process, until it ends. Processes that this one starts are told of it (`share`).
        """
        with self._mutex:
            if self._archive is None and self.folder is not None:
                kept = next((folder for folder in self._candidates if _is_writable(folder)), None)
                if kept is not None:
                    _remove_unused(kept, f"{PREFIX}*")
                self._archive = (self.folder if kept is None else kept) / f"{self.name}.zip"
            return self._archive

    @property
    def is_lasting(self) -> bool:
        """True if later processes have the kernels of this one."""
        return self.archive is not None and self.archive.parent != self.folder

    def share(self, archive: Path | None) -> None:
        """Use the archive of the process that started this one, and load what is new in it."""
        with self._mutex:
            if archive is not None:
                self._archive = archive
            self.load()

    def load(self) -> None:
        """Take over what the archives have and this process has not compiled."""
        if self.folder is None:
            return
        archives = [folder / f"{self.name}.zip" for folder in reversed(self._candidates)]
        with self._mutex:
            for archive in archives if self._archive is None else [*archives, self._archive]:
                stamp = _stamp(archive)
                if stamp is not None and self._archive_stamps.get(archive) != stamp:
                    self._archive_stamps[archive] = stamp
                    self._take(_read(archive, self._checksums))

    def _take(self, files: Mapping[str, bytes]) -> None:
        assert self.folder is not None
        compiled = {_kernel_name(name) for name in self._compiled()}
        for name, content in files.items():
            if _kernel_name(name) not in compiled:
                path = self.folder / name
                with suppress(OSError):
                    path.parent.mkdir(exist_ok=True)
                    path.write_bytes(content)
                    self._checksums[name] = zlib.crc32(content)
                    self._file_stamps[name] = _stamp(path)

    def _compiled(self) -> dict[str, Stamp]:
        """Files of Numba that are not those of an archive.

        By their stamps: to read all files at each save takes longer than a small run.
        """
        assert self.folder is not None
        stamps: dict[str, Stamp] = {}
        with suppress(OSError):
            for place in filter(Path.is_dir, self.folder.iterdir()):
                with os.scandir(place) as files:
                    stamps |= {
                        f"{place.name}/{file.name}": _stamp(file)
                        for file in files
                        if file.name.endswith((".nbi", ".nbc"))
                    }
        return {name: stamp for name, stamp in stamps.items() if stamp != self._file_stamps.get(name)}

    def _contents(self, names: Iterable[str]) -> dict[str, bytes]:
        assert self.folder is not None
        contents = {}
        for name in names:
            with suppress(OSError):
                contents[name] = (self.folder / name).read_bytes()
        return contents

    @property
    def n_compiled(self) -> int:
        """Kernels that this process has compiled and not yet saved."""
        return 0 if self.folder is None else len({_kernel_name(name) for name in self._compiled()})

    def has_kernel(self, name: str = "") -> bool:
        """Check whether a kernel with this in its name is kept; without a name: any kernel."""
        self.load()
        return any(name in entry for entry in self._checksums)

    def save(self) -> None:
        """Add what this process has compiled to the archive, and let other first runs go on.

        Whatever prevents it (a full disk, another process that saves for long) costs nothing but compiling again.
        """
        if self.folder is None:
            return
        with self._mutex:
            compiled = self._compiled()
            try:
                if compiled and self.archive is not None:
                    with _locked(self.archive, SAVE_SECONDS) if self._held is None else _nothing():
                        added = _add(self.archive, self._contents(compiled), self._checksums)
                    self._checksums |= {name: zlib.crc32(content) for name, content in added.items()}
                    self._file_stamps |= {name: compiled[name] for name in added}
            except OSError:
                pass
            finally:
                self._release()

    def exchange(self) -> None:
        """Save, and take over all that other processes have saved, also in place of what this one has compiled since.

        For processes side by side that compile much: without it the later one keeps its own form of a kernel that both
        have compiled for different arguments, and compiles all that the other adds to it. Only while no other thread
        of this process compiles or loads kernels: files of Numba are replaced.
        """
        with self._mutex:
            if self.folder is None:
                return
            self.save()
            kept: set[str] = set() if self.archive is None else _list_kernels(self.archive)
            for kernel in kept & {_kernel_name(name) for name in self._compiled()}:
                self._forget(kernel)
            self._archive_stamps.clear()
            self.load()

    def _forget(self, kernel: str) -> None:
        """Remove the files of a kernel from the folder, and what is known of them."""
        assert self.folder is not None
        place, _, name = kernel.partition("/")
        for path in [self.folder / f"{kernel}.nbi", *(self.folder / place).glob(f"{glob.escape(name)}.*.nbc")]:
            with suppress(OSError):
                path.unlink()
            self._checksums.pop(f"{place}/{path.name}", None)
            self._file_stamps.pop(f"{place}/{path.name}", None)

    @contextmanager
    def first_run(self) -> Iterator[None]:
        """Let one of several first runs compile, until it saves.

        The others wait, for some minutes at most, and use its kernels.
        """
        with self._mutex:
            if self._held is None and self.archive is not None:
                with suppress(OSError):
                    self._held = _lock(self.archive, FIRST_RUN_SECONDS)
            self.load()
        try:
            yield
        finally:
            self.save()

    def _release(self) -> None:
        if self._held is not None:
            self._held.close()
            self._held = None

    def close(self) -> None:
        """Save, and remove the folder of this process."""
        self.save()
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)


@cache
def kernel_store() -> KernelStore:
    """The store of this process, with the kernels of these sources."""
    import numba

    root = Path(__file__).parents[2]
    python = f"{sys.implementation.cache_tag}{getattr(sys, 'abiflags', '')}"
    store = KernelStore(
        f"{PREFIX}{digest(root, f'{python} {numba.__version__}')}", _folders(getattr(numba.config, "CACHE_DIR", ""))
    )
    atexit.register(_close_at_exit, store, os.getpid())
    return store


def _close_at_exit(store: KernelStore, process: int) -> None:
    if os.getpid() == process:  # not in a process that was forked
        store.close()


def _folders(chosen: str) -> list[Path]:
    """List the folders for an archive.

    They are the folder that the user has chosen for Numba (NUMBA_CACHE_DIR), or that of the package; and the user's
    folder of caches.
    """
    folders = [Path(chosen).absolute() if chosen else Path(__file__).parent / "__pycache__"]
    with suppress(RuntimeError):  # no home
        folders.append(Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mmgibbs")
    return folders


def digest(root: Path, versions: str = "") -> str:
    """12 hexadecimal digits of `versions` and of the names and contents of the files that kernels of the packages in
    `root` are made from."""
    import hashlib  # takes longer than all that a help text needs

    sources = hashlib.sha256(versions.encode())
    for name, content in sorted(sources_of_kernels(root).items()):
        sources.update(f"{name} {len(content)}\n".encode())
        sources.update(content)
    return sources.hexdigest()[:12]


_KERNELS = re.compile(rb"^\s*(?:from|import) (?:numba|mmgibbs\.pedigree\.kernels)\b", re.MULTILINE)
_IMPORTS = re.compile(r"^\s*(?:from|import) (mmgibbs[.\w]*)(?: import (\([^)]*\)|.*))?$", re.MULTILINE)


def sources_of_kernels(root: Path) -> dict[str, bytes]:
    """Module -> content, of the modules that have kernels and those that they import, directly or not."""
    modules = {}
    for folder in FOLDERS:
        for path in (root / folder).rglob("*.py"):
            name = ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
            modules[name] = path.read_bytes()
    sources: dict[str, bytes] = {}
    waiting = [name for name, content in modules.items() if _KERNELS.search(content)]
    while waiting:
        name = waiting.pop()
        if name in modules and name not in sources:
            sources[name] = modules[name]
            for module, names in _IMPORTS.findall(modules[name].decode()):
                # `from package import module` too
                waiting += [module, *(f"{module}.{n}" for n in re.findall(r"\w+", names))]
    return sources


def _kernel_name(entry: str) -> str:
    match = _ENTRY.fullmatch(entry)
    return match["kernel"] if match else entry


def _stamp(path: Path | os.DirEntry[str]) -> Stamp:
    """Time of the last change and size; None where there is no such file."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


def _list_kernels(archive: Path) -> set[str]:
    names: list[str] = []
    with suppress(*_DAMAGED), zipfile.ZipFile(archive) as entries:
        names = entries.namelist()
    return {_kernel_name(name) for name in names}


def _read(archive: Path, known: Mapping[str, int]) -> dict[str, bytes]:
    """Name -> content of the entries that are not damaged, without those whose checksums are known."""
    files: dict[str, bytes] = {}
    with suppress(*_DAMAGED), zipfile.ZipFile(archive) as entries:
        for info in entries.infolist():
            if _ENTRY.fullmatch(info.filename) and known.get(info.filename) != info.CRC:
                with suppress(*_DAMAGED):
                    files[info.filename] = entries.read(info)
    return files


def _add(archive: Path, compiled: Mapping[str, bytes], known: Mapping[str, int]) -> dict[str, bytes]:
    """Replace kernels in the archive, under the lock; returns the entries that were added.

    A kernel that another process has changed since (its index is not the one that is `known`) stays as it is there.
    """
    kept = _read(archive, {})
    names = {_kernel_name(name) for name in compiled}
    changed = {
        kernel for kernel in names if (index := f"{kernel}.nbi") in kept and zlib.crc32(kept[index]) != known.get(index)
    }
    added = {name: content for name, content in compiled.items() if _kernel_name(name) not in changed}
    kept |= added
    handle, temporary = tempfile.mkstemp(prefix=PREFIX, suffix=".tmp", dir=archive.parent)
    try:
        with open(handle, "wb") as file, zipfile.ZipFile(file, "w") as entries:
            for name, content in sorted(kept.items()):
                entries.writestr(zipfile.ZipInfo(name), content)
        os.replace(temporary, archive)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    return added


def _temporary_folder(folders: Sequence[Path]) -> Path | None:
    """A new folder for Numba that no other process uses: in the system's folder for temporary files, or in one of
    these; None where none can be written."""
    with suppress(OSError):
        folders = [Path(tempfile.gettempdir()), *folders]
    for folder in folders:
        if _is_writable(folder):
            with suppress(OSError):
                _remove_unused(folder, f"{PREFIX}process-*")
                return Path(tempfile.mkdtemp(prefix=f"{PREFIX}process-", dir=folder))
    return None


def _is_writable(folder: Path) -> bool:
    """Check by trying whether a folder can be written: permissions do not tell of a read-only file system."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"kernels")
        return shutil.disk_usage(folder).free > MIN_FREE_BYTES
    except OSError:
        return False


def _remove_unused(folder: Path, pattern: str) -> None:
    """Archives of other sources, and folders of processes that were killed."""
    for path in folder.glob(pattern):
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > UNUSED_SECONDS:
                shutil.rmtree(path) if path.is_dir() else path.unlink()


@contextmanager
def _nothing() -> Iterator[None]:
    yield


@contextmanager
def _locked(archive: Path, seconds: float) -> Iterator[None]:
    with _lock(archive, seconds):
        yield


def _lock(archive: Path, seconds: float) -> BinaryIO:
    """The lock of an archive, held until this file is closed, or the process ends. TimeoutError where another process
    holds it for longer."""
    file = open(archive.with_suffix(".lock"), "ab")  # noqa: SIM115  closed by the caller
    end = time.monotonic() + seconds
    while not _try_lock(file):
        if time.monotonic() > end:
            file.close()
            raise TimeoutError(f"{file.name} is locked")
        time.sleep(0.05)
    return file


_try_lock: Callable[[BinaryIO], bool]
try:
    import fcntl

    def _try_lock(file: BinaryIO) -> bool:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            pass  # a file system without locks
        return True
except ImportError:
    try:
        import msvcrt

        def _try_lock(file: BinaryIO) -> bool:
            try:
                msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
            except OSError:
                return False
            return True
    except ImportError:  # a system without locks

        def _try_lock(file: BinaryIO) -> bool:
            return True
