"""The chains of a regression whose sampler has kernels of its own on a GPU."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeGuard

import numpy as np

from mmgibbs.machine.device import Device
from mmgibbs.regressions.arrays.base import Arrays, Host
from mmgibbs.regressions.loop import SideBySideChains
from mmgibbs.regressions.protocol import DeviceSampler, Keys, RegressionDraws, Sampler


def has_device_kernels(sampler: Sampler) -> TypeGuard[DeviceSampler]:
    """Check whether a GPU runs kernels of this sampler; array operations otherwise."""
    return isinstance(sampler, DeviceSampler) and sampler.has_kernels


def make_chains(
    sampler: Sampler,
    arrays: Arrays,
    keys: Keys,
    burn_in: int,
    thin: int = 1,
    state: dict[str, np.ndarray] | None = None,
) -> SideBySideChains:
    """Make the chains of a sampler where its arrays live."""
    if arrays.cuda is not None and has_device_kernels(sampler):
        return ChainsOnDevice(sampler, arrays.cuda, keys, burn_in, thin, state)
    return SideBySideChains(sampler, arrays, keys, burn_in, thin, state)


class ChainsOnDevice(SideBySideChains):
    """`SideBySideChains` whose sweeps a device does.

    The state is brought over when it is asked for, and kept draws by way of a ring, many at a time. Checkpoints are
    those of the host: a run continues on either.
    """

    def __init__(
        self,
        sampler: DeviceSampler,
        device: Device,
        keys: Keys,
        burn_in: int,
        thin: int = 1,
        state: dict[str, np.ndarray] | None = None,
    ):
        super().__init__(sampler, Host(1), keys, burn_in, thin, state)
        self.chains = sampler.plan_device_chains(keys, burn_in, thin).open(device)
        self.chains.load(self.current, self.number)

    def state(self) -> dict[str, np.ndarray]:
        """See SideBySideChains.state."""
        self._fetch_results()
        return super().state()

    def draws(self) -> dict[str, np.ndarray]:
        """See SideBySideChains.draws."""
        self._fetch_results()
        return super().draws()

    def result(self) -> RegressionDraws:
        """See SideBySideChains.result."""
        self._fetch_results()
        return super().result()

    def _fetch_results(self) -> None:
        self.current = self.chains.fetch()
        for state in self.chains.take_kept():
            self._record(state)

    def _sweep(self, _number: int) -> dict[str, float]:
        self.chains.sweep()
        return {}

    def _keep(self, _facts: Mapping[str, float]) -> None:
        self.chains.ring.count()

    def _refuse_lost_values(self) -> None:
        self._fetch_results()
        super()._refuse_lost_values()
