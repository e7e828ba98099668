"""What files write for the place of a SNP: chromosomes that mean unknown, and the unit of positions."""

from __future__ import annotations

import numpy as np
import polars as pl

from pedigree.spelling import are_unknown_codes, normal_forms
from pedigree.tables import counted, quoted

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
