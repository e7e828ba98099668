"""run.log: every line that a run says, with its time."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from mmgibbs.errors import ConfigError
from mmgibbs.runs.lock import open_without_links

NAME = "run.log"


class RunLog:
    """The open log of a run folder, which must exist. ConfigError where it cannot be written."""

    def __init__(self, folder: Path):
        self.path = folder / NAME
        self.made = not self.path.exists()
        try:
            handle = open_without_links(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        except OSError as error:
            raise ConfigError(f"output.directory: cannot write '{self.path}': {error.strerror}") from error
        self._file = open(handle, "a", encoding="utf-8", errors="backslashreplace")  # noqa: SIM115  closed with the run

    def begin(self, lines: Iterable[tuple[float, str]]) -> None:
        """The first line, then what was said before there was a folder: (seconds since 1970, text) each."""
        self.write(f"begun by process {os.getpid()} on {socket.gethostname()}")
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
