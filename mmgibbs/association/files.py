"""Files of an association: the tests of all SNPs, what was done, and the page."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from mmgibbs.association.chunks import FOLDER, is_chunk
from mmgibbs.errors import ConfigError, option
from mmgibbs.machine.output_places import OutputKind, check_output_folder, list_names, name_some
from mmgibbs.results.csv_files import csv_writer
from mmgibbs.results.folder import is_csv_wanted
from mmgibbs.results.output_folder import write_files

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


KIND = OutputKind("gwas.json", frozenset(FILES), "an association", frozenset({FOLDER}))


def default_folder(run: str | os.PathLike) -> str:
    """Beside the run folder."""
    return f"{os.fspath(run).rstrip('/' + os.sep)}-gwas"


def output_folder(directory: str | os.PathLike, overwrite: bool, resume: bool, inputs: Iterable[object] = ()) -> Path:
    """The absolute path, once it is sure that it may be written; inputs: what is read."""
    if (Path(directory) / FOLDER).is_dir() and not (overwrite or resume):
        raise ConfigError(
            f"gwas: '{directory}' holds a scan that is not finished; {option('resume')} continues it, "
            f"{option('overwrite')} starts again"
        )
    strange = {name for name in list_names(Path(directory) / FOLDER) if not is_chunk(name)}
    if strange:
        raise ConfigError(
            f"{KIND.place_name}: '{directory}' has a folder {FOLDER} with other files ({name_some(strange)}); choose "
            "another one"
        )
    return check_output_folder(KIND, directory, overwrite or resume, inputs)


def write_association(association: Association, folder: Path, page: bool, escaped: bool) -> None:
    """Write all files, whole or not at all; escaped: no formulas in csv files."""
    values = association.values
    writers: dict[str, Callable[[Path], object]] = {"markers.parquet": values.write_parquet}
    if is_csv_wanted("auto", values.height):
        writers["markers.csv"] = csv_writer(values, escaped)
    if association.snp_effects is not None:
        writers["snp_effects.parquet"] = association.snp_effects.write_parquet
    if association.windows is not None:
        writers["windows.parquet"] = association.windows.write_parquet
        writers["windows.csv"] = csv_writer(association.windows, escaped)
    if association.regions is not None:
        writers["regions.parquet"] = association.regions.write_parquet
        writers["regions.csv"] = csv_writer(association.regions, escaped)
    if page:
        from mmgibbs.association.page import write_page  # and matplotlib with it

        writers["gwas.html"] = lambda path: write_page(association, path)
    write_files(KIND, folder, writers, association.facts | {"notes": list(association.notes)})
