"""Windows of neighbouring SNPs: by their places on a map, or by their number where there is none."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from mmgibbs.config.markers import SIZE, SIZES, SNPS, Windows
from mmgibbs.pedigree.tables import counted, format_number

_FEWEST_WINDOWS = 10  # of one SNP each, of which is said that they are narrow


@dataclass(frozen=True)
class Placed:
    """The parts of the genome that q SNPs belong to."""

    # (windows) window, chromosome, start, end (the window has the places from start to below end), snps (their number),
    # first_snp, last_snp; by chromosome and place. Null where unknown: SNPs without a place are one window, the last
    windows: pl.DataFrame
    of_snp: np.ndarray  # (q,) int64 window of each SNP, from 0
    chromosomes: pl.DataFrame  # chromosome, snps; null where unknown
    chromosome: np.ndarray  # (windows,) int64 of each window, from 0


def placed(snps: pl.DataFrame, asked: Windows | None, unit: str | None = None) -> Placed:
    """snps: snp, chromosome, position of each, in the order of the file. Without windows each chromosome is one.

    unit: of the positions, as GenotypeFile.unit has it.
    """
    chromosomes = _chromosome_key(snps["chromosome"])
    code = chromosomes.with_row_index("code").select("chromosome", "code")
    table = snps.select("snp", "chromosome", "position").with_row_index("row")
    table = table.join(code, on="chromosome", how="left", nulls_equal=True, maintain_order="left")
    table = _steps(table, asked, unit).sort("code", "step", "position", "row", nulls_last=True, maintain_order=True)
    grouped = table.group_by("code", "step", maintain_order=True)
    windows = grouped.agg(
        pl.col("chromosome").first(), snps=pl.len(), first_snp=pl.col("snp").first(), last_snp=pl.col("snp").last()
    ).with_row_index("window")
    of = table.join(windows.select("code", "step", "window"), on=["code", "step"], how="left", nulls_equal=True)
    size = window_size(asked, unit) if asked is not None and _windows_by_position(snps, asked) else None
    start = pl.col("step") * size if size is not None else pl.lit(None)
    end = (pl.col("step") + 1) * size if size is not None else pl.lit(None)
    shown = windows.select(
        pl.col("window") + 1, "chromosome", start=start.cast(pl.Float64), end=end.cast(pl.Float64), snps="snps",
        first_snp="first_snp", last_snp="last_snp",
    )  # fmt: skip
    window_numbers = of.sort("row")["window"].to_numpy().astype(np.int64)
    return Placed(shown, window_numbers, chromosomes, windows["code"].to_numpy().astype(np.int64))


def _windows_by_position(snps: pl.DataFrame, asked: Windows) -> bool:
    known = snps.select(pl.col("chromosome").is_not_null() & pl.col("position").is_not_null()).to_series()
    return asked.snps is None and bool(known.any())


def window_size(asked: Windows, unit: str | None) -> float:
    """Width in the unit of the map: as asked, else what is a million base pairs or near it in that unit."""
    return asked.size or (SIZE if unit is None else SIZES[unit])


def windows_notes(name: str, snps: pl.DataFrame, asked: Windows, unit: str | None) -> list[str]:
    """List notes on the windows of a term before a run: widths that the map makes too wide or too narrow.

    name: YAML path of the windows; snps as for `placed`.
    """
    if asked.snps is not None:
        return []
    if not _windows_by_position(snps, asked):
        if asked.size is None:
            return []
        return [f"{name}: no SNP has a place, so that a window has {SNPS} SNPs: size needs a map (data.genotypes.map)"]
    size, table = window_size(asked, unit), snps.filter(pl.col("chromosome").is_not_null())
    table = table.filter(pl.col("position").is_not_null())
    step = (pl.col("position") / size).floor()
    of_chromosome = table.group_by("chromosome").agg(windows=step.n_unique(), places=pl.col("position").n_unique())
    n_windows, n_chromosomes = int(of_chromosome["windows"].sum()), of_chromosome.height
    low, high = (format_number(float(x)) for x in (table["position"].min(), table["position"].max()))  # type: ignore[arg-type]
    width = format_number(size) + (f" {unit}" if unit is not None else " (the map does not say its unit)")
    if n_windows == n_chromosomes and of_chromosome["places"].max() > 1:  # type: ignore[operator]
        return [
            f"{name}: a window is {width} wide, and positions lie from {low} to {high}, so that each chromosome is one "
            "window: is the map in Mb or cM? then windows: {size: 1} asks for windows of 1 Mb or 1 cM"
        ]
    if n_windows == table.height >= _FEWEST_WINDOWS:
        return [
            f"{name}: a window is {width} wide, and positions lie from {low} to {high}, so that each of "
            f"{counted(n_windows, 'window')} has one SNP: needed windows.size in the unit of the map"
        ]
    if asked.size is None and unit not in (None, "bp"):
        return [f"{name}: a window is {width} wide, as positions of the map are in {unit}"]
    return []


def _steps(table: pl.DataFrame, asked: Windows | None, unit: str | None) -> pl.DataFrame:
    """Add the column step: number of the window on its chromosome, null where a position is needed and unknown."""
    if asked is None:
        return table.with_columns(step=pl.lit(0, pl.Int64))
    if _windows_by_position(table, asked):
        at = (pl.col("position") / window_size(asked, unit)).floor().cast(pl.Int64)
        return table.with_columns(step=pl.when(pl.col("chromosome").is_not_null()).then(at))
    ordered = table.sort("code", "position", "row", nulls_last=True)
    number = pl.int_range(pl.len()).over("code")
    return ordered.with_columns(step=(number // (asked.snps or SNPS)).cast(pl.Int64))


def _chromosome_key(chromosome: pl.Series) -> pl.DataFrame:
    """chromosome and its number of SNPs: 1, 2, 10, X; unknown last."""
    counts = chromosome.alias("chromosome").value_counts(name="snps")
    number = pl.col("chromosome").cast(pl.Float64, strict=False)
    return counts.sort(number, pl.col("chromosome"), nulls_last=True).select("chromosome", pl.col("snps"))
