"""Means of groups of levels in every draw: the interval of a genetic trend without the draws of each animal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mmgibbs.posterior.tracked import Theta

MOST = 1000  # levels of a group that are averaged


@dataclass(frozen=True)
class LevelAverages:
    """Groups of levels of one term: m_g = mean of theta_l over the levels l of group g.

    Of a group with more than MOST levels, as many spread evenly over it represent all: what levels do not share
    averages out long before, and the cost of a draw stays small.
    """

    labels: tuple[str, ...]  # (groups,)
    codes: np.ndarray  # (n,) int64 level codes, group by group
    starts: np.ndarray  # (groups,) int64 where each group begins in codes

    @classmethod
    def by_group(cls, group: np.ndarray, labels: Sequence[str]) -> LevelAverages:
        """group: (levels,) int, position in `labels` by level code; -1: in none. Every label has at least one level."""
        members = [np.flatnonzero(group == g) for g in range(len(labels))]
        chosen = [m[np.linspace(0, m.size - 1, min(m.size, MOST)).astype(np.int64)] for m in members]
        starts = np.cumsum([0, *(c.size for c in chosen[:-1])], dtype=np.int64)
        return cls(tuple(labels), np.concatenate(chosen), starts)

    def of(self, rows: np.ndarray) -> np.ndarray:
        """Compute the means of groups, (groups, k); rows: (n, k) the levels `codes` of one draw."""
        sizes = np.diff(np.append(self.starts, self.codes.size))
        return np.add.reduceat(rows, self.starts, axis=0) / sizes[:, None]


class AveragedLevels:
    """The means of some groups of levels in every draw."""

    def __init__(self, term: int, averages: LevelAverages):
        self.term, self.averages = term, averages
        self._kept: list[np.ndarray] = []

    def add(self, theta: Theta) -> None:
        self._kept.append(self.averages.of(theta.levels(self.term, self.averages.codes)))

    @property
    def draws(self) -> np.ndarray:
        """Kept draws, (draws, groups, k)."""
        return np.array(self._kept)

    def state(self) -> dict[str, np.ndarray]:
        return {"draws": self.draws}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        self._kept = list(state["draws"])

    def pool(self, further: Sequence[AveragedLevels]) -> np.ndarray:
        """Stack the draws of all chains, (chains, draws, groups, k)."""
        return np.stack([kept.draws for kept in (self, *further)])
