"""`python -m benchmarks.memory`: every step can be done, and adds what it says."""

import sys

import pytest

from benchmarks.memory import SAMPLED, STEPS, measure_steps


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc, which only Linux has")
def test_each_step_adds_memory():
    sizes = measure_steps(STEPS | SAMPLED)
    assert list(sizes) == [*STEPS, *SAMPLED]
    assert all(size > 0.2 for size in sizes.values()), "something before it imports the same"
    assert sum(sizes.values()) < 440  # MB; 401 with the libraries of November 2026
