"""Names, chromosomes and positions of SNPs as files write them.

A male has the X of its dam alone, and is read as a homozygote: it may be an opposing homozygote of its sire. Names tell
such chromosomes (X, chrX, BTAX, MT). Numbers do not, as 23 is X of men and an autosome of cattle.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import numpy as np
import polars as pl

from mmgibbs.data.phenotypes import SHOWN
from mmgibbs.genotypes.quality import count_heterozygous
from mmgibbs.genotypes.store import Store
from mmgibbs.pedigree.spelling import are_unknown_codes, find_respelled, normal_forms
from mmgibbs.pedigree.tables import counted, quoted

HOW = "chromosome:position, with its alleles where several share a place, or snp and their number in the file"


def warn_of_respelled(absent: pl.Series, names: pl.Series, of_absent: str, of_names: str) -> tuple[str, ...]:
    """Warn of SNPs that are absent as they are written, but there in another spelling: 'RS1' and 'rs1'."""
    pairs = find_respelled(absent, names.filter(~names.is_in(absent.implode())))
    if not pairs.height:
        return ()
    shown = ", ".join(f"{quoted(text)} = {quoted(name)}" for text, name, _ in pairs.head(SHOWN).iter_rows())
    return (
        f"{of_names}: {counted(pairs.height, 'SNP')} of {of_absent} only in another spelling, such as {shown}: these "
        "count as other SNPs; needed each name in one spelling",
    )


def name_snps(snps: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """Return the SNPs with a name for each that has none, and how many had none.

    The name is the first of these that no other SNP has: chromosome:position, chromosome:position:other:counted
    allele, snp and the number in the file.
    """
    is_unnamed = ~snps["snp"].str.contains("[0-9]").fill_null(False)  # no code has a digit
    rows = is_unnamed.arg_true()
    is_unnamed = is_unnamed.scatter(rows, are_unknown_codes(snps["snp"].gather(rows), "value"))
    if not is_unnamed.any():
        return snps, 0
    given = set(snps["snp"].filter(~is_unnamed))
    unnamed = snps.with_row_index("number", offset=1).filter(is_unnamed)
    position = pl.col("position")
    is_whole = position == position.floor()
    place = pl.format(
        "{}:{}", "chromosome", pl.when(is_whole).then(position.cast(pl.Int64, strict=False).cast(pl.String))
        .otherwise(position.cast(pl.String)),
    )  # fmt: skip
    of_number = pl.format("snp{}", "number")
    names = pl.Series("snp", [None] * unnamed.height, pl.String)
    for candidate in (place, pl.format("{}:{}:{}", place, "other", "counted"), of_number):
        offered = unnamed.select(candidate.alias("snp")).to_series().set(names.is_not_null(), None)
        is_free = offered.is_not_null() & offered.is_unique() & ~offered.is_in(list(given | set(names.drop_nulls())))
        names = offered.zip_with(is_free, names)
    while names.null_count():  # another SNP is called snp5
        of_number = pl.concat_str(of_number, pl.lit("_"))
        offered = unnamed.select(of_number.alias("snp")).to_series()
        names = offered.zip_with(names.is_null() & ~offered.is_in(list(given)), names)
    return snps.with_columns(snps["snp"].scatter(is_unnamed.arg_true(), names)), unnamed.height


# Of SNPs that no chromosome is known for, beside '0', '-9' and other codes for unknown.
UNPLACED = tuple("un unplaced unmapped unassigned unanchored unlocalized unlocalised".split())
_UNITS = {
    "bp": "bp bps basepair basepairs",
    "kb": "kb kbp",
    "Mb": "mb mbp megabase megabases",
    "cM": "cm centimorgan centimorgans",
    "M": "morgan morgans",
}
_STEMS = "position positions pos physicalposition location coordinate geneticposition distance".split()
CODES_SHOWN = 5

UNIT_OF_COLUMN: dict[str, str | None] = dict.fromkeys(_STEMS) | {
    name: unit
    for unit, words in _UNITS.items()
    for word in words.split()
    for name in (word, *(stem + word for stem in _STEMS), *(word + stem for stem in _STEMS))
}
"""What headers call the column of positions, in lower case and without punctuation, and its unit; None: not said."""


def known_chromosomes(chromosomes: pl.Series) -> tuple[pl.Series, tuple[str, ...]]:
    """Return the chromosomes with null where they are unknown, '1' for '1.0', and the codes that meant unknown. One
    chromosome in several spellings ('chr1' and '01') has the first of them.

    Unknown are codes such as '0', '-9', '.' and 'NA', and 'Un', with 'chr' in front of them or not.
    """
    written = chromosomes.drop_nulls().unique(maintain_order=True)
    text = written.str.strip_chars()
    bare = text.str.replace("(?i)^(?:chromosome|chrom|chr)[ _.:-]?(.)", "${1}")
    is_unknown = are_unknown_codes(bare, "parent") | normal_forms(bare).is_in(list(UNPLACED))
    meant = text.str.replace(r"^(\d+)\.0+$", "${1}").set(is_unknown, None)
    forms = normal_forms(bare)
    if forms.filter(~is_unknown).is_duplicated().any():  # 'chr1', '01' and '1': the first spelling of each
        meant = pl.DataFrame({"form": forms, "meant": meant}).select(pl.col("meant").first().over("form")).to_series()
    if meant.equals(written, null_equal=True):
        return chromosomes, ()
    table = pl.DataFrame({"written": written, "meant": meant})
    joined = pl.DataFrame({"written": chromosomes}).join(table, on="written", how="left", maintain_order="left")
    return joined["meant"].alias(chromosomes.name), tuple(written.filter(is_unknown))


def unknown_chromosomes_note(name: str, chromosomes: pl.Series, codes: tuple[str, ...]) -> str:
    """Say how many SNPs of a file are on no known chromosome, and how that is written."""
    count = int(chromosomes.is_in(list(codes)).sum())
    shown = ", ".join(quoted(code) for code in codes[:CODES_SHOWN])
    return f"{name}: {counted(count, 'SNP')} without a known chromosome (written as {shown})"


def known_positions(name: str, positions: pl.Series) -> tuple[pl.Series, tuple[str, ...]]:
    """Return the positions with null where they are below 0, as PLINK writes it of SNPs to leave out, and a note."""
    is_negative = (positions < 0).fill_null(False)
    if not is_negative.any():
        return positions, ()
    shown = ", ".join(f"{value:g}" for value in positions.filter(is_negative).unique(maintain_order=True)[:CODES_SHOWN])
    count = counted(int(is_negative.sum()), "SNP")
    return positions.set(is_negative, None), (f"{name}: {count} without a known position (written as {shown})",)


def positions_of_plink(base_pairs: pl.Series, centimorgans: pl.Series) -> tuple[pl.Series, str]:
    """Return the positions of a .bim or .map and their unit: cM where all base pairs are 0, null where both are.

    PLINK writes 0 for an unknown place; among places that are known it is one.
    """
    for positions, unit in ((base_pairs, "bp"), (centimorgans, "cM")):
        if (positions.fill_null(0) != 0).any():
            return positions, unit
    return pl.Series(base_pairs.name, np.full(len(base_pairs), None), pl.Float64), "bp"


NUMBERS_AFTER_AUTOSOMES = 4  # X, Y, XY and MT, as PLINK numbers them
SNPS_ELSEWHERE = 512  # with which a chromosome is compared
MIN_EXPECTED = 12.0  # heterozygotes of an animal on a chromosome, from which having none is no chance
MIN_PARENTS = 3
PURE = 0.9  # share of the parents of a sex

_NAME = re.compile(r"(?:chromosome|chrom|chr|[a-z]{3})?[\s_.:-]*(.+?)(?:[_-]?non[_-]?par|_random|_alt)?")
_KINDS = {"x": "X", "y": "Y", "z": "Z", "w": "W", "m": "MT", "mt": "MT", "mito": "MT", "mitochondrion": "MT"}
_ROMAN = {"viii", "ix", "xi", "xii"}  # beside which X is the tenth
_LETTERS = set("abcdefghijkl")  # beside which X, Y, Z are linkage groups


def name_sex_chromosomes(chromosomes: Iterable[str | None]) -> dict[str, str]:
    """Name -> X, Y, Z, W or MT, of those whose name tells it."""
    plain = {}
    for name in filter(None, chromosomes):
        text = name.strip().lower()
        matched = None if text in _KINDS else _NAME.fullmatch(text)  # 'mito' is no name behind three letters
        plain[name] = text if matched is None else matched[1]
    others = set(plain.values())
    if others & _ROMAN or len(others & _LETTERS) > 2:
        return {}
    return {name: _KINDS[text] for name, text in plain.items() if text in _KINDS}


def find_sex_chromosomes(chromosome: pl.Series, store: Store, sires: np.ndarray, dams: np.ndarray) -> dict[str, str]:
    """Name -> kind, by names and by the genotypes of parents (places in the store)."""
    named = name_sex_chromosomes(chromosome.unique())
    numbers = sorted((c for c in chromosome.drop_nulls().unique() if c.isdecimal()), key=int, reverse=True)
    if set(named.values()) & {"X", "Z"} or len(numbers) < 2:
        return named
    for number in numbers[:NUMBERS_AFTER_AUTOSOMES]:
        kind = _recognise(store, mark_chromosomes(chromosome, {number: ""}), sires, dams)
        if kind is not None:
            named[number] = kind
    return named


def _recognise(store: Store, is_here: np.ndarray, sires: np.ndarray, dams: np.ndarray) -> str | None:
    """X, Z, haploid, or None for an autosome or where too few parents are genotyped."""
    elsewhere = np.flatnonzero(~is_here)
    elsewhere = elsewhere[:: max(1, elsewhere.size // SNPS_ELSEWHERE)]
    (here_het, here_known), (het, known) = (
        count_heterozygous(store, rows).T for rows in (np.flatnonzero(is_here), elsewhere)
    )
    expected = het / np.maximum(known, 1) * here_known
    is_haploid, can_tell = here_het <= np.maximum(1.0, 0.05 * expected), expected >= MIN_EXPECTED
    shares = []
    for parents in (sires, dams):
        telling = np.unique(parents)[can_tell[np.unique(parents)]]
        shares.append(is_haploid[telling].mean() if telling.size >= MIN_PARENTS else np.nan)
    of_sires, of_dams = shares
    if of_sires >= PURE:
        return "haploid" if of_dams >= PURE else "X" if of_dams <= 1 - PURE or np.isnan(of_dams) else None
    return "Z" if of_dams >= PURE and of_sires <= 1 - PURE else None


def mark_chromosomes(chromosome: pl.Series, names: Mapping[str, str]) -> np.ndarray:
    """(p,) bool: which SNPs are on these chromosomes."""
    return chromosome.is_in(pl.Series(list(names), dtype=pl.String).implode()).fill_null(False).to_numpy()


def describe_sex_chromosomes(chromosome: pl.Series, names: Mapping[str, str]) -> str:
    """'63 SNPs of sex chromosomes or mitochondria (X: 60, MT: 3)'; a number with its kind; '' for none."""
    counts = {name: int((chromosome == name).sum()) for name in names}
    words = [
        f"{name}: {n:,}" if kind.lower() in name.lower() or kind == "MT" else f"{name} ({kind}): {n:,}"
        for (name, n), kind in zip(counts.items(), names.values(), strict=True)
    ]
    if not words:
        return ""
    return f"{counted(sum(counts.values()), 'SNP')} of sex chromosomes or mitochondria ({', '.join(words)})"
