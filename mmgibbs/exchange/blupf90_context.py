"""What every part of an import needs: the parameter file, the columns of its data file, and what there is to tell."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl

from mmgibbs.errors import ConfigError
from mmgibbs.exchange.blupf90_read import ParameterFile
from mmgibbs.pedigree.contents import UTF8
from mmgibbs.pedigree.errors import TableError
from mmgibbs.pedigree.layout import WHITESPACE
from mmgibbs.pedigree.tables import Table, open_table


def explain_one_column(table: Table) -> str:
    """The end of a message about a position that a table lacks, where its columns have other separators."""
    first = "".join(table.first_record or ()) if len(table.names) == 1 else ""
    mark = next((mark for mark in (",", ";", "|") if mark in first), None)
    return "" if mark is None else f" (its columns are divided by '{mark}', needed blanks)"


@dataclass
class Context:
    """folder: where the analysis will be, which its paths are relative to; stem: of the names of new tables."""

    parameters: ParameterFile
    folder: Path
    stem: str
    notes: list[tuple[int, str]] = field(default_factory=list)  # (line, 0 for none; what was not carried over)
    tables: dict[str, pl.DataFrame] = field(default_factory=dict)  # tables to write: file name -> frame
    pedigree: tuple[str, tuple[int, ...]] | None = None  # (file, positions) of the one pedigree
    data: Table = field(init=False)  # the data file, without a header line
    columns: dict[int, str] = field(init=False)  # name of each position
    divisor: np.ndarray = field(init=False)  # (T,) residual variance of traits in categories, 1 of the others

    def __post_init__(self) -> None:
        datafile = self.parameters.stated["DATAFILE"]
        self.data = self.open(datafile.line, "DATAFILE", datafile.value)
        self.columns = self._names_of_columns()
        self.divisor = np.ones(self.parameters.n_traits)

    @property
    def traits(self) -> list[str]:
        return [f"trait{t + 1}" for t in range(self.parameters.n_traits)]

    def note(self, line: int, text: str) -> None:
        if (line, text) not in self.notes:
            self.notes.append((line, text))

    def refuse(self, line: int, message: str) -> ConfigError:
        return ConfigError(f"{self.parameters.path.name} line {line}: {message}")

    def open(self, line: int, keyword: str, file: str) -> Table:
        """A table without a header line; its path is relative to the parameter file."""
        try:
            return open_table(self.parameters.path.parent / file, WHITESPACE, False, encoding=UTF8)
        except TableError as error:
            raise self.refuse(line, f"{keyword}: {error}") from None

    def path(self, file: str) -> str:
        """The path of a file of the parameter file, as the analysis has it."""
        return file if os.path.isabs(file) else os.path.relpath(self.parameters.path.parent / file, self.folder)

    def check(self, line: int, keyword: str, positions: Sequence[int]) -> None:
        """Refuse a position that is no column; 0 means none."""
        for position in positions:
            if position and position not in self.columns:
                new = [f" or {c.value[0]} (COMBINE)" for c in self.parameters.combined]
                needed = f"one from 1 to {len(self.data.names)}{''.join(new)}, the columns of {self.data.name}"
                needed += explain_one_column(self.data)
                raise self.refuse(line, f"{keyword}: found position {position}, needed {needed}")

    @property
    def name_of_new_data(self) -> str:
        return f"{self.stem}_data.csv"

    def values(self, position: int) -> pl.Series:
        """(records,) String: a column of the data that the analysis will read."""
        if self.name_of_new_data in self.tables:
            return self.tables[self.name_of_new_data][self.columns[position]]
        return self.data.read([position]).to_series()

    def row(self, record: int) -> int:
        """The row of the data file, from 1, of record 0, 1, ... of `values`."""
        return self.data.line(record + self.n_skipped)

    @property
    def n_skipped(self) -> int:
        """Rows of the data file in the lines that SKIP_HEADER skips: a blank line is none."""
        stated = self.parameters.stated.get("SKIP_HEADER")
        return 0 if stated is None else int(np.count_nonzero(self.data.lines() <= stated.value))

    def table(self) -> pl.DataFrame:
        """The records that the analysis will read, String, with the names of their columns."""
        if self.name_of_new_data in self.tables:
            return self.tables[self.name_of_new_data]
        frame = self.data.read()
        frame.columns = [self.columns[i] for i in range(1, frame.width + 1)]
        return frame

    def _names_of_columns(self) -> dict[int, str]:
        """col1, col2, ..., and COMBINE's; `animal` and `sire` so that the program knows whose the records are."""
        columns = {i: f"col{i}" for i in range(1, len(self.data.names) + 1)}
        columns |= {c.value[0]: f"col{c.value[0]}" for c in self.parameters.combined}
        for effect in self.parameters.effects:
            kind = effect.stated["RANDOM"].value if "RANDOM" in effect.stated else "diagonal"
            position = max(effect.positions)
            if kind != "diagonal" and kind not in columns.values() and columns.get(position) == f"col{position}":
                columns[position] = kind
        return columns
