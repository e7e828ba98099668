"""Tables from files, every value as the text it was: csv, tsv, white space, parquet, arrow; gzipped or not.

Text files are checked before they are parsed: text in a known encoding, every row with as many fields as the first,
quotation marks around whole fields and closed. Nothing is padded, cut or dropped but what has no value: blank lines,
rows of separators alone, cells behind the last column, columns without a name. Notes say so, and lines keep their
numbers.
"""

from __future__ import annotations

import csv
import difflib
import io
import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl

from mmgibbs.pedigree.contents import decode_text, read_bytes
from mmgibbs.pedigree.errors import TableError
from mmgibbs.pedigree.fixed_width import split_lines
from mmgibbs.pedigree.layout import (
    WHITESPACE,
    clear_blank_rows,
    cut_empty_cells,
    describe_uneven_rows,
    explain_leading_lines,
    guess_separator,
)
from mmgibbs.pedigree.messages import EXACT, agreeing, counted, format_number, quoted
from mmgibbs.pedigree.scan import WRONG, Scan, scan

__all__ = (
    "Separator", "Source", "Table", "agreeing", "counted", "format_number", "ids_as_text", "nearest", "open_table",
    "quoted", "read_table",
)  # fmt: skip

Source = str | os.PathLike[str] | pl.DataFrame  # what a table is read from

# Between the columns of a text file: a character, the widths of columns, or None for a guess.
Separator = str | Sequence[int] | None
_BINARY = {  # how files begin -> their kind, and what reads them
    b"PAR1": ("parquet", "read_parquet"),
    b"ARROW1": ("arrow", "read_ipc"),
    b"\xff\xff\xff\xff": ("arrow", "read_ipc_stream"),
}


@dataclass(frozen=True)
class Table:
    """An opened table: its columns are known, its values are not parsed yet.

    Attributes
    ----------
    name : str
        Name of the table in messages.
    names : tuple of str
        Columns, from the header line, as given, or '1', '2', ... without one.
    has_header : bool
        Whether the first line has the names.
    first_record : tuple of str or None
        Fields of the first line of a text file, header or not; None for other sources.
    n_rows : int
        Number of rows.
    notes : tuple of str
        What was read past, and in which encoding if not UTF-8.
    """

    name: str  # as errors call it
    names: tuple[str, ...]
    has_header: bool
    first_record: tuple[str, ...] | None
    n_rows: int
    _content: bytes | pl.DataFrame
    _separator: str
    _padded: bool
    _lines: np.ndarray | None  # (n_rows,) int64 where blank lines or line breaks within quotes make them uneven
    notes: tuple[str, ...] = ()
    _parsed: tuple[str, ...] = ()  # names of all columns of the file, where some of them are not in `names`
    _kept: np.ndarray | None = None  # (rows of the file,) bool, where some rows were left out

    def line(self, row: int) -> int:
        """Return the line of the file, from 1 as an editor shows it, on which row 0, 1, ... begins.

        Parquet, arrow and frames have no lines: for them it is the row, from 1.
        """
        return int(self._lines[row]) if self._lines is not None else int(row) + 1 + self.has_header

    def lines(self) -> np.ndarray:
        """Return the line of every row, (n_rows,) int64."""
        return self._lines if self._lines is not None else np.arange(self.n_rows, dtype=np.int64) + 1 + self.has_header

    def with_header(self) -> Table:
        """Return the same text file with its first line as the names of its columns."""
        assert self.first_record is not None, "a frame's columns always have names"
        names = tuple(f or f"column {i}" for i, f in enumerate(self.first_record, 1))
        first: dict[str, int] = {}
        for i, column in enumerate(names, 1):
            if first.setdefault(column, i) != i:
                raise TableError(
                    f"{self.name}: columns {first[column]} and {i} are both named {quoted(column)}"
                    + (": is the first line a row of the table?" if column.isdigit() else "")
                )
        if self.n_rows == 1:
            raise TableError(f"{self.name}: has a header line but no rows")
        lines = None if self._lines is None else self._lines[1:]
        below = replace(self, has_header=True, n_rows=self.n_rows - 1, _lines=lines)
        if isinstance(self._content, pl.DataFrame):  # of columns of fixed widths
            below = replace(below, _content=self._content[1:])
        return below.renamed(names)._drop_empty_columns([i for i, f in enumerate(self.first_record) if not f])

    def _drop_empty_columns(self, nameless: Sequence[int]) -> Table:
        """Return the table without those columns that have neither a name nor a value."""
        if not nameless:
            return self
        nulls = self.read([self.names[i] for i in nameless]).null_count().row(0)
        empty = {self.names[i] for i, n in zip(nameless, nulls, strict=True) if n == self.n_rows}
        if not empty or len(empty) == len(self.names):
            return self
        note = f"{self.name}: {counted(len(empty), 'column')} without a name and without a value read past"
        rest = tuple(n for n in self.names if n not in empty)
        return replace(self, names=rest, _parsed=self.names, notes=(*self.notes, note))

    def keep(self, mask: np.ndarray) -> Table:
        """Return the table with those of its rows where `mask` (n_rows,) is True; their lines stay what they are."""
        kept = mask
        if self._kept is not None:
            kept = self._kept.copy()
            kept[kept] = mask
        return replace(self, n_rows=int(mask.sum()), _lines=self.lines()[mask], _kept=kept)

    def renamed(self, names: tuple[str, ...]) -> Table:
        """Return the same table with these names of its columns."""
        content = self._content
        if isinstance(content, pl.DataFrame):
            content = content.rename(dict(zip(content.columns, names, strict=True)))
        return replace(self, names=names, _content=content, _parsed=())

    @property
    def separator(self) -> str:
        """Separator of a text file, a tab for any white space; '' for other sources."""
        return self._separator

    def column(self, wanted: str | int) -> str:
        """Return a column's name, given that or its position (from 1). Raises TableError with the nearest names."""
        if isinstance(wanted, int):
            if not 1 <= wanted <= len(self.names):
                raise TableError(f"{self.name}: there is no column {wanted}; found {len(self.names)} columns")
            return self.names[wanted - 1]
        if wanted not in self.names:
            raise TableError(f"{self.name}: there is no column '{wanted}'; {nearest(wanted, self.names)}")
        return wanted

    def read(self, columns: Sequence[str | int] | None = None, all_strings: bool = True) -> pl.DataFrame:
        """Read the chosen columns (names or positions; None: all). Outer blanks go, empty values are null.

        all_strings: every column as String, integral floating numbers without their '.0' (pandas writes integer ids
        with gaps that way). Without it parquet and arrow columns keep their types; text files are String in any case.
        """
        known = set(self.names)
        names = list(self.names) if columns is None else [c if c in known else self.column(c) for c in columns]
        if isinstance(self._content, pl.DataFrame):
            frame = self._rows_kept(self._content.select(names))
            return frame.select(_as_text(frame[c], self.name) for c in names) if all_strings else frame
        return self._rows_kept(self._parse(self._content, names))

    def _rows_kept(self, frame: pl.DataFrame) -> pl.DataFrame:
        return frame if self._kept is None else frame.filter(pl.Series(self._kept))

    def _parse(self, content: bytes, names: Sequence[str]) -> pl.DataFrame:
        unique, parsed = list(dict.fromkeys(names)), self._parsed or self.names
        n_rows = self.n_rows if self._kept is None else self._kept.size
        place = {column: i for i, column in enumerate(parsed)}
        try:
            frame = pl.read_csv(
                content,
                has_header=False,
                skip_rows=int(self.has_header),
                separator=self._separator,
                schema=dict.fromkeys(parsed, pl.String),
                columns=[place[c] for c in unique],
            )
        except pl.exceptions.NoDataError:
            frame = pl.DataFrame(schema=dict.fromkeys(unique, pl.String))
        except pl.exceptions.PolarsError as error:
            raise TableError(f"{self.name}: cannot be read: {_first_line(error)}") from error
        if frame.height != n_rows:
            raise TableError(
                f"{self.name}: {n_rows} rows by their line ends but {frame.height} when parsed: "
                "check its quotation marks"
            )
        if self._padded:
            frame = frame.with_columns(_stripped(pl.all()))
        return frame.select(names)


def open_table(
    source: Source,
    separator: Separator = None,
    header: bool | Sequence[str] = True,
    name: str | None = None,
    encoding: str | None = None,
) -> Table:
    """Open a table without parsing its values.

    Parameters
    ----------
    source : path-like or polars.DataFrame
        A csv, tsv, white-space separated, parquet or arrow file, gzipped or not, or a frame.
    separator : str, sequence of int, or None, default None
        One character, " " for any white space, or the widths of the columns in characters. None guesses.
    header : bool or sequence of str, default True
        True: the first line has the names. False: there is no such line. A sequence: the names, and no such line.
    name : str or None, default None
        Name of the table in messages. None takes that of the file.
    encoding : str or None, default None
        Encoding of a text file, such as "cp850". None takes UTF-8, else Windows-1252.

    Returns
    -------
    Table
        The opened table.

    Raises
    ------
    TableError
        The file is missing, not regular, empty or no text; rows are ragged, a quotation mark is open, or two columns
        have the same name.

    Examples
    --------
    >>> from mmgibbs.pedigree import open_table
    >>> table = open_table("data_samples/beef/pedigree.csv")
    >>> table.names[:3], table.n_rows
    (('animal', 'sire', 'dam'), 3500)
    """
    if isinstance(source, pl.DataFrame):
        return _frame_table(source, name or "table")
    path = Path(source)
    name = name or path.name
    content = read_bytes(path, name)
    start = next((start for start in _BINARY if content.startswith(start)), None)
    if start is not None:
        kind, reader = _BINARY[start]
        try:
            return _frame_table(getattr(pl, reader)(io.BytesIO(content)), name)
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
            raise TableError(
                f"{name}: cannot be read: the {kind} file is damaged or cut short ({_first_line(error)})"
            ) from error
    return _text_table(content, name, separator, header, path, encoding)


def read_table(
    source: Source,
    separator: Separator = None,
    header: bool | Sequence[str] = True,
    columns: Sequence[str | int] | None = None,
    all_strings: bool = True,
    encoding: str | None = None,
) -> pl.DataFrame:
    """Read a table in one call, as `open_table(...).read(...)`.

    If messages are to name rows, keep the `Table`: it has `line(row)`.

    Parameters
    ----------
    source : path-like or polars.DataFrame
        A csv, tsv, white-space separated, parquet or arrow file, gzipped or not, or a frame.
    separator : str, sequence of int, or None, default None
        One character, " " for any white space, or the widths of the columns in characters. None guesses.
    header : bool or sequence of str, default True
        True: the first line has the names. False: there is no such line. A sequence: the names, and no such line.
    columns : sequence of str or int, or None, default None
        Names or positions (from 1) of the columns. None reads all.
    all_strings : bool, default True
        Read every column as String. Otherwise parquet and arrow columns keep their types.
    encoding : str or None, default None
        Encoding of a text file, such as "cp850". None takes UTF-8, else Windows-1252.

    Returns
    -------
    polars.DataFrame
        The columns, without outer blanks; empty values are null.

    Raises
    ------
    TableError
        As of `open_table`, or a column does not exist.

    Examples
    --------
    >>> from mmgibbs.pedigree import read_table
    >>> read_table("data_samples/beef/pedigree.csv", columns=["animal", "sire"]).shape
    (3500, 2)
    """
    return open_table(source, separator, header, encoding=encoding).read(columns, all_strings)


def nearest(wanted: str, names: Collection[str]) -> str:
    """Write the end of a message about a name that does not exist: the nearest names, or all of them."""
    folded = {n.casefold(): n for n in names}
    close = [folded[c] for c in difflib.get_close_matches(wanted.casefold(), folded, n=3, cutoff=0.6)]
    if close:
        return "nearest: " + ", ".join(quoted(c) for c in close)
    shown = list(names)[:20]
    return "found: " + ", ".join(quoted(c) for c in shown) + (", ..." if len(names) > 20 else "")


_EXACT_OF_TYPE = {pl.Float64: EXACT, pl.Float32: 2.0**24, pl.Float16: 2.0**11}


def _first_line(error: BaseException) -> str:
    return quoted(next(iter(str(error).splitlines()), ""), 200)[1:-1]


def _stripped(column: pl.Expr) -> pl.Expr:
    """Outer blanks off, non-breaking ones too; what is then empty is null."""
    stripped = column.str.strip_chars()
    return pl.when(stripped == "").then(None).otherwise(stripped).name.keep()


def _as_text(column: pl.Series, where: str) -> pl.Series:
    if column.dtype != pl.String:
        return ids_as_text(column, where)
    stripped = column.to_frame().select(_stripped(pl.all())).to_series()
    return column if stripped.equals(column) else stripped  # the same memory where nothing goes


def refuse_type(column: pl.Series, name: str, where: str | None = None) -> pl.Series:
    """Return the column; TableError where its values are neither numbers nor text, nor can be written as text.

    Every column of every table that is read passes here, whatever it holds. name: of the table.
    """
    kind = column.dtype
    if kind.is_nested() or kind in (pl.Binary, pl.Object, pl.Duration):
        where = where or f"column {quoted(column.name)}"
        raise TableError(f"{name}: found values of type {kind} in {where}; needed numbers or text")
    return column


def ids_as_text(column: pl.Series, where: str) -> pl.Series:
    """Ids or levels of any type as text: whole numbers without '.0', null where NaN.

    TableError for a type that is no text and no number, and for floating numbers that are too large to tell whole
    numbers apart: two ids may have become one.
    """
    kind = refuse_type(column, where).dtype
    if kind.is_float():
        column = column.fill_nan(None)
        limit = next(exact for of_type, exact in _EXACT_OF_TYPE.items() if kind == of_type)
        large = (column.abs() >= limit).fill_null(False)
        if large.any():
            raise TableError(
                f"{where} column '{column.name}': found {column.filter(large)[0]:.0f} as a floating number ({kind}), "
                f"which from {limit:.0f} on does not tell whole numbers apart: digits of ids may be lost; needed ids "
                "as text or whole numbers (in pandas Int64 or str)"
            )
        if (column == column.floor()).all():
            column = column.cast(pl.Int64)
    text = column.cast(pl.String)
    return text.str.replace(r"\.0+$", "") if kind.is_decimal() else text


def _frame_table(frame: pl.DataFrame, name: str) -> Table:
    if not frame.width or not frame.height:
        raise TableError(f"{name}: is empty ({frame.width} columns, {frame.height} rows)")
    return _drop_blank_rows(Table(name, tuple(frame.columns), False, None, frame.height, frame, "", False, None), frame)


def _drop_blank_rows(table: Table, frame: pl.DataFrame) -> Table:
    """Return the table without its rows that have no value in `frame`, which has its content."""
    blank = _find_blank_rows(frame)
    if blank is None or blank.all():
        return table
    n, first = int(blank.sum()), table.line(int(blank.argmax()))
    note = f"{table.name}: {counted(n, 'row')} without a value read past (the first: row {first})"
    return replace(table.keep(~blank), notes=(*table.notes, note))


def _find_blank_rows(frame: pl.DataFrame) -> np.ndarray | None:
    """(n,) bool, which rows have no value; None where none is such. Most tables have a column that tells at once."""
    if frame.width == 1 or any(not frame[c].null_count() for c in frame.columns):
        return None
    blank = frame.select(pl.all_horizontal(pl.all().is_null())).to_series()
    return blank.to_numpy() if blank.any() else None


def _text_table(
    content: bytes,
    name: str,
    separator: Separator,
    header: bool | Sequence[str],
    path: Path,
    encoding: str | None,
) -> Table:
    content, notes = decode_text(content, name, encoding)
    if b"\n" not in content:  # old spreadsheets end lines with a carriage return alone
        content = content.replace(b"\r", b"\n")
    elif b"\r\r\n" in content:  # what a transfer in the wrong mode leaves
        content = content.replace(b"\r\r\n", b"\r\n")
    if not content[: 1 << 16].strip() and not content.strip():
        raise TableError(f"{name}: is empty")
    if separator is not None and not isinstance(separator, str):
        return _fixed_width_table(content, name, separator, header, notes)
    is_stated = separator is not None
    if separator is None:
        separator = guess_separator(content, path)
    separator = {"whitespace": WHITESPACE, "tab": "\t", "\\t": "\t"}.get(separator, separator)
    if len(separator.encode()) != 1 or separator in '"\n\r':
        raise TableError(f"{name}: separator {separator!r}; needed one character, or ' ' for any white space")
    content, scanned, tidied = _scan(content, separator, name)
    notes += tidied
    if scanned.uneven_line:
        raise TableError(
            explain_leading_lines(content, name, separator, is_stated)
            or describe_uneven_rows(content, separator, name, scanned)
        )
    if not scanned.n_records:
        raise TableError(f"{name}: is empty")
    lines = None
    if scanned.n_blank or scanned.multiline:
        lines = np.empty(scanned.n_records, np.int64)
        out = np.empty(len(content) + 1, np.uint8)
        scanned = scan(np.frombuffer(content, np.uint8), ord(separator), separator == WHITESPACE, out, lines)
        content = out[: scanned.n_written].tobytes()
    elif separator == WHITESPACE:
        out = np.empty(len(content) + 1, np.uint8)
        scanned = scan(np.frombuffer(content, np.uint8), ord(separator), True, out, np.empty(0, np.int64))
        content = out[: scanned.n_written].tobytes()
    separator = "\t" if separator == WHITESPACE else separator
    try:
        text = io.TextIOWrapper(io.BytesIO(content), encoding="utf-8", newline="")
        record = next(csv.reader(text, delimiter=separator))
    except csv.Error as error:
        raise TableError(f"{name} row {scanned.first_line}: cannot be read: {error}; is this a table?") from error
    first = tuple(f.strip() for f in record)
    names = tuple(str(i + 1) for i in range(scanned.n_fields))
    table = Table(name, names, False, first, scanned.n_records, content, separator, scanned.padded, lines, notes)
    if header is True:
        table = table.with_header()
    elif header is not False:  # columns behind the named ones may be empty
        table = table._drop_empty_columns(range(len(header), scanned.n_fields))
        n_columns = len(header) if len(table.names) == len(header) else scanned.n_fields
        table = replace(table, names=_checked_names(header, n_columns, name))
        table = replace(table, _parsed=(*header, *(f"\0{number}" for number in names[len(header) :])))
    return _drop_blank_rows(table, table.read()) if scanned.multiline else table


def _scan(content: bytes, separator: str, name: str) -> tuple[bytes, Scan, tuple[str, ...]]:
    """Return the content without what has no value, what `scan` says of it, and notes."""
    none = np.empty(0, np.int64)

    def scan_again(content: bytes) -> Scan:
        empty = np.empty(0, np.uint8)
        return scan(np.frombuffer(content, np.uint8), ord(separator), separator == WHITESPACE, empty, none)

    scanned = scan_again(content)
    notes: tuple[str, ...] = ()
    if not scanned.wrong and not scanned.multiline:  # rows are lines
        tidied = clear_blank_rows(content, separator, name)
        if tidied.notes:
            content, notes, scanned = tidied.content, tidied.notes, scan_again(tidied.content)
        cut = cut_empty_cells(content, separator, name) if scanned.uneven_line and separator != WHITESPACE else None
        if cut is not None:
            content, notes, scanned = cut.content, (*notes, *cut.notes), scan_again(cut.content)
    if scanned.wrong:
        raise TableError(f"{name} row {scanned.wrong_line}: {WRONG[scanned.wrong]}")
    return content, scanned, notes


def _fixed_width_table(
    content: bytes, name: str, widths: Sequence[int], header: bool | Sequence[str], notes: tuple[str, ...]
) -> Table:
    frame, lines = split_lines(content, widths, name)
    first = tuple(field or "" for field in frame.row(0))
    table = Table(name, tuple(frame.columns), False, first, frame.height, frame, "", False, lines, notes)
    if header is True:
        return table.with_header()
    return table if header is False else table.renamed(_checked_names(header, frame.width, name))


def _checked_names(header: Sequence[str], n_columns: int, name: str) -> tuple[str, ...]:
    names = tuple(header)
    if len(names) != n_columns:
        raise TableError(
            f"{name}: found {counted(n_columns, 'column')}, needed {len(names)} for the given header "
            f"({', '.join(names)})"
        )
    return names
