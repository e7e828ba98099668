"""VCF and BCF files, by cyvcf2 (htslib): copies of the first alternative allele, from GT. Extra: mmgibbs[genotypes]."""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from mmgibbs.config.genotypes import Genotypes
from mmgibbs.data.genotypes.file import GenotypeFile, optional_library, snp_table
from mmgibbs.data.genotypes.file_format import BYTE_ORDER_MARK, GZIP, read_head
from mmgibbs.errors import DataError
from mmgibbs.genotypes.store import BLOCK, PackedGenotypes, PackedSource, chunks_of
from pedigree.tables import agreeing, counted, quoted

MISSING = 3
_MISSING_ALLELE, _NO_ALLELE = -1, -2  # as cyvcf2 gives them: '.', and after the last allele of a shorter genotype
_END_MARK = bytes.fromhex("1f8b08040000000000ff0600424302001b0003000000000000000000")  # of a file in BGZF
_BGZF = bytes.fromhex("1f8b0804")
_WARNING = 3  # the level of htslib's messages unless a program changes it
_REASONS = {  # genotypes that are there and are taken as missing
    "half": "with one known allele of two, as in ./1,",
    "haploid": "with one allele, as of males on X,",
    "polyploid": "with more than two alleles",
    "unnamed": "with an allele that the site does not name",
}


def read(genotypes: Genotypes) -> GenotypeFile:
    """Sites without GT, and those of more or fewer than two alleles, are left out and counted; genotypes that are not
    two known alleles are missing.

    Raises DataError without cyvcf2, and for a file that is damaged or has no genotypes.
    """
    path, name = genotypes.file, genotypes.file.name
    cyvcf2 = optional_library("cyvcf2", "genotypes", f"{name} (VCF)")
    _refuse_file(path)
    sites = _Sites(name)
    with _quiet(cyvcf2):
        try:
            reader = cyvcf2.VCF(str(path))
            sites.samples = list(reader.samples)
            for site in reader:
                sites.add(site)
        except Exception as error:  # noqa: BLE001  whatever htslib makes of a damaged file
            raise DataError(f"{name}: cannot be read as VCF: {_reason(path, error, sites)}") from None
    sites.refuse_none()
    packed = sites.packed()
    ids = pl.Series("id", sites.samples, pl.String)
    columns = dict(
        zip(("snp", "chromosome", "position", "counted", "other"), zip(*sites.snps, strict=True), strict=True)
    )
    snps, rows = snp_table(**columns), np.arange(1, len(ids) + 1)
    return GenotypeFile(
        name, ids, rows, f"{name} (samples)", snps, PackedSource(packed), notes=sites.notes, warnings=sites.warnings
    )


def read_alleles(alleles: np.ndarray) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Return (n,) uint8 copies of allele 1, 3 = missing, and which genotypes each of _REASONS makes missing.

    alleles: (n, ploidy) numbers of alleles, 0 the reference; -1 is '.', and -2 stands after the last one.
    """
    if alleles.shape[1] == 2 and ((alleles == 0) | (alleles == 1)).all():
        return alleles.sum(axis=1, dtype=np.uint8), {}
    n_alleles, n_known = (alleles != _NO_ALLELE).sum(axis=1), (alleles >= 0).sum(axis=1)
    is_named = alleles.max(axis=1) <= 1
    is_whole = (n_alleles == 2) & (n_known == 2)
    codes = np.full(len(alleles), MISSING, np.uint8)
    known = is_whole & is_named
    codes[known] = (alleles[known] == 1).sum(axis=1)
    return codes, {
        "half": (n_alleles == 2) & (n_known == 1),
        "haploid": (n_alleles == 1) & (n_known == 1),
        "polyploid": (n_alleles > 2) & (n_known > 0),
        "unnamed": is_whole & ~is_named,
    }


@dataclass
class _Sites:
    """The sites read so far: genotypes of those that are used, and counts of what is left out."""

    name: str  # of the file
    samples: list[str] = field(default_factory=list)
    snps: list[tuple] = field(default_factory=list)  # name, chromosome, position, counted and other allele
    n_several: int = 0  # sites of more than two alleles
    n_single: int = 0  # sites without an alternative allele
    without_gt: list[str] = field(default_factory=list)  # places
    n_missing: Counter[str] = field(default_factory=Counter)  # genotypes by reason
    n_known: int = 0  # genotypes
    example: dict[str, str] = field(default_factory=dict)
    _codes: list[np.ndarray] = field(default_factory=list)
    _parts: list[np.ndarray] = field(default_factory=list)

    def add(self, site: Any) -> None:
        """Read a site of cyvcf2."""
        alternatives = len(site.ALT)
        if alternatives != 1:
            self.n_several += alternatives > 1
            self.n_single += alternatives == 0
            return
        place = f"{site.CHROM}:{site.POS}"
        if "GT" not in site.FORMAT:
            self.without_gt.append(place)
            return
        codes, reasons = read_alleles(np.asarray(site.genotype.array())[:, :-1])  # the last column: phased or not
        for reason, is_missing in reasons.items():
            if is_missing.any():
                self.n_missing[reason] += int(is_missing.sum())
                self.example.setdefault(reason, f"that of {quoted(self.samples[int(is_missing.argmax())])} at {place}")
        self.n_known += int(np.count_nonzero(codes != MISSING))
        self.snps.append((site.ID, site.CHROM, float(site.POS), site.ALT[0], site.REF))
        self._codes.append(codes)
        if len(self._codes) == BLOCK:
            self._pack()

    def _pack(self) -> None:
        n = len(self.samples)
        part = np.empty((len(self._codes), chunks_of(n), PackedGenotypes.width), np.uint32)
        if self._codes:
            PackedGenotypes.pack(np.stack(self._codes), np.arange(n), part)
        self._parts.append(part)
        self._codes.clear()

    def packed(self) -> PackedGenotypes:
        self._pack()
        return PackedGenotypes(np.concatenate(self._parts), len(self.samples))

    def refuse_none(self) -> None:
        """DataError where no site is used, or no genotype is one of two alleles."""
        if not self.samples:
            raise DataError(f"{self.name}: has no samples; needed genotypes of animals")
        if not self.snps:
            more = [f"{counted(len(self.without_gt), 'site', 'has')} no GT"] * bool(self.without_gt)
            more += [f"{counted(self.n_several, 'site', 'has')} more than two alleles"] * bool(self.n_several)
            more += [f"{counted(self.n_single, 'site', 'has')} no alternative allele"] * bool(self.n_single)
            rest = f": {', '.join(more)}" if more else ""
            raise DataError(f"{self.name}: found no SNP with two alleles and genotypes (GT){rest}")
        reason = max(self.n_missing, key=self.n_missing.__getitem__, default=None)
        if reason is not None and not self.n_known:
            raise DataError(
                f"{self.name}: found no genotype with two known alleles, but {self.n_missing[reason]:,} "
                f"{_REASONS[reason].rstrip(',')}, the first of them {self.example[reason]}; needed 0/0, 0/1 or 1/1"
            )

    @property
    def notes(self) -> tuple[str, ...]:
        out = []
        if self.n_several:
            out.append(f"{self.name}: {counted(self.n_several, 'site')} with more than two alleles left out")
        if self.n_single:
            out.append(f"{self.name}: {counted(self.n_single, 'site')} without an alternative allele left out")
        if self.without_gt:
            count = counted(len(self.without_gt), "site")
            out.append(f"{self.name}: {count} without genotypes (GT) left out, such as {self.without_gt[0]}")
        return tuple(out)

    @property
    def warnings(self) -> tuple[str, ...]:
        return tuple(
            f"{self.name}: {counted(self.n_missing[reason], 'genotype')} {text} "
            f"{agreeing(self.n_missing[reason], 'is')} taken as missing, the first of them {self.example[reason]}"
            for reason, text in _REASONS.items()
            if self.n_missing[reason]
        )


@contextmanager
def _quiet(cyvcf2: Any) -> Iterator[None]:
    """Without the lines that htslib prints on damaged files: the error says it in one."""
    set_level = getattr(cyvcf2.cyvcf2, "set_htslib_log_level", None)
    if set_level is None:
        yield
        return
    set_level(0)
    try:
        yield
    finally:
        set_level(_WARNING)


def _refuse_file(path: Path) -> None:
    """DataError for what htslib reads without a word or cannot name: a cut file in BGZF, a byte order mark."""
    size = path.stat().st_size
    if size == 0:
        raise DataError(f"{path.name}: is empty; needed a VCF or BCF")
    with open(path, "rb") as file:
        head = file.read(16)
        file.seek(max(size - len(_END_MARK), 0))
        end = file.read()
    if head.startswith(BYTE_ORDER_MARK):
        raise DataError(
            f"{path.name}: begins with a byte order mark, which a VCF must not have; save it as plain UTF-8"
        )
    if head.startswith(_BGZF) and head[12:14] == b"BC" and end != _END_MARK:
        raise DataError(
            f"{path.name}: is cut short: the mark at its end is missing, which every file of bgzip and bcftools has "
            "(if it is complete, bcftools view -Oz writes it anew)"
        )


def _reason(path: Path, error: Exception, sites: _Sites) -> str:
    """What is wrong with a file, in place of codes of htslib."""
    samples = _samples_of_header(path)
    if twice := [sample for sample, count in Counter(samples).items() if count > 1]:
        return f"sample {quoted(twice[0])} is there twice; needed every animal once"
    read = len(sites.snps) + sites.n_several + sites.n_single + len(sites.without_gt)
    if read or sites.samples:
        last = f", after {sites.snps[-1][1]}:{sites.snps[-1][2]:.0f}," if sites.snps else ""
        return f"site {read + 1:,}{last} is damaged or cut short"
    text = quoted(next(iter(str(error).splitlines()), ""), 200)[1:-1]
    return f"its header is damaged or it is no VCF ({text})"


def _samples_of_header(path: Path) -> list[str]:
    """Samples of a text file, also compressed; none of what cannot be read."""
    try:
        head = read_head(path)
        if head.startswith(GZIP) or path.suffix == ".bcf":
            return []
        lines = head.decode(errors="replace").splitlines()
    except (OSError, EOFError, gzip.BadGzipFile):
        return []
    return next((line.split("\t")[9:] for line in lines if line.startswith("#CHROM")), [])
