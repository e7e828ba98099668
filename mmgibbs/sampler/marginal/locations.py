"""Draws of all locations given the variances, exactly, in the sweeps that are kept."""

from __future__ import annotations

import numpy as np

from mmgibbs.engines.base import Engine
from mmgibbs.posterior.parameters import Parameter
from mmgibbs.sampler.schedule import Schedule


class KeptLocations:
    """Theta | psi, y. No other step looks at theta, so that it is not drawn where it is not kept, and is no part of
    what a chain continues from."""

    parameters: dict[str, Parameter] = {}

    def __init__(self, engine: Engine, schedule: Schedule, key: tuple[int, int]):
        self.engine, self.schedule, self.key = engine, schedule, key

    def __call__(self, number: int) -> None:
        if self.schedule.keeps(number):
            self.engine.sweep(number, self.key)

    def draws(self) -> dict[str, np.ndarray]:
        return {}

    def state(self) -> dict[str, np.ndarray]:
        return {}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        pass
