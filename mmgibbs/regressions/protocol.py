"""What a regression plugin is: data prepared once, then a pure step on a documented state, and a log of draws.

A plugin is a class with a `name`, a frozen dataclass `Options` (every option with its default and `help` in the
metadata), and `prepare(data, options, arrays)`, which checks the data and returns a `Sampler`. Plugins are found by
the entry-point group `mmgibbs.models` (registry.py); the built-in ones are entered there too.

Chains run side by side: every array of the state and of the log has the chains first, (C, ...), so that the predictors
are read once for all of them. A draw is keyed by (seed, chain; sweep, level, purpose), hence a batch of C chains equals
C single chains, and a chain does not depend on who computes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self, runtime_checkable

import numpy as np
import numpy.typing as npt

from mmgibbs.posterior.parameters import Parameter as Parameter  # noqa: PLC0414  plugins find it here
from mmgibbs.regressions.containers import Frame
from mmgibbs.regressions.keys import Array as Array  # noqa: PLC0414  plugins find both here
from mmgibbs.regressions.keys import Keys as Keys  # noqa: PLC0414
from mmgibbs.regressions.options import OptionsClass
from mmgibbs.regressions.predictors import Predictors

if TYPE_CHECKING:
    from mmgibbs.machine.device import Device
    from mmgibbs.machine.ring import Ring
    from mmgibbs.regressions.arrays.base import Arrays

# (groups, q) in the order of numpy.unique(groups), or label -> q values
GroupPredictors = npt.ArrayLike | Frame | Mapping[Any, npt.ArrayLike] | None
State = dict[str, Array]  # name -> (C, ...); what a checkpoint holds, nothing else


@dataclass(frozen=True)
class RegressionData:
    """Response and predictors of a regression. `response` is as the user gave it; each plugin states what it takes."""

    predictors: Predictors
    response: np.ndarray  # (n,) or (n, K)
    response_name: str = "response"
    groups: np.ndarray | None = None  # (n,) labels of the groups of a hierarchical model
    group_predictors: GroupPredictors = None
    weights: np.ndarray | None = None  # (n,) how many equal records a row represents, of plugins that `weigh` rows


class Sampler(Protocol):
    """A regression with its data, ready to run.

    `parameters`: name -> Parameter of everything `log` returns; `coords`: dimension -> labels.
    `start(keys)`: the state before sweep 1, drawn or set; `step(state, sweep, keys)`: the state after that sweep, the
    old one untouched; `log(state)`: what is kept of a state, on the scale of the user's own columns, name -> (C, ...).
    `statistics(state)` (may return {}): per-sweep facts, such as acceptance rates, name -> (C,).
    `adapt_until(burn_in)`: told before the first sweep, so that step sizes and annealing end with the burn-in.
    `choices` (may be absent): option -> what an option that was "auto" is set to, and why (options.py).
    `describe(columns)` (may be absent): the model and its priors in words and symbols (description.py), for the report.
    """

    parameters: dict[str, Parameter]
    coords: dict[str, list]

    def adapt_until(self, burn_in: int) -> None: ...
    def start(self, keys: Keys) -> State: ...
    def step(self, state: State, sweep: int, keys: Keys) -> State: ...
    def log(self, state: State) -> dict[str, Array]: ...
    def statistics(self, state: State) -> dict[str, Array]: ...


class SweepCounts(NamedTuple):
    """Least work of a sweep on a device."""

    n_bytes: int  # read from its memory and written there, whatever caches hold
    n_operations: int  # additions and multiplications
    unit: str  # 'a sweep of all chains', or a shorter unit of which a sweep has several


class DeviceChains(Protocol):
    """The chains of a sampler on a GPU: sweeps are queued, and nothing waits for them but `fetch` and `take_kept`.

    Known without a device: `count_bytes()`, the device memory that they take; `count_sweep()`; `remedy`, what a user
    can do where that memory lacks. `open(device)` allocates; the rest comes after it.
    `load(state, number)`: begin after that sweep, from host arrays; `sweep()`: queue the next one; `fetch()`: the
    state after the last; `ring`: counts kept draws; `take_kept()`: the kept states that were not taken before, as far
    as `log` needs them.
    """

    ring: Ring

    @property
    def remedy(self) -> str: ...

    def count_bytes(self) -> int: ...
    def count_sweep(self) -> SweepCounts: ...
    def open(self, device: Device | None) -> Self: ...
    def load(self, state: State, number: int) -> None: ...
    def sweep(self) -> None: ...
    def fetch(self) -> State: ...
    def take_kept(self) -> list[State]: ...


@runtime_checkable
class DeviceSampler(Sampler, Protocol):
    """A sampler with kernels of its own on a GPU. All its other methods work on the host, `log` and `statistics` too,
    and `device` does not matter to its states. Not `has_kernels`: this model runs as array operations.
    """

    has_kernels: bool

    def plan_device_chains(self, keys: Keys, burn_in: int, thin: int) -> DeviceChains: ...


class Plugin(Protocol):
    """A kind of regression: a class with these names, never an instance of it."""

    @property
    def name(self) -> str: ...

    @property
    def Options(self) -> type[OptionsClass]: ...

    @staticmethod
    def prepare(data: RegressionData, options: Any, arrays: Arrays) -> Sampler: ...

    @staticmethod
    def predict(draws: Mapping[str, np.ndarray], predictors: Predictors, classes: list | None) -> np.ndarray:
        """Posterior mean of the response's probabilities (n, K) or mean (n,) for new predictors; draws:
        name -> (m, ...).
        """
        ...


@dataclass
class RegressionDraws:
    """The kept draws of all chains, on the user's scale."""

    draws: dict[str, np.ndarray]  # name -> (C, draws, ...)
    statistics: dict[str, np.ndarray] = field(default_factory=dict)  # name -> (C, draws)
    seconds: float = 0.0
    sweeps: int = 0
