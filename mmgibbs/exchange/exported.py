"""Parts of `mmgibbs export` that its formats share: the run that is read and the folder that is written."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from mmgibbs.errors import ConfigError, option_name
from mmgibbs.machine.output_places import OutputKind, check_output_folder, list_run_inputs, name_results_folder
from mmgibbs.report.finished import Finished, read_finished
from mmgibbs.results.csv_files import is_escaped
from mmgibbs.results.folder import RUN_FOLDER
from mmgibbs.results.output_folder import Content, write_files


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


def choose_folder(finished: Finished, output: str | os.PathLike | None, kind: OutputKind, overwrite: bool) -> Path:
    """Return the folder to write, by default RUN-FORMAT.

    ConfigError for a folder that holds a run (which a new run would replace, and leave these files beside it), and for
    files that are there already.
    """
    format_name = kind.record.removesuffix(".json")
    folder = Path(name_results_folder(finished.directory, format_name) if output is None else output)
    of_a_run = sorted(RUN_FOLDER.list_written(folder))
    if of_a_run:
        raise ConfigError(
            f"export: '{folder}' is the folder of a run (it holds {of_a_run[0]}), needed another folder for "
            f"{option_name('output')}"
        )
    check_output_folder(kind, folder, overwrite, list_run_inputs(finished.directory, finished.record))
    return folder


def write_exported(kind: OutputKind, folder: Path, finished: Finished, contents: Mapping[str, Content]) -> None:
    """Write the files of a format, and a record of them."""
    facts = {"run": str(finished.directory)}
    write_files(kind, folder.resolve(), contents, facts, is_escaped(finished.record))
