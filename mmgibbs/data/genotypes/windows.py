"""Windows of neighbouring SNPs: by their places on a map, or by their number where there is none."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from mmgibbs.config.markers import SIZE, SNPS, Windows


@dataclass(frozen=True)
class Placed:
    """The parts of the genome that q SNPs belong to."""

    # (windows) window, chromosome, start, end (the window has the places from start to below end), snps (their number),
    # first_snp, last_snp; by chromosome and place. Null where unknown: SNPs without a place are one window, the last
    windows: pl.DataFrame
    of_snp: np.ndarray  # (q,) int64 window of each SNP, from 0
    chromosomes: pl.DataFrame  # chromosome, snps; null where unknown
    chromosome: np.ndarray  # (windows,) int64 of each window, from 0


def placed(snps: pl.DataFrame, asked: Windows | None) -> Placed:
    """snps: snp, chromosome, position of each, in the order of the file. Without windows each chromosome is one."""
    chromosomes = _in_order(snps["chromosome"])
    code = chromosomes.with_row_index("code").select("chromosome", "code")
    table = snps.select("snp", "chromosome", "position").with_row_index("row")
    table = table.join(code, on="chromosome", how="left", nulls_equal=True, maintain_order="left")
    table = _steps(table, asked).sort("code", "step", "position", "row", nulls_last=True, maintain_order=True)
    grouped = table.group_by("code", "step", maintain_order=True)
    windows = grouped.agg(
        pl.col("chromosome").first(), snps=pl.len(), first_snp=pl.col("snp").first(), last_snp=pl.col("snp").last()
    ).with_row_index("window")
    of = table.join(windows.select("code", "step", "window"), on=["code", "step"], how="left", nulls_equal=True)
    size = asked.size or SIZE if asked is not None and _by_place(snps, asked) else None
    start = pl.col("step") * size if size is not None else pl.lit(None)
    end = (pl.col("step") + 1) * size if size is not None else pl.lit(None)
    shown = windows.select(
        pl.col("window") + 1, "chromosome", start=start.cast(pl.Float64), end=end.cast(pl.Float64), snps="snps",
        first_snp="first_snp", last_snp="last_snp",
    )  # fmt: skip
    own = of.sort("row")["window"].to_numpy().astype(np.int64)
    return Placed(shown, own, chromosomes, windows["code"].to_numpy().astype(np.int64))


def _by_place(snps: pl.DataFrame, asked: Windows) -> bool:
    known = snps.select(pl.col("chromosome").is_not_null() & pl.col("position").is_not_null()).to_series()
    return asked.snps is None and bool(known.any())


def _steps(table: pl.DataFrame, asked: Windows | None) -> pl.DataFrame:
    """With the column step: number of the window on its chromosome, null where a place is needed and unknown."""
    if asked is None:
        return table.with_columns(step=pl.lit(0, pl.Int64))
    if _by_place(table, asked):
        at = (pl.col("position") / (asked.size or SIZE)).floor().cast(pl.Int64)
        return table.with_columns(step=pl.when(pl.col("chromosome").is_not_null()).then(at))
    ordered = table.sort("code", "position", "row", nulls_last=True)
    number = pl.int_range(pl.len()).over("code")
    return ordered.with_columns(step=(number // (asked.snps or SNPS)).cast(pl.Int64))


def _in_order(chromosome: pl.Series) -> pl.DataFrame:
    """chromosome and its number of SNPs: 1, 2, 10, X; unknown last."""
    counts = chromosome.alias("chromosome").value_counts(name="snps")
    number = pl.col("chromosome").cast(pl.Float64, strict=False)
    return counts.sort(number, pl.col("chromosome"), nulls_last=True).select("chromosome", pl.col("snps"))
