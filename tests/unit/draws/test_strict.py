"""Draws stay exact under a caller that allows inexact arithmetic.

A function compiled for such a caller takes over its fastmath flags unless it states its own, and is then cached for all
others: log came out wrong by 0.09 everywhere.
"""

import ast
import subprocess
import sys

from helpers.compiled import decorator
from helpers.support import ROOT

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


def test_a_loose_caller_does_not_spoil_log_and_exp(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    done = subprocess.run([sys.executable, "-c", CALLER], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.strip() == "True", done.stderr


def test_every_compiled_draw_states_that_it_is_strict():
    functions = [
        (p.name, f)
        for p in sorted((ROOT / "mmgibbs" / "draws").glob("*.py"))
        for f in ast.walk(ast.parse(p.read_text()))
        if isinstance(f, ast.FunctionDef) and any(decorator(d) == "njit" for d in f.decorator_list)
    ]
    assert len(functions) > 30
    assert [(p, f.name) for p, f in functions if "fastmath=False" not in ast.unparse(f.decorator_list[0])] == []
