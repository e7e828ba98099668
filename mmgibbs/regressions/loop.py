"""The chains of a regression, side by side: sweep, keep, until done.

What it holds between sweeps is what a checkpoint stores.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from mmgibbs.errors import ModelError
from mmgibbs.machine.threads import blas_threads
from mmgibbs.regressions.arrays.base import Arrays
from mmgibbs.regressions.options import OptionsClass
from mmgibbs.regressions.protocol import Array, Keys, Plugin, RegressionData, RegressionDraws, Sampler, State
from mmgibbs.sampler.loop import ResumableChain
from mmgibbs.sampler.schedule import Schedule

LIKELY = (
    "most likely the posterior is improper, the predictors leave nothing of the response, or a predictor's scale is "
    "extreme; needed a proper prior, or standardised predictors"
)
SINGULAR = (
    "a matrix of the predictors has no Cholesky factor: most likely a column is a sum of others, or its scale is "
    "extreme; needed independent columns, standardised predictors, or a proper prior"
)
KEPT, STATISTICS = "kept.", "statistics."  # of the names of kept draws and facts of sweeps in a state


def prepared_sampler(plugin: Plugin, data: RegressionData, options: OptionsClass, arrays: Arrays) -> Sampler:
    """The plugin's sampler of these data. ModelError where a matrix of them cannot be factored."""
    try:
        with blas_threads(getattr(arrays, "threads", None)):
            return plugin.prepare(data, options, arrays)
    except np.linalg.LinAlgError:
        raise ModelError(SINGULAR) from None


class SideBySideChains(ResumableChain):
    """All chains of a regression as one that can pause: arrays have the chains first, (C, ...).

    `burn_in` sweeps are thrown away, then every `thin`-th is kept, for as long as the chains advance. They continue
    from their state in new SideBySideChains of the same sampler, arrays and keys.
    """

    def __init__(
        self,
        sampler: Sampler,
        arrays: Arrays,
        keys: Keys,
        burn_in: int,
        thin: int = 1,
        state: dict[str, np.ndarray] | None = None,
    ):
        super().__init__(Schedule(burn_in, 0, thin))
        self.sampler, self.arrays, self.keys = sampler, arrays, keys
        self.kept: dict[str, list[np.ndarray]] = {}
        self.statistics: dict[str, list[np.ndarray]] = {}
        with self._limit_threads():
            sampler.adapt_until(burn_in)
            self.current: State = sampler.start(keys)
        if state is not None:
            self._restore(state)

    def state(self) -> dict[str, np.ndarray]:
        """Named host arrays: sweep, seconds, state and what was kept."""
        state = {f"state.{name}": self.arrays.fetch(value) for name, value in self.current.items()}
        kept = {f"{KEPT}{name}": np.array(values) for name, values in self.kept.items()}
        statistics = {f"{STATISTICS}{name}": np.array(values) for name, values in self.statistics.items()}
        return {"sweep": np.array(self.number), "seconds": np.array(self.seconds), **state, **kept, **statistics}

    def draws(self) -> dict[str, np.ndarray]:
        """Current values of all parameters, (C, ...) each, on the user's scale."""
        return {name: self._host(value) for name, value in self.sampler.log(self.current).items()}

    def result(self) -> RegressionDraws:
        """The kept draws so far, (C, draws, ...), and facts of sweeps that are known of all of them: a run that
        continues on another device may have others there.
        """
        stack = lambda lists: {name: np.stack(values, axis=1) for name, values in lists.items()}
        n_kept = max(map(len, self.kept.values()), default=0)
        complete = {name: values for name, values in self.statistics.items() if len(values) == n_kept}
        return RegressionDraws(stack(self.kept), stack(complete), self.seconds, self.number)

    def _limit_threads(self) -> AbstractContextManager[Any]:
        return blas_threads(getattr(self.arrays, "threads", None))

    def _restore(self, state: dict[str, np.ndarray]) -> None:
        under = lambda prefix: {name.removeprefix(prefix): v for name, v in state.items() if name.startswith(prefix)}
        self.number, self._seconds = int(state["sweep"]), float(state["seconds"])
        self.current = {name: self.arrays.asarray(value) for name, value in under("state.").items()}
        self.kept = {name: list(values) for name, values in under(KEPT).items()}
        self.statistics = {name: list(values) for name, values in under(STATISTICS).items()}

    def _sweep(self, number: int) -> dict[str, float]:
        try:
            self.current = self.sampler.step(self.current, number, self.keys)
        except np.linalg.LinAlgError:
            raise ModelError(
                f"the chain cannot continue at sweep {number}: a matrix has no Cholesky factor; {LIKELY}"
            ) from None
        return {}

    def _keep(self, _facts: Mapping[str, float]) -> None:
        self._record(self.current)

    def _record(self, state: State) -> None:
        """Append a kept draw, fetched at once."""
        draws, statistics = self.sampler.log(state), self.sampler.statistics(state)
        named = {f"{KEPT}{name}": value for name, value in draws.items()} | {
            f"{STATISTICS}{name}": value for name, value in statistics.items()
        }
        values = self.arrays.fetch_all(named)
        for prefix, store in ((KEPT, self.kept), (STATISTICS, self.statistics)):
            for name, value in values.items():
                if name.startswith(prefix):
                    store.setdefault(name.removeprefix(prefix), []).append(np.array(value))

    def _host(self, value: Array) -> np.ndarray:
        return np.array(self.arrays.fetch(value))

    def _refuse_lost_values(self) -> None:
        for name, value in self.current.items():
            if value.dtype.kind == "f" and not bool(self.arrays.xp.isfinite(value).all()):
                raise ModelError(
                    f"the chain cannot continue after sweep {self.number}: a value of '{name}' is no longer finite; "
                    f"{LIKELY}"
                )
