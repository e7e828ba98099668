"""The loop over the sweeps of a chain, which mixed models and regressions share."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Self

import numpy as np

from mmgibbs.sampler.schedule import Schedule

CHECK_EVERY = 100  # sweeps between two looks for values that are no longer finite


class ResumableChain(ABC):
    """A chain of sweeps that may pause after any sweep, and continues later, elsewhere, to the same draws.

    `state()` is all there is to continue from. A chain of a regression is all its chains side by side.
    """

    def __init__(self, schedule: Schedule):
        self.schedule = schedule
        self.number = 0  # of the last sweep
        self._seconds, self._since = 0.0, time.perf_counter()

    @property
    def seconds(self) -> float:
        """Wall time so far, burn-in included."""
        return self._seconds + time.perf_counter() - self._since

    def advance(self, until: int, pause: Callable[[Self], bool] | None = None) -> None:
        """Sweep up to number `until`; `pause(chain)` is called after each, and where it is true that was the last for
        now.
        """
        with self._limit_threads():
            for number in range(self.number + 1, until + 1):
                facts = self._sweep(number)
                self.number = number
                if self.schedule.keeps(number):
                    self._keep(facts)
                if number % CHECK_EVERY == 0 or number == until:
                    self._refuse_lost_values()
                if pause is not None and pause(self):
                    return

    def _limit_threads(self) -> AbstractContextManager[Any]:
        """A context for the sweeps."""
        return nullcontext()

    @abstractmethod
    def _sweep(self, number: int) -> Mapping[str, float]:
        """Draw everything once; facts of the sweep."""

    @abstractmethod
    def _keep(self, facts: Mapping[str, float]) -> None:
        """Record the draw."""

    def _refuse_lost_values(self) -> None:  # noqa: B027  nothing where the steps see to it
        """ModelError where a value is no longer finite."""

    @abstractmethod
    def state(self) -> dict[str, np.ndarray]:
        """Named arrays, all there is to continue from."""

    @abstractmethod
    def draws(self) -> dict[str, np.ndarray]:
        """Current values of the parameters by name."""

    @abstractmethod
    def result(self) -> Any:
        """Return the results so far, with the number of `sweeps`."""
