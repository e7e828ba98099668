"""Tables whose columns have fixed widths: each line is divided by the places of its characters, not by separators."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from mmgibbs.pedigree.errors import TableError


def split_lines(content: bytes, widths: Sequence[int], name: str) -> tuple[pl.DataFrame, np.ndarray]:
    """Return (frame of the columns '1', '2', ..., all String, null where blank; the line of each of its rows).

    content: UTF-8 text; widths: characters of each column; name: of the file, for errors. A line may end within or
    before a column, which is then empty. Blank lines are left out. Raises TableError for a width that is not positive,
    a tab, and text behind the last column.
    """
    if not widths or any(width < 1 for width in widths):
        raise TableError(f"{name}: found the widths {list(widths)}, needed one of at least 1 for each column")
    lines = pl.Series("line", content.decode().replace("\r\n", "\n").split("\n"), pl.String)
    numbers = pl.Series("number", np.arange(1, len(lines) + 1, dtype=np.int64))
    filled = lines.str.strip_chars() != ""
    lines, numbers = lines.filter(filled), numbers.filter(filled)
    if not len(lines):
        raise TableError(f"{name}: is empty")
    _refuse(lines.str.contains("\t", literal=True), numbers, name, "found a tab; needed blanks, as widths are counted")
    total = sum(widths)
    behind = lines.str.slice(total).str.strip_chars()
    _refuse(
        behind != "", numbers, name,
        f"found text behind the {len(widths)} columns, which take {total} characters; needed a width for each column",
    )  # fmt: skip
    starts = np.concatenate([[0], np.cumsum(widths)])
    columns = [
        lines.str.slice(int(start), width).str.strip_chars().alias(str(i))
        for i, (start, width) in enumerate(zip(starts[:-1], widths, strict=True), 1)
    ]
    frame = pl.DataFrame(columns).with_columns(pl.when(pl.all() != "").then(pl.all()))
    return frame, numbers.to_numpy()


def _refuse(wrong: pl.Series, numbers: pl.Series, name: str, what: str) -> None:
    if wrong.any():
        first = int(wrong.arg_max() or 0)
        more = f" ({int(wrong.sum()):,} such rows)" if wrong.sum() > 1 else ""
        raise TableError(f"{name} row {numbers[first]}: {what}{more}")
