"""Two terms that records meet through the same levels, so that only the sum of their effects is seen: animals and their
permanent environment, dams' genes and the environment that they offer, additive and dominance effects.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mmgibbs.model.design import Design
from mmgibbs.model.terms import Term


@dataclass(frozen=True)
class SharedLevels:
    """Terms a and p of a design whose sum is what records meet."""

    a: int
    p: int
    components: tuple[int, ...]  # m(t) of each component t of p
    levels: np.ndarray  # (2, m) the levels of a and of p that go together


def shared_levels(design: Design, a: int, p: int) -> SharedLevels | None:
    """How each component of term p goes with one of a: the same trait and covariates, through levels of which each
    goes with one of the other term. None where they do not."""
    first, second = design.terms[a], design.terms[p]
    if len(second.effects) != 1:
        return None
    (own,) = second.effects
    for effect, other in enumerate(first.effects):
        if not set(own.traits) <= set(other.traits) or own.n_regressors != other.n_regressors:
            continue
        z = [np.ones((len(e.level), 1)) if e.covariates is None else e.covariates for e in (own, other)]
        if not np.array_equal(z[0], z[1]):
            continue
        levels = _one_to_one(other.level, own.level, first.n_levels, second.n_levels)
        if levels is not None:
            return SharedLevels(a, p, _components(first, effect, second), levels)
    return None


def _components(first: Term, effect: int, second: Term) -> tuple[int, ...]:
    """Of `first`, those of one effect that have trait and coefficient of each component of `second`."""
    begin = int(np.flatnonzero(first.regressor_effect == effect)[0])
    places = {
        (int(first.component_trait[c]), int(first.component_regressor[c]) - begin): c
        for c in np.flatnonzero(first.component_effect == effect)
    }
    wanted = zip(second.component_trait, second.component_regressor, strict=True)
    return tuple(int(places[int(trait), int(regressor)]) for trait, regressor in wanted)


def _one_to_one(of_a: np.ndarray, of_p: np.ndarray, q_a: int, q_p: int) -> np.ndarray | None:
    """(2, m) the pairs of levels (-1: none) that records meet, rising in those of a; None where a level of one goes
    with several of the other."""
    met = of_a >= 0
    if not met.any() or not np.array_equal(met, of_p >= 0):
        return None
    p_of, a_of = np.full(q_a, -1, np.int32), np.full(q_p, -1, np.int32)
    p_of[of_a[met]], a_of[of_p[met]] = of_p[met], of_a[met]
    if not (np.array_equal(p_of[of_a[met]], of_p[met]) and np.array_equal(a_of[of_p[met]], of_a[met])):
        return None
    levels = np.flatnonzero(p_of >= 0)
    return np.stack([levels, p_of[levels]])
