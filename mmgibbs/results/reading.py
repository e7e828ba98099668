"""What a finished run left in its folder, read again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl

from mmgibbs.errors import ConfigError


def read_record(folder: Path, asked: str = "") -> dict[str, Any]:
    """run.json of the folder. asked: what wants it, such as 'report: '; it begins the message.

    Raises ConfigError where the file cannot be read or holds no run.
    """
    path = folder / "run.json"
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{asked}'{path}' cannot be read: {error}") from None
    if not isinstance(record, dict):
        raise ConfigError(f"{asked}'{path}' holds no run; needed what `mmgibbs run` writes")
    return record


def read_table(path: Path, asked: str = "") -> pl.DataFrame:
    """A table of a run folder. ConfigError where it cannot be read; asked: as in read_record."""
    try:
        return pl.read_parquet(path)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise ConfigError(f"{asked}'{path}' cannot be read: {str(error).splitlines()[0]}") from None


def read_table_if_any(path: Path, asked: str = "") -> pl.DataFrame | None:
    return read_table(path, asked) if path.exists() else None
