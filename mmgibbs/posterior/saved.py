"""Draws of chosen levels, kept as they are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mmgibbs.posterior.tracked import Theta


class SavedLevels:
    """theta_l of the levels `codes` of one term in every draw."""

    def __init__(self, term: int, codes: np.ndarray):
        self.term, self.codes = term, codes
        self._kept: list[np.ndarray] = []

    def add(self, theta: Theta) -> None:
        self._kept.append(theta.levels(self.term, self.codes))

    @property
    def draws(self) -> np.ndarray:
        """Kept draws, (draws, levels, k)."""
        return np.array(self._kept)

    def state(self) -> dict[str, np.ndarray]:
        return {"draws": self.draws}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        self._kept = list(state["draws"])

    def pool(self, further: Sequence[SavedLevels]) -> np.ndarray:
        """Stack the draws of all chains, (chains, draws, levels, k)."""
        return np.stack([kept.draws for kept in (self, *further)])
