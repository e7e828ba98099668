"""A table of genotypes: a column of animals, and for each SNP one with numbers from 0 to 2, whole or not."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import polars as pl

from mmgibbs.config.genotypes import Genotypes
from mmgibbs.data.genotypes.file import GenotypeFile, snp_table
from mmgibbs.data.genotypes.table_columns import choose_columns
from mmgibbs.data.phenotypes import SHOWN, clean_ids, refuse_rows, refuse_type
from mmgibbs.errors import DataError
from mmgibbs.genotypes.store import GenotypeSource, dosages
from pedigree.contents import UTF8
from pedigree.errors import TableError
from pedigree.spelling import are_unknown_codes, parse_numbers
from pedigree.tables import Table, counted, open_table, quoted

COLUMNS = 2000  # SNPs that are parsed at a time
MISSING = 3
_DECIMAL_COMMA = r"^[+-]?\d*,\d+$"
_FEWEST_SNPS = 20  # columns that it takes to say that one is unlike the others
_SHARE_OF_RECORDS = 0.9  # of the values of a column that are no whole numbers, where it looks like one of records


class TableSource(GenotypeSource):
    """Blocks of SNPs: uint8 codes where all of a block are whole, float32 dosages else."""

    def __init__(self, blocks: list[np.ndarray]):
        self.blocks = blocks
        self.starts = np.cumsum([0, *(len(block) for block in blocks)])

    @property
    def real_valued(self) -> bool:
        return any(block.dtype == np.float32 for block in self.blocks)

    @property
    def n_animals(self) -> int:
        return self.blocks[0].shape[1]

    @property
    def n_snps(self) -> int:
        return int(self.starts[-1])

    def block(self, first: int, stop: int) -> np.ndarray:
        parts = [
            block[max(first - start, 0) : max(stop - start, 0)]
            for block, start in zip(self.blocks, self.starts[:-1], strict=True)
        ]
        parts = [piece for piece in parts if len(piece)]
        return np.concatenate([dosages(piece) for piece in parts] if self.real_valued else parts)


def read(genotypes: Genotypes, traits: Collection[str] = ()) -> GenotypeFile:
    """Raises DataError for a value that is no number from 0 to 2 and not missing: by row and column.

    traits: columns that are records if the table has them.
    """
    try:
        table = open_table(genotypes.file, genotypes.separator, encoding=UTF8)
        columns = choose_columns(table, genotypes.id, traits)
        ids = _ids(table, columns.id)
        cells = _Cells(table, genotypes.missing)
        names = columns.snps
        blocks = [cells.block(names[i : i + COLUMNS]) for i in range(0, len(names), COLUMNS)]
    except TableError as error:
        raise DataError(f"{error} (data.genotypes)") from None
    snps = snp_table(snp=columns.names, counted=columns.counted, other=columns.other)
    return GenotypeFile(
        table.name, ids, table.lines(), table.name, snps, TableSource(blocks), notes=columns.notes + cells.notes,
        warnings=columns.warnings + cells.warnings,
    )  # fmt: skip


def _ids(table: Table, column: str) -> pl.Series:
    values = refuse_type(table.read([column], False).to_series(), table.name)
    ids = clean_ids(values, {"", "NA"}, table.name)
    void = np.flatnonzero(ids.is_null().to_numpy())
    if len(void):
        problems = [f"found no animal in column {quoted(column)}"] * SHOWN
        raise refuse_rows(table.name, table.lines()[void], problems, "an id on every row")
    return ids.alias("id")


class _Cells:
    """The genotypes in the cells of a table, and what is said of how they were read."""

    def __init__(self, table: Table, missing: Collection[str]):
        self.table, self.missing = table, tuple(missing)
        codes = parse_numbers(pl.Series(list(missing), dtype=pl.String))
        infinite = pl.Series(list(missing), dtype=pl.String).cast(pl.Float64, strict=False)
        # Compared as numbers: '9' is 9.0.
        self.codes = codes.fill_null(infinite).drop_nulls().unique().to_numpy()
        self.commas: dict[str, str] = {}  # column with decimal commas -> the first cell that has one
        self.real: dict[str, float] = {}  # column with values that are not whole -> their share

    def block(self, names: Sequence[str]) -> np.ndarray:
        """(SNPs, animals) uint8 codes, or float32 dosages where some are not whole."""
        numbers = np.empty((len(names), self.table.n_rows), np.float32)
        any_real = False
        for row, series in zip(numbers, self.table.read(list(names), all_strings=False), strict=True):
            row[:] = self.numbers(series)
            is_real = row != np.rint(row)  # also where missing
            if is_real.any():
                known = ~np.isnan(row)
                n_real, n_known = np.count_nonzero(is_real & known), np.count_nonzero(known)
                if n_real:
                    self.real[series.name] = n_real / n_known
                    any_real = True
        if any_real:
            return numbers
        return np.where(np.isnan(numbers), np.float32(MISSING), numbers).astype(np.uint8)

    def numbers(self, series: pl.Series) -> np.ndarray:
        """(n,) float64, NaN = missing."""
        table = self.table
        _refuse_dtype(series, table.name)
        if series.dtype.is_numeric() or series.dtype == pl.Boolean:
            text, values, void = None, series.cast(pl.Float64), series.is_null()
        else:
            text = series if series.dtype == pl.String else series.cast(pl.String)
            values, void = text.cast(pl.Float64, strict=False), text.is_null()
            if values.null_count() > void.sum():
                values, void = self._numbers_of_text(text.str.strip_chars(), values)
        out = values.to_numpy(writable=True)
        no_number = (values.is_null() & ~void).to_numpy()
        if self.codes.size:
            out[np.isin(out, self.codes)] = np.nan
        wrong = np.flatnonzero(no_number | (out < 0) | (out > 2))
        if len(wrong):
            raise self._refused(series, wrong, len(out) - int(void.sum()))
        return out

    def _numbers_of_text(self, text: pl.Series, values: pl.Series) -> tuple[pl.Series, pl.Series]:
        """Values with those of cells that Polars reads as no number, where they are one; which cells are missing."""
        rows = (values.is_null() & text.is_not_null()).arg_true()
        cells = text.gather(rows)
        is_missing = cells.is_in(list(self.missing)) | are_unknown_codes(cells, "value")
        known = rows.filter(~is_missing)
        if len(known):
            cells = text.gather(known)
            has_comma = cells.str.contains(_DECIMAL_COMMA)
            mixed = text.str.contains(r"\d[.]\d") if has_comma.any() else None
            if mixed is not None and not mixed.any():
                self.commas[text.name] = f"row {self.table.line(known[0])}: {cells[0]}"
                points = cells.str.replace(",", ".", literal=True)
                values = values.scatter(known, points.cast(pl.Float64, strict=False))
            else:
                values = values.scatter(known, parse_numbers(cells, "."))
        return values, text.is_null().scatter(rows, is_missing)

    def _refused(self, series: pl.Series, wrong: np.ndarray, n_known: int) -> DataError:
        problems = [f"found {quoted(series[int(i)])} for SNP {quoted(series.name)}" for i in wrong[:SHOWN]]
        shown = ", ".join(m or "empty" for m in self.missing)
        needed = f"copies of one allele, from 0 to 2, or a missing value (data.genotypes.missing: {shown})"
        error = refuse_rows(self.table.name, self.table.lines()[wrong], problems, needed)
        if 2 * len(wrong) < n_known:
            return error
        return DataError(
            f"{error}\nif column {quoted(series.name)} is no SNP, leave it out of the table, or name it in "
            "data.genotypes.id if it has the animals"
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """How numbers were read that can be read in two ways."""
        if not self.commas:
            return ()
        column, cell = next(iter(self.commas.items()))
        count = counted(len(self.commas), "column")
        return (f"{self.table.name}: commas are decimal points in {count}, such as {quoted(column)} ({cell})",)

    @property
    def warnings(self) -> tuple[str, ...]:
        """A column of fractions alone among whole genotypes looks like a record."""
        if len(self.real) != 1 or len(self.table.names) < _FEWEST_SNPS:
            return ()
        ((column, share),) = self.real.items()
        if share < _SHARE_OF_RECORDS:
            return ()
        return (
            f"{self.table.name}: column {quoted(column)} is taken as a SNP, but nearly all its values are fractions "
            "and those of all other SNPs are whole numbers: if it has records, leave it out of the table",
        )


def _refuse_dtype(series: pl.Series, name: str) -> None:
    """DataError for a column of a type whose values are no genotypes, such as dates."""
    refuse_type(series, name)
    if series.dtype.is_temporal():
        raise DataError(
            f"{name}: found values of type {series.dtype} in column {quoted(series.name)}; needed copies of one "
            "allele, from 0 to 2, or no such column in the table"
        )
