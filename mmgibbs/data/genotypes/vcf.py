"""VCF and BCF files, by cyvcf2 (htslib): copies of the first alternative allele, from GT. Extra: mmgibbs[genotypes].

A site whose ALT is '.' (or <NON_REF>) has no animal with another allele than REF: it is read, as the same SNP of
another file may have both, unless another site has its place.
"""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import compress, product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from mmgibbs.config.genotypes import Genotypes
from mmgibbs.data.genotypes.file_format import (
    BYTE_ORDER_MARK,
    GZIP,
    GenotypeFile,
    optional_library,
    read_head,
    snp_table,
)
from mmgibbs.errors import DataError
from mmgibbs.genotypes.store import BLOCK, PackedGenotypes, PackedSource, count_chunks
from mmgibbs.pedigree.tables import agreeing, counted, quoted

MISSING = 3
_NO_ALLELE = -2  # as cyvcf2 has it after the last allele of a shorter genotype; -1 is '.'
_NO_ALLELES = ("<NON_REF>", "<*>", "*")  # in ALT, after the alleles that have been seen
_UNKNOWN_ALLELE = "."
_END_MARK = bytes.fromhex("1f8b08040000000000ff0600424302001b0003000000000000000000")  # of a file in BGZF
_BGZF = bytes.fromhex("1f8b0804")
_WARNING = 3  # the level of htslib's messages unless a program changes it
_UNNAMED = 2  # and above: alleles that a site of two alleles does not name
_N_ALLELES = _UNNAMED - _NO_ALLELE + 1
_REASONS = (  # genotypes that are there and are taken as missing
    "with one known allele of two, as in ./1,",
    "with one allele, as of males on X,",
    "with more than two alleles",
    "with an allele that the site does not name",
)
_HALF, _HAPLOID, _POLYPLOID, _WITH_UNNAMED = 1, 2, 3, 4  # their places, from 1


def matches(head: bytes) -> bool:
    """Check whether a file that begins with these bytes is a VCF or BCF."""
    return head.startswith((b"##fileformat=VCF", b"BCF\x02"))


def read(genotypes: Genotypes, traits: Collection[str] = ()) -> GenotypeFile:
    """Sites without GT, and those of more than two alleles, are left out and counted; genotypes that are not two known
    alleles are missing.

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
    sites.drop_covered()
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


def read_alleles(alleles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (n,) uint8 copies of allele 1, 3 = missing, and (n,) uint8 why a genotype that is there is missing: the
    place in _REASONS, from 1; 0 where it is none of these.

    alleles: (n, ploidy) integers, 0 the reference; -1 is '.', and -2 stands after the last one.
    """
    first = np.minimum(alleles[:, 0], _UNNAMED)
    second = np.minimum(alleles[:, 1], _UNNAMED) if alleles.shape[1] > 1 else np.full(len(alleles), _NO_ALLELE)
    pair = _N_ALLELES * first + (second - (_N_ALLELES + 1) * _NO_ALLELE)
    codes, reasons = _CODE_OF_PAIR[pair], _REASON_OF_PAIR[pair]
    if alleles.shape[1] > 2:
        has_more = (alleles[:, 2:] != _NO_ALLELE).any(axis=1)
        codes[has_more] = MISSING
        reasons[has_more] = np.where((alleles[has_more] >= 0).any(axis=1), _POLYPLOID, 0)
    return codes, reasons


def _tables_of_pairs() -> tuple[np.ndarray, np.ndarray]:
    """Code and reason of each pair of alleles from _NO_ALLELE to _UNNAMED."""
    codes = np.full((_N_ALLELES, _N_ALLELES), MISSING, np.uint8)
    reasons = np.zeros((_N_ALLELES, _N_ALLELES), np.uint8)
    for first, second in product(range(_NO_ALLELE, _UNNAMED + 1), repeat=2):
        at = first - _NO_ALLELE, second - _NO_ALLELE
        n_known = (first >= 0) + (second >= 0)
        if n_known == 2 and max(first, second) < _UNNAMED:
            codes[at] = first + second
        elif n_known == 2:
            reasons[at] = _WITH_UNNAMED
        elif n_known == 1:
            reasons[at] = _HAPLOID if second == _NO_ALLELE else _HALF
    return codes.ravel(), reasons.ravel()


_CODE_OF_PAIR, _REASON_OF_PAIR = _tables_of_pairs()


@dataclass
class _Sites:
    """The sites read so far: genotypes of those that are used, and counts of what is left out."""

    name: str  # of the file
    samples: list[str] = field(default_factory=list)
    snps: list[tuple] = field(default_factory=list)  # name, chromosome, position, counted and other allele
    n_several: int = 0  # sites of more than two alleles
    n_covered: int = 0  # sites without an alternative allele, at the place of another one
    without_gt: list[str] = field(default_factory=list)  # places
    n_missing: Counter[str] = field(default_factory=Counter)  # genotypes by _REASONS
    n_known: int = 0  # genotypes
    example: dict[str, str] = field(default_factory=dict)
    _codes: list[np.ndarray] = field(default_factory=list)
    _parts: list[np.ndarray] = field(default_factory=list)

    def add(self, site: Any) -> None:
        """Read a site of cyvcf2."""
        alternatives = [allele for allele in site.ALT if allele not in _NO_ALLELES]
        if len(alternatives) > 1:
            self.n_several += 1
            return
        place = f"{site.CHROM}:{site.POS}"
        if "GT" not in site.FORMAT:
            self.without_gt.append(place)
            return
        alleles = np.asarray(site.genotype.array())[:, :-1]  # the last column: phased or not
        if not alternatives:
            alleles = np.where(alleles > 0, _UNNAMED, alleles)
        codes, reasons = read_alleles(alleles)
        if reasons.any():
            self._count(reasons, place)
        self.n_known += int(np.count_nonzero(codes != MISSING))
        self.snps.append((site.ID, site.CHROM, float(site.POS), *(alternatives or [_UNKNOWN_ALLELE]), site.REF))
        self._codes.append(codes)
        if len(self._codes) == BLOCK:
            self._pack()

    def _count(self, reasons: np.ndarray, place: str) -> None:
        for reason, text in enumerate(_REASONS, 1):
            rows = np.flatnonzero(reasons == reason)
            if len(rows):
                self.n_missing[text] += len(rows)
                self.example.setdefault(text, f"that of {quoted(self.samples[int(rows[0])])} at {place}")

    def _pack(self) -> None:
        n = len(self.samples)
        packed = np.empty((len(self._codes), count_chunks(n), PackedGenotypes.width), np.uint32)
        if self._codes:
            PackedGenotypes.pack(np.stack(self._codes), np.arange(n), packed)
        self._parts.append(packed)
        self._codes.clear()

    def packed(self) -> PackedGenotypes:
        self._pack()
        return PackedGenotypes(np.concatenate(self._parts), len(self.samples))

    def drop_covered(self) -> None:
        """Leave out sites without an alternative allele where another site has their place."""
        at_place = Counter((chromosome, position) for _, chromosome, position, _, _ in self.snps)
        keep = [counted != _UNKNOWN_ALLELE or at_place[c, p] == 1 for _, c, p, counted, _ in self.snps]
        self.n_covered = keep.count(False)
        if self.n_covered:
            self._pack()
            self._parts = [np.concatenate(self._parts)[np.array(keep)]]
            self.snps = list(compress(self.snps, keep))

    def refuse_none(self) -> None:
        """DataError where no site is used, or no genotype is one of two alleles."""
        if not self.samples:
            raise DataError(f"{self.name}: has no samples; needed genotypes of animals")
        n_single = sum(counted == _UNKNOWN_ALLELE for _, _, _, counted, _ in self.snps)
        if len(self.snps) == n_single:
            more = [f"{counted(len(self.without_gt), 'site', 'has')} no GT"] * bool(self.without_gt)
            more += [f"{counted(self.n_several, 'site', 'has')} more than two alleles"] * bool(self.n_several)
            more += [f"{counted(n_single, 'site', 'has')} no alternative allele"] * bool(n_single)
            rest = f": {', '.join(more)}" if more else ""
            raise DataError(f"{self.name}: found no SNP with two alleles and genotypes (GT){rest}")
        reason = max(self.n_missing, key=self.n_missing.__getitem__, default=None)
        if reason is not None and not self.n_known:
            raise DataError(
                f"{self.name}: found no genotype with two known alleles, but {self.n_missing[reason]:,} "
                f"{reason.rstrip(',')}, the first of them {self.example[reason]}; needed 0/0, 0/1 or 1/1"
            )

    @property
    def notes(self) -> tuple[str, ...]:
        out = []
        if self.n_several:
            out.append(f"{self.name}: {counted(self.n_several, 'site')} with more than two alleles left out")
        if self.n_covered:
            out.append(
                f"{self.name}: {counted(self.n_covered, 'site')} without an alternative allele left out, at places of "
                "other sites"
            )
        if self.without_gt:
            count = counted(len(self.without_gt), "site")
            out.append(f"{self.name}: {count} without genotypes (GT) left out, such as {self.without_gt[0]}")
        return tuple(out)

    @property
    def warnings(self) -> tuple[str, ...]:
        return tuple(
            f"{self.name}: {counted(self.n_missing[text], 'genotype')} {text} {agreeing(self.n_missing[text], 'is')} "
            f"taken as missing, the first of them {self.example[text]}"
            for text in _REASONS
            if self.n_missing[text]
        )


@contextmanager
def _quiet(cyvcf2: Any) -> Iterator[None]:
    """Silence the lines that htslib prints on damaged files: the error says it in one."""
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
    begins = read_head(path)[:16]
    if begins and not begins.startswith((b"#", b"BCF")):  # htslib would unpack all of it first
        raise DataError(
            f"{path.name}: cannot be read as VCF: its header is damaged or it is no VCF (it begins with {begins!r}, "
            "and not with ##fileformat=VCF)"
        )
    if head.startswith(_BGZF) and head[12:14] == b"BC" and end != _END_MARK:
        raise DataError(
            f"{path.name}: is cut short: the mark at its end is missing, which every file of bgzip and bcftools has "
            "(if it is complete, bcftools view -Oz writes it anew)"
        )


def _reason(path: Path, error: Exception, sites: _Sites) -> str:
    """Explain what is wrong with a file, in place of codes of htslib."""
    samples = _samples_of_header(path)
    if twice := [sample for sample, count in Counter(samples).items() if count > 1]:
        return f"sample {quoted(twice[0])} is there twice; needed every animal once"
    read = len(sites.snps) + sites.n_several + len(sites.without_gt)
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
