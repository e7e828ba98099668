"""A fit that compiles kernels says so, where somebody waits for it, and otherwise keeps quiet."""

import sys
import time

import numpy as np
import pytest

import mmgibbs
from mmgibbs.machine import compiling


class Store:
    """Of so many kernels, as it were, from the second look on."""

    is_lasting = True

    def __init__(self, compiled=0):
        self.looks, self.compiled = 0, compiled

    def itself(self):
        return self

    @property
    def n_compiled(self):
        self.looks += 1
        return self.compiled if self.looks > 1 else 0


@pytest.mark.parametrize("delay, compiled, told", [(0.01, 2, 1), (0.01, 0, 0), (60.0, 2, 0)])
def test_compiling_that_takes_long_is_told_once(delay, compiled, told, monkeypatch):
    monkeypatch.setattr(compiling, "kernel_store", Store(compiled).itself)
    monkeypatch.setattr(compiling, "DELAY_SECONDS", delay)
    said = []
    with compiling.announce_compiling(said.append):
        time.sleep(0.3)
    assert said == [compiling.compiling_message("fit")] * told


def test_the_message_says_what_to_do_where_kernels_cannot_be_kept(monkeypatch):
    store = Store()
    monkeypatch.setattr(compiling, "kernel_store", lambda: store)
    assert compiling.compiling_message().endswith("later runs use them again")
    store.is_lasting = False
    assert compiling.compiling_message().endswith("set NUMBA_CACHE_DIR to a folder that can be written")


@pytest.mark.parametrize("session, progress, heard", [(True, False, 1), (False, True, 1), (False, False, 0)])
def test_a_fit_says_that_it_compiles_at_a_prompt_or_with_progress(session, progress, heard, monkeypatch, capsys):
    if session:
        monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    else:
        monkeypatch.delattr(sys, "ps1", raising=False)
    monkeypatch.setattr(compiling, "kernel_store", Store(3).itself)
    monkeypatch.setattr(compiling, "DELAY_SECONDS", 0.01)
    plain = mmgibbs.BayesianLasso.plugin.prepare

    def prepare(data, options, arrays):
        time.sleep(0.3)
        return plain(data, options, arrays)

    monkeypatch.setattr(mmgibbs.BayesianLasso.plugin, "prepare", staticmethod(prepare))
    X = np.random.default_rng(1).normal(size=(20, 2))
    mmgibbs.BayesianLasso(chains=1, burn_in=1, samples=4, progress=progress).fit(X, X[:, 0] + X[:, 1] ** 2)
    assert capsys.readouterr().err.count(compiling.compiling_message("fit")) == heard
