"""What draws of regressions are made of and returned in: the keys of several chains, and arrays of a device."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

Array = np.ndarray  # or cupy.ndarray, which can what a sampler asks of it


@dataclass(frozen=True)
class Keys:
    """The keys of the draws of C chains: (seed, chain) each."""

    seed: int
    chains: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.chains)
