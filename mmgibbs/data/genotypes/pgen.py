"""PLINK 2 files: .pgen with .pvar and .psam, by pgenlib (mmgibbs[genotypes]): copies of the alternative allele."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from mmgibbs.config.genotypes import Genotypes
from mmgibbs.data.genotypes.file import GenotypeFile, optional_library, snp_table
from mmgibbs.errors import DataError
from mmgibbs.genotypes.store import GenotypeSource
from pedigree.tables import counted

_MISSING = -9  # as pgenlib gives it


class PgenSource(GenotypeSource):
    """Blocks of hard calls of a .pgen."""

    real_valued = False

    def __init__(self, reader: Any, n_animals: int, n_snps: int):
        self.reader, self._n, self._p = reader, n_animals, n_snps

    @property
    def n_animals(self) -> int:
        return self._n

    @property
    def n_snps(self) -> int:
        return self._p

    def block(self, first: int, stop: int) -> np.ndarray:
        calls = np.empty((stop - first, self._n), np.int8)
        self.reader.read_range(first, stop, calls)
        return np.where(calls == _MISSING, 3, calls).astype(np.uint8)


def read(genotypes: Genotypes) -> GenotypeFile:
    """Raises DataError without pgenlib, and where the three files do not fit together or one is damaged."""
    pgenlib = optional_library("pgenlib", "genotypes", f"{genotypes.file.name} (PLINK 2)")
    pgen, pvar = genotypes.file, genotypes.map
    if pvar is None or pvar.suffix != ".pvar":
        pvar = pgen.with_suffix(".pvar")
    psam = genotypes.animals or pgen.with_suffix(".psam")
    sites, animals = _rows(pvar, "#CHROM"), _rows(psam, "#FID", "#IID")
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
            f"{pgen.name}: cannot be read with {animals.height:,} animals ({psam.name}) and {sites.height:,} SNPs "
            f"({pvar.name}): {error}"
        ) from None
    snps = snp_table(
        snp=sites["ID"], chromosome=sites["#CHROM"], position=sites["POS"].cast(pl.Float64, strict=False),
        counted=sites["ALT"], other=sites["REF"],
    )  # fmt: skip
    source = PgenSource(reader, animals.height, sites.height)
    return GenotypeFile(pgen.name, animals[id].alias("id"), np.arange(1, animals.height + 1), psam.name, snps, source)


def _rows(path: Path, *heads: str) -> pl.DataFrame:
    """The table below lines that begin with ##, whose header begins with one of `heads`."""
    if not path.exists():
        raise DataError(f"{path}: no such file; needed the {path.suffix} that belongs to the .pgen (data.genotypes)")
    with open(path, encoding="utf-8", errors="replace") as file:
        lines = [line.rstrip("\n") for line in file if not line.startswith("##")]
    if not lines or not lines[0].split()[:1] or lines[0].split()[0] not in heads:
        raise DataError(f"{path.name}: needed a header that begins with {' or '.join(heads)}")
    fields = [line.split() for line in lines if line.strip()]
    return pl.DataFrame({name: [row[i] for row in fields[1:]] for i, name in enumerate(fields[0])})
