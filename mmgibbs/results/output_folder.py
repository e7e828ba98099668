"""The folder that a command writes its files into, other than a run folder, and the record that lists them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from mmgibbs.errors import ConfigError
from mmgibbs.machine.files import WORK, flush_and_hash, replaced_files
from mmgibbs.machine.output_places import FILES, OutputKind, list_written, refuse_foreign, refuse_links
from mmgibbs.results.checksums import CHECKSUMS, record_with_checksum
from mmgibbs.results.plain_values import plain

Writers = Mapping[str, Callable[[Path], object]]  # name of a file -> what writes it


def write_files(
    kind: OutputKind,
    folder: Path,
    writers: Writers,
    facts: Mapping[str, Any],
    moved: Mapping[str, Path] | None = None,
) -> None:
    """Write files and their record, whole or not at all; those of an earlier record are removed.

    facts: what the record holds besides the names and checksums of the files. moved: see `replaced_files`.
    """
    shown = f"{kind.place_name}: '{folder}'"
    refuse_links(folder, (*kind.files, WORK), shown)  # someone may have been quicker
    written = list_written(folder, kind)
    refuse_foreign(folder, kind, written, shown)
    try:
        with replaced_files(folder, written, kind.record, moved) as work:
            for name, write in writers.items():
                assert name in kind.files, f"{name} is no file of {kind.what}"
                write(work / name)
            write_record(work, kind.record, facts, names=moved or ())
    except OSError as error:
        raise ConfigError(f"{kind.place_name}: cannot write '{folder}': {error.strerror or error}") from error


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
