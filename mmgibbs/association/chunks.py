"""The SNPs of a scan in chunks, each tested in one model, and kept on the disk so that a scan can be continued."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from mmgibbs.data.levels import natural
from mmgibbs.errors import ConfigError, Stopped, option, option_name
from mmgibbs.machine.files import remove_files, replaced_file
from mmgibbs.machine.output_places import list_names, name_some
from mmgibbs.machine.signals import StopSignals

FOLDER = "checkpoint"  # of a scan that is not finished, in the folder that it writes
CHUNK_SNPS = 4096
SHOWN_CHANGES = 3
_CHUNK = re.compile(r"\.?(scan\.json|(snps|windows)-\d{6}\.npz)(\.[0-9a-f]{8})?")
EVERY = ""  # the model of the run as it is
Arrays = dict[str, np.ndarray]


class Chunk(NamedTuple):
    """Neighbouring SNPs that are tested in one model."""

    name: str  # of its file
    model: str  # chromosome whose SNPs the relationships are without; EVERY: none
    snps: np.ndarray  # (m,) int64 places in the file, rising


def plan_chunks(chromosome: pl.Series, is_left_out: bool) -> list[Chunk]:
    """Chunks of neighbouring SNPs; is_left_out: a model for each chromosome, and EVERY for SNPs without one."""
    every = np.arange(len(chromosome))
    models = {EVERY: every}
    if is_left_out:
        known = sorted(chromosome.drop_nulls().unique(), key=natural)
        models = {name: np.flatnonzero((chromosome == name).fill_null(False).to_numpy()) for name in known}
        models[EVERY] = np.flatnonzero(chromosome.is_null().to_numpy())
    chunks: list[Chunk] = []
    for model, snps in models.items():
        for first in range(0, snps.size, CHUNK_SNPS):
            chunks.append(Chunk(f"snps-{len(chunks):06d}", model, snps[first : first + CHUNK_SNPS]))
    return chunks


def refuse_unfinished(directory: str | os.PathLike, is_replaced: bool) -> None:
    """ConfigError where a folder holds a scan that is not finished, or other files where a scan would put its own.

    is_replaced: the scan is continued, or started again.
    """
    folder = Path(directory) / FOLDER
    if folder.is_dir() and not is_replaced:
        raise ConfigError(
            f"gwas: '{directory}' holds a scan that is not finished; {option('resume')} continues it, "
            f"{option('overwrite')} starts again"
        )
    strange = {name for name in list_names(folder) if not is_chunk(name)}
    if strange:
        raise ConfigError(
            f"{option_name('output')}: '{directory}' has a folder {FOLDER} with other files ({name_some(strange)}); "
            "choose another one"
        )


@dataclass
class Checkpoint:
    """Results of chunks in a folder: each file is whole or not there. Without a folder nothing is kept."""

    folder: Path | None = None
    stop: StopSignals | None = None
    n_loaded: int = field(default=0, init=False)

    @classmethod
    def open(cls, output: Path, fingerprint: Mapping[str, Any], resume: bool, stop: StopSignals) -> Checkpoint:
        """A new checkpoint, or that of the folder; ConfigError where there is none, or it is of another scan."""
        folder = output / FOLDER
        known = folder / "scan.json"
        # as the file gives it back, or numbers would differ from themselves
        now = json.loads(json.dumps(fingerprint, default=str))
        if resume and not known.exists():
            raise ConfigError(f"gwas: {option('resume')}: '{output}' holds no scan that was interrupted")
        if resume:
            _refuse_another_scan(output, json.loads(known.read_text(encoding="utf-8")), now)
        else:
            remove_files(folder, is_chunk)
            folder.mkdir(parents=True, exist_ok=True)
            _write_whole(known, lambda path: path.write_text(json.dumps(now, indent=2) + "\n", encoding="utf-8"))
        return cls(folder, stop)

    def load_or_compute(self, name: str, compute: Callable[[], Arrays]) -> Arrays:
        """Results of a chunk, from its file where it was computed before."""
        if self.folder is None:
            return compute()
        path = self.folder / f"{name}.npz"
        if path.exists():
            self.n_loaded += 1
            with np.load(path, allow_pickle=False) as file:
                return dict(file)
        self.raise_if_stopped()
        made = compute()
        _write_whole(path, lambda new: _save(new, made))
        return made

    def raise_if_stopped(self) -> None:
        """Stopped where a signal has come: what is finished is kept."""
        if self.stop is not None and self.stop.signal is not None:
            if self.folder is None:
                raise Stopped(self.stop.signal, "stopped")
            raise Stopped(self.stop.signal, f"stopped; {option('resume')} continues the scan", kept=True)

    def remove(self) -> None:
        """Forget the scan: it is finished, or cannot be done. An empty folder is removed."""
        if self.folder is not None:
            remove_files(self.folder, is_chunk)
            with suppress(OSError):  # it has files
                self.folder.parent.rmdir()


def is_chunk(name: str) -> bool:
    """Check whether a file of FOLDER is of a scan: its description, results of a chunk, or a draft of these."""
    return _CHUNK.fullmatch(name) is not None


def _save(path: Path, arrays: Arrays) -> None:
    with open(path, "wb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]


def _write_whole(path: Path, write: Callable[[Path], object]) -> None:
    with replaced_file(path) as new:
        write(new)


def _refuse_another_scan(output: Path, then: dict[str, Any], now: dict[str, Any]) -> None:
    changed = [key for key in dict.fromkeys([*then, *now]) if then.get(key) != now.get(key)]
    if changed:
        lines = [f"{key}: was {then.get(key)!r}, now {now.get(key)!r}" for key in changed[:SHOWN_CHANGES]]
        raise ConfigError(
            f"gwas: {option('resume')}: '{output}' holds another scan:\n" + "\n".join(lines) + "\nneeded the same run, "
            f"genotypes and options, or {option('overwrite')}"
        )
