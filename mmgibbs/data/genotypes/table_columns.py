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
_ROW_NUMBERS = re.compile(r"column\d+|unnamed\d+|index|rowname|rownames|rownumber|rowindex|row|x|v1|")
_PANDAS_INDEX = re.compile(r"indexlevel\d+|level\d+")  # as pandas calls an index without a name
_NAMES_OF_SNPS = frozenset("snp snpid snpname marker markerid markername rs rsid variant variantid locus probe".split())
_NO_SNPS = frozenset(
    [
        *RECOGNISED["sire"], *RECOGNISED["dam"], *RECOGNISED["birth"],
        *"pat mat paternalid maternalid sex gender phenotype phenotypes pheno phen trait y status affection".split(),
        *"breed herd flock population pop group batch line generation cohort year age weight parity".split(),
        *"bv tbv ebv gebv dyd drp callrate cr het heterozygosity inbreeding nmissing missing plate well chip".split(),
        *"array chipid barcode species country region set fold rep replicate replication lactation season".split(),
    ]
)  # fmt: skip
_NUMBERED = re.compile(r"(?:phenotype|pheno|trait)\d+")
_COLUMNS_SHOWN = 8
_FEWEST_ROWS = 4  # whose numbers are no genotypes
_FEWEST_NUMBERED = 4  # names of SNPs with a number in them, beside which a name without one is unusual
_SHARE_NUMBERED = 0.9


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
    is_raw = tuple(name.upper().lstrip("#") for name in names[:6]) == RAW
    plain = {name: "".join(c for c in name.lower() if c.isalnum()) for name in names}
    id = table.column(wanted) if wanted is not None else _id_column(table, plain)
    if wanted is None and plain[id] in _NAMES_OF_SNPS and not id.startswith("<"):  # TASSEL calls animals <Marker>
        raise DataError(
            f"{table.name}: has a column {quoted(id)} and no column of animals, as where SNPs are in rows; needed "
            "animals in rows and SNPs in columns (transpose the table), or the column of animals in data.genotypes.id"
        )
    left_out = [
        name
        for i, name in enumerate(names)
        if name != id
        and (
            (is_raw and i < len(RAW))
            or name in traits
            or _is_no_snp(plain[name])
            or _PANDAS_INDEX.fullmatch(plain[name])
            or _has_row_numbers(table, name, plain)
            or (i == 0 and _counts_rows(table, name))
        )
    ]
    empty = [name for i, name in enumerate(names, 1) if name == f"column {i}" and name != id and _is_empty(table, name)]
    left_out = [name for name in left_out if name not in empty]
    of_dominance = _columns_of_dominance([name for name in names if name not in left_out], is_raw)
    no_snps = {id, *left_out, *of_dominance, *empty}
    snps = [name for name in names if name not in no_snps]
    if not snps:
        more = f", and {_listed(left_out)}, which by their names are no SNPs" if left_out else " alone"
        raise DataError(
            f"{table.name}: found the column {quoted(id)}{more}; needed one for each SNP beside it (data.genotypes)"
        )
    _refuse_genotypes_as_names(table, snps)
    notes, warnings = [], []
    is_named_id = wanted is not None or plain[id] in _IDS
    standard = {
        name
        for name in left_out
        if (is_raw and name in names[:6])
        or plain[name] in _BEFORE_IDS
        or (plain[name] in _IDS and is_named_id)
        or _PANDAS_INDEX.fullmatch(plain[name])
        or _has_row_numbers(table, name, plain)
        or (name == names[0] and _counts_rows(table, name))
    }
    if other_ids := [name for name in left_out if plain[name] in _IDS and not is_named_id]:
        warnings.append(
            f"{table.name}: the ids of the animals are taken from the first column, {quoted(id)}, and not from "
            f"{_listed(other_ids)}: data.genotypes.id says which column has them"
        )
        left_out = [name for name in left_out if name not in other_ids]
    if standard:
        notes.append(f"{table.name}: {_note_excluded([n for n in left_out if n in standard])}")
    if unusual := [name for name in left_out if name not in standard]:
        warnings.append(f"{table.name}: {_note_excluded(unusual)}; a column that is a SNP needs another name")
    if of_dominance:
        notes.append(
            f"{table.name}: {len(of_dominance):,} columns of heterozygotes, such as {of_dominance[0]}, left out"
        )
    if unlike := _find_odd_names(snps):
        is_single = len(unlike) == 1
        warnings.append(
            f"{table.name}: {'column' if is_single else 'columns'} {_listed(unlike)} {agreeing(len(unlike), 'is')} "
            f"taken as {'a SNP' if is_single else 'SNPs'}, but "
            f"{'its name has' if is_single else 'their names have'} no number, "
            f"as those of the other SNPs have: what is no SNP must not be in the table"
        )
    of_snps = _alleles_of_raw(snps) if is_raw else (snps, None, None)
    return Columns(id, snps, *of_snps, tuple(notes), tuple(warnings))


def _id_column(table: Table, plain: dict[str, str]) -> str:
    """The first column, or the first that is named as ids are where what stands before it is no id, or where the first
    column counts the rows, or has a value twice or none. pandas' index without a name is named as ids are where it has
    texts.
    """
    for i, name in enumerate(table.names):
        if plain[name] in _IDS:
            return name
        if i + 1 == len(table.names) or not (plain[name] in _BEFORE_IDS or _has_row_numbers(table, name, plain)):
            break
    first = table.names[0]
    named = [name for name in table.names if plain[name] in _IDS]
    named = named or [name for name in table.names if _PANDAS_INDEX.fullmatch(plain[name]) and _has_texts(table, name)]
    if named:
        values = table.read([first]).to_series()
        if values.is_duplicated().any() or values.null_count() or _counts_rows(table, first):
            return named[0]
    return first


def _is_no_snp(plain: str) -> bool:
    return plain in _IDS | _BEFORE_IDS | _NO_SNPS or _NUMBERED.fullmatch(plain) is not None


def _has_row_numbers(table: Table, name: str, plain: dict[str, str]) -> bool:
    """A column without a name, or called as programs call numbers of rows, that counts from 0 or 1."""
    return _ROW_NUMBERS.fullmatch(plain[name]) is not None and _counts_rows(table, name)


def _counts_rows(table: Table, name: str) -> bool:
    """Whether the values of a column are 0, 1, 2, ... or 1, 2, 3, ..."""
    if table.n_rows < _FEWEST_ROWS:
        return False
    numbers = table.read([name]).to_series().cast(pl.Float64, strict=False)
    first = numbers[0]
    return first in (0, 1) and numbers.null_count() == 0 and numbers.equals(_consecutive_names(first, table.n_rows))


def _consecutive_names(first: float, n: int) -> pl.Series:
    return pl.arange(int(first), int(first) + n, dtype=pl.Int64, eager=True).cast(pl.Float64)


def _has_texts(table: Table, name: str) -> bool:
    values = table.read([name]).to_series()
    return values.null_count() == 0 and values.cast(pl.Float64, strict=False).null_count() > 0


def _is_empty(table: Table, name: str) -> bool:
    """A column without values, as a separator at the end of every line makes one."""
    return table.read([name]).to_series().null_count() == table.n_rows


def _columns_of_dominance(names: Sequence[str], is_raw: bool) -> list[str]:
    """Those of plink --recode AD: of a .raw by their names, of another table where the SNP 'rs1_A' of 'rs1_HET' is
    there, too.
    """
    ends = [name for name in names if name.upper().endswith(_OF_DOMINANCE)]
    if is_raw or not ends:
        return ends
    parts = [_SNP_OF_RAW.fullmatch(name) for name in names if name not in set(ends)]
    additive = {match[1] for match in parts if match is not None}
    return [name for name in ends if name[: -len(_OF_DOMINANCE)] in additive]


def _refuse_genotypes_as_names(table: Table, snps: Sequence[str]) -> None:
    """DataError where the columns are called '0.13', '1.87', ...: a table without a header."""
    numbers = pl.Series(snps, dtype=pl.String).cast(pl.Float64, strict=False)
    if numbers.is_between(0, 2).all() and not numbers.null_count() and (numbers != numbers.floor()).any():
        raise DataError(
            f"{table.name} row 1: found {_listed(snps[:3])} as the names of SNPs: is the first line a row of the "
            "table? needed a header with the names of the columns (data.genotypes)"
        )


def _find_odd_names(snps: Sequence[str]) -> list[str]:
    """Columns before and after the SNPs whose names have no number, where nearly all others have one."""
    has_number = [any(character.isdigit() for character in name) for name in snps]
    count = sum(has_number)
    if count < _FEWEST_NUMBERED or count == len(snps):
        return []
    first, last = has_number.index(True), len(snps) - 1 - has_number[::-1].index(True)
    inner = has_number[first : last + 1]
    return [*snps[:first], *snps[last + 1 :]] if sum(inner) >= _SHARE_NUMBERED * len(inner) else []


def _alleles_of_raw(snps: Sequence[str]) -> tuple[list[str], list[str] | None, list[str | None] | None]:
    """Names, counted and other alleles from 'rs1_A' or 'rs1_A(/G)'; the columns as they are where one is not so."""
    parts = [_SNP_OF_RAW.fullmatch(name) for name in snps]
    alleles = [match.groups() for match in parts if match is not None]
    if len(alleles) < len(snps) or len({name for name, _, _ in alleles}) < len(snps):
        return list(snps), None, None
    return (
        [name for name, _, _ in alleles],
        [counted for _, counted, _ in alleles],
        [second for _, _, second in alleles],
    )


def _note_excluded(columns: Sequence[str]) -> str:
    is_single = len(columns) == 1
    return (
        f"column{'' if is_single else 's'} {_listed(columns)} {agreeing(len(columns), 'is')} no "
        f"SNP{'' if is_single else 's'} "
        f"by {'its name' if is_single else 'their names'}: left out"
    )


def _listed(columns: Sequence[str]) -> str:
    return ", ".join(quoted(c) for c in columns[:_COLUMNS_SHOWN]) + (", ..." if len(columns) > _COLUMNS_SHOWN else "")
