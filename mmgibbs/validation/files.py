"""Files of a validation: its tables and its page."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mmgibbs.errors import ConfigError, option, option_name
from mmgibbs.machine.files import WORK, replaced_files
from mmgibbs.results.csv_files import write_csv
from mmgibbs.results.folder import plain
from mmgibbs.results.output_folder import check_output_folder

if TYPE_CHECKING:
    from mmgibbs.validation.results import Comparison, Validation


FILES = ("validation.csv", "validation.parquet", "predictions.parquet", "validation.json", "validation.html")
COMPARISON = ("comparison.csv", "comparison.parquet", "comparison.html")


def output_folder(directory: str | os.PathLike, overwrite: bool, folders: Sequence[str] = ()) -> Path:
    """The absolute path, once it is sure that it may be written. folders: of several validations beside a comparison of
    theirs."""
    path = Path(directory).resolve()
    if folders:
        return _folder_of_folders(path, directory, overwrite, folders)
    return check_output_folder(directory, overwrite, FILES, "a validation")


def _folder_of_folders(path: Path, directory: str | os.PathLike, overwrite: bool, folders: Sequence[str]) -> Path:
    _refuse_file(path, directory)
    names = {p.name for p in path.iterdir()} - {WORK} if path.is_dir() else set()
    if names & set(COMPARISON) and not overwrite:
        raise ConfigError(
            f"{option_name('output')}: '{directory}' holds a comparison; choose another one, or give "
            f"{option('overwrite')}"
        )
    for folder in folders:
        output_folder(path / folder, overwrite)
    return path


def _refuse_file(path: Path, directory: str | os.PathLike) -> None:
    if path.exists() and not path.is_dir():
        raise ConfigError(f"{option_name('output')}: '{directory}' is a file, needed a directory")


def _unwritable(path: Path, error: OSError) -> ConfigError:
    return ConfigError(f"{option_name('output')}: cannot write '{path}': {error.strerror}")


def write_comparison(
    comparison: Comparison, path: Path, report: bool, say: Callable[[str], None], escaped: bool = False
) -> None:
    """The files of COMPARISON, beside the folders of the validations; they take their places together."""
    with_page = report and _can_write_page(COMPARISON[2], say)
    try:
        with replaced_files(path, COMPARISON) as new:
            write_csv(comparison.table, new / COMPARISON[0], escaped)
            comparison.table.write_parquet(new / COMPARISON[1])
            if with_page:
                from mmgibbs.validation.comparison_page import write_page

                write_page(comparison, new / COMPARISON[2])
    except OSError as error:
        raise _unwritable(path, error) from None
    for note in comparison.notes:
        say(f"note: {note}")


def write(validation: Validation, path: Path, report: bool, say: Callable[[str], None], escaped: bool = False) -> None:
    """The files of FILES; they take their places together, once all are written. escaped: no formulas in csv files."""
    with_page = report and _can_write_page(FILES[4], say)
    try:
        with replaced_files(path, FILES) as new:
            write_csv(validation.table, new / FILES[0], escaped)
            validation.table.write_parquet(new / FILES[1])
            validation.predictions.write_parquet(new / FILES[2])
            record = plain(validation.info | {"statistics": validation.table.to_dicts()})
            (new / FILES[3]).write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
            if with_page:
                from mmgibbs.validation.page import write_page

                write_page(validation, new / FILES[4])
    except OSError as error:
        raise _unwritable(path, error) from None
    for note in validation.info["notes"]:
        say(f"note: {note}")


def _can_write_page(name: str, say: Callable[[str], None]) -> bool:
    """Whether the libraries of pages are installed; says which are not."""
    from mmgibbs.report.render import missing_libraries

    missing = missing_libraries()
    if missing:
        say(f"no {name}: found no {' and no '.join(missing)}; needed: pip install {' '.join(missing)}")
    return not missing
