"""log, exp, cos and sin of the draws against 80-bit arithmetic, in units of the spacing of doubles."""

import numpy as np
import pytest

from mmgibbs.draws import elementary as el
from mmgibbs.pedigree.kernels import kernel


@kernel  # kept for these sources alone: Numba's own cache would not see a change of what is called
def _apply(which, x, first, second):
    for i in range(x.size):
        if which == 0:
            first[i] = el.log(x[i])
        elif which == 1:
            first[i] = el.exp(x[i])
        else:
            first[i], second[i] = el.cos_sin_turns(x[i])


def apply(which, x):
    first, second = np.empty_like(x), np.empty_like(x)
    _apply(which, x, first, second)
    return first, second


def worst(found, exact):
    return np.max(np.abs((found.astype(np.longdouble) - exact) / np.spacing(np.abs(exact.astype(np.float64)))))


@pytest.fixture
def rng():
    if np.finfo(np.longdouble).nmant < 63:
        pytest.skip("needs 80-bit long doubles, which this processor does not have")
    return np.random.default_rng(8)


def test_log(rng):
    x = np.concatenate(
        [rng.random(50_000), 1 - 10.0 ** rng.uniform(-16, -1, 50_000), 1 + 10.0 ** rng.uniform(-15, 0, 50_000),
         10.0 ** rng.uniform(-307, 308, 50_000), [2.0**-53, 1.0, np.sqrt(0.5), np.sqrt(2.0), 2.3e-308, 1.7e308]]
    )  # fmt: skip
    assert worst(apply(0, x)[0], np.log(x.astype(np.longdouble))) < 1.0
    assert el.log(1.0) == 0.0


def test_exp(rng):
    x = np.concatenate(
        [rng.uniform(-708, 709, 50_000), rng.uniform(-1, 1, 50_000), 10.0 ** rng.uniform(-20, 0, 20_000)]
    )
    assert worst(apply(1, x)[0], np.exp(x.astype(np.longdouble))) < 1.0
    ends = np.array([-np.inf, -1e4, -745.3, -740.0, 0.0, 709.7, 709.8, 1e4, np.inf, np.nan])
    with np.errstate(over="ignore", under="ignore"):
        np.testing.assert_allclose(apply(1, ends)[0], np.exp(ends), rtol=3e-16, atol=5e-324)


def test_cos_and_sin(rng):
    u = np.concatenate(
        [rng.random(50_000), 10.0 ** rng.uniform(-17, -1, 20_000), np.arange(9) / 8, [2.0**-53, 1 - 2.0**-53]]
    )
    quarter = np.rint(4 * u)
    rest = (4 * u - quarter).astype(np.longdouble) * (np.longdouble("3.14159265358979323846264338327950288") / 2)
    c, s = np.cos(rest), np.sin(rest)
    turn = quarter.astype(int) % 4
    exact_cos = np.choose(turn, [c, -s, -c, s])
    exact_sin = np.choose(turn, [s, c, -s, -c])
    found_cos, found_sin = apply(2, u)
    assert worst(found_cos, exact_cos) < 2.0
    assert worst(found_sin, exact_sin) < 2.0
