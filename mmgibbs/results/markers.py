"""What a run found of SNP effects: genomic breeding values among the solutions, and `markers.parquet`.

markers.parquet has a row for each SNP of the file, in its order: what the file and the map say of it, its frequency and
call rate, whether it was kept, and why not. For each trait: effect_TRAIT, its sd and Monte Carlo error (of one copy of
the counted allele, whatever the scale of the analysis), and where the prior has classes pip_TRAIT, the probability that
the effect is not 0, with its Monte Carlo error, and class_k_TRAIT. Probabilities are means of the full conditional ones
over the draws (Rao-Blackwell).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from mmgibbs.data.markers import MarkerLabels
from mmgibbs.data.prepared import Prepared
from mmgibbs.model.markers import Markers
from mmgibbs.posterior.moments import PooledMoments
from mmgibbs.posterior.parameters import MEAN_VARIANCE, marker_name
from mmgibbs.results.tables import SOLUTION_COLUMNS

FILE = "markers.parquet"
EFFECT, VALUE, CHANCE = 0, 1, 2  # arrays of the pooled moments


def breeding_values_frame(
    markers: Markers,
    labels: MarkerLabels,
    found: PooledMoments,
    draws: Mapping[str, np.ndarray],
    traits: Sequence[str],
) -> pl.DataFrame:
    """Rows of the solutions: the genomic breeding value of every genotyped animal, effect `gebv`.

    Reliability is 1 - PEV / (x'x v), v the posterior mean of the variance of an effect under its prior.
    """
    mean, sd, mcse, ess = (part[VALUE][:, 0] for part in (found.mean, found.sd, found.mcse, found.ess))
    v = float(draws[marker_name(markers.key, MEAN_VARIANCE)].mean())
    prior = squares_of_animals(markers) * v
    with np.errstate(divide="ignore", invalid="ignore"):
        reliability = np.where(prior > 0, 1 - sd**2 / prior, np.nan)
    n = len(mean)
    columns: dict[str, Any] = {
        "term": pl.repeat(markers.name, n, dtype=pl.String, eager=True),
        "effect": pl.repeat("gebv", n, dtype=pl.String, eager=True),
        "trait": pl.repeat(traits[markers.trait], n, dtype=pl.String, eager=True),
        "level": labels.animals,
        "mean": mean, "sd": sd, "mcse": mcse, "ess": ess, "pev": sd**2,
        "reliability": reliability, "accuracy": np.sqrt(np.fmax(reliability, 0.0)), "inbreeding": np.full(n, np.nan),
    }  # fmt: skip
    columns["accuracy"] = np.where(np.isnan(reliability), np.nan, columns["accuracy"])
    return pl.DataFrame([_column(name, columns[name]) for name in SOLUTION_COLUMNS])


def squares_of_animals(markers: Markers) -> np.ndarray:
    """(n,) sum over the SNPs of x_aj^2: the prior variance of a breeding value in units of that of an effect."""
    store = markers.genotypes
    out = np.zeros(store.n_animals)
    values = store.values(markers.centre, markers.scale, markers.mean)
    for first in range(0, store.n_snps, 1024):
        x = store.decode(store.every[first : first + 1024], values)
        out += np.einsum("ja,ja->a", x, x, dtype=np.float64)
    return out


def markers_file(prepared: Prepared, found: Mapping[str, PooledMoments]) -> dict[str, Callable[[Path], None]]:
    """Name -> what writes it; {} without SNP effects."""
    if not prepared.design.markers or prepared.genotypes is None:
        return {}
    frame = prepared.genotypes.checked.snps
    kept = np.flatnonzero(frame["kept"].to_numpy())

    def of_all(name: str, values: np.ndarray) -> pl.Series:
        out = np.full(frame.height, np.nan)
        out[kept] = values
        return _column(name, out)

    columns = []
    several = len({m.name for m in prepared.design.markers}) > 1
    for m in prepared.design.markers:
        moments, trait = found[m.key], prepared.design.traits[m.trait]
        ending = f"{m.name}_{trait}" if several else trait
        for what, part in (("effect", moments.mean), ("effect_sd", moments.sd), ("effect_mcse", moments.mcse)):
            columns.append(of_all(f"{what}_{ending}", part[EFFECT][:, 0] * m.scale))
        chances, errors = moments.mean[CHANCE], moments.mcse[CHANCE]
        if chances.shape[1] > 1:
            columns.append(of_all(f"pip_{ending}", 1 - chances[:, 0]))
            columns.append(of_all(f"pip_mcse_{ending}", errors[:, 0]))
        if chances.shape[1] > 2:
            columns += [of_all(f"class_{k}_{ending}", chances[:, k]) for k in range(chances.shape[1])]
    return {FILE: frame.with_columns(columns).write_parquet}


def _column(name: str, values: Any) -> pl.Series:
    if isinstance(values, pl.Series):
        return values.alias(name)
    return pl.Series(name, np.ascontiguousarray(values, np.float64), nan_to_null=True)
