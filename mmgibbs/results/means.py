"""Adjusted means as tables and files: means with standard errors, and how exactly their differences are known.

SED is the standard error of a difference, LSD = t SED the least significant one at 5 % (t with the records of the trait
less its estimable fixed effects as degrees of freedom; of draws the normal quantile). Heritabilities of the means of a
random effect, on the basis of their differences (Cullis, Smith & Coombes 2006; Oakey et al. 2006):

    Cullis = 1 - mean SED^2 / (2 variance),      Oakey = sum of eigenvalues of I - G^-1 C_uu over those not 0
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from mmgibbs.data.levels import natural_order
from mmgibbs.data.residuals import LEVELS, NAMES, RANDOM
from mmgibbs.errors import ConfigError, nearest
from mmgibbs.posterior.adjusted_means import AdjustedMeans, MeansMoments
from mmgibbs.results.reading import RunFiles

COVARIANCES = "means_covariance.npz"
SIGNIFICANCE = 0.05
_ZERO = 1e-8  # an eigenvalue


@dataclass(frozen=True)
class MeansTable:
    """Means of one effect and trait, with their errors."""

    means: AdjustedMeans
    moments: MeansMoments
    freedom: int | None  # degrees of freedom of the residuals; None: means of draws
    prior_variance: float | None = None  # of a level of a random effect
    effect_covariance: np.ndarray | None = None  # (L, L) of u_l given the data, where levels are not related
    has_errors: bool = True  # of the means themselves; those of differences are known in any case

    @property
    def standard_errors(self) -> pl.Series:
        """(L,) of the means; null where they have none."""
        variances = np.diag(self.moments.covariance)
        return pl.Series(np.sqrt(variances) if self.has_errors else [None] * variances.size, dtype=pl.Float64)

    @property
    def squared_differences(self) -> np.ndarray:
        """(pairs,) SED^2 of each pair of levels."""
        V = self.moments.covariance
        first, second = np.triu_indices(len(V), 1)
        return np.maximum(V[first, first] + V[second, second] - 2 * V[first, second], 0.0)

    @property
    def facts(self) -> dict:
        """Facts for run.json: SED, LSD and heritabilities."""
        from scipy.stats import norm, t

        out = {"effect": self.means.effect, "trait": self.means.trait, "levels": len(self.means.levels)}
        out |= {"empty": len(self.means.empty)} if self.means.empty else {}
        if len(self.means.levels) < 2:
            return out
        variances = self.squared_differences
        sed = np.sqrt(variances)
        p = 1 - SIGNIFICANCE / 2
        quantile = norm.ppf(p) if self.freedom is None else t.ppf(p, self.freedom)
        out |= {"sed": {"mean": float(sed.mean()), "min": float(sed.min()), "max": float(sed.max())}}
        out |= {"lsd": float(quantile * sed.mean()), "freedom": self.freedom}
        if self.prior_variance:
            out |= {"h2_cullis": float(1 - variances.mean() / (2 * self.prior_variance))}
            if self.effect_covariance is not None:
                of_effects = self.effect_covariance / self.prior_variance
                eigenvalues = np.linalg.eigvalsh(np.eye(len(of_effects)) - of_effects)
                free = np.abs(eigenvalues) > _ZERO
                out |= {"h2_oakey": float(eigenvalues[free].mean()) if free.any() else 0.0}
        return out


def means_frame(tables: Sequence[MeansTable]) -> pl.DataFrame:
    """A row for each level; one without a mean has the reason."""
    return pl.concat(_frame(table) for table in tables)


def _frame(table: MeansTable) -> pl.DataFrame:
    means = table.means
    nothing = [None] * len(means.empty)
    levels = [*means.levels, *(empty.level for empty in means.empty)]
    frame = pl.DataFrame(
        {
            "effect": [means.effect] * len(levels),
            "trait": [means.trait] * len(levels),
            "level": levels,
            "records": [*means.records.tolist(), *(empty.records for empty in means.empty)],
            "mean": [*table.moments.mean.tolist(), *nothing],
            "se": [*table.standard_errors, *nothing],
            "reason": [*[None] * len(means.levels), *(empty.reason for empty in means.empty)],
        },
        schema_overrides={"mean": pl.Float64, "se": pl.Float64, "records": pl.Int64, "reason": pl.String},
    )
    return frame[natural_order(levels)] if means.empty else frame


def write_covariances(tables: Sequence[MeansTable], path: Path) -> None:
    """Write the covariance matrices of the means as COVARIANCES."""
    arrays: dict[str, Any] = {}
    for table in tables:
        name = table.means.name
        arrays |= {
            name: table.moments.covariance,
            f"{name}{NAMES}": np.array([table.means.effect, table.means.trait]),
            f"{name}{LEVELS}": np.array(table.means.levels, dtype=np.str_),
            f"{name}{RANDOM}": np.array(table.means.random is not None),
        }
    with path.open("wb") as file:
        np.savez(file, **arrays)


def estimate_contrast(
    directory: Path, means: pl.DataFrame | None, effect: str, weights: Mapping[str, float], trait: str | None
) -> tuple[float, float]:
    """Estimate and standard error of a linear combination of the means in a run folder.

    ConfigError names an unknown effect, trait or level.
    """
    if means is None:
        raise ConfigError("contrast: expected a run with adjusted means (output.means: [EFFECT]), got one without")
    _check_is_known("effect", effect, means["effect"].unique(maintain_order=True).to_list())
    rows = means.filter(effect=effect)
    traits = rows["trait"].unique(maintain_order=True).to_list()
    if trait is None and len(traits) > 1:
        raise ConfigError(f"contrast: expected trait, one of {', '.join(traits)}")
    trait = traits[0] if trait is None else trait
    _check_is_known("trait", trait, traits)
    rows = rows.filter(trait=trait)
    reasons = dict(rows.drop_nulls("reason").select("level", "reason").iter_rows())
    for level in weights:
        _check_is_known("level", level, rows["level"].to_list())
        if level in reasons:
            raise ConfigError(f"contrast: {level!r} has no mean: {reasons[level]}")
    rows = rows.filter(pl.col("reason").is_null())
    levels = rows["level"].to_list()
    w = np.array([float(weights.get(level, 0.0)) for level in levels])
    path = RunFiles(directory, "contrast: ").path(COVARIANCES)
    if path is None:
        raise ConfigError(f"contrast: expected {COVARIANCES} in '{directory}', which the run wrote")
    with np.load(path) as file:
        V = file[f"{effect}.{trait}"]
    return float(w @ rows["mean"].to_numpy()), float(np.sqrt(max(w @ V @ w, 0.0)))


def _check_is_known(what: str, name: str, names: Sequence[str]) -> None:
    if name not in names:
        raise ConfigError(f"contrast: {name!r} is no {what} of these means; {nearest(str(name), names)}")
