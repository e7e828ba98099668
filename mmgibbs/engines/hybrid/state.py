"""What the engines on explicit equations share: Theta put together from x, and e = y - W theta, computed when it is
asked for.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from mmgibbs.engines.augment import residual_products
from mmgibbs.equations.passes import subtract_term
from mmgibbs.equations.relationships import quadratic_form
from mmgibbs.equations.scaling import Scaling
from mmgibbs.equations.structured import StructuredEquations


class ExplicitState(ABC):
    """Base of engines whose state is x: `theta` and `put_theta` translate, the rest of the engine protocol follows.

    A sweep, and whatever else moves x, calls `_moved`. `set_variances` keeps `self.R` and `self.Rinv`.
    """

    def __init__(self, equations: StructuredEquations):
        self.equations = equations
        self._scaling = Scaling(equations)
        self._e: np.ndarray | None = None

    @abstractmethod
    def theta(self) -> list[np.ndarray]:
        """(q, k) per term, sweep order: copies."""

    @abstractmethod
    def put_theta(self, term: int, theta: np.ndarray) -> None:
        """Take (q, k) of one term, sweep order."""

    def in_sweep_order(self, theta: list[np.ndarray] | None) -> list[np.ndarray]:
        """Theta given in model order (zero where None); components held at 0 are 0."""
        theta = theta or [np.zeros((t.n_levels, t.n_components)) for t in self.equations.design.terms]
        ordered = [np.asarray(t)[lists.code] for t, lists in zip(theta, self.equations.terms, strict=True)]
        return [
            np.where(lists.active, t, 0.0) if lists.active.size else t
            for t, lists in zip(ordered, self.equations.terms, strict=True)
        ]

    @property
    def e(self) -> np.ndarray:
        """(n, T) residuals in sweep order, as of now."""
        if self._e is None:
            e = self.equations.records.y.copy()
            for lists, theta in zip(self.equations.terms, self.theta(), strict=True):
                subtract_term(lists, theta, e)
            self._e = e
        return self._e

    def _moved(self) -> None:
        self._e = None

    def refresh(self) -> None:  # noqa: B027  engines need not have it
        """Nothing drifts: every right-hand side is summed anew in every sweep."""

    def quadratic_form(self, term: int) -> np.ndarray:
        return quadratic_form(self.equations.relationships[term], self.theta()[term])

    def residual_products(self, number: int, key: tuple[int, int], blocks):
        return residual_products(
            self.equations.records, self.equations.design.patterns, self.e, self.R, blocks, number, key
        )

    def scaling_products(self, term: int, elements):
        return self._scaling.products(term, elements, self.theta()[term], self.e, self.Rinv)

    def transform_term(self, term: int, M: np.ndarray) -> None:
        theta, e = self.theta()[term], self.e
        self._scaling.transform(term, M, theta, e)
        self.put_theta(term, theta)
        self._e = e

    def fetch(self) -> list[np.ndarray]:
        out = []
        for theta, lists in zip(self.theta(), self.equations.terms, strict=True):
            ordered = np.empty(theta.shape)
            ordered[lists.code] = theta
            out.append(ordered)
        return out

    def state(self) -> dict[str, np.ndarray]:
        """Theta per term, sweep order. Right-hand sides in progress are no part of it:
        primed anew they have the same bits.
        """
        return {f"theta.{i}": theta for i, theta in enumerate(self.theta())}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        for i in range(len(self.equations.terms)):
            self.put_theta(i, state[f"theta.{i}"])
