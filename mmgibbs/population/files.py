"""Files of a described pedigree: tables, figures as JSON, and the page."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from mmgibbs.machine.output_places import OutputKind, check_output_folder
from mmgibbs.results.csv_files import csv_writer
from mmgibbs.results.output_folder import write_files

if TYPE_CHECKING:
    from mmgibbs.population.facts import PedigreeFacts

PARENTAGE_TABLES = ("conflicts", "likely_parents", "duplicates")
FILES = (
    "animals.parquet",
    "years.csv",
    "ancestors.csv",
    "pedigree.json",
    "pedigree.html",
    *(f"{name}.{ending}" for name in PARENTAGE_TABLES for ending in ("parquet", "csv")),
)


KIND = OutputKind("pedigree.json", frozenset(FILES), "a described pedigree")


def output_folder(directory: str | os.PathLike, overwrite: bool, inputs: Iterable[object] = ()) -> Path:
    """The absolute path, once it is sure that it may be written; inputs: what is read."""
    return check_output_folder(KIND, directory, overwrite, inputs)


def write_facts(described: PedigreeFacts, folder: Path, page: bool, escaped: bool) -> None:
    """Write all files, whole or not at all; escaped: no formulas in csv files."""
    writers: dict[str, Callable[[Path], object]] = {
        "animals.parquet": described.animals.write_parquet,
        "years.csv": csv_writer(described.years, escaped),
        "ancestors.csv": csv_writer(described.ancestors, escaped),
    }
    for name in PARENTAGE_TABLES if described.parentage is not None else ():
        frame = getattr(described.parentage, name)
        writers[f"{name}.parquet"] = frame.write_parquet
        writers[f"{name}.csv"] = csv_writer(frame, escaped)
    if page:
        from mmgibbs.population.page import write_page  # and matplotlib with it

        writers["pedigree.html"] = lambda path: write_page(described, path)
    write_files(KIND, folder, writers, described.facts | {"notes": list(described.notes)})
