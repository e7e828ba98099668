"""A table of genotypes: a column of animals, and for each SNP one with numbers from 0 to 2, whole or not.

Which columns of a table are SNPs: those of ids, families, parents, sex, records and numbers of rows are none.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from mmgibbs.config.genotypes import Genotypes
from mmgibbs.data.genotypes.file_format import GenotypeFile, snp_table
from mmgibbs.data.phenotypes import SHOWN, clean_ids, refuse_rows, refuse_type
from mmgibbs.errors import DataError
from mmgibbs.genotypes.store import GenotypeSource, dosages
from mmgibbs.pedigree.columns import RECOGNISED
from mmgibbs.pedigree.contents import UTF8
from mmgibbs.pedigree.errors import TableError
from mmgibbs.pedigree.spelling import are_unknown_codes, parse_numbers
from mmgibbs.pedigree.tables import Table, agreeing, counted, open_table, quoted

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
    """Check whether the values of a column are 0, 1, 2, ... or 1, 2, 3, ..."""
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
    """List the columns of dominance of plink --recode AD.

    Those of a .raw are known by their names, those of another table where the SNP 'rs1_A' of 'rs1_HET' is there, too.
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


COLUMNS = 2000  # SNPs that are parsed at a time
MISSING = 3
_DECIMAL_COMMA = r"^[+-]?\d*,\d+$"
_FEWEST_SNPS = 20  # columns that it takes to say that one is unlike the others
_SHARE_OF_RECORDS = 0.9  # of the values of a column that are no whole numbers, where it looks like one of records


class TableSource(GenotypeSource):
    """Blocks of SNPs: uint8 codes where all of a block are whole, float32 dosages else."""

    def __init__(self, blocks: list[np.ndarray]):
        self.blocks = blocks
        self.starts = np.cumsum([0, *(len(block) for block in blocks)])

    @property
    def real_valued(self) -> bool:
        return any(block.dtype == np.float32 for block in self.blocks)

    @property
    def n_animals(self) -> int:
        return self.blocks[0].shape[1]

    @property
    def n_snps(self) -> int:
        return int(self.starts[-1])

    def block(self, first: int, stop: int) -> np.ndarray:
        parts = [
            block[max(first - start, 0) : max(stop - start, 0)]
            for block, start in zip(self.blocks, self.starts[:-1], strict=True)
        ]
        parts = [piece for piece in parts if len(piece)]
        return np.concatenate([dosages(piece) for piece in parts] if self.real_valued else parts)


def matches(head: bytes) -> bool:
    """True: whatever no other format is."""
    return True


def read(genotypes: Genotypes, traits: Collection[str] = ()) -> GenotypeFile:
    """Raises DataError for a value that is no number from 0 to 2 and not missing: by row and column.

    traits: columns that are records if the table has them.
    """
    try:
        table = open_table(genotypes.file, genotypes.separator, encoding=UTF8)
        columns = choose_columns(table, genotypes.id, traits)
        ids = _ids(table, columns.id)
        cells = _Cells(table, genotypes.missing)
        names = columns.snps
        blocks = [cells.block(names[i : i + COLUMNS]) for i in range(0, len(names), COLUMNS)]
    except TableError as error:
        raise DataError(f"{error} (data.genotypes)") from None
    snps = snp_table(snp=columns.names, counted=columns.counted, other=columns.other)
    return GenotypeFile(
        table.name, ids, table.lines(), table.name, snps, TableSource(blocks), notes=columns.notes + cells.notes,
        warnings=columns.warnings + cells.warnings,
    )  # fmt: skip


def _ids(table: Table, column: str) -> pl.Series:
    values = refuse_type(table.read([column], False).to_series(), table.name)
    ids = clean_ids(values, {"", "NA"}, table.name)
    void = np.flatnonzero(ids.is_null().to_numpy())
    if len(void):
        problems = [f"found no animal in column {quoted(column)}"] * SHOWN
        raise refuse_rows(table.name, table.lines()[void], problems, "an id on every row")
    return ids.alias("id")


class _Cells:
    """The genotypes in the cells of a table, and what is said of how they were read."""

    def __init__(self, table: Table, missing: Collection[str]):
        self.table, self.missing = table, tuple(missing)
        codes = parse_numbers(pl.Series(list(missing), dtype=pl.String))
        infinite = pl.Series(list(missing), dtype=pl.String).cast(pl.Float64, strict=False)
        # Compared as numbers: '9' is 9.0.
        self.codes = codes.fill_null(infinite).drop_nulls().unique().to_numpy()
        self.commas: dict[str, str] = {}  # column with decimal commas -> the first cell that has one
        self.real: dict[str, float] = {}  # column with values that are not whole -> their share

    def block(self, names: Sequence[str]) -> np.ndarray:
        """(SNPs, animals) uint8 codes, or float32 dosages where some are not whole."""
        numbers = np.empty((len(names), self.table.n_rows), np.float32)
        any_real = False
        for row, series in zip(numbers, self.table.read(list(names), all_strings=False), strict=True):
            row[:] = self.numbers(series)
            is_real = row != np.rint(row)  # also where missing
            if is_real.any():
                known = ~np.isnan(row)
                n_real, n_known = np.count_nonzero(is_real & known), np.count_nonzero(known)
                if n_real:
                    self.real[series.name] = n_real / n_known
                    any_real = True
        if any_real:
            return numbers
        return np.where(np.isnan(numbers), np.float32(MISSING), numbers).astype(np.uint8)

    def numbers(self, series: pl.Series) -> np.ndarray:
        """(n,) float64, NaN = missing."""
        table = self.table
        _refuse_dtype(series, table.name)
        if series.dtype.is_numeric() or series.dtype == pl.Boolean:
            text, values, void = None, series.cast(pl.Float64), series.is_null()
        else:
            text = series if series.dtype == pl.String else series.cast(pl.String)
            values, void = text.cast(pl.Float64, strict=False), text.is_null()
            if values.null_count() > void.sum():
                values, void = self._numbers_of_text(text.str.strip_chars(), values)
        out = values.to_numpy(writable=True)
        no_number = (values.is_null() & ~void).to_numpy()
        if self.codes.size:
            out[np.isin(out, self.codes)] = np.nan
        wrong = np.flatnonzero(no_number | (out < 0) | (out > 2))
        if len(wrong):
            raise self._refused(series, wrong, len(out) - int(void.sum()))
        return out

    def _numbers_of_text(self, text: pl.Series, values: pl.Series) -> tuple[pl.Series, pl.Series]:
        """Values with those of cells that Polars reads as no number, where they are one; which cells are missing."""
        rows = (values.is_null() & text.is_not_null()).arg_true()
        cells = text.gather(rows)
        is_missing = cells.is_in(list(self.missing)) | are_unknown_codes(cells, "value")
        known = rows.filter(~is_missing)
        if len(known):
            cells = text.gather(known)
            has_comma = cells.str.contains(_DECIMAL_COMMA)
            mixed = text.str.contains(r"\d[.]\d") if has_comma.any() else None
            if mixed is not None and not mixed.any():
                self.commas[text.name] = f"row {self.table.line(known[0])}: {cells[0]}"
                points = cells.str.replace(",", ".", literal=True)
                values = values.scatter(known, points.cast(pl.Float64, strict=False))
            else:
                values = values.scatter(known, parse_numbers(cells, "."))
        return values, text.is_null().scatter(rows, is_missing)

    def _refused(self, series: pl.Series, wrong: np.ndarray, n_known: int) -> DataError:
        problems = [f"found {quoted(series[int(i)])} for SNP {quoted(series.name)}" for i in wrong[:SHOWN]]
        shown = ", ".join(m or "empty" for m in self.missing)
        needed = f"copies of one allele, from 0 to 2, or a missing value (data.genotypes.missing: {shown})"
        error = refuse_rows(self.table.name, self.table.lines()[wrong], problems, needed)
        if 2 * len(wrong) < n_known:
            return error
        return DataError(
            f"{error}\nif column {quoted(series.name)} is no SNP, leave it out of the table, or name it in "
            "data.genotypes.id if it has the animals"
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on numbers that can be read in two ways."""
        if not self.commas:
            return ()
        column, cell = next(iter(self.commas.items()))
        count = counted(len(self.commas), "column")
        return (f"{self.table.name}: commas are decimal points in {count}, such as {quoted(column)} ({cell})",)

    @property
    def warnings(self) -> tuple[str, ...]:
        """A column of fractions alone among whole genotypes looks like a record."""
        if len(self.real) != 1 or len(self.table.names) < _FEWEST_SNPS:
            return ()
        ((column, share),) = self.real.items()
        if share < _SHARE_OF_RECORDS:
            return ()
        return (
            f"{self.table.name}: column {quoted(column)} is taken as a SNP, but nearly all its values are fractions "
            "and those of all other SNPs are whole numbers: if it has records, leave it out of the table",
        )


def _refuse_dtype(series: pl.Series, name: str) -> None:
    """DataError for a column of a type whose values are no genotypes, such as dates."""
    refuse_type(series, name)
    if series.dtype.is_temporal():
        raise DataError(
            f"{name}: found values of type {series.dtype} in column {quoted(series.name)}; needed copies of one "
            "allele, from 0 to 2, or no such column in the table"
        )
