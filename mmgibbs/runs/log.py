"""run.log: every line that a run says, with its time; and the lock on the run folder, which is this very file.

The lock is the system's (flock): it ends with the process that holds it, however that ends, so a killed run leaves none
behind. The line that a run begins with names its process, for whoever finds the folder locked.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import TextIO

from mmgibbs.errors import ConfigError

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # a system without flock: two runs on one folder are then not told apart
    fcntl = None

NAME = "run.log"
_BEGIN = "begun by process"


class RunLog:
    """The open, locked log of a run folder, which must exist.

    ConfigError where another run holds it, or where it cannot be written."""

    def __init__(self, folder: Path):
        self.path = folder / NAME
        self.made = not self.path.exists()
        try:
            self._file = _open_locked(self.path)
        except BlockingIOError:
            raise ConfigError(
                f"output.directory: another run is writing '{folder}' ({_holder(self.path)}); "
                "needed another directory, or the end of that run"
            ) from None
        except OSError as error:
            raise ConfigError(f"output.directory: cannot write '{self.path}': {error.strerror}") from error

    def begin(self, lines: Iterable[tuple[float, str]]) -> None:
        """The first line, then what was said before there was a folder: (seconds since 1970, text) each."""
        self.write(f"{_BEGIN} {os.getpid()} on {socket.gethostname()}")
        for when, text in lines:
            self.write(text, when)

    def write(self, text: str, when: float | None = None) -> None:
        """A line with its time. A full disk does not end a run that has only something to say."""
        with suppress(OSError):
            self._file.write(f"{time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(when))}  {text}\n")
            self._file.flush()

    def close(self) -> None:
        with suppress(OSError):
            self._file.close()


def _open_locked(path: Path) -> TextIO:
    """The log, open for appending and locked; opened anew where it was removed before the lock was there."""
    while True:
        file = open(path, "a", encoding="utf-8", errors="backslashreplace")  # noqa: SIM115  closed with the run
        if fcntl is None:
            return file
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            raise
        except OSError:
            return file  # a file system without locks
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file.fileno()), os.stat(path)):
                return file
        file.close()


def _holder(path: Path) -> str:
    """Who began the run that writes this log, by its last such line."""
    with suppress(OSError):
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        begun = [line for line in lines if f"  {_BEGIN} " in line]
        if begun:
            when, _, who = begun[-1].partition(f"  {_BEGIN} ")
            return f"process {who} since {when}"
    return "process unknown"
