"""One sweep in parts that processes side by side can compile: each kernel is then compiled once, on all cores at once,
and found on disk by the others.

A part draws from a point that is no state of a chain, and what it draws is thrown away.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mmgibbs.engines.base import Engine
from mmgibbs.sampler.auxiliaries import Auxiliaries
from mmgibbs.sampler.chain import sample_chain
from mmgibbs.sampler.competing import CompetingVariances
from mmgibbs.sampler.covariances import ResidualCovariance, TermCovariance, starting_matrices
from mmgibbs.sampler.interweave import Interweaving
from mmgibbs.sampler.locations import Locations
from mmgibbs.sampler.mixed_model import MixedModel
from mmgibbs.sampler.recorder import Recorder
from mmgibbs.sampler.schedule import Schedule
from mmgibbs.sampler.steps import gibbs_steps

# About equally long to compile; the last one records a draw too
PARTS: tuple[tuple[type, ...], ...] = (
    (Locations,),
    (TermCovariance, ResidualCovariance, Auxiliaries),
    (Interweaving, CompetingVariances),
)


def parts_of_sweep(model: MixedModel) -> int:
    """How many parts there are, at most: one where steps of the sweep need what others have drawn."""
    return 1 if model.design.responses or model.design.markers else len(PARTS)


def any_effects(levels: int, components: int) -> np.ndarray:
    """(levels, components) of all directions, so that matrices can be drawn: cosines of evenly spaced numbers would
    have two."""
    return np.cos(np.arange(1.0, 1.0 + levels * components) ** 2).reshape(levels, components)


def take_any_effects(engine: Engine, residuals_follow: bool) -> None:
    """Of every term. Where the residuals need not follow, an engine that keeps them stays with those it has, so that
    nothing is compiled for that: one part does it. Other engines make theirs anew when they are asked for.
    """
    if residuals_follow:
        engine.start([any_effects(t.n_levels, t.n_components) for t in engine.equations.design.terms])
        return
    state = engine.state()
    effects = {name: any_effects(*x.shape).astype(x.dtype) for name, x in state.items() if name.startswith("theta.")}
    engine.restore(state | effects)


def compile_part(model: MixedModel, engine: Engine, schedule: Schedule, key: tuple[int, int], part: int) -> None:
    """Compile what one part of a sweep needs, and the way to a first sweep. Where an engine brings steps of its own,
    the first part is a whole sweep."""
    short = replace(schedule, burn_in=0, samples=1, thin=1, refresh_every=1, most=0)
    if parts_of_sweep(model) == 1 or hasattr(engine, "integrated"):
        if part == 0:
            sample_chain(model, engine, short, key)
        return
    take_any_effects(engine, part == 0)
    matrices = starting_matrices(model, key[1])
    matrices.give(engine)
    steps = gibbs_steps(model, engine, short, key, matrices)
    for step in steps:
        if isinstance(step, PARTS[part]):
            step(1)
            if isinstance(step, Interweaving):
                engine.transform_term(step.term, np.eye(model.design.terms[step.term].n_components))
    if part == len(PARTS) - 1:
        Recorder(model, short, engine, steps)({"sweep": 1.0})
