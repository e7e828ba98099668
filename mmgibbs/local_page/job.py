"""Commands of mmgibbs that the page has started, in a process of their own: what they print, how they end."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import BinaryIO

from mmgibbs.local_page.files import find_run_folder
from mmgibbs.report.running import ChainProgress, read_progress
from mmgibbs.results.folder import PAGES

RUN = "run"  # the command that goes on without the page
MAX_OUTPUT_BYTES = 200_000  # that are shown, from the end


def as_argument(name: str) -> str:
    """A file as a command takes it: a name that begins with a hyphen is no option."""
    return f"./{name}" if name.startswith("-") else name


class Job:
    """Commands one after another in a folder; one that fails is the last.

    file: the analysis that they are about. The commands outlive this program, and get no Ctrl-C of its terminal.
    """

    def __init__(self, folder: Path, file: str, commands: Sequence[Sequence[str]]) -> None:
        self.folder, self.file, self.commands = folder, file, commands
        self.started, self.ended = time.time(), 0.0
        self.code: int | None = None  # exit code of the last command, None while they run
        self.is_stopped = False
        handle, self._output = tempfile.mkstemp(".log", "mmgibbs-")  # a file: a pipe would end with this program
        os.close(handle)
        weakref.finalize(self, _remove, self._output)
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._current: Sequence[str] = commands[0]
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    @property
    def command(self) -> str:
        """Name of the command that runs, or ran last."""
        return self._current[0]

    @property
    def is_run(self) -> bool:
        return self.command == RUN

    @property
    def words(self) -> list[str]:
        """The command as one would type it."""
        return ["mmgibbs", *self._current]

    @property
    def run_folder(self) -> Path:
        return find_run_folder(self.folder, self.file)

    @property
    def elapsed(self) -> str:
        return str(timedelta(seconds=int((self.ended or time.time()) - self.started)))

    def _work(self) -> None:
        code = 0
        for command in self.commands:
            with self._lock, open(self._output, "ab") as output:
                if self.is_stopped:
                    break
                self._current = command
                try:
                    self._process = self._start(command, output)
                except OSError as error:  # no memory for a process, a folder that is gone
                    output.write(f"cannot start: {error.strerror}\n".encode())
                    code = 1
                    break
            code = self._process.wait()
            if code != 0:
                break
        self.ended, self.code = time.time(), code

    def _start(self, command: Sequence[str], output: BinaryIO) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            # -P: a module that lies in the folder is no part of the program
            [sys.executable, "-P", "-m", "mmgibbs", *command],
            cwd=self.folder,
            env=os.environ | {"PYTHONUNBUFFERED": "1", "PYTHONIOENCODING": "utf-8"},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),  # as a new session, on Windows
        )

    def stop(self) -> None:
        """Stop the command as SIGTERM does: a run finishes its sweep and keeps its state."""
        with self._lock:
            self.is_stopped = True
            if self._process is not None:
                self._process.terminate()

    def leave(self) -> int | None:
        """End what is no run, and return the process of a run that goes on."""
        if self.code is None and self.is_run and not self.is_stopped and self._process is not None:
            return self._process.pid
        self.stop()
        return None

    def wait(self, seconds: float) -> None:
        self._thread.join(seconds)

    def read_output(self) -> str:
        """Read what the commands have printed."""
        try:
            with open(self._output, "rb") as output:
                output.seek(max(0, os.path.getsize(self._output) - MAX_OUTPUT_BYTES))
                return output.read(MAX_OUTPUT_BYTES).decode("utf-8", errors="replace").strip("\n")
        except OSError:  # a temporary file may be cleaned away in a run of many days
            return ""

    def read_progress(self) -> tuple[list[ChainProgress], str]:
        """Read how far the chains are, and the time that is left, from the page that the run writes."""
        for page in (self.run_folder / name for name in reversed(PAGES)):
            try:
                is_new = page.stat().st_mtime >= self.started
            except OSError:
                continue
            if is_new:
                return read_progress(page)
        return [], ""


def _remove(path: str) -> None:
    with suppress(OSError):  # of a run that goes on, where an open file cannot be removed
        os.remove(path)
