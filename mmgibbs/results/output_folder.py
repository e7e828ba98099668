"""The folder that a command writes its files into, other than a run folder, and the record that lists them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl

from mmgibbs.errors import ConfigError
from mmgibbs.machine.files import WORK, flush_and_hash, replaced_files
from mmgibbs.machine.output_places import FILES, OutputKind, refuse_foreign, refuse_links
from mmgibbs.results.checksums import CHECKSUMS, record_with_checksum
from mmgibbs.results.csv_files import write_csv
from mmgibbs.results.plain_values import plain

# Of a file: its table, as csv or parquet by its ending; its text; or a function that writes it. None: no such file
Content = pl.DataFrame | str | Callable[[Path], object] | None


def write_files(
    kind: OutputKind,
    folder: Path,
    contents: Mapping[str, Content],
    facts: Mapping[str, Any],
    escaped: bool = False,
    moved: Mapping[str, Path] | None = None,
) -> None:
    """Write files and their record, whole or not at all; those of an earlier record are removed.

    folder: from `check_output_folder`, called before any work was done. facts, moved: see `new_files`. escaped: no
    formulas in csv files.
    """
    try:
        with new_files(kind, folder, facts, moved) as work:
            for name, content in contents.items():
                write_file(work / name, content, escaped)
    except OSError as error:
        raise ConfigError(f"{kind.place_name}: cannot write '{folder}': {error.strerror or error}") from error


def write_file(path: Path, content: Content, escaped: bool) -> None:
    """Write one file; escaped: no formulas in a csv file."""
    if isinstance(content, str):
        path.write_text(content, encoding="utf-8")
    elif isinstance(content, pl.DataFrame) and path.suffix == ".parquet":
        content.write_parquet(path)
    elif isinstance(content, pl.DataFrame) and path.suffix == ".csv":
        write_csv(content, path, escaped)
    elif isinstance(content, pl.DataFrame):
        raise ValueError(f"expected a table's file to end in .csv or .parquet, got {path.name}")
    elif content is not None:
        content(path)


@contextmanager
def new_files(
    kind: OutputKind, folder: Path, facts: Mapping[str, Any], moved: Mapping[str, Path] | None = None
) -> Iterator[Path]:
    """Yield a folder for new files, which take their places in `folder` together at the end of the block.

    Their record is written with them. facts: what it holds besides the names and checksums of the files. moved: see
    `replaced_files`.
    """
    shown = f"{kind.place_name}: '{folder}'"
    refuse_links(folder, (*kind.files, WORK), shown)  # someone may have been quicker
    written = kind.list_written(folder)
    refuse_foreign(folder, kind, written, shown)
    with replaced_files(folder, written, kind.record, moved) as work:
        yield work
        unknown = {path.name for path in work.iterdir()} - kind.files
        assert not unknown, f"{unknown} are no files of {kind.what}"
        write_record(work, kind.record, facts, names=moved or ())


def write_record(
    work: Path, name: str, facts: Mapping[str, Any], has_checksum: bool = False, names: Iterable[str] = ()
) -> None:
    """Write a record of the files in `work`, with their names and checksums.

    has_checksum: with one of itself too. names: what is listed besides, without a checksum.
    """
    results = sorted(work.iterdir())
    listed = {FILES: sorted([*(path.name for path in results), name, *names]), CHECKSUMS: flush_and_hash(results)}
    record = plain({**facts, **listed})
    if has_checksum:
        record = record_with_checksum(record)
    text = json.dumps(record, indent=2, ensure_ascii=False, allow_nan=False)
    (work / name).write_text(f"{text}\n", encoding="utf-8")
