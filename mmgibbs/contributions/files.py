"""Files of optimum contributions: their tables, what was done, and the page."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from mmgibbs.machine.output_places import OutputKind, check_output_folder
from mmgibbs.results.csv_files import csv_writer
from mmgibbs.results.folder import is_csv_wanted
from mmgibbs.results.output_folder import write_files

if TYPE_CHECKING:
    from mmgibbs.contributions.run import Contributions

TABLES = ("candidates", "frontier", "plans", "matings")
FILES = (
    *(f"{name}.{ending}" for name in TABLES for ending in ("parquet", "csv")),
    "contributions.json",
    "contributions.html",
)


KIND = OutputKind("contributions.json", frozenset(FILES), "contributions")


def default_folder(run: str | os.PathLike) -> str:
    """Beside the run folder."""
    return f"{os.fspath(run).rstrip('/' + os.sep)}-contributions"


def output_folder(directory: str | os.PathLike, overwrite: bool, inputs: Iterable[object] = ()) -> Path:
    """The absolute path, once it is sure that it may be written; inputs: what is read."""
    return check_output_folder(KIND, directory, overwrite, inputs)


def write_contributions(made: Contributions, folder: Path, page: bool, escaped: bool) -> None:
    """Write all files, whole or not at all; escaped: no formulas in csv files."""
    writers: dict[str, Callable[[Path], object]] = {}
    for name in TABLES:
        frame = getattr(made, name)
        writers[f"{name}.parquet"] = frame.write_parquet
        if is_csv_wanted("auto", frame.height):
            writers[f"{name}.csv"] = csv_writer(frame, escaped)
    if page:
        from mmgibbs.contributions.page import write_page  # and matplotlib with it

        writers["contributions.html"] = lambda path: write_page(made, path)
    write_files(KIND, folder, writers, made.facts | {"notes": list(made.notes)})
