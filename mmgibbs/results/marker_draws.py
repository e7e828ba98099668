"""marker_draws.npz: some draws of the SNP effects, from which `mmgibbs predict` and others take posterior deviations.

    snp                (q,) names of the SNPs that the run kept, in the order of its file
    number             (draws,) each draw's number among the recorded ones of its chain, from 1
    term, trait        (terms,) of each term of SNP effects
    effects.i          (chains, draws, q) float32 draws of term i: of one copy of the counted allele
    scale.i            (q,) float64 that a copy was multiplied by in the analysis; 0, as the effects, of SNPs that the
                       term does not have
    prior_variance.i   posterior mean of the variance of an effect under its prior, on the scale of the analysis
    slope.i            (chains, draws) float32 of the trait on J, where single_step: epsilon has it; J of an animal with
                       genotypes is -1

`numpy.load` opens it. Bytes: 4 x draws of all chains x SNPs for each term.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mmgibbs.data.prepared import Prepared
from mmgibbs.errors import ConfigError
from mmgibbs.posterior.draw_names import MEAN_VARIANCE, marker_name
from mmgibbs.posterior.thinned import KeptDraws
from mmgibbs.results.reading import RunFiles

FILE = "marker_draws.npz"


@dataclass(frozen=True)
class EffectDraws:
    """Draws of the effects of one term on one trait, as the file has them."""

    term: str
    trait: str
    effects: np.ndarray  # (draws of all chains, q) float32
    scale: np.ndarray  # (q,)
    prior_variance: float
    slope: np.ndarray | None = None  # (draws of all chains,) on J


def marker_draws_file(
    prepared: Prepared,
    kept_draws: Mapping[str, KeptDraws],
    draws: Mapping[str, np.ndarray],
    slopes: Mapping[str, KeptDraws],
) -> dict[str, Callable[[Path], None]]:
    """Name -> what writes it; {} where no draws were kept. draws: of the parameters, (chains, draws, ...) by name;
    slopes: number of the trait -> of J.
    """
    markers = prepared.design.markers
    if not kept_draws or prepared.genotypes is None:
        return {}
    content: dict[str, Any] = {
        "snp": np.array(prepared.genotypes.snps["snp"].to_list(), np.str_),
        "number": next(iter(kept_draws.values())).number,
        "term": np.array([m.name for m in markers], np.str_),
        "trait": np.array([prepared.design.traits[m.trait] for m in markers], np.str_),
    }
    kept = prepared.genotypes.checked.kept_snps
    for i, m in enumerate(markers):
        place = np.searchsorted(kept, m.number)
        content[f"effects.{i}"] = _scatter(place, kept_draws[m.key].values * m.scale.astype(np.float32), len(kept))
        content[f"scale.{i}"] = _scatter(place, m.scale, len(kept))
        if str(m.trait) in slopes:
            content[f"slope.{i}"] = slopes[str(m.trait)].values[..., 0]
        content[f"prior_variance.{i}"] = draws[marker_name(m.key, MEAN_VARIANCE)].mean()

    def write(path: Path) -> None:
        with open(path, "wb") as file:
            np.savez(file, **content)

    return {FILE: write}


def _scatter(place: np.ndarray, values: np.ndarray, q: int) -> np.ndarray:
    """(..., q) with `values` at these places, 0 elsewhere."""
    out = np.zeros((*values.shape[:-1], q), values.dtype)
    out[..., place] = values
    return out


def read_marker_draws(run: RunFiles) -> list[EffectDraws]:
    """Draws of each term; [] where the run kept none. ConfigError for a file that is damaged or missing."""
    path = run.path(FILE)
    if path is None:
        return []
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = [file[f"effects.{i}"] for i in range(len(file["term"]))]
            return [
                EffectDraws(
                    str(file["term"][i]),
                    str(file["trait"][i]),
                    effects.reshape(-1, effects.shape[-1]),
                    file[f"scale.{i}"],
                    float(file[f"prior_variance.{i}"]),
                    file[f"slope.{i}"].ravel() if f"slope.{i}" in file else None,
                )
                for i, effects in enumerate(arrays)
            ]
    except (OSError, ValueError, KeyError, EOFError, NotImplementedError, zipfile.BadZipFile, zlib.error) as error:
        raise ConfigError(f"{run.asked}'{path}' cannot be read: {error}; needed the file that the run wrote") from None
