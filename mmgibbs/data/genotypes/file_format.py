"""Opens a file of genotypes of any format."""

from __future__ import annotations

import zlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import polars as pl

from mmgibbs.config.genotypes import Genotypes
from mmgibbs.data.genotypes.map_file import with_map
from mmgibbs.data.genotypes.snps import HOW, known_chromosomes, known_positions, name_snps, unknown_chromosomes_note
from mmgibbs.data.phenotypes import SHOWN, refuse_rows
from mmgibbs.errors import DataError
from mmgibbs.genotypes.formats import FORMATS
from mmgibbs.genotypes.store import GenotypeSource
from mmgibbs.pedigree.tables import counted, quoted

HEAD_BYTES = 1 << 24  # of a file, within which its first line must end
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
GZIP = b"\x1f\x8b"


def read_head(path: Path) -> bytes:
    """Return the first bytes of a file, of a gzip file those of its content, as far as it is undamaged."""
    with open(path, "rb") as file:
        head = file.read(HEAD_BYTES)
    if not head.startswith(GZIP):
        return head
    try:
        return zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(head, HEAD_BYTES)
    except zlib.error:
        return b""  # the reader says what is wrong


def format_of_content(path: Path) -> str:
    """Return the format by the first bytes; 'table' where they are those of no other."""
    head = read_head(path)
    return next(format for format in FORMATS if _reader(format).matches(head))


def first_line(head: bytes) -> bytes:
    """The first line that is not blank, of a file that begins with these bytes."""
    return head.removeprefix(BYTE_ORDER_MARK).replace(b"\r", b"\n").lstrip().split(b"\n", 1)[0]


def _reader(format: str) -> Any:
    """The module with `matches` and `read`."""
    return import_module(f"mmgibbs.data.genotypes.{format}")


# Columns of `GenotypeFile.snps`; null where a file does not say.
SNP_COLUMNS: dict[str, type[pl.DataType]] = {
    "snp": pl.String,
    "chromosome": pl.String,
    "position": pl.Float64,  # in the unit of the file; base pairs as a rule
    "counted": pl.String,  # the allele whose copies are counted
    "other": pl.String,
}


@dataclass(frozen=True)
class GenotypeFile:
    """n animals and p SNPs in the order of the file."""

    name: str  # of the file, as messages call it
    ids: pl.Series  # (n,) String
    id_rows: np.ndarray  # (n,) int64 where each animal stands in the file that names it
    id_file: str  # its name
    snps: pl.DataFrame  # (p) the columns of SNP_COLUMNS
    source: GenotypeSource
    named: bool = True  # SNPs have names in the file; else a map may give them, in the order of the file
    notes: tuple[str, ...] = field(default=())
    warnings: tuple[str, ...] = field(default=())  # of what changes results
    unit: str | None = "bp"  # of the positions; None: the map does not say it

    @property
    def n_animals(self) -> int:
        return len(self.ids)

    @property
    def n_snps(self) -> int:
        return self.snps.height


def open_genotypes(genotypes: Genotypes, traits: Collection[str] = ()) -> GenotypeFile:
    """The file of this section of an analysis, with its map. traits: columns of a table that are records, no SNPs.

    Raises DataError: a file that is missing, damaged or of another format than it says, animals or SNPs that are there
    twice, a genotype that is none.
    """
    path = genotypes.file
    if not path.exists():
        raise DataError(f"{path}: no such file (data.genotypes.file)")
    if not path.is_file():
        raise DataError(f"{path}: is no file of genotypes but a folder or a device (data.genotypes.file)")
    try:
        file, format = _read(genotypes, traits)
    except OSError as error:
        raise DataError(f"{error.filename or path}: cannot be read: {error.strerror or error}") from None
    file = replace(file, ids=file.ids.str.strip_chars())
    own_map = FORMATS[format].map  # read with the genotypes
    if genotypes.map is not None and genotypes.map.suffix != own_map:
        file = with_map(file, genotypes.map)
    _refuse_animals(file)
    return _with_names(_with_known_places(file))


def _read(genotypes: Genotypes, traits: Collection[str]) -> tuple[GenotypeFile, str]:
    """The file and its format."""
    format = genotypes.chosen_format
    if format is None or (genotypes.format == "auto" and not FORMATS[format].label):
        of_content = format_of_content(genotypes.file)
        format = of_content if format is None or FORMATS[of_content].label else format
    return _reader(format).read(genotypes, traits), format


def snp_table(**columns: Sequence | pl.Series | None) -> pl.DataFrame:
    """The columns of SNP_COLUMNS, null where none is given; alleles and chromosomes as text."""
    height = next(len(c) for c in columns.values() if c is not None)
    table_columns = {}
    for name, kind in SNP_COLUMNS.items():
        given = columns.get(name)
        series = pl.Series(name, [None] * height, kind) if given is None else pl.Series(name, given)
        table_columns[name] = series.cast(kind, strict=False)
    return pl.DataFrame(table_columns)


def optional_library(name: str, extra: str, what: str) -> ModuleType:
    """The library that reads `what`; a DataError that says how to install it where it is not there."""
    try:
        return import_module(name)
    except ImportError:
        raise DataError(
            f"{what} is read with {name}, which is not installed; needed pip install 'mmgibbs[{extra}]', or the "
            "genotypes as .bed (plink --make-bed)"
        ) from None


def _refuse_animals(file: GenotypeFile) -> None:
    """DataError for an animal without an id, or twice."""
    void = np.flatnonzero((file.ids.is_null() | (file.ids == "")).to_numpy())
    if len(void):
        raise refuse_rows(file.id_file, file.id_rows[void], ["found no id"] * SHOWN, "the id of an animal")
    _refuse_twice(file.ids, file.id_rows, file.id_file, "animal", "data.genotypes")


def _refuse_twice(values: pl.Series, rows: np.ndarray, name: str, what: str, path: str) -> None:
    frame = pl.DataFrame({"value": values, "row": rows})
    twice = frame.group_by("value", maintain_order=True).agg("row").filter(pl.col("row").list.len() > 1)
    if twice.height:
        lines = [
            f"{name} rows {', '.join(map(str, times[:SHOWN]))}: found {what} {quoted(value)} {len(times)} times"
            for value, times in twice.head(SHOWN).iter_rows()
        ]
        more = [f"... and {twice.height - SHOWN:,} more"] if twice.height > SHOWN else []
        raise DataError("\n".join([*lines, *more, f"needed every {what} once ({path})"]))


def _with_known_places(file: GenotypeFile) -> GenotypeFile:
    """Chromosomes and positions that mean unknown are null, whatever file they are from."""
    chromosomes, codes = known_chromosomes(file.snps["chromosome"])
    notes = (unknown_chromosomes_note(file.name, file.snps["chromosome"], codes),) if codes else ()
    positions, of_positions = known_positions(file.name, file.snps["position"])
    return replace(file, snps=file.snps.with_columns(chromosomes, positions), notes=file.notes + notes + of_positions)


def _with_names(file: GenotypeFile) -> GenotypeFile:
    """Give every SNP a name that no other has."""
    snps, count = name_snps(file.snps)
    notes = (f"{file.name}: {counted(count, 'SNP')} without a name, called {HOW}",) if count and file.named else ()
    _refuse_twice(snps["snp"], np.arange(1, snps.height + 1), f"{file.name}: SNPs in", "SNP", "data.genotypes")
    return replace(file, snps=snps, notes=file.notes + notes)
