"""Standard normals: their distribution, and the two ways of filling a matrix of them."""

import numpy as np
import pytest
from helpers.draw_batches import twin_draws
from helpers.goodness import agree, moment_z, transform_z
from scipy import special

from mmgibbs.draws.normal import fill_normals, fill_normals_range, fill_normals_transposed, normal
from mmgibbs.draws.purpose import LOCATION, stream

STREAM = stream(LOCATION, 2)


def comparisons(sample):
    z = sample(400_000)
    tails = [
        (np.mean(np.abs(z) > t) - 2 * special.ndtr(-t)) / np.sqrt(2 * special.ndtr(-t) / z.size)
        for t in (2.0, 3.0, 4.0)
    ]
    neighbours = np.mean(z[1:] * z[:-1]) * np.sqrt(z.size)  # of consecutive levels
    return [transform_z(special.ndtr(z[:100_000])), moment_z(z, 0.0, 1.0), [*tails, neighbours]]


def test_distribution_within_a_level_and_over_levels():
    def rows(n):
        out = np.empty((n // 4, 4))
        fill_normals_range(out, 7, 0, n // 4, STREAM, 1, 0)
        return out.ravel()

    assert agree(comparisons(rows))
    assert agree(comparisons(lambda n: rows(n).reshape(-1, 4).T.ravel()))


def test_wrong_twin_is_noticed(mutants):
    assert not agree(comparisons(lambda n: twin_draws(mutants, "normal", n)[:n]))


@pytest.mark.parametrize("k", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("m", [0, 1, 5, 256, 257, 1000])
def test_fills_give_the_normals_of_their_levels(m, k):
    rng = np.random.default_rng(m)
    levels = rng.integers(0, 2**31, m).astype(np.int32)
    out = np.full((m + 2, k), 9.0)
    fill_normals(out, 3, levels, STREAM, 8, 1)
    np.testing.assert_array_equal(out[m:], 9.0)
    for i in range(0, m, 37):
        assert out[i].tolist() == [normal(3, levels[i], STREAM, j, 8, 1) for j in range(k)]
    wide, by_range = np.full((m + 2, k), 9.0), np.full((m + 2, k), 9.0)
    fill_normals(wide, 3, np.arange(10, 10 + m), STREAM, 8, 1)
    fill_normals_range(by_range, 3, 10, m, STREAM, 8, 1)
    np.testing.assert_array_equal(wide, by_range)
    across = np.empty((k + k % 2, m))
    fill_normals_transposed(across, 3, np.arange(10, 10 + m), STREAM, 8, 1)
    np.testing.assert_array_equal(across[:k].T, wide[:m])


@pytest.mark.parametrize("shape", [(3, 2), (4, 513)])
def test_fills_refuse_what_does_not_fit(shape):
    with pytest.raises(ValueError, match="at most 512 columns"):
        fill_normals_range(np.empty(shape), 1, 0, 4, STREAM, 1, 1)
    with pytest.raises(ValueError, match="at most 512 columns"):
        fill_normals(np.empty(shape), 1, np.arange(4), STREAM, 1, 1)
