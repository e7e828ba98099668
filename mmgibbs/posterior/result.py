"""What one chain hands back, and the draws of several chains side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from mmgibbs.posterior.decisions import DecisionCounts
from mmgibbs.posterior.moments import Moments


@dataclass
class ChainResult:
    """One chain after burn-in and thinning; `draws`, the number of kept draws, is the same in every chain of a run."""

    variances: list[np.ndarray]  # (draws, k, k) float64 per random term, in the order of the terms
    residual: np.ndarray  # (draws, T, T) float64
    moments: Moments  # of every level of every term, on the user's scale
    saved: dict[str, np.ndarray] = field(default_factory=dict)  # term -> (draws, chosen levels, k)
    averages: dict[str, np.ndarray] = field(default_factory=dict)  # term -> (draws, groups, k)
    decisions: DecisionCounts | None = None  # ranks of the candidates for selection
    sample_stats: dict[str, np.ndarray] = field(default_factory=dict)  # name -> (draws,), e.g. 'interweaving_accepted'
    chain: int = 0
    seconds: float = 0.0  # wall time, burn-in included
    sweeps: int = 0  # burn-in included
    notes: tuple[str, ...] = ()


def variance_draws(chains: Sequence[ChainResult]) -> tuple[list[np.ndarray], np.ndarray]:
    """([(chains, draws, k, k) per random term], (chains, draws, T, T)): the variance components of all chains."""
    terms = [np.stack([c.variances[t] for c in chains]) for t in range(len(chains[0].variances))]
    return terms, np.stack([c.residual for c in chains])


def saved_draws(chains: Sequence[ChainResult]) -> dict[str, np.ndarray]:
    """term -> (chains, draws, chosen levels, k)."""
    return {name: np.stack([c.saved[name] for c in chains]) for name in chains[0].saved}


def average_draws(chains: Sequence[ChainResult]) -> dict[str, np.ndarray]:
    """term -> (chains, draws, groups, k)."""
    return {name: np.stack([c.averages[name] for c in chains]) for name in chains[0].averages}


def sample_stats(chains: Sequence[ChainResult]) -> dict[str, np.ndarray]:
    """name -> (chains, draws)."""
    return {name: np.stack([c.sample_stats[name] for c in chains]) for name in chains[0].sample_stats}


def posterior_means(draws: Sequence[np.ndarray]) -> list[np.ndarray]:
    """[(k, k)]: the mean over chains and draws of each (chains, draws, k, k)."""
    return [d.mean(axis=(0, 1)) for d in draws]
