"""Small cases of the kernels on a real device: the draws that a compiler for the CPU made of the same text."""

import pytest

from benchmarks.recorded import CASES, compare

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("name", CASES)
def test_draws_are_those_recorded(name, device):
    print(compare(name, CASES[name].draw(device)))
