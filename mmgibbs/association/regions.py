"""Regions of the genome that hold SNPs beyond the threshold: these SNPs and what is near them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl

from mmgibbs.config.markers import SIZES
from mmgibbs.errors import option_name
from mmgibbs.options import POSITIVE
from mmgibbs.pedigree.tables import counted

FLANKS_PER_WINDOW = 2  # a region reaches half a window beyond its outer SNPs: 500,000 base pairs
FLANK_SNPS = 50  # where no SNP has a place
SCHEMA = {
    "region": pl.Int64, "test": pl.String, "chromosome": pl.String, "start": pl.Float64, "end": pl.Float64,
    "snps": pl.Int64, "significant": pl.Int64, "first_snp": pl.String, "last_snp": pl.String, "lead_snp": pl.String,
    "log10_p": pl.Float64,
}  # fmt: skip


def default_flank(unit: str | None) -> float:
    """Half a window in the unit of the map."""
    return SIZES.get(unit or "bp", SIZES["bp"]) / FLANKS_PER_WINDOW


def flank_of_width(width: object, unit: str | None, command: str) -> float:
    """Half the width of a region around one SNP, in the unit of the map; None: half a window."""
    if width is None:
        return default_flank(unit)
    return POSITIVE.check(f"{command}: {option_name('region_width')}", width) / 2


def are_placed(values: pl.DataFrame) -> pl.Series:
    """(n,) Boolean: which SNPs have a chromosome and a position."""
    return values["chromosome"].is_not_null() & values["position"].is_not_null()


def find_regions(
    values: pl.DataFrame, tests: Mapping[str, str], threshold: float, flank: float, flank_snps: float = FLANK_SNPS
) -> pl.DataFrame:
    """A row for each region of each test: SNPs with -log10 p of at least `threshold`, and those within `flank`.

    Regions that overlap are one. SNPs without a place have their number in the file as their position, and `flank_snps`
    as flank. tests: name -> column of -log10 p.
    """
    is_placed = are_placed(values)
    number = np.arange(values.height, dtype=float)
    position = np.where(is_placed.to_numpy(), values["position"].fill_null(0).to_numpy(), number)
    chromosome = values["chromosome"].fill_null("") if is_placed.any() else pl.Series([""] * values.height)
    chromosome = pl.select(pl.when(is_placed).then(chromosome).otherwise(pl.lit(""))).to_series()
    rows = []
    for test, column in tests.items():
        log_p = values[column].fill_null(-1.0).to_numpy()
        for name in chromosome.unique(maintain_order=True):
            members = np.flatnonzero((chromosome == name).to_numpy())
            width = flank if name else flank_snps
            members = members[np.argsort(position[members], kind="stable")]
            rows += _regions_of_chromosome(values, members, position, log_p, threshold, width, test, name)
    table = [{"region": number, **row} for number, row in enumerate(rows, 1)]
    return pl.DataFrame(table, schema=SCHEMA)


def describe_missing_places(values: pl.DataFrame, flank_snps: float) -> str | None:
    """Say how regions are made of tested SNPs without a chromosome or a position; None where all have both."""
    tested = values.filter(pl.col("left_out").is_null())
    n_missing = int((~are_placed(tested)).sum())
    if not n_missing:
        return None
    which = "the SNPs have" if n_missing == tested.height else f"{counted(n_missing, 'SNP')} have"
    return (
        f"warning: {which} no chromosome or position: a region of these is {flank_snps:,.0f} SNPs on either side in "
        "the order of the file, where chromosomes are not told apart and which may not be that of the genome. A "
        "map of the SNPs (data.genotypes.map of the run, or --map of mmgibbs gwas) makes regions of the genome"
    )


def make_regions(
    values: pl.DataFrame, tests: Mapping[str, str], facts: Mapping, width: float | None, command: str
) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """The regions of an association, and what to know about them.

    facts: with threshold_log10_p and map_unit. width: of a region around one SNP, as the user gave it.
    """
    flank = flank_of_width(width, facts.get("map_unit"), command)
    flank_snps = FLANK_SNPS if width is None else flank
    regions = find_regions(values, tests, facts["threshold_log10_p"], flank, flank_snps)
    note = describe_missing_places(values, flank_snps) if regions["chromosome"].null_count() else None
    return regions, () if note is None else (note,)


def _regions_of_chromosome(
    values: pl.DataFrame, members: np.ndarray, position: np.ndarray, log_p: np.ndarray, threshold: float,
    flank: float, test: str, chromosome: str,
) -> list[dict]:  # fmt: skip
    """members: the SNPs of one chromosome by position."""
    hits = members[log_p[members] >= threshold]
    if not hits.size:
        return []
    groups = np.split(hits, np.flatnonzero(np.diff(position[hits]) > 2 * flank) + 1)
    out = []
    for group in groups:
        low, high = position[group[0]] - flank, position[group[-1]] + flank
        snps = members[(position[members] >= low) & (position[members] <= high)]
        lead = int(group[np.argmax(log_p[group])])
        names = values["snp"]
        out.append(
            {
                "test": test, "chromosome": chromosome or None, "start": max(low, 0.0), "end": high,
                "snps": snps.size, "significant": group.size, "first_snp": names[int(snps[0])],
                "last_snp": names[int(snps[-1])], "lead_snp": names[lead], "log10_p": float(log_p[lead]),
            }
        )  # fmt: skip
    return out


def snps_of_region(values: pl.DataFrame, region: Mapping) -> pl.Series:
    """Names of the SNPs in a row of `find_regions`."""
    if region["chromosome"] is None:
        number = values.with_row_index("number").filter(
            pl.col("chromosome").is_null() | pl.col("position").is_null(),
            pl.col("number").is_between(region["start"], region["end"]),
        )
        return number["snp"]
    inside = pl.col("position").is_between(region["start"], region["end"])
    return values.filter((pl.col("chromosome") == region["chromosome"]) & inside)["snp"]
