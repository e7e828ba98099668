"""Chains that share a device, in threads of one process."""

import threading

import numpy as np
import pytest

from mmgibbs.errors import ModelError
from mmgibbs.machine.shared_arrays import SharedArrays
from mmgibbs.runs.chains import ChainFactory, run_chains
from mmgibbs.runs.local import LocalExecutor
from mmgibbs.sampler.loop import ResumableChain
from mmgibbs.sampler.schedule import Schedule


class Counting(ResumableChain):
    """A chain whose result is the number of its sweeps."""

    def __init__(self, factory, chain, beside):
        super().__init__(factory.schedule)
        self.factory, self.chain, self.beside = factory, chain, beside

    def _sweep(self, number):
        self.factory.sweep(self, number)
        return {}

    def _keep(self, facts): ...

    def state(self):
        return {"number": np.array(self.number)}

    def draws(self):
        return {}

    def result(self):
        return self.number


class Factory(ChainFactory):
    device, prefix_of_draws, shared_bytes = "gpu", "draws.", 0

    def __init__(self, at_once, sweep=lambda chain, number: None, chains=3, sweeps=50):
        self.at_once, self.sweep, self.schedule = at_once, sweep, Schedule(0, sweeps, chains=chains)
        self.started = []

    @property
    def names(self):
        return tuple(f"chain-{c + 1}" for c in range(self.schedule.chains))

    labels = names

    @property
    def chains_at_once(self):
        return self.at_once

    def start(self, chain, state, beside=None):
        self.started.append(Counting(self, chain, beside))
        return self.started[-1]


def test_chains_meet_in_every_sweep():
    """Each waits for the others: they would stand still for ever, one after another."""
    together = threading.Barrier(3, timeout=30)
    factory = Factory(3, lambda chain, number: together.wait())
    executor = LocalExecutor()
    assert run_chains(factory, executor) == [50, 50, 50]
    assert [chain.beside for chain in factory.started] == [None, factory.started[0], factory.started[0]]
    assert executor.facts == {"processes": 1, "chains_at_once": 3}


def test_where_one_chain_fails_the_others_end():
    reached, failed = threading.Event(), threading.Event()

    def sweep(chain, number):
        if chain.chain == 1 and number == 3:
            reached.wait(30)
            failed.set()
            raise ModelError("chain 2: a level cannot be drawn")
        if chain.chain == 0 and number == 2:
            reached.set()
            failed.wait(30)
        if number > 2 and chain.chain != 1:
            threading.Event().wait(0.01)

    factory = Factory(3, sweep, sweeps=3000)
    with pytest.raises(ModelError, match="chain 2: a level"):
        run_chains(factory, LocalExecutor())
    assert all(chain.number < 3000 for chain in factory.started)


def test_an_array_is_uploaded_by_the_first_who_needs_it():
    class Queue:
        waits = 0

        def synchronize(self):
            self.waits += 1

    shared, uploads = SharedArrays(Queue()), []
    upload = lambda: uploads.append(None) or np.zeros(len(uploads))
    first = shared.find("lists", upload)
    assert shared.find("lists", upload) is first
    assert shared.find("other lists", upload) is not first and len(uploads) == 2
