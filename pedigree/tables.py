"""Tables from files, every value as the text it was: csv, tsv, white space, parquet, arrow; gzipped or not.

Text files are checked before they are parsed: valid UTF-8, every row with as many fields as the first, quotation marks
around whole fields and closed. Nothing is padded, cut or dropped but blank lines, and line numbers survive those.
"""

from __future__ import annotations

import csv
import difflib
import io
import os
import zlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl

from pedigree.errors import TableError
from pedigree.fixed_width import split_lines
from pedigree.scan import WRONG, Scan, scan

Source = str | os.PathLike[str] | pl.DataFrame  # what a table is read from

# Between the columns of a text file: a character, the widths of columns, or None for a guess.
Separator = str | Sequence[int] | None
WHITESPACE = " "  # as a separator: any run of blanks and tabs
_COMMON_SEPARATORS = ("\t", ",", ";", "|")
UNPACKED_BYTES_ALWAYS_ALLOWED = 1 << 30  # of a gzip file
MAX_UNPACKED_RATIO = 100  # unpacked to packed size of larger ones; tables have 3 to 30
_LINES_FOR_GUESS = 50
_MAX_LINES_ABOVE = 20  # of a title or comments above a table
_NO_TEXT = {  # how files begin that are often given for a table
    b"PK\x03\x04": "a spreadsheet or zip file",
    b"\xd0\xcf\x11\xe0": "an old spreadsheet (xls)",
    b"\x1f\x8b": "gzipped twice",
    b"BZh": "a bzip2 file",
    b"\xfd7zXZ": "an xz file",
    b"\x28\xb5\x2f\xfd": "a zstd file",
    b"%PDF": "a PDF file",
}


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
        return below.renamed(names)

    def renamed(self, names: tuple[str, ...]) -> Table:
        """Return the same table with these names of its columns."""
        content = self._content
        if isinstance(content, pl.DataFrame):
            content = content.rename(dict(zip(content.columns, names, strict=True)))
        return replace(self, names=names, _content=content)

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
            frame = self._content.select(names)
            return frame.select(_as_text(frame[c], self.name) for c in names) if all_strings else frame
        unique = list(dict.fromkeys(names))
        place = {column: i for i, column in enumerate(self.names)}
        try:
            frame = pl.read_csv(
                self._content,
                has_header=False,
                skip_rows=int(self.has_header),
                separator=self._separator,
                schema=dict.fromkeys(self.names, pl.String),
                columns=[place[c] for c in unique],
            )
        except pl.exceptions.NoDataError:
            frame = pl.DataFrame(schema=dict.fromkeys(unique, pl.String))
        except pl.exceptions.PolarsError as error:
            raise TableError(f"{self.name}: cannot be read: {_first_line(error)}") from error
        if frame.height != self.n_rows:
            raise TableError(
                f"{self.name}: {self.n_rows} rows by their line ends but {frame.height} when parsed: "
                "check its quotation marks"
            )
        if self._padded:
            frame = frame.with_columns(_stripped(pl.all()))
        return frame.select(names)


def open_table(
    source: Source, separator: Separator = None, header: bool | Sequence[str] = True, name: str | None = None
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

    Returns
    -------
    Table
        The opened table.

    Raises
    ------
    TableError
        The file is missing, not regular, empty or not UTF-8; rows are ragged, a quotation mark is open, or two columns
        have the same name.

    Examples
    --------
    >>> from pedigree import open_table
    >>> table = open_table("data_samples/beef/pedigree.csv")
    >>> table.names[:3], table.n_rows
    (('animal', 'sire', 'dam'), 3500)
    """
    if isinstance(source, pl.DataFrame):
        return _frame_table(source, name or "table")
    path = Path(source)
    name = name or path.name
    content = _read_bytes(path, name)
    start = next((start for start in _BINARY if content.startswith(start)), None)
    if start is not None:
        kind, reader = _BINARY[start]
        try:
            return _frame_table(getattr(pl, reader)(io.BytesIO(content)), name)
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
            raise TableError(
                f"{name}: cannot be read: the {kind} file is damaged or cut short ({_first_line(error)})"
            ) from error
    return _text_table(content, name, separator, header, path)


def read_table(
    source: Source,
    separator: Separator = None,
    header: bool | Sequence[str] = True,
    columns: Sequence[str | int] | None = None,
    all_strings: bool = True,
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
    >>> from pedigree import read_table
    >>> read_table("data_samples/beef/pedigree.csv", columns=["animal", "sire"]).shape
    (3500, 2)
    """
    return open_table(source, separator, header).read(columns, all_strings)


def nearest(wanted: str, names: Collection[str]) -> str:
    """Write the end of a message about a name that does not exist: the nearest names, or all of them."""
    folded = {n.casefold(): n for n in names}
    close = [folded[c] for c in difflib.get_close_matches(wanted.casefold(), folded, n=3, cutoff=0.6)]
    if close:
        return "nearest: " + ", ".join(quoted(c) for c in close)
    shown = list(names)[:20]
    return "found: " + ", ".join(quoted(c) for c in shown) + (", ..." if len(names) > 20 else "")


def quoted(text: object, most: int = 60) -> str:
    """Quote a value for a message: cut where it is long, invisible characters spelt out."""
    text = str(text)
    shown = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text[:most])
    return f"'{shown}...'" if len(text) > most else f"'{shown}'"


def format_number(value: float) -> str:
    """Write a number of a table for a message: a whole one with all its digits, another with up to ten figures."""
    return f"{value:.0f}" if abs(value) < _EXACT and value % 1 == 0 else f"{value:.10g}"


_EXACT = 2.0**53  # below it float64 has every whole number
_EXACT_OF_TYPE = {pl.Float64: _EXACT, pl.Float32: 2.0**24, pl.Float16: 2.0**11}


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
    return Table(name, tuple(frame.columns), False, None, frame.height, frame, "", False, None)


def _read_bytes(path: Path, name: str) -> bytes:
    """Read the file's bytes, decompressed. Only a regular file is accepted: a pipe could be read only once."""
    shown = quoted(path, 400)[1:-1]
    try:
        if path.is_symlink() and not path.exists():
            raise TableError(f"{shown}: is a symbolic link that leads to no file")
        if not path.exists():
            beside = difflib.get_close_matches(
                path.name, [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else [], n=1
            )
            hint = (
                f" (beside it: {quoted(beside[0])})"
                if beside
                else ""
                if path.parent.is_dir()
                else f" (there is no folder {quoted(path.parent, 400)[1:-1]})"
            )
            raise TableError(f"{shown}: no such file{hint}")
        if path.is_dir():
            raise TableError(f"{shown}: is a folder, needed a file")
        if not path.is_file():
            raise TableError(f"{shown}: is not a regular file (a device or a pipe), needed a file")
        content = path.read_bytes()
    except OSError as error:
        raise TableError(f"{shown}: cannot be read: {error.strerror or error}") from error
    return unzip(content, name)


def unzip(content: bytes, name: str) -> bytes:
    """Return the content of a gzip file, any other content as it is.

    Raises TableError where it is damaged, or larger than any table is for its packed size: a file of some megabytes can
    be made to fill all memory.
    """
    if content[:2] != b"\x1f\x8b":
        return content
    most = max(UNPACKED_BYTES_ALWAYS_ALLOWED, MAX_UNPACKED_RATIO * len(content))
    parts, size, rest = [], 0, content
    while rest:
        member = zlib.decompressobj(wbits=31)  # of gzip, with its checksum
        try:
            parts.append(member.decompress(rest, most - size + 1))
        except zlib.error as error:
            raise TableError(f"{name}: the gzip file is damaged or cut short: {error}") from error
        size += len(parts[-1])
        if size > most:
            raise TableError(
                f"{name}: unpacks to more than {most / 1e9:,.1f} GB from {len(content) / 1e6:,.1f} MB; needed at most "
                f"{MAX_UNPACKED_RATIO} times the packed size, as of any table: if the file is one, unpack it (gunzip) "
                "and give the unpacked file, which has no limit"
            )
        if not member.eof:
            raise TableError(f"{name}: the gzip file is damaged or cut short: its end is missing")
        rest = member.unused_data.lstrip(b"\0")
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _text_table(content: bytes, name: str, separator: Separator, header: bool | Sequence[str], path: Path) -> Table:
    while content[:3] == b"\xef\xbb\xbf":  # twice where a file with one was joined to another
        content = content[3:]
    if content[-1:] == b"\x1a":  # how DOS ends a text
        content = content[:-1]
    _check_text(content, name)
    if b"\n" not in content:  # old spreadsheets end lines with a carriage return alone
        content = content.replace(b"\r", b"\n")
    elif b"\r\r\n" in content:  # what a transfer in the wrong mode leaves
        content = content.replace(b"\r\r\n", b"\r\n")
    if not content[: 1 << 16].strip() and not content.strip():
        raise TableError(f"{name}: is empty")
    if separator is not None and not isinstance(separator, str):
        return _fixed_width_table(content, name, separator, header)
    is_stated = separator is not None
    if separator is None:
        separator = _guess_separator(content, path)
    separator = {"whitespace": WHITESPACE, "tab": "\t", "\\t": "\t"}.get(separator, separator)
    if len(separator.encode()) != 1 or separator in '"\n\r':
        raise TableError(f"{name}: separator {separator!r}; needed one character, or ' ' for any white space")
    blanks = separator == WHITESPACE
    data, none = np.frombuffer(content, np.uint8), np.empty(0, np.int64)
    out = np.empty(len(content) + 1 if blanks else 0, np.uint8)
    scanned = scan(data, ord(separator), blanks, out, none)
    if scanned.wrong:
        raise TableError(f"{name} row {scanned.wrong_line}: {WRONG[scanned.wrong]}")
    if scanned.uneven_line:
        raise TableError(
            _explain_leading_lines(content, name, separator, is_stated)
            or f"{name} row {scanned.uneven_line}: found {counted(scanned.uneven_fields, 'field')} separated by "
            f"{_describe_separator(separator)}, needed {scanned.n_fields} as in row {scanned.first_line}"
            + _hint_row_names(content, scanned)
        )
    lines = None
    if scanned.n_blank or scanned.multiline:
        lines = np.empty(scanned.n_records, np.int64)
        out = np.empty(len(content) + 1, np.uint8)
        scanned = scan(data, ord(separator), blanks, out, lines)
    if scanned.n_written:
        content = out[: scanned.n_written].tobytes()
    separator = "\t" if blanks else separator
    try:
        record = next(csv.reader(io.StringIO(content[: 1 << 20].decode(errors="ignore")), delimiter=separator))
    except csv.Error as error:
        raise TableError(f"{name} row {scanned.first_line}: cannot be read: {error}; is this a table?") from error
    first = tuple(f.strip() for f in record)
    names = tuple(str(i + 1) for i in range(scanned.n_fields))
    if not isinstance(header, bool):
        names = _checked_names(header, scanned.n_fields, name)
    table = Table(name, names, False, first, scanned.n_records, content, separator, scanned.padded, lines)
    return table.with_header() if header is True else table


def _fixed_width_table(content: bytes, name: str, widths: Sequence[int], header: bool | Sequence[str]) -> Table:
    frame, lines = split_lines(content, widths, name)
    first = tuple(field or "" for field in frame.row(0))
    table = Table(name, tuple(frame.columns), False, first, frame.height, frame, "", False, lines)
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


def _hint_row_names(content: bytes, scanned: Scan) -> str:
    """Recognise a table of R's write.table: names of rows in every line, and none for them in the first."""
    lines = content[: 1 << 20].split(b"\n")[scanned.first_line - 1 :][:2]
    one_more = scanned.uneven_line == scanned.first_line + 1 and scanned.uneven_fields == scanned.n_fields + 1
    if not one_more or any(c in b"0123456789" for c in lines[0]) or not lines[1].lstrip(b'"')[:1].isdigit():
        return ""
    return "; has the first column no name? (in R, write.table(..., row.names = FALSE) leaves out the names of rows)"


def counted(n: int, noun: str, verb: str = "") -> str:
    """'1 row', '2 rows'; with a verb of one, 'is': '1 row is', '2 rows are'."""
    return f"{n:,} {noun}" + ("" if n == 1 else "s") + (f" {agreeing(n, verb)}" if verb else "")


def agreeing(n: int, verb: str) -> str:
    """Conjugate a verb for one or for n: 'is', 'has', 'counts' or 'are', 'have', 'count'."""
    return verb if n == 1 else {"is": "are", "has": "have", "was": "were"}.get(verb, verb.removesuffix("s"))


def _check_text(content: bytes, name: str) -> None:
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise TableError(f"{name}: is UTF-16 text, needed UTF-8 (save it as 'CSV UTF-8')")
    if content[:2].find(b"\x00") >= 0 and content[2:4].find(b"\x00") >= 0:  # such text without the mark that says so
        raise TableError(f"{name}: is UTF-16 text, needed UTF-8 (save it as 'CSV UTF-8')")
    for start, kind in _NO_TEXT.items():
        if content.startswith(start):
            raise TableError(f"{name}: is {kind}, needed a text table (save it as csv), parquet or arrow")
    if content.isascii():
        bad = content.find(b"\x00")
        what = "a zero byte"
    else:
        try:
            bad, what = content.decode().find("\x00"), "a zero byte"
            bad = content.find(b"\x00") if bad >= 0 else -1
        except UnicodeDecodeError as error:
            bad, what = (
                error.start,
                f"byte 0x{content[error.start]:02x}, which is not UTF-8 text (save the file as UTF-8)",
            )
    if bad >= 0:
        raise TableError(f"{name} row {content.count(10, 0, bad) + 1}: found {what}, at byte {bad} of the file")


def _describe_separator(separator: str) -> str:
    return {WHITESPACE: "white space", "\t": "tabs"}.get(separator, f"'{separator}'")


def _explain_leading_lines(content: bytes, name: str, separator: str, is_stated: bool) -> str | None:
    """Explain that the first lines are none of the table; None if they are.

    Other separators than the guessed one are tried only if it does not split the first line, or is white space: that
    splits any sentence.
    """
    text = content[: 1 << 16].decode(errors="ignore").splitlines()
    if len(content) > 1 << 16:
        text = text[:-1]  # it is cut
    lines = [(row, line) for row, line in enumerate(text, 1) if line.strip()]
    is_split = separator != WHITESPACE and bool(lines) and max(_count_fields([lines[0][1]], separator)) > 1
    marks = (separator,) if is_stated or is_split else (*_COMMON_SEPARATORS, WHITESPACE)
    for n_above in range(1, min(_MAX_LINES_ABOVE, len(lines) - 2) + 1):
        below = [line for _, line in lines[n_above : n_above + _LINES_FOR_GUESS]]
        for mark in marks:
            counts = _count_fields(below, mark)
            n = counts.pop()
            n_first = max(_count_fields([lines[0][1]], mark))
            if counts or n < 2 or n_first == n:
                continue
            if n_above == 1 and (n_first > n or (n_first == n - 1 and n > 2)):
                return None  # names of columns: more than there are, or all but that of row names
            rows = f"row {lines[0][0]}" if n_above == 1 else f"rows {lines[0][0]} to {lines[n_above - 1][0]}"
            first = "it is" if n_above == 1 else "they are"
            return (
                f"{name} row {lines[0][0]}: found {quoted(lines[0][1].strip())}, and below {rows} fields separated by "
                f"{_describe_separator(mark)}, {n} in each row; needed the table alone: delete {rows} "
                f"if {first} a title or a comment"
            )
    return None


def _count_fields(lines: Sequence[str], separator: str) -> set[int]:
    if separator == WHITESPACE:
        return {len(line.split()) for line in lines}
    return {len(row) for row in csv.reader(lines, delimiter=separator)}


def _guess_separator(content: bytes, path: Path) -> str:
    """Guess the separator: the first that cuts the first lines into equally many fields, at least two.

    Else the file's name decides.
    """
    lines = [x for x in content[: 1 << 16].decode(errors="ignore").splitlines()[:_LINES_FOR_GUESS] if x.strip()]
    for separator in _COMMON_SEPARATORS:
        counts = {len(row) for row in csv.reader(lines, delimiter=separator)}
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
