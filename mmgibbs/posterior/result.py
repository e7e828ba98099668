"""What one chain hands back, and the draws of several chains side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mmgibbs.posterior.moments import Moments


@dataclass
class ChainResult:
    """One chain after burn-in and thinning: names and arrays.

    The number of kept draws is the same in every chain of a run.
    """

    draws: dict[str, np.ndarray]  # parameter -> (draws, ...) float64, e.g. 'R' -> (draws, T, T)
    moments: Moments  # of every level of every term, on the user's scale
    tracked: dict[str, Any] = field(default_factory=dict)  # name -> posterior.tracked.Pooled
    sample_stats: dict[str, np.ndarray] = field(default_factory=dict)  # name -> (draws,), e.g. 'interweaving_accepted'
    chain: int = 0
    seconds: float = 0.0  # wall time, burn-in included
    sweeps: int = 0  # burn-in included
    notes: tuple[str, ...] = ()


def stacked_draws(chains: Sequence[ChainResult]) -> dict[str, np.ndarray]:
    """parameter -> (chains, draws, ...)."""
    return _stacked([c.draws for c in chains])


def sample_stats(chains: Sequence[ChainResult]) -> dict[str, np.ndarray]:
    """name -> (chains, draws)."""
    return _stacked([c.sample_stats for c in chains])


def _stacked(chains: Sequence[Mapping[str, np.ndarray]]) -> dict[str, np.ndarray]:
    return {name: np.stack([c[name] for c in chains]) for name in chains[0]}


def pooled(chains: Sequence[ChainResult], name: str) -> Any:
    """Pool what was followed under this name over all chains; its `pool` decides the type."""
    first, *further = (c.tracked[name] for c in chains)
    return first.pool(further)


def pooled_by_prefix(chains: Sequence[ChainResult], prefix: str) -> dict[str, Any]:
    """Pool all names with this prefix, which is removed: 'levels.' -> term -> (chains, draws, levels, k)."""
    names = [name for name in chains[0].tracked if name.startswith(prefix)]
    return {name.removeprefix(prefix): pooled(chains, name) for name in names}


def posterior_mean(draws: np.ndarray) -> np.ndarray:
    """Average (chains, draws, ...) over chains and draws."""
    return draws.mean(axis=(0, 1))
