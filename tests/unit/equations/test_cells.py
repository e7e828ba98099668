"""Cells of levels against their definition, record by record."""

import numpy as np
import pytest

from mmgibbs.equations.cells import Regressors, cells_of_levels
from mmgibbs.equations.structured import visits_of_levels


def example(seed, n=300, q=40, n_effects=2, n_patterns=5, covariates=True, weighted=True):
    """Records that meet some levels through both effects, some levels without records, and covariates, or none."""
    rng = np.random.default_rng(seed)
    levels = rng.integers(-1, q, (n, n_effects)).astype(np.int32)
    levels[levels == q // 2] = -1
    levels[::7] = levels[::7, :1]
    regressor_effect = np.sort(rng.integers(0, n_effects, 3)) if covariates else np.arange(n_effects)
    z = rng.normal(size=(n, regressor_effect.size)) if covariates else np.empty((0, regressor_effect.size))
    weight = rng.uniform(0.5, 2, n).astype(np.float32) if weighted else np.empty(0, np.float32)
    pattern = rng.integers(0, n_patterns, n).astype(np.min_scalar_type(n_patterns))
    return levels, (visits_of_levels(levels, q), Regressors(regressor_effect, z), pattern, weight, n_patterns)


def by_definition(levels, data):
    visits, (regressor_effect, covariates), pattern, weight, _ = data
    found = []
    for level in range(visits.ptr.size - 1):
        own = {}
        for r in range(len(levels)):
            if level not in levels[r]:
                continue
            z = np.array([float(levels[r, e] == level) for e in regressor_effect])
            z = z * covariates[r] if covariates.size else z
            own.setdefault(pattern[r], []).append((weight[r] if weight.size else 1.0) * np.outer(z, z))
        found.append({int(p): sum(s) for p, s in own.items()})
    return found


HOW = [{}, {"covariates": False}, {"weighted": False}, {"n_effects": 1}, {"n_patterns": 1}, {"n_patterns": 700}]


@pytest.mark.parametrize("how", HOW)
def test_cells_are_sums_over_the_records_of_a_level(how):
    """The patterns of a level in the order in which its records bring them."""
    levels, data = example(3, **how)
    found, expected = cells_of_levels(*data), by_definition(levels, data)
    assert found.ptr[-1] == len(found.pattern) == len(found.sums)
    for level, own in enumerate(expected):
        here = slice(int(found.ptr[level]), int(found.ptr[level + 1]))
        assert found.pattern[here].tolist() == list(own)
        np.testing.assert_allclose(found.sums[here], list(own.values()) or found.sums[:0], rtol=1e-12, atol=1e-14)


def test_levels_without_records_and_no_levels():
    data = Regressors(np.arange(1), np.empty((0, 1))), np.empty(0, np.uint8), np.empty(0), 1
    for q in (0, 3):
        found = cells_of_levels(visits_of_levels(np.empty((0, 1), np.int32), q), *data)
        assert found.ptr.tolist() == [0] * (q + 1) and found.sums.shape == (0, 1, 1)


def test_a_record_that_two_levels_meet_one_after_the_other_is_two_meetings():
    visits, regressors = visits_of_levels(np.array([[0, 1]], np.int32), 2), Regressors(np.arange(2), np.empty((0, 2)))
    found = cells_of_levels(visits, regressors, np.zeros(1, np.uint8), np.empty(0), 1)
    np.testing.assert_array_equal(found.sums, [np.diag([1.0, 0.0]), np.diag([0.0, 1.0])])
