"""Files of a validation: its tables and its page."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mmgibbs.machine.output_places import OutputKind, check_output_folder, refuse_links
from mmgibbs.results.output_folder import Content, write_files

if TYPE_CHECKING:
    from mmgibbs.validation.results import Comparison, Validation


FILES = ("validation.csv", "validation.parquet", "predictions.parquet", "validation.json", "validation.html")
COMPARISON = ("comparison.csv", "comparison.parquet", "comparison.json", "comparison.html")
KIND = OutputKind("validation.json", frozenset(FILES), "a validation")
KIND_OF_COMPARISON = OutputKind("comparison.json", frozenset(COMPARISON), "a comparison", is_alone=False)


def output_folder(
    directory: str | os.PathLike, overwrite: bool, folders: Sequence[str] = (), inputs: Iterable[object] = ()
) -> Path:
    """The absolute path, once it is sure that it may be written. folders: of several validations beside a comparison of
    theirs; inputs: what is read."""
    inputs = list(inputs)
    if not folders:
        return check_output_folder(KIND, directory, overwrite, inputs)
    path = check_output_folder(KIND_OF_COMPARISON, directory, overwrite, inputs)
    refuse_links(path, folders, f"{KIND_OF_COMPARISON.place_name}: '{directory}'")
    for folder in folders:
        check_output_folder(KIND, path / folder, overwrite, inputs)
    return path


def write_comparison(
    comparison: Comparison, path: Path, report: bool, say: Callable[[str], None], escaped: bool = False
) -> None:
    """The files of COMPARISON, beside the folders of the validations; they take their places together."""
    contents: dict[str, Content] = {"comparison.csv": comparison.table, "comparison.parquet": comparison.table}
    if report and _can_write_page("comparison.html", say):
        from mmgibbs.validation.comparison_page import write_page

        contents["comparison.html"] = lambda new: write_page(comparison, new)
    write_files(KIND_OF_COMPARISON, path, contents, {"notes": list(comparison.notes)}, escaped)
    for note in comparison.notes:
        say(f"note: {note}")


def write(validation: Validation, path: Path, report: bool, say: Callable[[str], None], escaped: bool = False) -> None:
    """The files of FILES; they take their places together, once all are written. escaped: no formulas in csv files."""
    contents: dict[str, Content] = {
        "validation.csv": validation.table,
        "validation.parquet": validation.table,
        "predictions.parquet": validation.predictions,
    }
    if report and _can_write_page("validation.html", say):
        from mmgibbs.validation.page import write_page

        contents["validation.html"] = lambda new: write_page(validation, new)
    write_files(KIND, path, contents, validation.info | {"statistics": validation.table.to_dicts()}, escaped)
    for note in validation.info["notes"]:
        say(f"note: {note}")


def _can_write_page(name: str, say: Callable[[str], None]) -> bool:
    """Check whether the libraries of pages are installed; say which are not."""
    from mmgibbs.report.render import missing_libraries

    missing = missing_libraries()
    if missing:
        say(f"no {name}: found no {' and no '.join(missing)}; needed: pip install {' '.join(missing)}")
    return not missing
