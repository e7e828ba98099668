"""Which columns of a table are SNPs: those of ids, families, parents, sex, records and numbers of rows are none."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import polars as pl

from mmgibbs.errors import DataError
from pedigree.columns import RECOGNISED
from pedigree.tables import Table, agreeing, quoted

RAW = ("FID", "IID", "PAT", "MAT", "SEX", "PHENOTYPE")  # the first columns of a .raw, by plink --recode A
_TRAW = ("CHR", "SNP", "(C)M", "POS", "COUNTED", "ALT")  # of a .traw, which has SNPs in rows
_OF_DOMINANCE = "_HET"  # ends columns of plink --recode AD
# 'rs1_A' and 'rs1_A(/G)': the name of the SNP, the counted allele, the other one
_SNP_OF_RAW = re.compile(r"(.+)_([A-Za-z0-9*-]+)(?:\(/(.+)\))?")
# Names in lower case without punctuation, as a whole: 'SEX1' is a SNP.
_IDS = frozenset([*RECOGNISED["id"], *"iid sample sampleid samplename taxa genotypeid".split()])
_BEFORE_IDS = frozenset("fid family familyid famid".split())
_ROW_NUMBERS = re.compile(r"column\d+|unnamed\d+|index|indexlevel0|rowname|rownames|rownumber|rowindex|row|x|v1|")
_NO_SNPS = frozenset(
    [
        *RECOGNISED["sire"], *RECOGNISED["dam"], *RECOGNISED["birth"],
        *"pat mat paternalid maternalid sex gender phenotype phenotypes pheno phen trait y status affection".split(),
        *"breed herd flock population pop group batch line generation cohort year age weight parity".split(),
        *"bv tbv ebv gebv dyd drp callrate".split(),
    ]
)  # fmt: skip
_NUMBERED = re.compile(r"(?:phenotype|pheno|trait)\d+")
_COLUMNS_SHOWN = 8
_FEWEST_ROWS = 4  # whose numbers are no genotypes


@dataclass(frozen=True)
class Columns:
    """The columns of a table of genotypes by what they are."""

    id: str
    snps: list[str]  # columns
    names: list[str]  # of the SNPs
    counted: list[str] | None = None  # alleles, where the columns say them
    other: list[str | None] | None = None
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def choose_columns(table: Table, wanted: str | None, traits: Collection[str]) -> Columns:
    """Find the column of animals and those of SNPs. wanted: the column of animals; traits: columns of records.

    Raises DataError for a table without SNPs, and for one with SNPs in rows.
    """
    names = table.names
    if tuple(name.upper() for name in names[:6]) == _TRAW:
        raise DataError(
            f"{table.name}: is a PLINK .traw, with SNPs in rows; needed animals in rows: plink --recode A writes a .raw"
        )
    is_raw = tuple(name.upper() for name in names[:6]) == RAW
    plain = {name: "".join(c for c in name.lower() if c.isalnum()) for name in names}
    id = table.column(wanted) if wanted is not None else _id_column(table, plain)
    left_out = [
        name
        for i, name in enumerate(names)
        if name != id
        and (
            (is_raw and i < len(RAW))
            or name in traits
            or _is_no_snp(plain[name])
            or _has_row_numbers(table, name, plain)
        )
    ]
    of_dominance = [name for name in names if is_raw and name.upper().endswith(_OF_DOMINANCE) and name not in left_out]
    no_snps = {id, *left_out, *of_dominance}
    snps = [name for name in names if name not in no_snps]
    if not snps:
        more = f", and {_listed(left_out)}, which by their names are no SNPs" if left_out else " alone"
        raise DataError(
            f"{table.name}: found the column {quoted(id)}{more}; needed one for each SNP beside it (data.genotypes)"
        )
    notes, warnings = [], []
    standard = {name for name in left_out if (is_raw and name in names[:6]) or plain[name] in _IDS | _BEFORE_IDS}
    if standard:
        notes.append(f"{table.name}: {_say_left_out([n for n in left_out if n in standard])}")
    if unusual := [name for name in left_out if name not in standard]:
        warnings.append(f"{table.name}: {_say_left_out(unusual)}; a column that is a SNP needs another name")
    if of_dominance:
        notes.append(
            f"{table.name}: {len(of_dominance):,} columns of heterozygotes, such as {of_dominance[0]}, left out"
        )
    of_snps = _alleles_of_raw(snps) if is_raw else (snps, None, None)
    return Columns(id, snps, *of_snps, tuple(notes), tuple(warnings))


def _id_column(table: Table, plain: dict[str, str]) -> str:
    """The first column, or the first that is named as ids are where what stands before it is no id, or where the first
    column has a value twice.
    """
    for i, name in enumerate(table.names):
        if plain[name] in _IDS:
            return name
        if i + 1 == len(table.names) or not (plain[name] in _BEFORE_IDS or _has_row_numbers(table, name, plain)):
            break
    named = [name for name in table.names if plain[name] in _IDS]
    if named and table.read([table.names[0]]).to_series().is_duplicated().any():
        return named[0]
    return table.names[0]


def _is_no_snp(plain: str) -> bool:
    return plain in _IDS | _BEFORE_IDS | _NO_SNPS or _NUMBERED.fullmatch(plain) is not None


def _has_row_numbers(table: Table, name: str, plain: dict[str, str]) -> bool:
    """A column without a name, or called as programs call numbers of rows, that counts from 0 or 1."""
    if _ROW_NUMBERS.fullmatch(plain[name]) is None or table.n_rows < _FEWEST_ROWS:
        return False
    numbers = table.read([name]).to_series().cast(pl.Float64, strict=False)
    first = numbers[0]
    return first in (0, 1) and numbers.null_count() == 0 and numbers.equals(_count_from(first, table.n_rows))


def _count_from(first: float, n: int) -> pl.Series:
    return pl.arange(int(first), int(first) + n, dtype=pl.Int64, eager=True).cast(pl.Float64)


def _alleles_of_raw(snps: Sequence[str]) -> tuple[list[str], list[str] | None, list[str | None] | None]:
    """Names, counted and other alleles from 'rs1_A' or 'rs1_A(/G)'; the columns as they are where one is not so."""
    parts = [_SNP_OF_RAW.fullmatch(name) for name in snps]
    found = [part.groups() for part in parts if part is not None]
    if len(found) < len(snps) or len({name for name, _, _ in found}) < len(snps):
        return list(snps), None, None
    return [name for name, _, _ in found], [counted for _, counted, _ in found], [other for _, _, other in found]


def _say_left_out(columns: Sequence[str]) -> str:
    one = len(columns) == 1
    return (
        f"column{'' if one else 's'} {_listed(columns)} {agreeing(len(columns), 'is')} no SNP{'' if one else 's'} by "
        f"{'its name' if one else 'their names'}: left out"
    )


def _listed(columns: Sequence[str]) -> str:
    return ", ".join(quoted(c) for c in columns[:_COLUMNS_SHOWN]) + (", ..." if len(columns) > _COLUMNS_SHOWN else "")
