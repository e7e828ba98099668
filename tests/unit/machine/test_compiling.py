"""A fit that compiles kernels says so, where somebody waits for it, and otherwise keeps quiet."""

import sys

import numpy as np
import pytest
from numba import njit
from numba.core import event

import mmgibbs
from mmgibbs.machine import compiling


class Clock:
    """Every look at it is a second later."""

    now = 0.0

    def monotonic(self):
        self.now += 1
        return self.now


def compiled():
    """A kernel that calls another, compiled now."""
    inner = njit(lambda x: x + 1.5)
    return njit(lambda x: inner(x) + inner(2 * x))(1.0)


@pytest.mark.parametrize("patience, told", [(0.0, 1), (2.5, 1), (1e6, 0)])
def test_compiling_that_takes_long_is_told_once(patience, told, monkeypatch):
    monkeypatch.setattr(compiling, "time", Clock())
    monkeypatch.setattr(compiling, "PATIENCE", patience)
    said = []
    with compiling.telling_of_compiling(said.append):
        assert compiled() == 6.0
        compiled()
    assert said == [compiling.SAID] * told


def test_nobody_hears_of_what_is_compiled_elsewhere(monkeypatch):
    monkeypatch.setattr(compiling, "PATIENCE", 0.0)
    said = []
    with compiling.telling_of_compiling(said.append):
        pass
    compiled()
    assert said == []


def test_what_another_thread_began_before_is_not_counted(monkeypatch):
    clock = Clock()
    clock.now = 1e6  # as if the machine had been up for long
    monkeypatch.setattr(compiling, "time", clock)
    monkeypatch.setattr(compiling, "PATIENCE", 1e3)
    said = []
    with compiling.telling_of_compiling(said.append):
        event.end_event("numba:compile")
        compiled()
    assert said == []


@pytest.mark.parametrize("session, progress, heard", [(True, False, 1), (False, True, 1), (False, False, 0)])
def test_a_fit_says_that_it_compiles_at_a_prompt_or_with_progress(session, progress, heard, monkeypatch, capsys):
    """Whatever the kernels of the fit: here all are announced as if each took a minute."""
    if session:
        monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    else:
        monkeypatch.delattr(sys, "ps1", raising=False)
    monkeypatch.setattr(compiling, "PATIENCE", -1.0)
    plain = mmgibbs.BayesianLasso.plugin.prepare

    def prepare(data, options, arrays):
        with event.trigger_event("numba:compile"):
            return plain(data, options, arrays)

    monkeypatch.setattr(mmgibbs.BayesianLasso.plugin, "prepare", staticmethod(prepare))
    X = np.random.default_rng(1).normal(size=(20, 2))
    mmgibbs.BayesianLasso(chains=1, burn_in=1, samples=4, progress=progress).fit(X, X[:, 0] + X[:, 1] ** 2)
    assert capsys.readouterr().err.count(compiling.SAID) == heard
