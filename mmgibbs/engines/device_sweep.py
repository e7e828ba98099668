"""What the sampler and an engine on a device say to each other where the device makes whole sweeps alone.

The steps of the sampler write into a `VariancePlan` what they draw. `engine.make_variances(plan)` makes of it
`DeviceVariances`, on which the steps launch their kernels, once: what was launched is repeated as a graph.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np

from mmgibbs.machine.ring import Ring
from mmgibbs.models.covariance import CovarianceModel
from mmgibbs.models.residual import ResidualModel


class ScaledTerm(NamedTuple):
    """L of a term whose effects are scaled: see sampler/interweave.py, CholeskyPrior."""

    elements: tuple[tuple[int, int], ...]  # (row, column)
    exponents: np.ndarray  # (k,)


@dataclass
class VariancePlan:
    """What the steps of a sweep draw on the device; `burn_in` sweeps are thrown away, then every `thin`-th is kept."""

    residual: ResidualModel
    burn_in: int
    thin: int
    terms: dict[int, tuple[CovarianceModel, int]] = field(default_factory=dict)  # sampled: model, levels with a prior
    scaled: dict[int, ScaledTerm] = field(default_factory=dict)
    samples_residual: bool = False  # any of it


class DeviceVariances(Protocol):
    """The sampled matrices of one chain on a device, and the launches of its steps.

    `load(G, R, number, key)`: take the matrices before sweep `number`, which the engine has taken, too; `repeat(name,
    launch)`: queue a sweep, or a part of it; `ring`: counts kept draws, whose values `split` takes apart: G of the
    sampled terms, R, and whether each scaling was accepted. `read` and `find_lost` wait for what was queued: the
    matrices, and the first sweep and the number of a matrix that could not be drawn (those of the terms first).
    """

    plan: VariancePlan
    ring: Ring

    def load(self, G: Sequence[np.ndarray | None], R: np.ndarray, number: int, key: tuple[int, int]) -> None: ...
    def repeat(self, name: str, launch: Callable[[], None]) -> None: ...
    def split(self, values: np.ndarray) -> tuple[dict[int, np.ndarray], np.ndarray, dict[int, float]]: ...
    def read(self) -> tuple[dict[int, np.ndarray], np.ndarray]: ...
    def find_lost(self) -> tuple[int, int] | None: ...
    def launch_locations(self) -> None: ...
    def launch_products(self, term: int) -> None: ...
    def launch_scaling(self, term: int) -> None: ...
    def launch_residuals(self) -> None: ...
    def launch_end(self) -> None: ...
