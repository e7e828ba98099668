"""What the formats of `mmgibbs export` share: the run that is read, and the folder that is written."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from mmgibbs.errors import ConfigError, option, option_name
from mmgibbs.report.finished import Finished, read_finished
from mmgibbs.results.folder import CONTENTS


def read_exported(run: str | os.PathLike) -> Finished:
    """Read the finished run of a mixed model. ConfigError where it is none."""
    finished = read_any_run(run)
    if finished.solutions is None:
        raise ConfigError(f"export: '{run}' holds a regression, needed the run of a mixed model")
    return finished


def read_any_run(run: str | os.PathLike) -> Finished:
    """Read a finished run, also of a regression. ConfigError where it is none."""
    try:
        return read_finished(run)
    except ConfigError as error:  # it speaks for the command that reads most runs
        raise ConfigError(f"export: {str(error).removeprefix('report: ')}") from None


def choose_folder(
    finished: Finished, output: str | os.PathLike | None, format_name: str, files: Sequence[str], overwrite: bool
) -> tuple[Path, list[str]]:
    """Return the folder to write, by default RUN-FORMAT, and those of the files that it has and that are replaced.

    ConfigError for a folder that holds a run (which a new run would replace, and leave these files beside it), and for
    files that are there already.
    """
    folder = finished.directory.with_name(f"{finished.directory.name}-{format_name}")
    folder = folder if output is None else Path(output)
    of_a_run = sorted(p.name for p in folder.iterdir() if p.name in CONTENTS) if folder.is_dir() else []
    if of_a_run:
        raise ConfigError(
            f"export: '{folder}' is the folder of a run (it holds {of_a_run[0]}), needed another folder for "
            f"{option_name('output')}"
        )
    existing = [name for name in files if (folder / name).exists()]
    if existing and not overwrite:
        raise ConfigError(
            f"export: '{folder}' holds {', '.join(existing)}; choose another {option_name('output')}, or give "
            f"{option('overwrite')}"
        )
    return folder, existing
