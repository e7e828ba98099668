"""Checkpoints: named arrays and a few facts in a file, so that what they are the state of continues after a crash.

    checkpoints = Checkpoints(folder, identity)
    checkpoints.write("chain-1", {"theta.0": theta, ...}, {"sweep": 500})
    found, useless = checkpoints.read("chain-1")            # found.arrays, found.facts; None where there is no good one

A file is an uncompressed .npz, which numpy.load opens, with one array more: `facts`, JSON in UTF-8, which holds a
SHA-256 of all the others (name, type, shape and bytes). It is written under another name, flushed to the disk and
renamed; the one before it stays as NAME.previous.npz. So at any moment, also in the middle of a write, one of the two
is whole, and a file that was cut off or altered is found out and passed over.

`identity` is any text that says which run the state belongs to: a file of another identity is not read.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mmgibbs.machine.files import CHECKPOINT_FILE, flush_folder, remove_files

FORMAT = 1  # of what a file holds; another one is not read
FIRST_MINUTES = 1.0  # to the first checkpoint of a run, where the time between two is longer


@dataclass(frozen=True)
class Checkpoint:
    arrays: dict[str, np.ndarray]
    facts: dict


@dataclass(frozen=True)
class Checkpoints:
    """The checkpoints in one folder, by name, and how often they are due."""

    folder: Path
    identity: str
    every: float = math.inf  # how much sampling may be lost at most
    unit: str = "sweeps"  # or 'minutes'

    def path(self, name: str) -> Path:
        return self.folder / f"{name}.npz"

    def previous(self, name: str) -> Path:
        return self.folder / f"{name}.previous.npz"

    def names(self) -> list[str]:
        """List the names for which there is a file, good or not."""
        files = [path.name for path in self.folder.glob("[!.]*.npz") if CHECKPOINT_FILE.fullmatch(path.name)]
        return sorted({name.removesuffix(".npz").removesuffix(".previous") for name in files})

    def write(self, name: str, arrays: Mapping[str, np.ndarray], facts: Mapping[str, object]) -> None:
        """Store a state; the one before becomes the previous one. OSError where it cannot be written: both stay."""
        arrays = {key: np.asarray(value) for key, value in arrays.items()}
        written = {**facts, "format": FORMAT, "identity": self.identity, "sha256": _digest(arrays, facts)}
        content: dict[str, Any] = {"facts": np.frombuffer(json.dumps(written).encode(), np.uint8), **arrays}
        new = self.folder / f".{name}.{os.getpid()}.npz"
        try:
            with open(new, "wb") as file:
                np.savez(file, **content)
                file.flush()
                os.fsync(file.fileno())
            with suppress(FileNotFoundError):
                os.replace(self.path(name), self.previous(name))
            os.replace(new, self.path(name))
            flush_folder(self.folder)
        except BaseException:
            new.unlink(missing_ok=True)
            raise

    def take_back(self, name: str) -> None:
        """The one before is the last one again."""
        os.replace(self.previous(name), self.path(name))

    def read(self, name: str) -> tuple[Checkpoint | None, dict[Path, str]]:
        """The last good checkpoint, else the one before it, else None; and for each file that is of no use, why."""
        useless: dict[Path, str] = {}
        for path in (self.path(name), self.previous(name)):
            if path.exists():
                content = self._read(path)
                if isinstance(content, Checkpoint):
                    return content, useless
                useless[path] = content
        return None, useless

    def _read(self, path: Path) -> Checkpoint | str:
        """Read a checkpoint, or return why it is of no use."""
        try:
            with (
                warnings.catch_warnings(action="ignore"),
                open(path, "rb") as handle,
                np.load(handle, allow_pickle=False) as file,
            ):
                arrays = {key: file[key] for key in file.files}
            facts = json.loads(arrays.pop("facts").tobytes())
            form, identity, digest = (facts.pop(key) for key in ("format", "identity", "sha256"))
        except Exception as error:  # noqa: BLE001  a damaged file may break anything that looks into it
            return (
                f"is damaged ({type(error).__name__})"
                if not isinstance(error, OSError)
                else f"cannot be read ({error})"
            )
        if form != FORMAT:
            return f"has format {form}, needed {FORMAT}"
        if identity != self.identity:
            return "is of another run"
        return (
            Checkpoint(arrays, facts) if digest == _digest(arrays, facts) else "is damaged (its checksum does not fit)"
        )

    def remove_all(self) -> None:
        """Remove the checkpoints of an earlier run, and their folder if nothing else is in it."""
        remove_files(self.folder, CHECKPOINT_FILE.fullmatch)

    def clear_unfinished(self) -> None:
        """Remove what writes that were killed have left."""
        for path in self.folder.glob(".*.npz"):
            if CHECKPOINT_FILE.fullmatch(path.name):
                path.unlink(missing_ok=True)


class CheckpointWriter:
    """Keeps the checkpoint of one chain up to date. A write that fails is reported, and tried again when next due.

    Where the time between two is given in minutes, the first comes after one, the second two after it, then four, up
    to that time: the page of a run shows its first draws early, and a long run spends no more on them.
    """

    def __init__(self, checkpoints: Checkpoints, name: str, sweep: int, tell: Callable[[int, OSError | None], None]):
        """sweep: that of the state the chain starts from; tell(sweep, error): what came of each write."""
        self.checkpoints, self.name, self._tell = checkpoints, name, tell
        self._last, self._tried, self._since = (
            sweep,
            sweep,
            time.monotonic(),
        )  # sweep of the last good write, of the last try
        self._wait = min(FIRST_MINUTES, checkpoints.every) if checkpoints.unit == "minutes" else checkpoints.every

    def due(self, sweep: int) -> bool:
        in_minutes = self.checkpoints.unit == "minutes"
        return ((time.monotonic() - self._since) / 60 if in_minutes else sweep - self._tried) >= self._wait

    def save(self, sweep: int, arrays: Mapping[str, np.ndarray], facts: Mapping[str, object]) -> None:
        """Write the state, unless the last good checkpoint is of this very sweep."""
        if sweep == self._last:
            return
        self._tried, self._wait = sweep, min(2 * self._wait, self.checkpoints.every)
        try:
            self.checkpoints.write(self.name, arrays, {"sweep": sweep, **facts})
        except OSError as error:
            self._tell(self._last, error)
        else:
            self._last = sweep
            self._tell(sweep, None)
        self._since = time.monotonic()


def unwritten(name: str, sweep: int, error: OSError) -> str:
    """Describe a checkpoint that could not be written; sweep: that of the last good one, 0 for none."""
    kept = f"the one of sweep {sweep:,} is kept" if sweep else "there is none yet"
    return f"{name}: its checkpoint could not be written ({error.strerror}); {kept}"


def _digest(arrays: Mapping[str, np.ndarray], facts: Mapping[str, object]) -> str:
    """SHA-256 over facts and arrays: names, types, shapes and bytes."""
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(array.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()
