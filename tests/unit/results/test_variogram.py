"""The sample variogram against its definition, pair by pair."""

import numpy as np
import pytest

from mmgibbs.results.field import sample_variogram


def plain(row, column, z):
    """(rows apart, columns apart) -> (pairs, semivariance)."""
    out = {}
    for i in range(len(z)):
        for j in range(i):
            if np.isfinite(z[i]) and np.isfinite(z[j]):
                of = out.setdefault((abs(row[i] - row[j]), abs(column[i] - column[j])), [])
                of.append((z[i] - z[j]) ** 2 / 2)
    return {key: (len(values), np.mean(values)) for key, values in out.items()}


@pytest.mark.parametrize(("rows", "columns", "kept"), [(5, 7, 0.8), (4, 1, 1.0), (1, 6, 1.0), (3, 3, 0.4)])
def test_it_is_half_the_mean_squared_difference_by_displacement(rows, columns, kept):
    rng = np.random.default_rng(rows)
    row, column = (values.ravel() + 3 for values in np.indices((rows, columns)))
    chosen = rng.permutation(np.flatnonzero(rng.random(row.size) < kept))
    row, column, z = row[chosen], column[chosen], 1e6 + rng.normal(size=chosen.size)
    z[0] = np.nan
    known = plain(row, column, z)
    variogram = sample_variogram(row, column, z)
    assert {(d, c): m for d, c, m, _ in variogram.iter_rows()} == {key: m for key, (m, _) in known.items()}
    for d, c, _, v in variogram.iter_rows():
        np.testing.assert_allclose(v, known[d, c][1], rtol=1e-8, atol=1e-9)


def test_without_values_there_are_no_displacements():
    row = np.arange(3)
    assert sample_variogram(row, row, np.full(3, np.nan)).height == 0
    assert sample_variogram(row[:1], row[:1], np.ones(1)).height == 0
