"""A text file with one id on each line: of candidates, of levels whose draws are kept."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from mmgibbs.data.phenotypes import SHOWN
from mmgibbs.errors import ConfigError
from mmgibbs.pedigree.columns import has_role_name
from mmgibbs.pedigree.tables import quoted

_SEPARATORS = (",", ";", "\t")


def read_ids_file(path: Path, where: str, what: str) -> list[tuple[int, str]]:
    """(row, id): one id per line; blank lines are passed over, and a first line that is a name of ids.

    where: the key and the file; what: an id is one of, such as 'candidate'.
    """
    try:
        text = path.read_text(encoding="utf-8").lstrip("\ufeff").removesuffix("\x1a")
    except OSError as error:
        raise ConfigError(f"{where}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{where}: is not UTF-8 text, needed one id per line") from None
    lines = enumerate((_unquoted(line.strip()) for line in text.splitlines()), 1)
    ids = [(row, line) for row, line in lines if line]
    if len(ids) > 1 and has_role_name(ids[0][1], "id"):
        ids = ids[1:]
    if not ids:
        raise ConfigError(f"{where}: found no id, needed one id per line")
    first: dict[str, int] = {}
    for row, id_ in ids:
        if first.setdefault(id_, row) != row:
            rows = f"rows {first[id_]} and {row}"
            raise ConfigError(f"{where}: found {quoted(id_)} twice, in {rows}, needed every {what} once")
    return ids


def _unquoted(line: str) -> str:
    """K12 for "K12", as spreadsheets and R write a column of text."""
    return line[1:-1].strip() if len(line) > 2 and line[0] == line[-1] == '"' else line


def name_absent(ids: Sequence[str], rows: Sequence[int] | None, is_absent: np.ndarray) -> str:
    """'x1' (row 2), 'x2' (row 5) and 3 more; rows: of a file, None of a list. At least one is absent."""
    absent = np.flatnonzero(is_absent).tolist()
    shown = [quoted(ids[i]) + ("" if rows is None else f" (row {rows[i]})") for i in absent[:SHOWN]]
    more = f" and {len(absent) - SHOWN:,} more" if len(absent) > SHOWN else ""
    columns = rows is not None and any(mark in ids[absent[0]] for mark in _SEPARATORS)
    return f"{', '.join(shown)}{more}{' (a line has one id and no other columns)' if columns else ''}"
