"""The run folder. Its files are written under another name and renamed, run.json last:
where that is there, the run is complete.
"""

from __future__ import annotations

import datetime
import json
import math
import os
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from mmgibbs.errors import ConfigError, option
from mmgibbs.machine.files import flush_and_hash, flush_file, flush_folder, move_all
from mmgibbs.posterior.summary import write_draws
from mmgibbs.results.checksums import CHECKSUMS, record_with_checksum
from mmgibbs.results.csv_files import write_csv

CSV_ROWS = 1_000_000  # larger solutions are written as csv only on request
CONTENTS = frozenset(
    {
        "summary.csv",
        "summary.parquet",
        "solutions.csv",
        "solutions.parquet",
        "draws.nc",
        "animals.parquet",
        "means.csv",
        "means.parquet",
        "means_covariance.npz",
        "factor_scores.csv",
        "factor_scores.parquet",
        "field.csv",
        "field.parquet",
        "variogram.csv",
        "variogram.parquet",
        "smooths.csv",
        "smooths.parquet",
        "predicted_classes.csv",
        "predicted_classes.parquet",
        "markers.parquet",
        "marker_draws.npz",
        "snp_effects.parquet",
        "windows.parquet",
        "chromosomes.csv",
        "genotyped.parquet",
        "relationship_sample.parquet",
        "curves.csv",
        "curves.parquet",
        "decisions.csv",
        "decisions.parquet",
        "response.csv",
        "response.parquet",
        "run.json",
        "report.html",
        "running.html",
        "checkpoint",
        "run.log",
        ".writing",
    }
)
WORKING = frozenset({"checkpoint", "run.log", ".writing"})  # what a run keeps while it works; the rest are its results
LOCK = ".lock"  # of the run that writes the folder; a run that was killed leaves it, and it means nothing then


def check_run_directory(directory: str | os.PathLike, overwrite: bool = False) -> Path:
    """The absolute path of the run folder, once it is sure that it can be written: call it before any work is done.

    Raises ConfigError where the path is a file, cannot be created, or holds something: an earlier run (unless
    `overwrite`), or files that are not of a run (always).
    """
    path = Path(directory).resolve()
    if path.is_dir():
        _refuse_links(path, directory)
        entries = {p.name for p in path.iterdir()} - {LOCK}
        if entries and not entries & CONTENTS:
            raise ConfigError(
                f"output.directory: '{directory}' holds files that are not of a run ({_first(entries)}); "
                "needed a new directory"
            )
        if entries and not overwrite:
            raise ConfigError(
                f"output.directory: '{directory}' exists and holds a run; choose another directory, or give "
                f"{option('overwrite')}"
            )
    elif path.exists():
        raise ConfigError(f"output.directory: '{directory}' is a file, needed a directory")
    above = next(p for p in (path, *path.parents) if p.exists())
    if not above.is_dir():
        raise ConfigError(f"output.directory: '{directory}' cannot be created, since '{above}' is a file")
    if not os.access(above, os.W_OK | os.X_OK):
        raise ConfigError(f"output.directory: '{directory}' cannot be written: no permission to write in '{above}'")
    return path


def _refuse_links(path: Path, directory: str | os.PathLike) -> None:
    """A run would write to where a link leads, which someone else may have chosen."""
    for name in sorted((*CONTENTS, LOCK)):
        if (path / name).is_symlink():
            raise ConfigError(
                f"output.directory: '{directory}' has a link in place of {name}, and a run writes to where it leads; "
                "needed a directory without links"
            )


def write_run_folder(
    directory: str | os.PathLike,
    *,
    summary: pl.DataFrame,
    run: Mapping[str, Any],
    solutions: pl.DataFrame | None = None,
    draws: Mapping[str, Any] | None = None,
    extra: Mapping[str, Callable[[Path], None]] | None = None,
    csv: str = "auto",
    escaped: bool = False,
    overwrite: bool = False,
) -> Path:
    """Write summary, solutions, draws.nc and run.json into `directory`, and return its absolute path.

    run: what run.json holds; the names of the files written are added as `files`, their checksums as `checksums`, and
    a note where the csv of the solutions was left out. draws: the arguments of `chains.summary.write_draws` but its
    path. extra: file name -> function that writes it. csv: 'auto' (solutions of at most a million rows) | 'always' |
    'never'; escaped: see csv_files.py. With `overwrite` an earlier run is replaced once the new one is complete;
    checkpoints, the log, and files that are not of a run are kept.

    Whatever goes wrong while writing, the new files are removed and an earlier run stays as it was.
    """
    path = check_run_directory(directory, overwrite)
    made = [p for p in (path, *path.parents) if not p.exists()]
    work = path / ".writing"
    try:
        shutil.rmtree(work, ignore_errors=True)  # of a run that was killed while it wrote
        work.mkdir(parents=True)
        _write_files(work, summary, run, solutions, draws, extra or {}, csv, escaped)
        _take_place(work, path)
    except BaseException as error:
        shutil.rmtree(work, ignore_errors=True)
        for folder in made:  # innermost first
            with suppress(OSError):
                folder.rmdir()
        if isinstance(error, OSError):
            raise ConfigError(f"output.directory: cannot write '{directory}': {error}") from error
        raise
    return path


def is_csv_wanted(csv: str, rows: int) -> bool:
    """csv: `output.csv`. Whether a table that is written as parquet is written as text too."""
    return csv == "always" or (csv == "auto" and rows <= CSV_ROWS)


def _write_files(
    work: Path,
    summary: pl.DataFrame,
    run: Mapping[str, Any],
    solutions: pl.DataFrame | None,
    draws: Mapping[str, Any] | None,
    extra: Mapping[str, Callable[[Path], None]],
    csv: str,
    escaped: bool,
) -> None:
    notes = list(run.get("notes", ()))
    write_csv(summary, work / "summary.csv", escaped)
    summary.write_parquet(work / "summary.parquet")
    if solutions is not None:
        solutions.write_parquet(work / "solutions.parquet")
        if is_csv_wanted(csv, solutions.height):
            write_csv(solutions, work / "solutions.csv", escaped)
        elif csv != "never":
            notes.append(
                f"solutions.csv was left out: {solutions.height:,} rows are above {CSV_ROWS:,}; "
                "`output: {csv: always}` writes it, solutions.parquet holds the same"
            )
    if draws is not None:
        write_draws(work / "draws.nc", **draws)
    for name, write in extra.items():
        write(work / name)
    results = sorted(work.iterdir())
    files = sorted([*(path.name for path in results), "run.json"])
    record = plain({**run, "notes": notes, "files": files, CHECKSUMS: flush_and_hash(results)})
    text = json.dumps(record_with_checksum(record), indent=2, ensure_ascii=False, allow_nan=False)
    (work / "run.json").write_text(f"{text}\n", encoding="utf-8")
    flush_file(work / "run.json")
    flush_folder(work)


def _take_place(work: Path, path: Path) -> None:
    """Move what is in `work` up to `path`, run.json last; results of an earlier run, which step aside first, come back
    where that fails.
    """
    aside = work / "replaced"
    new = sorted((p.name for p in work.iterdir()), key=lambda name: (name == "run.json", name))
    aside.mkdir()
    old = sorted((name for name in CONTENTS - WORKING if (path / name).exists()), key=lambda name: name != "run.json")
    results = [*((path / n, aside / n) for n in old), *((work / n, path / n) for n in new[:-1])]
    move_all(results)
    try:
        flush_folder(path)  # the results have their names on the disk before run.json says that they are complete
        move_all([(work / "run.json", path / "run.json")])
    except BaseException:
        move_all([(target, source) for source, target in reversed(results)])
        raise
    flush_folder(path)
    shutil.rmtree(work)


def plain(value: object) -> Any:
    """`value` in what JSON knows: NumPy numbers and arrays, paths, dates, sets; numbers that are not finite: null."""
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted(plain(v) for v in value)
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, (datetime.date, datetime.datetime)):
        return value.isoformat()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    raise TypeError(f"run.json cannot hold a {type(value).__name__}: {value!r}")


def _first(names: set[str], most: int = 3) -> str:
    listed = sorted(names)[:most]
    return ", ".join(listed) + (f" and {len(names) - most} more" if len(names) > most else "")
