"""Effective draws per second with sampled variances: effective draws per sweep of a chain, over the seconds that a
sweep takes.

Engines that make the same updates draw the same chain, so that one of them runs it for all; seconds are each engine's
own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mmgibbs.engines.base import Engine
from mmgibbs.models.covariance import CovarianceModel, blocks_recorded_together, full_block
from mmgibbs.models.design import Design
from mmgibbs.models.residual import ResidualModel
from mmgibbs.posterior.diagnostics import diagnose
from mmgibbs.posterior.draw_names import matrix_name
from mmgibbs.runs.bench.evaluation import timed_steps
from mmgibbs.sampler.chain import sample_chain
from mmgibbs.sampler.interweave import terms_to_interweave
from mmgibbs.sampler.mixed_model import MixedModel
from mmgibbs.sampler.schedule import Schedule

SAMPLED = "s per sample, variances sampled"
ANIMALS = 50  # whose breeding values are watched
ROOM_SECONDS = 60  # of the chain, where the number of its sweeps is not given
FEWEST, MOST = 50, 2000  # such sweeps


@dataclass(frozen=True)
class Mixing:
    """Effective draws per sweep."""

    sweeps: int  # that they were found in
    of_variances: float  # of the genetic variances, the least
    of_values: float  # of the breeding values watched, the median

    def per_second(self, seconds: float) -> dict[str, float]:
        """Columns of the table; seconds per sweep, variances sampled."""
        return {
            SAMPLED: seconds,
            "ESS/s, genetic variances (least)": self.of_variances / seconds,
            "ESS/s, breeding values (median)": self.of_values / seconds,
        }


def sampled_model(design: Design, G: Sequence[np.ndarray | None], R: np.ndarray, seed: int = 1) -> MixedModel:
    """All variances sampled under flat priors, from these starts;
    the draws of some animals' breeding values are kept.
    """
    covariances = tuple(
        None if g is None else CovarianceModel(np.asarray(g, float), False, full_block(len(g))) for g in G
    )
    residual = ResidualModel((CovarianceModel(np.asarray(R, float), False, blocks_recorded_together(design.patterns)),))
    q = next(t for t in design.terms if t.name == "genetic").n_levels
    watched = np.random.default_rng(seed).choice(q, min(ANIMALS, q), replace=False)
    return MixedModel(design, covariances, residual, {"genetic": watched})


def seconds_per_sweep(
    model: MixedModel, engine: Engine, interwoven: bool, key: tuple[int, int], sweeps: int = 3
) -> float:
    """Median over sweeps with all draws of variances, from the engine's present state."""
    return steps_and_seconds(model, engine, interwoven, key, sweeps)[1]


def steps_and_seconds(
    model: MixedModel, engine: Engine, interwoven: bool, key: tuple[int, int], sweeps: int = 3
) -> tuple[list[dict], float]:
    """A row for each step of a sweep with all draws of variances (steps.py), and the median of the whole."""
    schedule = Schedule(0, sweeps, interweave=terms_to_interweave(model, interwoven))
    return timed_steps(model, engine, schedule, key, sweeps)


def mixing(model: MixedModel, engine: Engine, interwoven: bool, key: tuple[int, int], sweeps: int) -> Mixing:
    """From a chain of so many sweeps, after a fifth as many that are thrown away, from the engine's present state."""
    schedule = Schedule(sweeps // 5, sweeps, interweave=terms_to_interweave(model, interwoven))
    result = sample_chain(model, engine, schedule, key)
    genetic = result.draws[matrix_name(model.random_terms[0])]
    values = result.tracked["levels.genetic"].draws
    k = genetic.shape[1]
    of_variances = [diagnose(genetic[None, :, c, c])["ess_bulk"] for c in range(k)]
    of_values = [diagnose(values[None, :, a, c])["ess_bulk"] for a in range(values.shape[1]) for c in range(k)]
    return Mixing(sweeps, min(of_variances) / sweeps, float(np.median(of_values)) / sweeps)


def sweeps_that_fit(seconds: float) -> int:
    return int(np.clip(ROOM_SECONDS / seconds, FEWEST, MOST))
