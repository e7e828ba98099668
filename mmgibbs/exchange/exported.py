"""`mmgibbs export`: what its formats share, the run that is read and the folder that is written; draws as a table."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import polars as pl

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


DRAWS_FILES = ("draws.csv", "draws.parquet", "draws.json")
DRAWS_KIND = OutputKind(DRAWS_FILES[2], frozenset(DRAWS_FILES), "draws", is_alone=False)
RESERVED = ("chain", "draw")


def export_draws(run: str | os.PathLike, output: str | os.PathLike | None = None, *, overwrite: bool = False) -> Path:
    """Write the draws of a finished run; returns their folder, by default RUN-draws.

    ConfigError: no finished run, one whose method draws nothing, or files that are there already.
    """
    finished = read_any_run(run)
    method = finished.record.get("method", "gibbs")
    if method != "gibbs" or not finished.draws:  # draws.nc of REML and BLUP has the estimates alone
        raise ConfigError(f"export: expected a run with draws (method: gibbs), got one of method {method}")
    folder = choose_folder(finished, output, DRAWS_KIND, overwrite)
    frame = draws_frame(finished.draws)
    write_exported(DRAWS_KIND, folder, finished, {DRAWS_FILES[0]: frame, DRAWS_FILES[1]: frame})
    return folder


def draws_frame(draws: dict[str, np.ndarray]) -> pl.DataFrame:
    """A row for each draw, one chain after another, both counted from 1. draws: (chains, draws) each."""
    chains, kept = next(iter(draws.values())).shape
    columns = {"chain": np.repeat(np.arange(1, chains + 1), kept), "draw": np.tile(np.arange(1, kept + 1), chains)}
    columns |= {f"{name}_" if name in RESERVED else name: values.ravel() for name, values in draws.items()}
    return pl.DataFrame(columns)
