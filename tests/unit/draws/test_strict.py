"""Draws state their own fastmath flags: those of a caller once made log wrong by 0.09, for all others too."""

from importlib import import_module

from helpers.support import ROOT
from numba import njit
from numba.extending import is_jitted


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
