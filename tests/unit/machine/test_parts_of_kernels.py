"""Functions that kernels alone call stay code to be put into these; what kernels do does not change by that."""

import subprocess
import sys
from textwrap import dedent

import numpy as np
import pytest
from numba import njit

from mmgibbs.machine.kernel_options import ENTRY, WITHIN
from pedigree import parts_of_kernels
from pedigree.parts_of_kernels import PartOfKernel


@njit(**WITHIN)
def _halved(x):
    if x < 0.0:
        raise ValueError("found a number below 0")
    return 0.5 * x


@njit(**ENTRY)
def _sum_of_halves(x):
    total = 0.0
    for i in range(x.size):
        total += _halved(x[i])
    return total


def translated(function):
    """What of a function became machine code: the lines of LLVM code that begin a function."""
    (code,) = function.inspect_llvm().values()
    return [line for line in code.splitlines() if line.startswith("define")]


def test_a_part_has_no_machine_code_and_its_kernel_has():
    assert _sum_of_halves(np.arange(5.0)) == 5.0
    assert translated(_halved) == []
    assert any("_sum_of_halves" in line for line in translated(_sum_of_halves))


def test_an_error_of_a_part_reaches_the_caller():
    with pytest.raises(ValueError, match="below 0"):
        _sum_of_halves(np.array([1.0, -1.0]))


def test_a_plain_function_has_machine_code():
    """What the first test sees is the doing of PartOfKernel."""
    options = {key: value for key, value in WITHIN.items() if key != "pipeline_class"}
    plain = njit(**options)(_halved.py_func)
    assert WITHIN["pipeline_class"] is PartOfKernel

    @njit(**ENTRY)
    def kernel(x):
        return plain(x)

    assert kernel(3.0) == 1.5
    assert translated(plain)


MODULE = """
    import numpy as np
    from numba import njit
    from mmgibbs.machine.kernel_options import ENTRY, WITHIN

    @njit(cache=True, **WITHIN)
    def third(x):
        if x > 100.0:
            raise ValueError("too large")
        return x / 3.0

    @njit(cache=True, **ENTRY)
    def one(x):
        return third(x) + 1.0

    @njit(cache=True, **ENTRY)
    def two(x):
        return third(x) + 2.0
"""
ASK = """
    import sys
    import kernels
    print(getattr(kernels, sys.argv[1])(6.0), sum(kernels.third.stats.cache_hits.values()))
    try:
        getattr(kernels, sys.argv[1])(600.0)
    except ValueError as error:
        print(error)
"""


def test_a_part_that_was_kept_is_put_into_a_new_kernel(tmp_path, monkeypatch):
    """One process compiles part and kernel, the next a kernel with the part of the first, the third reads both."""
    (tmp_path / "kernels.py").write_text(dedent(MODULE))
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "kept"))

    def ask(kernel):
        found = subprocess.run(
            [sys.executable, "-c", dedent(ASK), kernel], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        return found.stdout.split("\n")[:2]

    assert ask("one") == ["3.0 0", "too large"]
    assert ask("two") == ["4.0 1", "too large"]
    assert ask("two") == ["4.0 0", "too large"]  # which contains the part


def test_a_numba_without_what_this_builds_on_compiles_parts_as_any_function(monkeypatch):
    monkeypatch.setattr(parts_of_kernels, "_KNOWN", False)

    @njit(**WITHIN)
    def doubled(x):
        return 2.0 * x

    @njit(**ENTRY)
    def kernel(x):
        return doubled(x) + 1.0

    assert kernel(3.0) == 7.0 and any("doubled" in line for line in translated(doubled))
