"""Csv files, on request such that no spreadsheet takes an id or a name for a formula.

Excel, LibreOffice and Google Sheets compute a cell that begins with = + - @, a tab or a carriage return, also in a file
from someone else: an animal called `=HYPERLINK(...)` would become a link. An apostrophe before it makes it text.
Numbers are left alone, as they are no text. Every table that is a result is written here (tests/unit/results/
test_csv_files.py); tables that the program reads again as input are not escaped.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

_FORMULA = "^[=+\\-@\t\r]"
_ESCAPED = "^'[=+\\-@\t\r]"


def escape_formulas(frame: pl.DataFrame) -> pl.DataFrame:
    """An apostrophe before text, in cells and in names of columns, that begins like a formula."""
    text = pl.col(pl.String)
    escaped = frame.with_columns(
        pl.when(text.str.contains(_FORMULA)).then(pl.lit("'") + text).otherwise(text).name.keep()
    )
    return escaped.rename({name: f"'{name}" for name in frame.columns if name[:1] in tuple("=+-@\t\r")})


def unescape_formulas(frame: pl.DataFrame) -> pl.DataFrame:
    """The cells as they were before `escape_formulas`."""
    text = pl.col(pl.String)
    return frame.with_columns(pl.when(text.str.contains(_ESCAPED)).then(text.str.slice(1)).otherwise(text).name.keep())


def is_escaped(record: Mapping[str, Any]) -> bool:
    """Check whether the analysis asks for csv files without formulas (output.escape_formulas). record: run.json."""
    return bool((record.get("analysis", {}).get("output") or {}).get("escape_formulas"))


def write_csv(frame: pl.DataFrame, path: Path, escaped: bool) -> None:
    """Write a csv file; escaped: see `escape_formulas`."""
    (escape_formulas(frame) if escaped else frame).write_csv(path)
