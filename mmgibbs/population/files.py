"""Files of a described pedigree: tables, figures as JSON, and the page."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from mmgibbs.results.csv_files import csv_writer
from mmgibbs.results.folder import plain
from mmgibbs.results.output_folder import check_output_folder, write_files

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


def output_folder(directory: str | os.PathLike, overwrite: bool) -> Path:
    """The absolute path, once it is sure that it may be written."""
    return check_output_folder(directory, overwrite, FILES, "a described pedigree")


def write_facts(described: PedigreeFacts, folder: Path, page: bool) -> None:
    """Write all files, whole or not at all."""
    text = json.dumps(plain(described.facts | {"notes": list(described.notes)}), indent=2, ensure_ascii=False)
    writers: dict[str, Callable[[Path], object]] = {
        "animals.parquet": described.animals.write_parquet,
        "years.csv": csv_writer(described.years),
        "ancestors.csv": csv_writer(described.ancestors),
        "pedigree.json": lambda path: path.write_text(text + "\n", encoding="utf-8"),
    }
    for name in PARENTAGE_TABLES if described.parentage is not None else ():
        frame = getattr(described.parentage, name)
        writers[f"{name}.parquet"] = frame.write_parquet
        writers[f"{name}.csv"] = csv_writer(frame)
    if page:
        from mmgibbs.population.page import write_page  # and matplotlib with it

        writers["pedigree.html"] = lambda path: write_page(described, path)
    write_files(folder, writers, FILES)
