"""A table of genotypes: a column of animals, and for each SNP one with numbers from 0 to 2, whole or not."""

from __future__ import annotations

import numpy as np
import polars as pl

from mmgibbs.config.genotypes import Genotypes
from mmgibbs.data.genotypes.file import GenotypeFile, snp_table
from mmgibbs.data.phenotypes import SHOWN, refuse_rows, refuse_type, text_of
from mmgibbs.errors import DataError
from mmgibbs.genotypes.store import GenotypeSource, dosages
from pedigree.errors import TableError
from pedigree.tables import Table, open_table, quoted

COLUMNS = 2000  # SNPs that are parsed at a time
MISSING = 3


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
        parts = [part for part in parts if len(part)]
        return np.concatenate([dosages(part) for part in parts] if self.real_valued else parts)


def read(genotypes: Genotypes) -> GenotypeFile:
    """Raises DataError for a value that is no number from 0 to 2 and not missing: by row and column."""
    path = genotypes.file
    try:
        table = open_table(path, genotypes.separator)
        column = table.names[0] if genotypes.id is None else table.column(genotypes.id)
        ids = _ids(table, column, genotypes)
        names = [name for name in table.names if name != column]
        if not names:
            raise DataError(f"{path.name}: found the column {quoted(column)} alone; needed one for each SNP beside it")
        blocks = [_block(table, names[i : i + COLUMNS], genotypes.missing) for i in range(0, len(names), COLUMNS)]
    except TableError as error:
        raise DataError(f"{error} (data.genotypes)") from None
    snps = snp_table(snp=pl.Series("snp", names, pl.String))
    return GenotypeFile(table.name, ids, table.lines(), table.name, snps, TableSource(blocks))


def _ids(table: Table, column: str, genotypes: Genotypes) -> pl.Series:
    ids = text_of(refuse_type(table.read([column], False).to_series(), table.name, column), {"", *genotypes.missing})
    void = np.flatnonzero(ids.is_null().to_numpy())
    if len(void):
        found = [f"found no animal in column {quoted(column)}"] * SHOWN
        raise refuse_rows(table.name, table.lines()[void], found, "an id on every row")
    return ids.alias("id")


def _block(table: Table, names: list[str], missing: tuple[str, ...]) -> np.ndarray:
    """(SNPs, animals) uint8 codes, or float32 dosages where some are not whole."""
    frame = table.read(names, all_strings=False)
    numbers = np.stack([_numbers(table, series, missing) for series in frame])
    known = ~np.isnan(numbers)
    whole = np.rint(numbers[known]) == numbers[known]
    if not whole.all():
        return numbers
    codes = np.full(numbers.shape, MISSING, np.uint8)
    codes[known] = numbers[known]
    return codes


def _numbers(table: Table, series: pl.Series, missing: tuple[str, ...]) -> np.ndarray:
    """(n,) float32, NaN = missing."""
    refuse_type(series, table.name, f"column {quoted(series.name)}")
    absent = list({"", *missing})
    void = series.is_null() | series.cast(pl.String).str.strip_chars().is_in(absent)
    values = series.cast(pl.Float64, strict=False).set(void, None).fill_nan(None)
    wrong = np.flatnonzero(((values.is_null() & ~void) | ~values.is_between(0, 2).fill_null(True)).to_numpy())
    if len(wrong):
        found = [f"found {quoted(series[int(i)])} for SNP {quoted(series.name)}" for i in wrong[:SHOWN]]
        shown = ", ".join(m or "empty" for m in missing)
        raise refuse_rows(
            table.name, table.lines()[wrong], found,
            f"copies of one allele, from 0 to 2, or a missing value (data.genotypes.missing: {shown})",
        )  # fmt: skip
    return values.fill_null(np.nan).to_numpy().astype(np.float32)
