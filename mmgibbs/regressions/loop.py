"""The chains of a regression, side by side: sweep, keep, until done.

What it holds between sweeps is what a checkpoint stores.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from mmgibbs.errors import ModelError
from mmgibbs.regressions.arrays.base import Arrays
from mmgibbs.regressions.protocol import Keys, RegressionDraws, Sampler, State

LIKELY = (
    "most likely the posterior is improper or a predictor's scale is extreme; needed a proper prior, or "
    "standardised predictors"
)
CHECK_EVERY = 100  # sweeps between two looks for values that are no longer finite


class RegressionRun:
    """`burn_in` sweeps that are thrown away, then `samples` of which every `thin`-th is kept.

    `stored()` is all there is to go on from: given to `restore` of a new RegressionRun of the same sampler, arrays and
    keys, the chains go on to the same draws.
    """

    def __init__(self, sampler: Sampler, arrays: Arrays, keys: Keys, burn_in: int, samples: int, thin: int = 1):
        self.sampler, self.arrays, self.keys = sampler, arrays, keys
        self.burn_in, self.samples, self.thin = burn_in, samples, thin
        self.sweep, self.seconds = 0, 0.0
        self.kept: dict[str, list[np.ndarray]] = {}
        self.statistics: dict[str, list[np.ndarray]] = {}
        sampler.adapt_until(burn_in)
        self.state: State = sampler.start(keys)

    @property
    def n_sweeps(self) -> int:
        return self.burn_in + self.samples

    def advance(
        self, sweeps: int, progress: Callable[[int], object] | None = None, pause: Callable[[int], bool] | None = None
    ) -> None:
        """At most so many further sweeps; `progress(sweep)` after each, and where `pause(sweep)` is true it was the
        last for now.
        """
        started = time.perf_counter()
        for number in range(self.sweep + 1, min(self.sweep + sweeps, self.n_sweeps) + 1):
            try:
                self.state = self.sampler.step(self.state, number, self.keys)
            except np.linalg.LinAlgError:
                raise ModelError(
                    f"the chain has lost a matrix at sweep {number}: it has no Cholesky factor any more; {LIKELY}"
                ) from None
            self.sweep = number
            if number > self.burn_in and (number - self.burn_in) % self.thin == 0:
                self._keep()
            if number % CHECK_EVERY == 0 or number == self.n_sweeps:
                self._refuse_lost_values()
            if progress is not None:
                progress(number)
            if pause is not None and pause(number):
                break
        self.seconds += time.perf_counter() - started

    def stored(self) -> dict[str, np.ndarray]:
        """Named host arrays: sweep, seconds, state and what was kept."""
        state = {f"state.{name}": self.arrays.fetch(value) for name, value in self.state.items()}
        kept = {f"kept.{name}": np.array(values) for name, values in self.kept.items()}
        statistics = {f"statistics.{name}": np.array(values) for name, values in self.statistics.items()}
        return {"sweep": np.array(self.sweep), "seconds": np.array(self.seconds), **state, **kept, **statistics}

    def restore(self, stored: dict[str, np.ndarray]) -> None:
        under = lambda prefix: {name.removeprefix(prefix): v for name, v in stored.items() if name.startswith(prefix)}
        self.sweep, self.seconds = int(stored["sweep"]), float(stored["seconds"])
        self.state = {name: self.arrays.asarray(value) for name, value in under("state.").items()}
        self.kept = {name: list(values) for name, values in under("kept.").items()}
        self.statistics = {name: list(values) for name, values in under("statistics.").items()}

    def result(self) -> RegressionDraws:
        """The kept draws so far, (C, draws, ...)."""
        stack = lambda lists: {name: np.stack(values, axis=1) for name, values in lists.items()}
        return RegressionDraws(stack(self.kept), stack(self.statistics), self.seconds, self.sweep)

    def _keep(self) -> None:
        for store, values in (
            (self.kept, self.sampler.log(self.state)),
            (self.statistics, self.sampler.statistics(self.state)),
        ):
            for name, value in values.items():
                store.setdefault(name, []).append(np.array(self.arrays.fetch(value)))

    def _refuse_lost_values(self) -> None:
        for name, value in self.state.items():
            if value.dtype.kind == "f" and not bool(self.arrays.xp.isfinite(value).all()):
                raise ModelError(
                    f"the chain has lost '{name}' at sweep {self.sweep}: a value is no longer finite; {LIKELY}"
                )
