"""PLINK 2 files: .pgen with .pvar and .psam, by pgenlib (mmgibbs[genotypes]): copies of the alternative allele."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from mmgibbs.config.genotypes import Genotypes
from mmgibbs.data.genotypes.file_format import GenotypeFile, optional_library, snp_table
from mmgibbs.data.genotypes.map_file import parse_positions
from mmgibbs.data.genotypes.plink import MAGIC, SNP_MAJOR
from mmgibbs.data.phenotypes import SHOWN, refuse_rows
from mmgibbs.errors import DataError
from mmgibbs.genotypes.store import GenotypeSource
from mmgibbs.pedigree.contents import unzip
from mmgibbs.pedigree.errors import TableError
from mmgibbs.pedigree.tables import counted, quoted

_MISSING = -9  # as pgenlib gives it


class PgenSource(GenotypeSource):
    """Blocks of hard calls of a .pgen."""

    real_valued = False

    def __init__(self, name: str, reader: Any, n_animals: int, n_snps: int):
        self.name, self.reader, self._n, self._p = name, reader, n_animals, n_snps

    @property
    def n_animals(self) -> int:
        return self._n

    @property
    def n_snps(self) -> int:
        return self._p

    def block(self, first: int, stop: int) -> np.ndarray:
        calls = np.empty((stop - first, self._n), np.int8)
        try:
            self.reader.read_range(first, stop, calls)
        except (RuntimeError, ValueError) as error:
            raise DataError(
                f"{self.name}: is damaged or cut short: SNPs {first + 1:,} to {stop:,} cannot be read ({error})"
            ) from None
        return np.where(calls == _MISSING, 3, calls).astype(np.uint8)


def matches(head: bytes) -> bool:
    """Check whether a file that begins with these bytes is a .pgen: those of a .bed, with another third byte."""
    return head.startswith(MAGIC) and head[2:3] > bytes([SNP_MAJOR])


def read(genotypes: Genotypes, traits: Collection[str] = ()) -> GenotypeFile:
    """Raises DataError without pgenlib, and where the three files do not fit together or one is damaged."""
    pgenlib = optional_library("pgenlib", "genotypes", f"{genotypes.file.name} (PLINK 2)")
    pgen, pvar = genotypes.file, genotypes.map
    if pvar is None or pvar.suffix != ".pvar":
        pvar = pgen.with_suffix(".pvar")
    psam = genotypes.animals or pgen.with_suffix(".psam")
    (sites, site_rows), (animals, animal_rows) = _rows(pvar, "#CHROM"), _rows(psam, "#FID", "#IID")
    id = "IID" if "IID" in animals.columns else "#IID"
    if id not in animals.columns or not {"POS", "ID", "REF", "ALT"} <= set(sites.columns):
        raise DataError(f"{psam.name}, {pvar.name}: needed the columns IID, and #CHROM, POS, ID, REF, ALT")
    several = int(sites["ALT"].str.contains(",").sum())
    if several:
        raise DataError(
            f"{pvar.name}: found {counted(several, 'site')} with more than two alleles; needed two: "
            "plink2 --max-alleles 2 --make-pgen leaves them out"
        )
    try:
        reader = pgenlib.PgenReader(str(pgen).encode(), raw_sample_ct=animals.height, variant_ct=sites.height)
    except (RuntimeError, ValueError) as error:
        raise DataError(
            f"{pgen.name}: cannot be read with {counted(animals.height, 'animal')} ({psam.name}) and "
            f"{counted(sites.height, 'SNP')} ({pvar.name}): {_first_line(error)}"
        ) from None
    snps = snp_table(
        snp=sites["ID"], chromosome=sites["#CHROM"], counted=sites["ALT"], other=sites["REF"],
        position=parse_positions(sites["POS"], site_rows, pvar.name, "position"),
    )  # fmt: skip
    source = PgenSource(pgen.name, reader, animals.height, sites.height)
    return GenotypeFile(pgen.name, animals[id].alias("id"), animal_rows, psam.name, snps, source)


def _rows(path: Path, *heads: str) -> tuple[pl.DataFrame, np.ndarray]:
    """The table below lines that begin with ##, whose header begins with one of `heads`, and the line of each row.

    Fields are separated by tabs where the header has one, else by white space. Raises DataError for a row of more or
    fewer fields than the header has.
    """
    if not path.exists():
        raise DataError(f"{path}: no such file; needed the {path.suffix} that belongs to the .pgen (data.genotypes)")
    lines = [(i, line) for i, line in enumerate(_lines(path), 1) if line.strip() and not line.startswith("##")]
    if not lines or lines[0][1].split()[0] not in heads:
        raise DataError(f"{path.name}: needed a header that begins with {' or '.join(heads)}")
    separator = "\t" if "\t" in lines[0][1] else None
    records = [(i, [field.strip() for field in line.split(separator)]) for i, line in lines]
    (_, names), rows = records[0], records[1:]
    if not rows:
        raise DataError(f"{path.name}: has a header but no rows")
    if twice := [name for name in names if names.count(name) > 1]:
        raise DataError(f"{path.name}: found column {quoted(twice[0])} twice in the header; needed every column once")
    numbers = np.array([i for i, _ in rows])
    uneven = np.flatnonzero(np.array([len(fields) for _, fields in rows]) != len(names))
    if len(uneven):
        shown = [f"found {counted(len(rows[i][1]), 'field')}" for i in uneven[:SHOWN]]
        raise refuse_rows(path.name, numbers[uneven], shown, f"{len(names)}, as in the header")
    columns = zip(*(fields for _, fields in rows), strict=True)
    return pl.DataFrame(
        {name: pl.Series(name, column, pl.String) for name, column in zip(names, columns, strict=True)}
    ), numbers


def _lines(path: Path) -> list[str]:
    try:
        content = unzip(path.read_bytes(), path.name)
    except TableError as error:
        raise DataError(str(error)) from None
    if content.startswith(b"\x28\xb5\x2f\xfd"):
        raise DataError(f"{path.name}: is a zstd file; needed text: unzstd unpacks it")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        row = content.count(b"\n", 0, error.start) + 1
        raise DataError(f"{path.name} row {row}: found bytes that are no UTF-8 text; is the file damaged?") from None
    if "\0" in text:
        row = text.count("\n", 0, text.index("\0")) + 1
        raise DataError(f"{path.name} row {row}: found a zero byte; needed text: is the file damaged?")
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _first_line(error: Exception) -> str:
    return quoted(next(iter(str(error).splitlines()), ""), 200)[1:-1]
