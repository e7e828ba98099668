"""How a text lays out its table: the separator, lines above it, rows without a value, cells behind the last column."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from mmgibbs.pedigree.messages import counted, quoted
from mmgibbs.pedigree.scan import Scan

WHITESPACE = " "  # as a separator: any run of blanks and tabs
_COMMON_SEPARATORS = ("\t", ",", ";", "|")
_LINES_FOR_GUESS = 50
_MAX_LINES_ABOVE = 20  # of a title or comments above a table
_HEAD_BYTES = 1 << 16  # that the guesses look at, and the whole first lines of wide tables
_MAX_HEAD_BYTES = 1 << 24
_SHOWN_ROWS = 20  # of another number of fields, named one by one


class Tidied(NamedTuple):
    """A text without the cells that a spreadsheet leaves behind; what was done, in words."""

    content: bytes
    notes: tuple[str, ...]


def clear_blank_rows(content: bytes, separator: str, name: str) -> Tidied:
    """Make blank lines of rows that have separators and no value, as ';;;;' and ',"",'; lines keep their numbers."""
    mark = separator.encode()
    if separator == WHITESPACE or not _may_have_blank_rows(content, mark):
        return Tidied(content, ())
    space, mark = (b" " if separator == "\t" else b"[ \t]"), re.escape(mark)
    quotes = rb'"%s*"(?!")' % space
    first, empty = rb"%s*(?:%s%s*)?" % (space, quotes, space), rb"(?:%s|%s|%s)*" % (mark, quotes, space)
    blank = re.compile(rb"^%s%s%s(?=\r?$)" % (first, mark, empty), re.MULTILINE)
    found = blank.search(content)
    if found is None:
        return Tidied(content, ())
    row = content.count(b"\n", 0, found.start()) + 1
    cleared, n = blank.subn(b"", content)
    return Tidied(cleared, (f"{name}: {counted(n, 'row')} without a value read past (the first: row {row})",))


def _may_have_blank_rows(content: bytes, mark: bytes) -> bool:
    """Check whether a line begins as a row without values does, which is enough for most tables."""
    starts = (mark, b'""', b'" ', b'"\t', b" ", b"\t")
    return content.startswith(starts) or any(b"\n" + start in content for start in starts)


def cut_empty_cells(content: bytes, separator: str, name: str) -> Tidied | None:
    """Cut cells without a value behind the last column of rows that have more of them than others; None where some rows
    differ by more than that.
    """
    lines, counts = content.split(b"\n"), []
    filled = []  # fields of each row up to its last value
    for line in lines:
        fields = _split(line, separator)
        counts.append(len(fields))
        while fields and not fields[-1].strip():
            fields.pop()
        filled.append(len(fields))
    rows = [i for i, line in enumerate(lines) if line.strip()]
    n = max(filled[i] for i in rows)
    if min(counts[i] for i in rows) < n:
        return None
    longer = [i for i in rows if counts[i] > n]
    for i in longer:
        end = b"\r" if lines[i].endswith(b"\r") else b""
        lines[i] = lines[i].removesuffix(b"\r").rsplit(separator.encode(), counts[i] - n)[0] + end
    some = counted(len(longer), "row")
    note = f"{name}: {some} with cells behind the last column, all of them empty: read without these"
    return Tidied(b"\n".join(lines), (f"{note} (the first: row {longer[0] + 1})",))


def _split(line: bytes, separator: str) -> list[str]:
    text = line.decode().removesuffix("\r")
    if '"' not in text:
        return text.split(separator)
    try:
        return next(csv.reader([text], delimiter=separator), [])
    except csv.Error:  # a field too long for a table
        return [text]


def describe_uneven_rows(content: bytes, separator: str, name: str, scanned: Scan) -> str:
    """Write which rows have another number of fields than the first, all of them where they are few."""
    said = (
        f"{name} row {scanned.uneven_line}: found {counted(scanned.uneven_fields, 'field')} separated by "
        f"{describe_separator(separator)}, needed {scanned.n_fields} as in row {scanned.first_line}"
        f"{_hint_row_names(content, scanned)}"
    )
    if scanned.multiline or separator == WHITESPACE:
        return said
    counts = {i: len(_split(line, separator)) for i, line in enumerate(content.split(b"\n"), 1) if line.strip()}
    others = [(i, n) for i, n in counts.items() if n != scanned.n_fields and i > scanned.uneven_line]
    if not others or len(others) > len(counts) / 2:
        return said
    shown = ", ".join(f"row {i} ({n})" for i, n in others[:_SHOWN_ROWS])
    more = f" and {len(others) - _SHOWN_ROWS:,} more" if len(others) > _SHOWN_ROWS else ""
    return f"{said}; so have {shown}{more}"


def head_of_text(content: bytes) -> list[str]:
    """Return the first lines, none of them cut short."""
    size = _HEAD_BYTES
    while size < min(len(content), _MAX_HEAD_BYTES) and content.count(b"\n", 0, size) < 3:
        size *= 4
    head = content[:size]
    if size < len(content):
        head = head[: head.rfind(b"\n") + 1] or head
    return head.decode(errors="ignore").splitlines()


def _hint_row_names(content: bytes, scanned: Scan) -> str:
    """Recognise a table of R's write.table: names of rows in every line, and none for them in the first."""
    lines = content[: 1 << 20].split(b"\n")[scanned.first_line - 1 :][:2]
    one_more = scanned.uneven_line == scanned.first_line + 1 and scanned.uneven_fields == scanned.n_fields + 1
    if not one_more or any(c in b"0123456789" for c in lines[0]) or not lines[1].lstrip(b'"')[:1].isdigit():
        return ""
    return "; has the first column no name? (in R, write.table(..., row.names = FALSE) leaves out the names of rows)"


def describe_separator(separator: str) -> str:
    return {WHITESPACE: "white space", "\t": "tabs"}.get(separator, f"'{separator}'")


def explain_leading_lines(content: bytes, name: str, separator: str, is_stated: bool) -> str | None:
    """Explain that the first lines are none of the table; None if they are.

    Other separators than the guessed one are tried only if it does not split the first line, or is white space: that
    splits any sentence.
    """
    lines = [(row, line) for row, line in enumerate(head_of_text(content), 1) if line.strip()]
    is_split = separator != WHITESPACE and bool(lines) and max(_count_fields([lines[0][1]], separator), default=0) > 1
    marks = (separator,) if is_stated or is_split else (*_COMMON_SEPARATORS, WHITESPACE)
    for n_above in range(1, min(_MAX_LINES_ABOVE, len(lines) - 2) + 1):
        below = [line for _, line in lines[n_above : n_above + _LINES_FOR_GUESS]]
        for mark in marks:
            counts, first_counts = _count_fields(below, mark), _count_fields([lines[0][1]], mark)
            if not counts or not first_counts:
                continue
            n, n_first = counts.pop(), max(first_counts)
            if counts or n < 2 or n_first == n:
                continue
            if n_above == 1 and (n_first > n or (n_first == n - 1 and n > 2)):
                return None  # names of columns: more than there are, or all but that of row names
            rows = f"row {lines[0][0]}" if n_above == 1 else f"rows {lines[0][0]} to {lines[n_above - 1][0]}"
            first = "it is" if n_above == 1 else "they are"
            return (
                f"{name} row {lines[0][0]}: found {quoted(lines[0][1].strip())}, and below {rows} fields separated by "
                f"{describe_separator(mark)}, {n} in each row; needed the table alone: delete {rows} "
                f"if {first} a title or a comment"
            )
    return None


def _count_fields(lines: Sequence[str], separator: str) -> set[int]:
    if separator == WHITESPACE:
        return {len(line.split()) for line in lines}
    try:
        return {len(row) for row in csv.reader(lines, delimiter=separator)}
    except csv.Error:  # a field too long for a table
        return set()


def guess_separator(content: bytes, path: Path) -> str:
    """Guess the separator: the first that cuts the first lines into equally many fields, at least two.

    Else the file's name decides.
    """
    lines = [x for x in head_of_text(content)[:_LINES_FOR_GUESS] if x.strip()]
    for separator in _COMMON_SEPARATORS:
        filled = [line for line in lines if line.strip(f' "{separator}')]  # rows without a value may be shorter
        counts = _count_fields(filled, separator)
        if len(counts) == 1 and counts.pop() > 1:
            return separator
    if not lines:
        return WHITESPACE
    suffixes = path.suffixes
    by_count = max(_COMMON_SEPARATORS, key=lines[0].count)
    if ".tsv" in suffixes and "\t" in lines[0]:
        return "\t"
    if ".csv" in suffixes and by_count in lines[0]:
        return by_count
    return WHITESPACE
