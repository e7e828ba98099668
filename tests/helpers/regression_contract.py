"""What every sampler of a regression promises: a pure step, and chains that do not depend on who else runs."""

from __future__ import annotations

import numpy as np

from mmgibbs.regressions.arrays.base import Host
from mmgibbs.regressions.protocol import Keys


def states(sampler, keys: Keys, sweeps: int) -> list[dict[str, np.ndarray]]:
    """The state before sweep 1 and after each sweep; a step that writes into the state it is given fails."""
    found = [sampler.start(keys)]
    for sweep in range(1, sweeps + 1):
        before = {name: value.copy() for name, value in found[-1].items()}
        new = sampler.step(found[-1], sweep, keys)
        assert new.keys() == before.keys() and all(len(v) == len(keys) for v in new.values())
        for name, value in before.items():
            assert np.array_equal(value, found[-1][name], equal_nan=True), f"the step wrote into '{name}'"
        found.append(new)
    return found


def assert_chains_are_their_own(make, sweeps: int = 5, chains: int = 3) -> None:
    """`make(threads)`: a sampler. Several chains at once, single chains, one and three threads: the same bits."""
    together = states(make(1), Keys(7, tuple(range(chains))), sweeps)[-1]
    threaded = states(make(3), Keys(7, tuple(range(chains))), sweeps)[-1]
    for name, values in together.items():
        assert np.array_equal(values, threaded[name]), f"threads change '{name}'"
    for c in range(chains):
        alone = states(make(1), Keys(7, (c,)), sweeps)[-1]
        for name, values in together.items():
            assert np.array_equal(values[c], alone[name][0]), f"the other chains change '{name}' of chain {c}"


class KnownNormals(Host):
    """Normals that are given: the i-th of all that a draw takes is 1, the others 0; none for i = -1."""

    def __init__(self, one):
        super().__init__(1)
        self.left = one

    def normals(self, keys, sweep, stream, n, k=1):
        z = np.zeros((len(keys), n))
        if 0 <= self.left < n:
            z[:, self.left] = 1
        self.left -= n
        return z
