"""The lock of a run folder: one run at a time writes it.

The lock is the system's (flock) on a file of its own, so it ends with the process that holds it, however that ends. The
file names that process, for whoever finds the folder locked. It is removed with the lock.
"""

from __future__ import annotations

import os
import socket
import time
from contextlib import suppress
from pathlib import Path
from types import ModuleType

from mmgibbs.errors import ConfigError
from mmgibbs.results.folder import LOCK, LOCK_MARK

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # a system without flock: two runs on one folder are then not told apart
    fcntl = None


class FolderLock:
    """The lock on a run folder, which must exist.

    ConfigError where another run holds it, or where it cannot be written.
    """

    def __init__(self, folder: Path):
        self.path, self._released = folder / LOCK, False
        try:
            self._handle = _open_locked(self.path)
        except BlockingIOError:
            raise ConfigError(
                f"output.directory: another run is writing '{folder}' ({_holder(self.path)}); "
                "needed another directory, or the end of that run"
            ) from None
        except OSError as error:
            raise ConfigError(f"output.directory: cannot write '{self.path}': {error.strerror}") from error
        with suppress(OSError):  # a full disk: the lock is there all the same
            os.ftruncate(self._handle, 0)
            since = time.strftime("%Y-%m-%d %H:%M:%S")
            os.write(self._handle, f"{os.getpid()} on {socket.gethostname()}{LOCK_MARK.decode()}{since}\n".encode())

    def release(self) -> None:
        """Remove the file, then the lock on it: who opens the file in between sees that it is gone."""
        if self._released:
            return
        self._released = True
        with suppress(OSError):
            self.path.unlink(missing_ok=True)
        with suppress(OSError):
            os.close(self._handle)
        if os.name == "nt":  # where an open file cannot be removed
            with suppress(OSError):
                self.path.unlink(missing_ok=True)


def open_without_links(path: Path, flags: int) -> int:
    """`os.open` of a file to be written, which no link at its place leads elsewhere."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0), 0o666)


def _open_locked(path: Path) -> int:
    """The file, open and locked; opened anew where it was removed before the lock was there."""
    while True:
        handle = open_without_links(path, os.O_RDWR | os.O_CREAT)
        try:
            if fcntl is None:
                return handle
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            raise
        except OSError:
            return handle  # a file system without locks
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(handle), os.stat(path)):
                return handle
        os.close(handle)


def _holder(path: Path) -> str:
    """Return the holder of the lock, as the file names it."""
    with suppress(OSError):
        who = path.read_text(encoding="utf-8", errors="replace").strip()
        if who:
            return f"process {who}"
    return "process unknown"
