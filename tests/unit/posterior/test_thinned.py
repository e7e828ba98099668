"""Some draws of a long vector: evenly spaced, at most so many, and the same in pieces."""

import numpy as np
import pytest

from mmgibbs.posterior.thinned import ThinnedDraws


def filled(n, most, size=3):
    kept = ThinnedDraws(most, size)
    for i in range(1, n + 1):
        kept.add_vector(np.full(size, float(i)))
    return kept


@pytest.mark.parametrize("most", [1, 5, 8])
@pytest.mark.parametrize("n", [0, 1, 4, 8, 9, 16, 17, 100])
def test_draws_are_evenly_spaced_and_at_most_so_many(n, most):
    kept = filled(n, most)
    number = kept.pool([]).number
    np.testing.assert_array_equal(kept.draws[:, 0], number)
    assert number.size == n if n <= most else most / 2 <= number.size + 1 and number.size <= most
    assert set(np.diff(number)) <= {kept.stride} and kept.draws.shape == (number.size, 3)


def test_they_do_not_depend_on_where_a_chain_was_stopped():
    whole, first = filled(100, 8), filled(37, 8)
    rest = ThinnedDraws(8, 3)
    rest.restore({name: array.copy() for name, array in first.state().items()})
    for i in range(38, 101):
        rest.add_vector(np.full(3, float(i)))
    for name, array in whole.state().items():
        np.testing.assert_array_equal(array, rest.state()[name])
