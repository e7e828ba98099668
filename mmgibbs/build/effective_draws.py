"""Effective draws of the slowest variance, and milliseconds for each of them: what `engine: auto` compares.

With m milliseconds a sweep and e effective draws of the slowest variance in it, b sweeps of burn-in and n after it,

    milliseconds of an effective draw = (set-up + (b + n) m) / (n e')

    effects integrated    e = 0.5 / (1 + (p / 5)^3)   p elements of the covariance matrices of random terms
    sweeps                e = 0.14 / (r^2 sqrt(k))    r random terms on the trait that has most, of those with few
                                                      records for a level: their variances compete;
                                                      k components of the widest term
    one trait not normal  other e at the start of both, that of integrated effects 0.5 (q / 0.3)^2 for q of the records
                          outside the category that most are in: liabilities of a rare one move slowly (families)
    of kept draws         e' = (1 - a) / (1 + a) / thin,   a = ((1 - e) / (1 + e))^thin, as of an autoregression

which is what was measured within a factor of two or three (results of benchmarks, "Which engine").
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mmgibbs.config import Sampler
from mmgibbs.models.covariance import count_elements
from mmgibbs.models.families.base import EffectiveDraws
from mmgibbs.models.terms import Term
from mmgibbs.sampler.mixed_model import MixedModel

if TYPE_CHECKING:
    from mmgibbs.engines.direct.costs import FactorCost

ELEMENTS_OF_MOVES = 5.0  # of covariance matrices, from which moves of all of them are much less likely
RECORDS_PER_LEVEL = 5.0  # from which the variance of a term is clear beside those of others
MOVE_MS = 0.06  # of a move of sampler/marginal beside the likelihood
LIABILITY_SWEEP_MS = 0.19  # of a sweep of it with liabilities, beside FACTORS_PER_SWEEP factorisations
FACTORS_PER_SWEEP = 2.0
SURROGATE_STEP_MS = 4e-7  # of a move, for each point, element and step of its surrogate
SURROGATE_LEARNING_MS = 1.3e-6  # once, for the cube of the points
GRADIENTS_PER_MOVE = 0.2  # from MIN_GRADIENT_ELEMENTS elements on
NORMAL = EffectiveDraws(0.14, 0.5)


def drawn_by_sweeps(model: MixedModel) -> float:
    """e of engines that sweep, effective draws a sweep."""
    start = effective_draws(model).sweeps
    on_trait, widest = np.zeros(model.design.n_traits, int), 1
    for term in (model.design.terms[i] for i in model.random_terms if not model.covariance(i).fixed):
        on_trait[np.unique(term.component_trait)] += _has_few_records_per_level(term)
        widest = max(widest, term.n_components)
    competing = max(1, int(on_trait.max(initial=0)))
    return start / (competing**2 * widest**0.5)


def effective_draws(model: MixedModel) -> EffectiveDraws:
    """Return the effective draws by the type of the traits: normal, or the one that is not."""
    if not model.design.responses:
        return NORMAL
    terms = [model.design.terms[i] for i in model.random_terms if not model.covariance(i).fixed]
    return model.design.responses[0].expect_draws(any(_has_few_records_per_level(term) for term in terms))


def _has_few_records_per_level(term: Term) -> bool:
    """Compare the records with the levels that have some.

    Herds of dozens of animals have many records, animals and mothers have few.
    """
    levels = np.concatenate([effect.level[effect.level >= 0] for effect in term.effects])
    return levels.size < RECORDS_PER_LEVEL * np.unique(levels).size


def drawn_by_integrating(model: MixedModel) -> float:
    """e of engines that integrate, effective draws a sweep."""
    of_terms = count_elements([model.covariance(i) for i in model.random_terms])
    return effective_draws(model).marginal / (1.0 + (of_terms / ELEMENTS_OF_MOVES) ** 3)


def count_kept(drawn: float, thin: int) -> float:
    """e' of draws that are kept."""
    a = ((1.0 - drawn) / (1.0 + drawn)) ** thin
    return (1.0 - a) / (1.0 + a) / thin


def sweep_cost(sampler: Sampler, model: MixedModel, milliseconds: float) -> float:
    """Milliseconds of an effective draw by sweeps of so many."""
    drawn = count_kept(drawn_by_sweeps(model), sampler.thin)
    return (sampler.burn_in + sampler.samples) * milliseconds / (sampler.samples * drawn)


def integrating_cost(sampler: Sampler, model: MixedModel, cost: FactorCost) -> float:
    """Milliseconds of an effective draw with effects integrated out, the search for the shape of proposals included."""
    drawn = count_kept(drawn_by_integrating(model), sampler.thin)
    sweeps = sampler.burn_in + sampler.samples
    if model.design.responses:
        move = LIABILITY_SWEEP_MS + FACTORS_PER_SWEEP * cost.milliseconds
        return sweeps * move / (sampler.samples * drawn)
    from mmgibbs.sampler.marginal.step import MIN_GRADIENT_ELEMENTS
    from mmgibbs.sampler.marginal.surrogate import STEPS, points_kept
    from mmgibbs.sampler.marginal.target import PAIRS, ROUNDS

    p = count_elements([*map(model.covariance, model.random_terms), *model.residual.matrices])
    looks = 2 * ROUNDS * max(PAIRS, p) + 6 * p + 10
    shape = looks * (cost.milliseconds + cost.gradient_ms)
    points = points_kept(p)
    shape += SURROGATE_LEARNING_MS * points**3
    move = MOVE_MS + SURROGATE_STEP_MS * STEPS * points * p + cost.milliseconds
    if p >= MIN_GRADIENT_ELEMENTS:
        move += GRADIENTS_PER_MOVE * cost.gradient_ms
    return (shape + sweeps * move) / (sampler.samples * drawn)
