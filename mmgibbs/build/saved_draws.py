"""How large the draws are that `output.save_levels` keeps, and that a method without draws keeps none."""

from __future__ import annotations

from mmgibbs.sampler.mixed_model import MixedModel
from mmgibbs.sampler.schedule import Schedule

LEAST_MEGABYTES = 10.0  # of which the user is told


def saved_draws_notes(model: MixedModel, schedule: Schedule, method: str) -> list[str]:
    """Say the size of the draws of levels before they are made, where they are large; or that there are none."""
    if method != "gibbs":
        return [_no_draws(model, method)] if model.saved else []
    components = {term.name: term.n_components for term in model.design.terms}
    numbers = sum(codes.size * components[name] for name, codes in model.saved.items())
    megabytes = 8e-6 * numbers * schedule.n_kept * schedule.chains
    if megabytes < LEAST_MEGABYTES:
        return []
    levels = sum(codes.size for codes in model.saved.values())
    draws = schedule.n_kept * schedule.chains
    return [f"output.save_levels: {draws:,} draws of {levels:,} levels take {megabytes:,.0f} MB of draws.nc"]


def _no_draws(model: MixedModel, method: str) -> str:
    return (
        f"output.save_levels: method: {method} draws nothing, so there are no draws of {', '.join(model.saved)}; "
        "solutions.csv has the solutions and their standard errors. For draws, needed method: gibbs"
    )
