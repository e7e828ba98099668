"""A finished run read again from its folder: every file is checked first.

Polars takes a path with `*`, `?` or `[` for a pattern, and would read the files of another folder. So this module is
the only one that gives it paths (tests/unit/test_paths.py).
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, NoReturn

import polars as pl

from mmgibbs.errors import ConfigError, option
from mmgibbs.machine.output_places import list_run_inputs
from mmgibbs.results.checksums import CHECKSUMS, damage_of_file, damage_of_record
from mmgibbs.results.csv_files import is_escaped, unescape_formulas
from mmgibbs.results.record_types import wrong_types

RECORD = "run.json"


class RunFiles:
    """The files of a finished run.

    asked: what wants them, such as 'report: '; it begins the messages. Raises ConfigError, here and below, where a file
    is missing, damaged, a link, or holds what no run writes.
    """

    def __init__(self, folder: Path, asked: str = ""):
        self.folder, self.asked = folder, asked
        self.record = read_record(folder, asked)
        self._checksums: dict[str, dict] | None = self.record.get(CHECKSUMS)

    def path(self, name: str, content: bool = True) -> Path | None:
        """The path of a file that is as the run wrote it; None if the run wrote none. content: False checks only
        the size, which takes no time for gigabytes.
        """
        path = self.folder / name
        if self._checksums is None:  # of an earlier version
            if path.is_symlink():
                self._refuse(name, "is a link, and run.json has no checksum of what it leads to")
            return path if path.exists() else None
        if name not in self._checksums:
            return None
        damage = damage_of_file(path, self._checksums[name], content)
        return path if damage is None else self._refuse(name, damage)

    def table(self, name: str) -> pl.DataFrame:
        """A table that every run has."""
        table = self.table_if_any(name)
        return self._refuse(name, "is missing") if table is None else table

    def table_if_any(self, name: str) -> pl.DataFrame | None:
        """A table, from parquet or csv; None if the run wrote none."""
        path = self.path(name)
        if path is None:
            return None
        try:
            if path.suffix == ".parquet":
                return read_parquet(path)
            table = read_csv(path)
            return unescape_formulas(table) if is_escaped(self.record) else table
        except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
            raise ConfigError(f"{self.asked}'{path}' cannot be read: {str(error).splitlines()[0]}") from None

    def _refuse(self, name: str, why: str) -> NoReturn:
        raise ConfigError(
            f"{self.asked}'{self.folder / name}' {why}; needed the file that the run wrote: copy it again, or run the "
            f"analysis with {option('resume')}, which writes damaged results again"
        )


def read_record(folder: Path, asked: str = "") -> dict[str, Any]:
    """run.json of the folder. asked: as in RunFiles.

    Raises ConfigError where the file cannot be read, is damaged, or holds no run.
    """
    path = folder / RECORD
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"{asked}'{path}' cannot be read: {error}") from None
    if not isinstance(record, dict):
        raise ConfigError(f"{asked}'{path}' holds no run; needed what `mmgibbs run` writes")
    damage = damage_of_record(record)
    if damage is not None:
        raise ConfigError(
            f"{asked}'{path}' {damage}; needed the file that the run wrote: copy it again, or run the analysis with "
            f"{option('resume')}"
        )
    wrong = wrong_types(record)
    if wrong is not None:
        raise ConfigError(f"{asked}'{path}': {wrong}; needed what `mmgibbs run` writes")
    return record


def list_inputs(side: str | os.PathLike, asked: str = "") -> list[Path]:
    """List the inputs read with a run folder: its files, and those that its analysis names; none for a table."""
    folder = Path(side)
    return list_run_inputs(folder, read_record(folder, asked)) if (folder / RECORD).is_file() else []


def read_parquet(path: Path) -> pl.DataFrame:
    """A parquet file of exactly this path."""
    return pl.read_parquet(path, glob=False)


def read_column_names(path: Path) -> list[str]:
    """The columns of a parquet or csv file of exactly this path; none where it is no table."""
    try:
        if path.suffix == ".parquet":
            return pl.read_parquet(path, n_rows=0, glob=False).columns
        return pl.read_csv(path, n_rows=0, glob=False).columns
    except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException):
        return []


def read_csv(path: Path) -> pl.DataFrame:
    """A csv file of a run, of exactly this path. Names stay text, those of chromosomes too."""
    text = dict.fromkeys(("term", "trait", "chromosome"), pl.String)
    return pl.read_csv(path, schema_overrides=text, glob=False)


def refuse_outside_storage(path: Path, asked: str = "") -> None:
    """ConfigError where a NetCDF file takes values from other files, which someone else may have chosen: external
    storage, external or symbolic links, virtual datasets.
    """
    import h5py

    try:
        with h5py.File(path, "r") as file:
            name = _name_outside(file, set())
    except (OSError, KeyError, RuntimeError, ValueError) as error:
        raise ConfigError(f"{asked}'{path}' cannot be read: {str(error).splitlines()[0]}") from None
    if name is not None:
        raise ConfigError(f"{asked}'{path}': '{name}' takes its values from elsewhere; needed a file that a run wrote")


def _name_outside(group: Any, visited: set) -> str | None:
    """The first member of a group, or of the groups within it, whose values are not stored in the file."""
    import h5py

    for name in group:
        if not isinstance(group.get(name, getlink=True), h5py.HardLink):
            return str(name)
        member = group[name]
        if isinstance(member, h5py.Dataset) and (member.external is not None or member.is_virtual):
            return str(name)
        address = h5py.h5o.get_info(member.id).addr
        if isinstance(member, h5py.Group) and address not in visited:  # groups may contain each other
            visited.add(address)
            inside = _name_outside(member, visited)
            if inside is not None:
                return f"{name}/{inside}"
    return None
