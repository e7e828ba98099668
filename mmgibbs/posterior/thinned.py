"""Some draws of a long vector, evenly spaced over a chain whose length need not be known beforehand.

Draw n (from 1) is kept where n is a multiple of the stride, which starts at 1. Where that would be more than `most`
draws, the stride is doubled and every other draw is let go: from `most` / 2 to `most` draws are kept once there were so
many, and which ones depends on the number of draws alone, not on when a chain was stopped, continued or extended.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class KeptDraws:
    """Kept draws of all chains."""

    values: np.ndarray  # (chains, draws, size) float32
    number: np.ndarray  # (draws,) int64 each draw's number among the recorded ones of its chain, from 1

    @property
    def side_by_side(self) -> np.ndarray:
        """Draws with one chain after the other, (chains x draws, size)."""
        return self.values.reshape(-1, self.values.shape[-1])


class ThinnedDraws:
    """Draws (size,) of one chain, kept in float32: 4 x most x size bytes."""

    def __init__(self, most: int, size: int):
        self.most, self.size = max(1, most), size
        self.n_draws, self.stride = 0, 1
        self._kept: list[np.ndarray] = []

    def add_vector(self, draw: np.ndarray) -> None:
        """draw (size,); not kept itself."""
        self.n_draws += 1
        if self.n_draws % self.stride:
            return
        self._kept.append(np.asarray(draw).astype(np.float32))
        if len(self._kept) > self.most:
            self.stride *= 2
            self._kept = self._kept[1::2]

    @property
    def draws(self) -> np.ndarray:
        """Kept draws, (draws, size) float32."""
        return np.array(self._kept, np.float32).reshape(-1, self.size)

    def state(self) -> dict[str, np.ndarray]:
        return {"counts": np.array([self.n_draws, self.stride], np.int64), "draws": self.draws}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        self.n_draws, self.stride = (int(v) for v in state["counts"])
        self._kept = list(state["draws"])

    def pool(self, further: Sequence[ThinnedDraws]) -> KeptDraws:
        number = self.stride * np.arange(1, len(self._kept) + 1)
        return KeptDraws(np.stack([kept.draws for kept in (self, *further)]), number)
