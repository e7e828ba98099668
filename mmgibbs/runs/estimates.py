"""What a mixed model is solved to: posterior moments, or estimates, with the draws that there are."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from mmgibbs.posterior.adjusted_means import MeansMoments
from mmgibbs.posterior.decisions import Decided
from mmgibbs.posterior.moments import PooledMoments
from mmgibbs.posterior.thinned import KeptDraws
from mmgibbs.reml.estimate import Estimates

if TYPE_CHECKING:
    from mmgibbs.engines.pcg.prediction_errors import MonteCarloPev


@dataclass(frozen=True)
class PosteriorEstimates:
    """Posterior moments of every level, and the draws of the covariance matrices."""

    moments: PooledMoments
    draws: dict[str, np.ndarray]  # covariance matrices by name, (chains, draws, ...)
    facts: dict  # for run.json
    levels: dict[str, np.ndarray] = field(default_factory=dict)  # (chains, draws, levels, k) of chosen levels
    averages: dict[str, np.ndarray] = field(default_factory=dict)  # (chains, draws, birth years, k)
    markers: dict[str, PooledMoments] = field(default_factory=dict)  # of effects, breeding values, chances of classes
    states: dict[str, PooledMoments] = field(default_factory=dict)  # of SNPs over several traits
    totals: dict[str, PooledMoments] = field(default_factory=dict)  # number of the trait -> of total breeding values
    effects: dict[str, KeptDraws] = field(default_factory=dict)  # some draws of SNP effects
    slopes: dict[str, KeptDraws] = field(default_factory=dict)  # number of the trait -> of J, of the same draws
    statistics: dict[str, np.ndarray] = field(default_factory=dict)  # name -> (chains, draws), for /sample_stats
    probabilities: dict[str, PooledMoments] = field(default_factory=dict)  # trait -> of every level
    means: dict[str, MeansMoments] = field(default_factory=dict)  # name of the means -> those of draws
    decided: Decided | None = None
    estimates: Estimates | None = None  # by REML
    pev: MonteCarloPev | None = None  # by Monte Carlo, of BLUP
    snp_effects: pl.DataFrame | None = None  # of genomic and single-step terms, where they are asked for
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
