"""A name for every SNP: files write '.' where there is none."""

from __future__ import annotations

import polars as pl

from mmgibbs.data.phenotypes import SHOWN
from pedigree.spelling import are_unknown_codes, find_respelled
from pedigree.tables import counted, quoted

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
