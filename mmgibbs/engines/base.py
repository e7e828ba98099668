"""What an engine is: it holds Theta and e, and makes one sweep over them. It sees no files, no tables and no names of
models.

    engine = SerialEngine(equations, update="level")
    engine.start(theta)                         # Theta in model order; e = y - W theta
    engine.set_variances(G, R)                  # one (k, k) per random term (None for fixed ones), (T, T)
    engine.sweep(number, (seed, chain))         # theta ~ one Gibbs sweep given G, R; facts of it (name -> number), or
    None
    engine.quadratic_form(term)                 # Theta' K^-1 Theta
    engine.residual_products(number, key)       # sum_r w_r e_r e_r', missing residuals augmented
    engine.scaling_products(term, elements)     # how the records see theta_l -> M theta_l: normal equations for
    elements of M
    engine.transform_term(term, M)              # theta_l <- M theta_l for every level, e follows
    engine.fetch()                              # list of (q, k) float64 in model order
    engine.state()                              # named arrays: all that the next sweep depends on, variances aside; not
    copied
    engine.restore(state)                       # go on from there, in another process or another year: the same bits

Where an engine has them:

    engine.moments(batch_length)                # LocationMoments of its own: a kept draw is then never fetched
    engine.notes                                # what it chose on the way, in words for the user

Engines with the same partition, update and key give the same chain up to rounding.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from mmgibbs.equations.structured import StructuredEquations
from mmgibbs.errors import ModelError
from mmgibbs.model.labels import component_labels


class Engine(Protocol):
    name: str
    equations: StructuredEquations

    def start(self, theta: list[np.ndarray] | None = None) -> None: ...

    def set_variances(self, G: list[np.ndarray | None], R: np.ndarray) -> None: ...

    def sweep(self, number: int, key: tuple[int, int]) -> dict[str, float] | None: ...

    def refresh(self) -> None: ...

    def quadratic_form(self, term: int) -> np.ndarray: ...

    def residual_products(self, number: int, key: tuple[int, int], blocks) -> tuple[np.ndarray, np.ndarray]: ...

    def scaling_products(self, term: int, elements) -> tuple[np.ndarray, np.ndarray]: ...

    def transform_term(self, term: int, M: np.ndarray) -> None: ...

    def fetch(self) -> list[np.ndarray]: ...

    def state(self) -> dict[str, np.ndarray]: ...

    def restore(self, state: dict[str, np.ndarray]) -> None: ...


class LocationMoments(Protocol):
    """Running moments of every location on the user's scale, kept where the engine keeps its state.

    `state()` and `restore(state)` speak as posterior.moments.Moments.state() does, levels in model order."""

    def add(self) -> None:
        """The engine's state is a draw."""

    def levels(self, term: int, codes: np.ndarray) -> np.ndarray:
        """(levels, k) float64: chosen levels of the draw last added."""

    def state(self) -> dict[str, np.ndarray]: ...

    def restore(self, state: dict[str, np.ndarray]) -> None: ...


def refuse_singular(equations: StructuredEquations, term: int, position: int) -> None:
    """Stop on a diagonal block of C that is not positive definite, naming the effect and the level."""
    t = equations.design.terms[term]
    level = int(equations.terms[term].code[position])
    raise ModelError(
        f"term '{t.name}' ({', '.join(component_labels(t, equations.design.traits))}), level number {level + 1} "
        f"of {t.n_levels}: "
        "its equations cannot be solved (they are not positive definite): the variances in force have run away or "
        "differ too much, or the level has "
        "neither records nor a prior; needed variances that the data determine, proper priors, or fewer effects"
    )
