"""The phenotype table: columns as ids or numbers, missing values, and the row to name when a value cannot be used.

The order of ordered dictionaries in Arrow and Parquet files, which Polars reads without it.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TypeVar

import numpy as np
import polars as pl

from mmgibbs.config import Data
from mmgibbs.config.frames import keep_orders
from mmgibbs.config.interactions import BETWEEN_COLUMNS
from mmgibbs.data import dates
from mmgibbs.data.missing_codes import explain_codes
from mmgibbs.data.number_format import (
    Decimal,
    commas_as_points,
    explain_no_number,
    find_lost_marks,
    find_points_of_thousands,
    parse_column,
)
from mmgibbs.errors import DataError
from mmgibbs.pedigree import tables
from mmgibbs.pedigree.contents import ENCODING, UTF8, unzip
from mmgibbs.pedigree.errors import TableError
from mmgibbs.pedigree.problems import MAX_ROWS_LISTED, list_rows
from mmgibbs.pedigree.spelling import are_unknown_codes
from mmgibbs.pedigree.tables import Separator, Source, Table, counted, ids_as_text, nearest, open_table, quoted

_FILE_OF_ARROW = b"ARROW1"
_FILE_OF_PARQUET = b"PAR1"


def read_orders(frame: pl.DataFrame, source: Source) -> pl.DataFrame:
    """The frame with such columns as Enum; source: what it was read from.

    Only pyarrow reads the order. Without it the levels stay words, whose order a model that needs one asks for.
    """
    words = [name for name, kind in frame.schema.items() if kind == pl.Categorical]
    if not words or isinstance(source, pl.DataFrame) or find_spec("pyarrow") is None:
        return frame
    import pyarrow.ipc
    import pyarrow.parquet

    content = unzip(Path(source).read_bytes(), Path(source).name)
    if content.startswith(_FILE_OF_PARQUET):
        return keep_orders(frame, pyarrow.parquet.read_table(io.BytesIO(content), columns=words))
    is_file = content.startswith(_FILE_OF_ARROW)
    reader = (pyarrow.ipc.open_file if is_file else pyarrow.ipc.open_stream)(io.BytesIO(content))
    return keep_orders(frame, reader.read_all().select(words))


Key = TypeVar("Key", bound=Hashable)

SHOWN = 5  # rows named one by one in a message
MOST = 1e18  # largest trait, covariate or weight: its square must not overflow, in float32 too


def refuse_rows(
    name: str, rows: np.ndarray, problems: Sequence[str], needed: str, hint: str | None = None
) -> DataError:
    """The error for rows that cannot be used: `list_rows` of these."""
    return DataError(list_rows(name, rows.tolist(), problems, needed, hint))


def refuse_repeated(
    phenotypes: Phenotypes,
    records: Iterable[int],
    keys: Iterable[Key],
    describe: Callable[[Key], str],
    path: str,
    needed: str,
) -> None:
    """DataError for the second of two records with the same key, 'found a second record of DESCRIBED KEY'."""
    first: dict[Key, int] = {}
    for record, key in zip(records, keys, strict=True):
        if key in first:
            repeated = f"found a second record of {describe(key)}, as in row {phenotypes.rows[first[key]]} ({path})"
            raise refuse_rows(phenotypes.name, phenotypes.rows[[record]], [repeated], needed)
        first[key] = record


@dataclass(frozen=True)
class Phenotypes:
    """Records as read; values are converted when a column is asked for."""

    frame: pl.DataFrame  # the columns asked for
    columns: tuple[str, ...]  # every column of the file
    name: str  # of the file, as messages call it
    rows: np.ndarray  # (n,) int64 line of each record
    missing: tuple[str, ...]
    decimal: Decimal = None
    # columns read as numbers that have decimal commas, and the record that shows it: 'row 2: 1,5'
    with_commas: dict[str, str] = field(default_factory=dict)
    # columns read as numbers, and what to say of those whose points may separate thousands
    of_numbers: set[str] = field(default_factory=set)
    may_be_thousands: dict[str, str] = field(default_factory=dict)
    may_lack_mark: dict[str, str] = field(default_factory=dict)  # and cells whose decimal mark may be left out
    table: Phenotypes | None = None  # all columns and rows, where they are in memory
    # joined classes and products of columns: name -> its columns, with further cells that mean a missing value in each
    interactions: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
    order: Mapping[str, Sequence[str]] = field(default_factory=dict)  # data.order: levels of columns
    of_reading: tuple[str, ...] = ()  # notes of what was read past, and of the encoding

    def __len__(self) -> int:
        return self.frame.height

    def has(self, column: str) -> bool:
        return all(c in self.frame.columns for c in self.interactions.get(column, (column,)))

    def choose_columns(self, columns: Iterable[str]) -> Phenotypes:
        """Select those of these columns that are there, as `read_phenotypes` reads them."""
        chosen = [c for c in dict.fromkeys(columns) if self.has(c)] or self.frame.columns[:1]
        frame = self.frame.select(chosen)
        of_table = (self.columns, self.name, self.rows, self.missing, self.decimal)
        return Phenotypes(frame, *of_table, table=self, order=self.order, of_reading=self.of_reading)

    def keep(self, mask: np.ndarray) -> Phenotypes:
        return self if mask.all() else replace(self, frame=self.frame.filter(pl.Series(mask)), rows=self.rows[mask])

    def without(self, mask: np.ndarray, columns: Iterable[str]) -> Phenotypes:
        """Remove the values of these columns where `mask` (n,) is True."""
        seen = pl.Series(~mask)
        blanked = [pl.when(seen).then(pl.col(c)).alias(c) for c in columns if self.has(c)]
        return replace(self, frame=self.frame.with_columns(blanked))

    def need(self, column: str, path: str) -> None:
        """A DataError naming the YAML path and the nearest columns, unless the column is there."""
        if column in self.interactions:
            for single in self.interactions[column]:
                self.need(single, path)
            if column in self.columns:
                raise DataError(
                    f"{self.name}: found a column {quoted(column)}, which is also the name of an interaction ({path}); "
                    "needed another name for this column"
                )
        elif not self.has(column):
            hint = ""
            if any(_number(c) is not None for c in self.columns):
                hint = "; is the first line a record? then data.header needs the names of the columns"
            known = nearest(column, self.columns)
            raise DataError(f"{self.name}: there is no column {quoted(column)} ({path}); {known}{hint}")

    def _column(self, column: str, path: str) -> pl.Series:
        self.need(column, path)
        return refuse_type(self.frame[column], self.name, f"column {quoted(column)} ({path})")

    def text(self, column: str, path: str, unknown: Iterable[str] = ()) -> pl.Series:
        """(n,) String: ids or class levels without outer blanks, null where missing or in `unknown`.

        Of an interaction 'M:north', null where one of its columns is.
        """
        if column in self.interactions:
            self.need(column, path)
            cells = [self.text(c, path, (*unknown, *absent)) for c, absent in self.interactions[column].items()]
            return _join_cells(cells, f"{self.name}: column {quoted(column)} ({path})")
        return clean_ids(self._column(column, path), {"", *self.missing, *unknown}, self.name)

    def find_empty(self, column: str, path: str, record: int) -> str:
        """Find the first column of a combination that has no value in a record; of another column its name."""
        columns = self.interactions.get(column, {})
        return next((c for c, absent in columns.items() if self.text(c, path, absent)[record] is None), column)

    def numbers(self, column: str, path: str, missing: Iterable[str] = ()) -> np.ndarray:
        """(n,) float64, NaN where missing: the text is a missing value, or its number equals one ('0.0' where '0' is).

        Decimal commas are points where they can be nothing else. Any other text that is no finite number, and a number
        too large to compute with, is an error naming its row. Of an interaction the product of its columns.
        """
        if column in self.interactions:
            self.need(column, path)
            factors = [self.numbers(c, path, (*missing, *absent)) for c, absent in self.interactions[column].items()]
            return np.prod(factors, axis=0)
        series = self._column(column, path)
        absent = {"", *self.missing, *missing}
        if series.dtype.is_numeric():
            text, values = None, series.cast(pl.Float64)
            void = values.is_null().to_numpy()
            if not absent.isdisjoint(("nan", "NaN", "NAN")):
                void = void | values.is_nan().fill_null(False).to_numpy()
        else:
            text = series.cast(pl.String).str.strip_chars()
            values, _, comma = parse_column(text, absent, self.decimal)
            self._remember_format(column, path, text, values, absent, comma)
            void = (text.is_null() | text.is_in(list(absent))).to_numpy()
        out = values.fill_null(np.nan).to_numpy().copy()
        numeric = np.array([m for m in (_number(a) for a in absent) if m is not None])
        if series.dtype == pl.Float32:
            numeric = numeric.astype(np.float32)
        void = void | np.isin(out, numeric.astype(np.float64))
        too_large = f"a number of at most {MOST:g} in size (another unit?)"
        for refused, needed in ((~np.isfinite(out), self._a_number(absent)), (np.abs(out) > MOST, too_large)):
            wrong = np.flatnonzero(refused & ~void)
            if len(wrong):
                raise DataError(self._describe_wrong(column, path, text, out, wrong, int(np.sum(~void)), needed))
        out[void] = np.nan
        return out

    def _describe_wrong(
        self, column: str, path: str, text: pl.Series | None, out: np.ndarray, wrong: np.ndarray, n: int, needed: str
    ) -> str:
        """Write which cells of a column of n values are wrong: typing errors one by one, a code for missing once."""
        where = f" in column '{column}' ({path})"
        if text is None:
            infinite = [f"found {out[i]}{where}" for i in wrong[:MAX_ROWS_LISTED]]
            return list_rows(self.name, self.rows[wrong].tolist(), infinite, needed)
        cells = text.gather(wrong)
        if dates.are_dates(cells):
            needed = dates.needed(path) if len(wrong) == n else f"{needed}{dates.AMONG_NUMBERS}"
        is_code = are_unknown_codes(cells, "value").to_numpy() & ~np.isfinite(out[wrong])
        rows: list[int] = []
        found: list[str] = []
        reason = ""
        for i in wrong[~is_code][:MAX_ROWS_LISTED].tolist():
            why = explain_no_number(text[i], self.decimal)
            if not rows:
                reason = why
                needed += why
            rows.append(int(self.rows[i]))
            found.append(f"found {quoted(text[i])}{where}" if len(rows) == 1 else quoted(text[i]))
            found[-1] += "" if why == reason else f" ({why.removeprefix('; ')})"
        rows += self.rows[wrong[~is_code][MAX_ROWS_LISTED:]].tolist()
        for code in cells.filter(pl.Series(is_code)).unique(maintain_order=True):
            times = (cells == code).fill_null(False)
            others = int(times.sum()) - 1
            more = f" (and in {counted(others, 'further row')})" if others else ""
            rows.insert(len(found), int(self.rows[wrong[int(times.arg_max() or 0)]]))
            found.append(f"found {quoted(code)}{where if len(found) == 0 else ''}{more}")
        hint = explain_codes(cells.filter(pl.Series(is_code)), "data.missing", self.missing)
        return list_rows(self.name, rows, found, needed) + hint

    def _remember_format(
        self, column: str, path: str, text: pl.Series, values: pl.Series, absent: set[str], comma: int | None
    ) -> None:
        """Store what `notes`, `warnings` and `with_points` need of a column that was read as numbers.

        comma: of which cell a comma was found to be decimal.
        """
        self.of_numbers.add(column)
        if comma is not None:
            self.with_commas[column] = f"row {self.rows[comma]}: {text[comma]}"
        where = f"column {quoted(column)} ({path})"
        if column not in self.may_lack_mark:
            lost = find_lost_marks(text, values.set(text.is_in(list(absent)), None))
            if lost is not None:
                self.may_lack_mark[column] = lost.describe(where, self.rows[lost.cells].tolist())
        if self.decimal is not None or column in self.may_be_thousands:
            return
        points = find_points_of_thousands(text, absent)
        if points is not None:
            self.may_be_thousands[column] = points.describe(where, self.rows[points.cell])

    def with_points(self, columns: Iterable[str], missing: Iterable[str] = ()) -> pl.DataFrame:
        """The frame with points in place of decimal commas in those of these columns that have them, as all records
        say: some of them alone may not show what their commas are. What means missing stays as it is.
        """
        absent = {"", *self.missing, *missing}
        written = []
        for column in columns:
            if self.has(column) and self.frame[column].dtype == pl.String:
                text = self.frame[column].str.strip_chars()
                commas = self.decimal is None and column in self.with_commas
                written.append(
                    commas_as_points(text, absent) if commas else parse_column(text, absent, self.decimal).plain
                )
        return self.frame.with_columns(written)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on numbers that can be read in two ways."""
        columns = ", ".join(f"{quoted(column)} ({shown})" for column, shown in self.with_commas.items())
        commas = (f"{self.name}: commas are decimal points in {columns}",) if columns else ()
        return (*self.of_reading, *commas)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Columns that were read as numbers and may mean other ones."""
        said = (*self.may_be_thousands.values(), *self.may_lack_mark.values())
        return tuple(f"{self.name}: {text}" for text in said)

    def _a_number(self, absent: set[str]) -> str:
        known = ", ".join(sorted(a or "empty" for a in absent))
        return f"a finite number, written as 3.25, or a missing value ({known}; data.missing may list others)"


def read_phenotypes(data: Data, wanted: Sequence[str] | None = None) -> Phenotypes:
    """The columns of `wanted` (None: all) that the phenotypes have; `data`: that section of the analysis. Errors name
    the file.
    """
    header = True if data.header is None else list(data.header)
    try:
        table = _open(data.phenotypes, data.widths or data.separator, header, "phenotypes", data.encoding)
        frame = _read_columns(table, data.phenotypes, wanted)
    except DataError as error:
        raise DataError(str(error).replace(ENCODING, "data.encoding")) from None
    of_reading = tuple(note.replace(ENCODING, "data.encoding") for note in table.notes)
    of_table = (table.names, table.name, table.lines(), tuple(data.missing), data.decimal)
    return Phenotypes(frame, *of_table, order=data.order, of_reading=of_reading)


def read_any(
    source: Source,
    separator: Separator = None,
    header: bool | list[str] = True,
    wanted: Sequence[str] | None = None,
    frame_name: str = "table",
) -> tuple[pl.DataFrame, tuple[str, ...], np.ndarray, str]:
    """(frame with those of the `wanted` columns that are there, names of all columns, lines, name) of a path or frame.

    What `mmgibbs.pedigree.tables` refuses is a DataError here.
    """
    table = _open(source, separator, header, frame_name, UTF8)
    return _read_columns(table, source, wanted), table.names, table.lines(), table.name


def _open(
    source: Source, separator: Separator, header: bool | list[str], frame_name: str, encoding: str | None = None
) -> Table:
    try:
        return open_table(source, separator, header, frame_name if isinstance(source, pl.DataFrame) else None, encoding)
    except TableError as error:
        raise DataError(str(error)) from None


def _read_columns(table: Table, source: Source, wanted: Sequence[str] | None) -> pl.DataFrame:
    """Read those of the columns that are there.

    Where none is there, any column keeps the rows: the code that needs a column names it in its error.
    """
    known = set(table.names)
    columns = None if wanted is None else [c for c in dict.fromkeys(wanted) if c in known]
    try:
        frame = table.read([table.names[0]] if columns == [] else columns, all_strings=False)
        return read_orders(frame, source)
    except TableError as error:
        raise DataError(str(error)) from None


def refuse_type(series: pl.Series, name: str, where: str | None = None) -> pl.Series:
    """The series; a DataError where its values are neither numbers nor text nor can be written as text."""
    try:
        return tables.refuse_type(series, name, where)
    except TableError as error:
        raise DataError(str(error)) from None


def cells_as_text(series: pl.Series, name: str) -> pl.Series:
    """(n,) String: cells as they are written, without outer blanks. name: the file; DataError for other types."""
    return refuse_type(series, name).cast(pl.String).str.strip_chars()


def clean_ids(series: pl.Series, absent: Iterable[str], name: str) -> pl.Series:
    """String ids: whole numbers without '.0', blanks cut off, null where the value is in `absent`. name: the file."""
    try:
        text = ids_as_text(series, name).str.strip_chars()
    except TableError as error:
        raise DataError(str(error)) from None
    return text.to_frame("id").select(pl.when(~pl.col("id").is_in(list(absent))).then(pl.col("id"))).to_series()


def _join_cells(columns: Sequence[pl.Series], where: str) -> pl.Series:
    """(n,) String: the cells of each record with ':' between them; null where one of them is."""
    frame = pl.DataFrame([column.rename(str(i)) for i, column in enumerate(columns)])
    joined = frame.select(joined=pl.concat_str(frame.columns, separator=BETWEEN_COLUMNS))["joined"]
    levels = frame.with_columns(joined=joined).drop_nulls().unique()
    if levels["joined"].n_unique() < levels.height:
        twice = levels.filter(levels["joined"].is_duplicated())["joined"][0]
        raise DataError(
            f"{where}: found two combinations that would both be called {quoted(twice)}; needed cells without "
            f"{BETWEEN_COLUMNS!r} in these columns"
        )
    return joined.rename("id")


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if np.isfinite(value) else None
