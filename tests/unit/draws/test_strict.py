"""Draws stay exact under a caller that allows inexact arithmetic.

A function compiled for such a caller takes over its fastmath flags unless it states its own, and is then cached for all
others: log came out wrong by 0.09 everywhere.
"""

import subprocess
import sys
from importlib import import_module

import pytest
from helpers.support import ROOT
from numba import njit
from numba.extending import is_jitted

CALLER = """
import numpy as np
from numba import njit
from mmgibbs.draws.elementary import exp, log

@njit(fastmath={"reassoc", "contract", "nsz"})
def loose(x):
    return log(x) + exp(x)

loose(0.7)

@njit
def strict(x):
    return log(x), exp(x)

print(abs(strict(0.7)[0] - np.log(0.7)) < 1e-15 and abs(strict(0.7)[1] - np.exp(0.7)) < 1e-15)
"""


@pytest.mark.slow
def test_a_loose_caller_does_not_spoil_log_and_exp(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    done = subprocess.run([sys.executable, "-c", CALLER], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.strip() == "True", done.stderr


def not_strict(functions):
    """Names of those that may take over their callers' inexact arithmetic, or have some of their own."""
    return [f.__name__ for f in functions if f.targetoptions.get("fastmath") is not False]


def test_every_compiled_draw_states_that_it_is_strict():
    names = [f"mmgibbs.draws.{p.stem}" for p in sorted((ROOT / "mmgibbs" / "draws").glob("*.py"))]
    modules = [import_module(name) for name in names if not name.endswith("__init__")]
    functions = {f for m in modules for f in vars(m).values() if is_jitted(f)}
    assert len(functions) > 30
    assert not_strict(functions) == []


def test_a_draw_that_does_not_is_seen():
    def draw(x):
        return x

    assert not_strict([njit(draw), njit(fastmath=True)(draw), njit(fastmath=False)(draw)]) == ["draw", "draw"]
