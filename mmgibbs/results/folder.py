"""The run folder. Its files are prepared in a folder within it and then take their places, run.json last.

A folder with run.json is complete.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from mmgibbs.errors import ConfigError
from mmgibbs.machine.files import CHECKPOINT_FILE, WORK, replaced_files
from mmgibbs.machine.output_places import OutputKind, begins_with, check_output_folder, is_page, list_names, name_some
from mmgibbs.posterior.summary import write_draws
from mmgibbs.results.output_folder import Content, write_file, write_record

CSV_ROWS = 1_000_000  # larger solutions are written as csv only on request
TABLES = (  # written as parquet and csv
    "summary", "solutions", "means", "factor_scores", "field", "variogram", "smooths", "predicted_classes", "curves",
    "fitted",
    "decisions", "response",
)  # fmt: skip
CONTENTS = frozenset(f"{name}{ending}" for name in TABLES for ending in (".parquet", ".csv")) | {
    "draws.nc", "animals.parquet", "means_covariance.npz", "markers.parquet", "marker_draws.npz",
    "snp_effects.parquet", "windows.parquet", "chromosomes.csv", "genotyped.parquet", "relationship_sample.parquet",
    "run.json", "report.html", "running.html", "checkpoint", "run.log", ".writing",
}  # fmt: skip
RECORD, LOG, CHECKPOINT = "run.json", "run.log", "checkpoint"
PAGES = ("report.html", "running.html")
WORKING = frozenset({CHECKPOINT, LOG, WORK})  # what a run keeps while it works; the rest are its results
LOCK = ".lock"  # of the run that writes the folder; a run that was killed leaves it, and it means nothing then
LOCK_MARK = b" since "  # in a lock, between the process and the time
LOG_MARK = "begun by process"  # in the first line of a log
LISTED_IN_LOG = "files: "  # in the log, before the names of the results


class RunKind(OutputKind):
    """The kind of run folders, which hold files that no record lists while a run works."""

    @property
    def prepared(self) -> frozenset[str]:
        """Names of results: the log and checkpoints are written in the folder itself."""
        return self.files - WORKING

    def list_written(self, folder: Path) -> set[str]:
        """Names in a folder that runs wrote: results by run.json, pages and the log by their content, and checkpoints.

        Where run.json cannot be read, the last lines of the log say what it listed.
        """
        names = super().list_written(folder)
        log = folder / LOG
        if begins_with(log, (LOG_MARK.encode(),), 200):
            names.add(LOG)
            if RECORD not in names and (folder / RECORD).is_file():
                names |= ({RECORD} | _last_listed(log)) & self.files
        names |= {name for name in PAGES if is_page(folder / name, "report")}
        checkpoints = folder / CHECKPOINT
        if checkpoints.is_dir() and all(CHECKPOINT_FILE.fullmatch(name) for name in list_names(checkpoints)):
            names.add(CHECKPOINT)
        return {name for name in names if os.path.lexists(folder / name)}

    def refuse_others(self, path: Path, written: Collection[str], shown: str) -> None:
        """ConfigError where .lock is a file that no run wrote, or a folder without a run holds any file."""
        if not _is_lock(path / LOCK):
            raise ConfigError(f"{shown} holds {LOCK}, which no run wrote; choose another directory, or move that file")
        # an empty folder of that name may be the user's
        has_run = written and not (written == {CHECKPOINT} and not list_names(path / CHECKPOINT))
        entries = list_names(path) - {LOCK, WORK}
        if entries and not has_run:
            raise ConfigError(
                f"{shown} holds files that are not of a run ({name_some(entries)}); needed a new directory"
            )

    def describe_earlier(self, written: Collection[str]) -> str:
        """Message about a run that is not replaced without being asked for."""
        return "exists and holds a run; choose another directory"


RUN_FOLDER = RunKind(RECORD, CONTENTS - {WORK}, "a run", frozenset({LOCK}), place="output.directory")


def check_run_directory(directory: str | os.PathLike, overwrite: bool = False, inputs: Iterable[object] = ()) -> Path:
    """Return the absolute path of a run folder that may be written; see `check_output_folder`."""
    return check_output_folder(RUN_FOLDER, directory, overwrite, inputs)


def _last_listed(log: Path) -> set[str]:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    listed = [line.partition(LISTED_IN_LOG)[2] for line in lines if LISTED_IN_LOG in line]
    return set(listed[-1].split(", ")) if listed else set()


def _is_lock(path: Path) -> bool:
    """Check whether a file is absent, or the lock of a run, which is empty while it begins."""
    return not path.exists() or (path.is_file() and (not path.stat().st_size or begins_with(path, (LOCK_MARK,))))


def write_run_folder(
    directory: str | os.PathLike,
    *,
    summary: pl.DataFrame,
    run: Mapping[str, Any],
    solutions: pl.DataFrame | None = None,
    draws: Mapping[str, Any] | None = None,
    extra: Mapping[str, Content] | None = None,
    csv: str = "auto",
    escaped: bool = False,
    overwrite: bool = False,
) -> Path:
    """Write summary, solutions, draws.nc and run.json into `directory`, and return its absolute path.

    run: what run.json holds; the names of the files written are added as `files`, their checksums as `checksums`, and
    a note where the csv of the solutions was left out. draws: the arguments of `posterior.summary.write_draws` but its
    path. extra: see `Content`. csv: 'auto' (solutions of at most a million rows) | 'always' |
    'never'; escaped: see csv_files.py. With `overwrite` an earlier run is replaced once the new one is complete;
    checkpoints, the log, and files that are not of a run are kept.

    Whatever goes wrong while writing, the new files are removed and an earlier run stays as it was.
    """
    path = check_run_directory(directory, overwrite)
    try:
        with replaced_files(path, RUN_FOLDER.list_written(path) - WORKING, RECORD) as work:
            _write_files(work, summary, run, solutions, draws, extra or {}, csv, escaped)
    except OSError as error:
        raise ConfigError(f"{RUN_FOLDER.place_name}: cannot write '{directory}': {error}") from error
    return path


def is_csv_wanted(csv: str, rows: int) -> bool:
    """csv: `output.csv`. Whether a table that is written as parquet is written as text too."""
    return csv == "always" or (csv == "auto" and rows <= CSV_ROWS)


def name_tables(tables: Mapping[str, pl.DataFrame | None], csv: str) -> dict[str, Content]:
    """File name -> table, of tables with rows by the names in TABLES; csv: `output.csv`."""
    files: dict[str, Content] = {}
    for name, table in tables.items():
        if table is not None and table.height:
            files[f"{name}.parquet"] = table
            if is_csv_wanted(csv, table.height):
                files[f"{name}.csv"] = table
    return files


def _write_files(
    work: Path,
    summary: pl.DataFrame,
    run: Mapping[str, Any],
    solutions: pl.DataFrame | None,
    draws: Mapping[str, Any] | None,
    extra: Mapping[str, Content],
    csv: str,
    escaped: bool,
) -> None:
    notes = list(run.get("notes", ()))
    contents: dict[str, Content] = {"summary.csv": summary, "summary.parquet": summary, **extra}
    if solutions is not None:
        contents |= {"solutions.parquet": solutions}
        if is_csv_wanted(csv, solutions.height):
            contents |= {"solutions.csv": solutions}
        elif csv != "never":
            notes.append(
                f"solutions.csv was left out: {solutions.height:,} rows are above {CSV_ROWS:,}; "
                "`output: {csv: always}` writes it, solutions.parquet holds the same"
            )
    for name, content in contents.items():
        write_file(work / name, content, escaped)
    if draws is not None:
        write_draws(work / "draws.nc", **draws)
    write_record(work, RECORD, {**run, "notes": notes}, has_checksum=True)
