"""The chains of a regression: all there is to start them, on whatever machine. They run side by side, so that the
predictors are read once for all of them, and are one resumable chain.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mmgibbs.machine.device import explain_device_errors
from mmgibbs.regressions.arrays.base import Arrays
from mmgibbs.regressions.device_chains import make_chains
from mmgibbs.regressions.device_memory import count_device
from mmgibbs.regressions.estimator import make_arrays
from mmgibbs.regressions.loop import KEPT, SideBySideChains, prepared_sampler
from mmgibbs.regressions.options import OptionsClass
from mmgibbs.regressions.protocol import Keys, RegressionData, Sampler
from mmgibbs.regressions.registry import find_plugin
from mmgibbs.runs.chains import ChainFactory
from mmgibbs.sampler.loop import ResumableChain
from mmgibbs.sampler.schedule import Schedule


@dataclass(frozen=True)
class RegressionFactory(ChainFactory):
    """Factory of all chains of a regression as one.

    The plugin is sent by its name, and is prepared in the process where the chains run, on any machine.
    """

    plugin: str
    data: RegressionData
    options: OptionsClass
    device: str
    threads: int | None
    schedule: Schedule
    seed: int

    names = ("chains",)  # their checkpoint holds all of them
    prefix_of_draws = KEPT

    @property
    def labels(self) -> tuple[str, ...]:
        return (f"{self.plugin}, {self.schedule.chains} chains",)

    @property
    def shared_bytes(self) -> int:
        return self.data.predictors.values.nbytes

    @cached_property
    def prepared(self) -> tuple[Sampler, Arrays]:
        """The plugin's sampler and the arrays that it works with.

        ConfigError for a plugin that is not installed here.
        """
        arrays = make_arrays(self.device, self.threads)
        with explain_device_errors():
            return prepared_sampler(find_plugin(self.plugin), self.data, self.options, arrays), arrays

    def __getstate__(self) -> dict:
        return {name: value for name, value in vars(self).items() if name != "prepared"}

    @property
    def keys(self) -> Keys:
        return Keys(self.seed, tuple(range(self.schedule.chains)))

    def count_device(self) -> dict[str, Any] | None:
        """Count what `mmgibbs check` prints of a GPU; None on the CPU.

        DeviceError is raised where the chains do not fit into the free memory of the device.
        """
        sampler, arrays = self.prepared
        if arrays.cuda is None:
            return None
        return count_device(sampler, self.data, arrays.cuda, self.keys, self.schedule.burn_in, self.schedule.thin)

    def start(
        self, chain: int, state: dict[str, np.ndarray] | None, beside: ResumableChain | None = None
    ) -> SideBySideChains:
        return make_chains(*self.prepared, self.keys, self.schedule.burn_in, self.schedule.thin, state)

    def kept_draws(self, state: Mapping[str, np.ndarray]) -> list[dict[str, np.ndarray]]:
        (draws,) = super().kept_draws(state)
        chains = range(self.schedule.chains if draws else 0)
        return [{name: values[:, c] for name, values in draws.items()} for c in chains]
