"""An opened file of genotypes, whatever its format: who, which SNPs, and blocks of SNPs on demand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from types import ModuleType

import numpy as np
import polars as pl

from mmgibbs.config.genotypes import BESIDE, Genotypes
from mmgibbs.data.genotypes.map_file import with_map
from mmgibbs.data.phenotypes import SHOWN
from mmgibbs.errors import DataError
from mmgibbs.genotypes.store import GenotypeSource
from pedigree.tables import counted, quoted

# Columns of `GenotypeFile.snps`; null where a file does not say.
SNP_COLUMNS: dict[str, type[pl.DataType]] = {
    "snp": pl.String,
    "chromosome": pl.String,
    "position": pl.Float64,  # in the unit of the file; base pairs as a rule
    "counted": pl.String,  # the allele whose copies are counted
    "other": pl.String,
}
READERS = {  # format -> module here, whose `read(genotypes)` returns a GenotypeFile
    "plink": "plink",
    "pgen": "pgen",
    "vcf": "vcf",
    "blupf90": "blupf90",
    "table": "table",
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

    @property
    def n_animals(self) -> int:
        return len(self.ids)

    @property
    def n_snps(self) -> int:
        return self.snps.height


def open_genotypes(genotypes: Genotypes) -> GenotypeFile:
    """The file of this section of an analysis, with its map.

    Raises DataError: a file that is missing, damaged or of another format than it says, animals or SNPs that are there
    twice, a genotype that is none.
    """
    if not genotypes.file.exists():
        raise DataError(f"{genotypes.file}: no such file (data.genotypes.file)")
    format = genotypes.chosen_format or _format_of_lines(genotypes.file)
    read: Callable[[Genotypes], GenotypeFile] = import_module(f"mmgibbs.data.genotypes.{READERS[format]}").read
    file = read(genotypes)
    own_map = BESIDE.get(format, ("", ""))[0]  # read with the genotypes
    if genotypes.map is not None and genotypes.map.suffix != own_map:
        file = with_map(file, genotypes.map)
    _refuse_twice(file.ids, file.id_rows, file.id_file, "animal", "data.genotypes")
    return _with_names(file)


def snp_table(**columns: Sequence | pl.Series | None) -> pl.DataFrame:
    """The columns of SNP_COLUMNS, null where none is given; alleles and chromosomes as text."""
    height = next(len(c) for c in columns.values() if c is not None)
    found = {}
    for name, kind in SNP_COLUMNS.items():
        given = columns.get(name)
        series = pl.Series(name, [None] * height, kind) if given is None else pl.Series(name, given)
        found[name] = series.cast(kind, strict=False)
    return pl.DataFrame(found)


def _format_of_lines(path: Path) -> str:
    """blupf90 where the first line is an id and a string of digits, plink by its first bytes, else a table."""
    with open(path, "rb") as file:
        head = file.read(1 << 24)
    if head[:3] == b"\x6c\x1b\x01":
        return "plink"
    fields = head.split(b"\n", 1)[0].split()
    return "blupf90" if len(fields) == 2 and fields[1].isdigit() else "table"


def optional_library(name: str, extra: str, what: str) -> ModuleType:
    """The library that reads `what`; a DataError that says how to install it where it is not there."""
    try:
        return import_module(name)
    except ImportError:
        raise DataError(
            f"{what} is read with {name}, which is not installed; needed pip install 'mmgibbs[{extra}]', or the "
            "genotypes as .bed (plink --make-bed)"
        ) from None


def _refuse_twice(values: pl.Series, rows: np.ndarray, name: str, what: str, path: str) -> None:
    frame = pl.DataFrame({"value": values, "row": rows})
    twice = frame.group_by("value", maintain_order=True).agg("row").filter(pl.col("row").list.len() > 1)
    if twice.height:
        lines = [
            f"{name} rows {', '.join(map(str, found[:SHOWN]))}: found {what} {quoted(value)} {len(found)} times"
            for value, found in twice.head(SHOWN).iter_rows()
        ]
        more = [f"... and {twice.height - SHOWN:,} more"] if twice.height > SHOWN else []
        raise DataError("\n".join([*lines, *more, f"needed every {what} once ({path})"]))


def _with_names(file: GenotypeFile) -> GenotypeFile:
    """Every SNP with a name of its own: '.' means none in .bim and VCF; then chromosome:position is one."""
    snps, notes = file.snps, file.notes
    void = snps["snp"].is_null() | (snps["snp"] == ".")
    if void.any():
        of_place = pl.format("{}:{}", "chromosome", pl.col("position").cast(pl.Int64))
        of_number = pl.format("snp{}", pl.int_range(1, pl.len() + 1))
        name = pl.when(pl.lit(void)).then(pl.coalesce(of_place, of_number)).otherwise("snp")
        snps = snps.with_columns(name.alias("snp"))
        how = "chromosome:position, or snp and their number in the file"
        if file.named:
            notes += (f"{file.name}: {counted(int(void.sum()), 'SNP')} without a name, called {how}",)
    _refuse_twice(snps["snp"], np.arange(1, snps.height + 1), f"{file.name}: SNPs in", "SNP", "data.genotypes")
    return GenotypeFile(file.name, file.ids, file.id_rows, file.id_file, snps, file.source, file.named, notes)
