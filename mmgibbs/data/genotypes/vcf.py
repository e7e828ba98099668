"""VCF and BCF files, by cyvcf2 (htslib): copies of the first alternative allele, from GT. Extra: mmgibbs[genotypes]."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from mmgibbs.config.genotypes import Genotypes
from mmgibbs.data.genotypes.file import GenotypeFile, optional_library, snp_table
from mmgibbs.errors import DataError
from mmgibbs.genotypes.store import BLOCK, PackedGenotypes, PackedSource, chunks_of
from pedigree.tables import counted


def read(genotypes: Genotypes) -> GenotypeFile:
    """Sites with more than one alternative allele are left out and counted. Raises DataError without cyvcf2, and for a
    file that is damaged or has no genotypes."""
    cyvcf2 = optional_library("cyvcf2", "genotypes", f"{genotypes.file.name} (VCF)")
    name = genotypes.file.name
    try:
        reader = cyvcf2.VCF(str(genotypes.file), gts012=True)  # 0, 1, 2, 3 = missing
        packed, sites, several = _packed(reader)
    except DataError:
        raise
    except Exception as error:  # noqa: BLE001  whatever htslib makes of a damaged file
        raise DataError(f"{name}: cannot be read as VCF: {error}") from None
    if not sites:
        raise DataError(f"{name}: found no SNP with two alleles and genotypes (GT)")
    ids = pl.Series("id", list(reader.samples), pl.String)
    columns = dict(zip(("snp", "chromosome", "position", "counted", "other"), zip(*sites, strict=True), strict=True))
    notes = (f"{name}: {counted(several, 'site')} with more than two alleles left out",) if several else ()
    snps, rows = snp_table(**columns), np.arange(1, len(ids) + 1)
    return GenotypeFile(name, ids, rows, f"{name} (samples)", snps, PackedSource(packed), notes=notes)


def _packed(reader: Any) -> tuple[PackedGenotypes, list[tuple], int]:
    """(genotypes, (name, chromosome, position, counted, other) of each SNP, sites left out)."""
    n, several = len(reader.samples), 0
    sites: list[tuple] = []
    codes: list[np.ndarray] = []
    parts: list[np.ndarray] = []

    def pack() -> None:
        part = np.empty((len(codes), chunks_of(n), PackedGenotypes.width), np.uint32)
        if codes:
            PackedGenotypes.pack(np.stack(codes), np.arange(n), part)
        parts.append(part)
        codes.clear()

    for site in reader:
        if len(site.ALT) != 1:
            several += len(site.ALT) > 1
            continue
        if "GT" not in site.FORMAT:
            raise DataError(f"{site.CHROM}:{site.POS}: found no genotypes; needed the field GT")
        codes.append(np.asarray(site.gt_types, np.uint8).copy())
        sites.append((site.ID, site.CHROM, float(site.POS), site.ALT[0], site.REF))
        if len(codes) == BLOCK:
            pack()
    pack()
    return PackedGenotypes(np.concatenate(parts), n), sites, several
