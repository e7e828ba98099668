"""Draws of all locations given the covariance matrices: a sweep of the engine."""

from __future__ import annotations

import numpy as np

from mmgibbs.engines.base import Engine
from mmgibbs.engines.device_sweep import DeviceVariances, VariancePlan
from mmgibbs.errors import VersionError
from mmgibbs.posterior.parameters import Parameter
from mmgibbs.sampler.covariances import CovarianceMatrices

PREFIX = "engine."  # of the engine's own names in a checkpoint
ORDER = "order"  # of the levels and records in them


class Locations:
    """Theta | G, R, y. Every `refresh_every` sweeps the residuals are computed anew, and rounding drift ends.

    Their draws are millions: they are followed (posterior/tracked.py), not logged.
    """

    parameters: dict[str, Parameter] = {}

    def __init__(self, engine: Engine, matrices: CovarianceMatrices, key: tuple[int, int], refresh_every: int):
        self.engine, self.matrices, self.key, self.refresh_every = engine, matrices, key, refresh_every

    def __call__(self, number: int) -> dict[str, float] | None:
        self.matrices.give(self.engine)
        facts = self.engine.sweep(number, self.key)
        if number % self.refresh_every == 0:
            self.engine.refresh()
        return facts

    can_launch = True

    def add_to_plan(self, plan: VariancePlan) -> None:
        """Add this step to the plan: see resident.DeviceStep."""

    def launch(self, variances: DeviceVariances) -> None:
        """Launch this step: see resident.DeviceStep."""
        variances.launch_locations()

    def draws(self) -> dict[str, np.ndarray]:
        return {}

    def state(self) -> dict[str, np.ndarray]:
        return {PREFIX + name: array for name, array in self.engine.state().items()} | {
            ORDER: self.engine.equations.order
        }

    def restore(self, state: dict[str, np.ndarray]) -> None:
        if state[ORDER] != self.engine.equations.order:
            raise VersionError(
                f"chain {self.key[1] + 1}: its checkpoint has levels or records in another order than this version "
                "sweeps them: another version of mmgibbs wrote it; needed that version, or a new run"
            )
        self.engine.restore({n.removeprefix(PREFIX): a for n, a in state.items() if n.startswith(PREFIX)})
