"""Which traits have their mean, the variance of their fixed effects, CV_A and evolvability reported."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mmgibbs.build.observed_scale import evenly, population_of_trait
from mmgibbs.data.prepared import Prepared
from mmgibbs.models.design import Design
from mmgibbs.posterior.draw_names import trait_moments_name
from mmgibbs.posterior.model_parts import TermInfo
from mmgibbs.posterior.trait_moments import TraitMoments

MAX_RECORDS = 100_000  # over which means and variances are taken, spread evenly over the file


def trait_moments(asked: Sequence[str], prepared: Prepared, terms: Sequence[TermInfo]) -> tuple[TraitMoments, ...]:
    """Of `output.moments`."""
    return tuple(_trait_moments(prepared.design, terms, prepared.design.traits.index(name)) for name in asked)


def _trait_moments(design: Design, terms: Sequence[TermInfo], t: int) -> TraitMoments:
    records = np.flatnonzero(design.patterns[:, t][design.pattern])
    chosen = evenly(records, MAX_RECORDS)
    people = population_of_trait(design, terms, t, chosen, np.zeros(chosen.size))
    # y is centred by what `origin` adds; a record of 0 may be off by rounding
    values = design.y[records, t] + people.origin
    is_ratio_scale = bool((values > 1e-9 * np.abs(values).max()).all())
    return TraitMoments(design.traits[t], trait_moments_name(t), people, is_ratio_scale)
