"""A small finished run with SNP effects, from made-up numbers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
from helpers.finished_run import ids, write_run

from mmgibbs.config.markers import Windows
from mmgibbs.data.genotypes.windows import placed
from mmgibbs.results.markers import breeding_value_columns
from mmgibbs.results.output_folder import write_file
from mmgibbs.results.windows import chromosome_frame, window_files, window_frame

SNPS, DRAWS = 400, 50


def write_genomic_run(folder: Path, mapped: bool = True, classes: bool = True, windows: bool = True) -> Path:
    """Effects on the trait birth, beside a direct effect of the pedigree."""
    write_run(folder)
    rng = np.random.default_rng(8)
    snps = _snps(mapped, classes, rng)
    snps.write_parquet(folder / "markers.parquet")
    _write_parts(folder, snps.filter("kept"), mapped, windows, rng)
    n = 120
    gebv, sd = rng.normal(0, 3, n), np.ones(n)
    solutions = pl.read_parquet(folder / "solutions.parquet")
    own = [("snps", "gebv", gebv), ("genetic+snps", "total", gebv + rng.normal(0, 1, n))]
    level = pl.Series("level", ids(n))
    frames = [breeding_value_columns(t, e, "birth", level, mean, sd, np.full(n, 10.0)) for t, e, mean in own]
    pl.concat([solutions, *frames], how="diagonal").write_parquet(folder / "solutions.parquet")
    summary = pl.read_parquet(folder / "summary.parquet")
    more = [summary.head(1).with_columns(parameter=pl.lit(f"snps.{k}[birth]")) for k in ("var", "pi", "effect_var")]
    pl.concat([summary, *more]).write_parquet(folder / "summary.parquet")
    record = json.loads((folder / "run.json").read_text())
    record["analysis"]["model"]["markers"] = {"snps": {"level": "animal", "prior": "bayes_c", "traits": ["birth"]}}
    record["data"]["genotypes"] = {
        "file": "chips.bed",
        "read": {"SNPs": 410, "animals": 121},
        "dropped": [{"what": "SNPs", "why": "monomorphic", "count": 10}, {"what": "animals", "why": "x", "count": 1}],
        "kept": {"SNPs": 400, "animals": 120},
    }
    (folder / "run.json").write_text(json.dumps(record), encoding="utf-8")
    return folder


def _snps(mapped: bool, classes: bool, rng: np.random.Generator) -> pl.DataFrame:
    p = SNPS + 10
    chromosome = [str(1 + j // 100) if j < 400 else "X<b>" for j in range(p)]
    columns = {
        "snp": [f"rs{j}" for j in range(p)],
        "chromosome": pl.Series(chromosome if mapped else [None] * p, dtype=pl.String),
        "position": pl.Series([1e5 * (j % 100 + 1) if mapped else None for j in range(p)], dtype=pl.Float64),
        "counted": ["A"] * p, "frequency": rng.uniform(0.1, 0.9, p), "kept": [j >= 10 for j in range(p)],
        "effect_birth": rng.normal(0, 0.1, p), "effect_sd_birth": np.full(p, 0.05),
    }  # fmt: skip
    return pl.DataFrame(columns | ({"pip_birth": rng.beta(1, 20, p)} if classes else {}))


def _write_parts(folder: Path, snps: pl.DataFrame, mapped: bool, windows: bool, rng: np.random.Generator) -> None:
    parts = placed(snps, Windows(size=1e6) if mapped else Windows(snps=10))
    share = rng.dirichlet(np.full(parts.windows.height, 0.1), DRAWS)
    own = [window_frame("snps", "birth", parts.windows, share, 0.01, share > 0.001)] if windows else []
    of = rng.uniform(0, 1, (DRAWS, parts.chromosomes.height))
    each = [chromosome_frame("snps", "birth", parts.chromosomes, of, of - 1, of.sum(axis=1))] if mapped else []
    for name, content in window_files(own, each).items():
        write_file(folder / name, content, escaped=False)
