"""PLINK 1 files: .bed (genotypes), .bim (SNPs), .fam (animals).

A .bed holds three bytes, 6c 1b 01, and then for each SNP the animals, four to a byte, the first in the lowest bits: 00
two copies of A1 (fifth column of the .bim), 10 one, 11 none, 01 missing. Copies of A1 are counted.
(www.cog-genomics.org/plink/1.9/formats#bed)
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import numpy as np
import polars as pl

from mmgibbs.config.genotypes import Genotypes
from mmgibbs.data.genotypes.file_format import GenotypeFile, snp_table
from mmgibbs.data.genotypes.map_file import parse_positions
from mmgibbs.data.genotypes.snps import positions_of_plink
from mmgibbs.data.phenotypes import read_any
from mmgibbs.errors import DataError
from mmgibbs.genotypes.reading import decode_bed
from mmgibbs.genotypes.store import GenotypeSource
from mmgibbs.pedigree.tables import counted, quoted

MAGIC = b"\x6c\x1b"
SNP_MAJOR = 1
HEAD = 3  # bytes before the first SNP
_CODES = np.array([2, 3, 1, 0], np.uint8)  # copies of A1, 3 = missing, for 00, 01, 10, 11
BIM = ("chromosome", "snp", "centimorgan", "position", "counted", "other")
# What programs call the columns of a .fam and a .bim where they write a header, in lower case without punctuation.
_HEADER_WORDS = frozenset(
    "fid iid id pat mat sex gender phenotype pheno phen family familyid individual individualid animal animalid sample"
    " sampleid father fatherid mother motherid sire dam paternalid maternalid paternal maternal parent1 parent2 trait"
    " chr chrom chromosome snp snpid snpname rs rsid name marker markerid variant variantid cm morgan morgans gendist"
    " dist distance genetic pos position bp physpos allele allele1 allele2 a1 a2 ref alt".split()
)
_FEWEST_SNPS = 20  # of which one animal has all genotypes alike by chance with a probability of nearly nothing
_FEWEST_WORDS = 3  # of the six fields of a line that make it a header


class BedSource(GenotypeSource):
    """A .bed, read a block of SNPs at a time: what was read is not held."""

    real_valued = False

    def __init__(self, path: Path, n_animals: int, n_snps: int):
        self.path, self._n, self._p = path, n_animals, n_snps

    @property
    def n_animals(self) -> int:
        return self._n

    @property
    def n_snps(self) -> int:
        return self._p

    def block(self, first: int, stop: int) -> np.ndarray:
        row = -(-self._n // 4)
        content = np.fromfile(self.path, np.uint8, (stop - first) * row, offset=HEAD + first * row)
        out = np.empty((stop - first, self._n), np.uint8)
        decode_bed(content.reshape(stop - first, row), _CODES, out)
        return out


def matches(head: bytes) -> bool:
    """Check whether a file that begins with these bytes is a .bed."""
    return head.startswith(MAGIC) and head[2:3] <= bytes([SNP_MAJOR])


def read(genotypes: Genotypes, traits: Collection[str] = ()) -> GenotypeFile:
    """Raises DataError where the three files do not fit together, or the .bed is not what its name says."""
    bed, bim = genotypes.file, genotypes.map
    if bim is None or bim.suffix != ".bim":
        bim = bed.with_suffix(".bim")  # the map is a file of its own, read later
    fam = genotypes.animals or bed.with_suffix(".fam")
    (snps, snp_rows), (animals, animal_rows) = _read_columns(bim, 6), _read_columns(fam, 6)
    table = snps.rename(dict(zip(snps.columns[:6], BIM, strict=True)))
    base_pairs = parse_positions(table["position"], snp_rows, bim.name, "position")
    position, unit = positions_of_plink(
        base_pairs, parse_positions(table["centimorgan"], snp_rows, bim.name, "position in centimorgan")
    )
    columns = {name: table[name] for name in ("snp", "chromosome", "counted", "other")}
    snp_frame = snp_table(**columns, position=position)
    _refuse_bytes(bed, fam, animals.height, bim, snp_frame.height)
    ids = animals.to_series(1).alias("id")
    last_bytes = np.memmap(bed, np.uint8, "r", offset=HEAD, shape=(snp_frame.height, -(-len(ids) // 4)))[:, -1]
    _refuse_padding(bed, fam, len(ids), snp_frame["snp"], last_bytes)
    warnings = _warn_of_last_animal(bed, fam, ids, last_bytes)
    source = BedSource(bed, len(ids), snp_frame.height)
    return GenotypeFile(bed.name, ids, animal_rows, fam.name, snp_frame, source, warnings=warnings, unit=unit)


def _read_columns(path: Path, width: int) -> tuple[pl.DataFrame, np.ndarray]:
    """The rows of a .bim or .fam, as text, and their lines."""
    if not path.exists():
        raise DataError(f"{path}: no such file; needed the {path.suffix} that belongs to the .bed (data.genotypes)")
    frame, _, rows, name = read_any(path, " ", header=False)
    if frame.width < width:
        raise DataError(f"{name}: found {counted(frame.width, 'column')}; needed {width}, as in a PLINK {path.suffix}")
    _refuse_lines_of_no_row(frame, rows, name, path.suffix)
    return frame, rows


def _refuse_lines_of_no_row(frame: pl.DataFrame, rows: np.ndarray, name: str, ending: str) -> None:
    """DataError for a header and for comments: PLINK writes none, and each would be taken as an animal or a SNP."""
    first = [str(field) for field in frame.row(0)]
    words = ["".join(c for c in field.lower() if c.isalnum()) for field in first[:6]]
    if sum(word in _HEADER_WORDS for word in words) >= _FEWEST_WORDS and not first[3].isdigit():
        raise DataError(
            f"{name} row {rows[0]}: found a header, {quoted(' '.join(first))}; needed no header, as in a PLINK "
            f"{ending}: delete this line"
        )
    is_comment = frame.to_series(0).str.starts_with("#").fill_null(False)
    if is_comment.any() and not is_comment.all():
        at = int(is_comment.arg_max() or 0)
        text = " ".join(str(field) for field in frame.row(at))
        raise DataError(
            f"{name} row {rows[at]}: found a comment, {quoted(text)}; needed no comments, as in a PLINK {ending}: "
            f"delete {'this line' if is_comment.sum() == 1 else f'the {is_comment.sum()} lines that begin with #'}"
        )


def _refuse_padding(bed: Path, fam: Path, n: int, snps: pl.Series, last_bytes: np.ndarray) -> None:
    """DataError where the bits after the last animal are not 0: another animal may have its genotypes there.

    last_bytes: (SNPs,) uint8, those of the last animals.
    """
    wrong = np.flatnonzero(last_bytes >> (2 * (n % 4))) if n % 4 else np.empty(0, int)
    if len(wrong):
        raise DataError(
            f"{bed.name}: found genotypes after those of the {counted(n, 'animal')} of {fam.name}, at "
            f"{counted(len(wrong), 'SNP')} such as {quoted(snps[int(wrong[0])])}; needed empty bits there: "
            f"{fam.name} may lack rows or belong to another .bed (if it is complete, plink --make-bed writes the .bed "
            "anew)"
        )


def _warn_of_last_animal(bed: Path, fam: Path, ids: pl.Series, last_bytes: np.ndarray) -> tuple[str, ...]:
    """A warning where all genotypes of the last animal are empty bits, which read as two copies of A1.

    An animal that is the first in its byte has that byte to itself: with a row too many the .bed would be too short.
    """
    place = (len(ids) - 1) % 4
    if place == 0 or len(last_bytes) < _FEWEST_SNPS or ((last_bytes >> (2 * place)) & 3).any():
        return ()
    return (
        f"{bed.name}: the last animal of {fam.name}, {quoted(ids[-1])}, has two copies of the counted allele at all "
        f"{len(last_bytes):,} SNPs, as empty bits read: has {fam.name} a row too many, so that ids are shifted?",
    )


def _refuse_bytes(bed: Path, fam: Path, n: int, bim: Path, p: int) -> None:
    """DataError unless the .bed holds p SNPs of n animals, SNP after SNP."""
    size = bed.stat().st_size
    with open(bed, "rb") as file:
        head = file.read(HEAD)
    if size == 0:
        raise DataError(f"{bed.name}: is empty; needed a PLINK .bed")
    if head[:2] != MAGIC:
        raise DataError(f"{bed.name}: begins with the bytes {head.hex(' ')}; needed 6c 1b 01, as in a PLINK .bed")
    if len(head) == HEAD and head[2] == 0:
        raise DataError(
            f"{bed.name}: is sample-major (its third byte is 00), as old versions of PLINK wrote it; "
            "needed SNP-major (01): plink --bfile NAME --make-bed --out NEW writes it so"
        )
    if len(head) < HEAD or head[2] != SNP_MAJOR:
        raise DataError(f"{bed.name}: its third byte is {head[2:3].hex() or 'missing'}; needed 01, as in a PLINK .bed")
    row = -(-n // 4)
    if size != HEAD + p * row:
        what = "is cut short" if size < HEAD + p * row else "is longer than its .bim and .fam say"
        raise DataError(
            f"{bed.name}: {what}: found {size:,} bytes; needed {HEAD + p * row:,}, which is {HEAD} + {p:,} SNPs "
            f"({bim.name}) x {row:,} bytes of {n:,} animals ({fam.name}){_fitting(size, n, p)}"
        )


def _fitting(size: int, n: int, p: int) -> str:
    """A hint on which of the two files is the wrong one."""
    rest, row = size - HEAD, -(-n // 4)
    if rest > 0 and rest % row == 0:
        return f"; with these animals it holds {rest // row:,} SNPs: the .bim may belong to another .bed"
    if rest > 0 and rest % p == 0:
        most = 4 * (rest // p)
        return f"; with these SNPs it holds {most - 3:,} to {most:,} animals: the .fam may belong to another .bed"
    return ""
