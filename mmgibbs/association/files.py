"""Files of an association: the tests of all SNPs, what was done, and the page."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from mmgibbs.association.chunks import FOLDER
from mmgibbs.errors import ConfigError, option
from mmgibbs.results.csv_files import csv_writer
from mmgibbs.results.folder import is_csv_wanted, plain
from mmgibbs.results.output_folder import check_output_folder, write_files

if TYPE_CHECKING:
    from mmgibbs.association.run import Association

FILES = (
    "markers.parquet",
    "markers.csv",
    "snp_effects.parquet",
    "windows.parquet",
    "windows.csv",
    "regions.parquet",
    "regions.csv",
    "gwas.json",
    "gwas.html",
)


def default_folder(run: str | os.PathLike) -> str:
    """Beside the run folder."""
    return f"{os.fspath(run).rstrip('/' + os.sep)}-gwas"


def output_folder(directory: str | os.PathLike, overwrite: bool, resume: bool) -> Path:
    """The absolute path, once it is sure that it may be written."""
    if (Path(directory) / FOLDER).is_dir() and not (overwrite or resume):
        raise ConfigError(
            f"gwas: '{directory}' holds a scan that is not finished; {option('resume')} continues it, "
            f"{option('overwrite')} starts again"
        )
    return check_output_folder(directory, overwrite or resume, (*FILES, FOLDER), "an association")


def write_association(association: Association, folder: Path, page: bool) -> None:
    """Write all files, whole or not at all."""
    values = association.values
    writers: dict[str, Callable[[Path], object]] = {"markers.parquet": values.write_parquet}
    if is_csv_wanted("auto", values.height):
        writers["markers.csv"] = csv_writer(values)
    if association.snp_effects is not None:
        writers["snp_effects.parquet"] = association.snp_effects.write_parquet
    if association.windows is not None:
        writers["windows.parquet"] = association.windows.write_parquet
        writers["windows.csv"] = csv_writer(association.windows)
    if association.regions is not None:
        writers["regions.parquet"] = association.regions.write_parquet
        writers["regions.csv"] = csv_writer(association.regions)
    facts = json.dumps(plain(association.facts | {"notes": list(association.notes)}), indent=2, ensure_ascii=False)
    writers["gwas.json"] = lambda path: path.write_text(facts + "\n", encoding="utf-8")
    if page:
        from mmgibbs.association.page import write_page  # and matplotlib with it

        writers["gwas.html"] = lambda path: write_page(association, path)
    write_files(folder, writers, FILES)
