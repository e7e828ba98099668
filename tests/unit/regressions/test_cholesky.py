"""Cholesky factors over threads: those of LAPACK, whatever the size and the number of threads."""

import numpy as np
import pytest

from mmgibbs.regressions.arrays import base as arrays
from mmgibbs.regressions.arrays import cholesky
from mmgibbs.regressions.arrays.base import Host


def positive_definite(C, m):
    """Diagonals from 1e-3 to 1e12, as precisions of the horseshoe have."""
    rng = np.random.default_rng(m)
    X = rng.standard_normal((C, m, 2 * m))
    A = X @ X.swapaxes(1, 2)
    A[:, np.arange(m), np.arange(m)] += 10 ** rng.uniform(-3, 12, (C, m))
    return A


@pytest.mark.parametrize("m", [1, 7, 8, 16, 37])
@pytest.mark.parametrize("C", [1, 3])
def test_factors_equal_those_of_lapack(m, C, monkeypatch):
    monkeypatch.setattr(arrays, "MIN_THREADED_SIZE", 1)
    monkeypatch.setattr(cholesky, "PANEL", 8)
    A = positive_definite(C, m)
    given = A.copy()
    L = [Host(threads).cholesky(A) for threads in (1, 2, 5)]
    np.testing.assert_allclose(L[0], np.linalg.cholesky(A), rtol=1e-12, atol=1e-9)
    np.testing.assert_array_equal(A, given)
    assert all(np.array_equal(L[0], other) for other in L[1:])
    np.testing.assert_array_equal(L[0][-1], Host(1).cholesky(A[-1]))


def test_a_matrix_that_is_not_positive_definite_is_named():
    A = np.eye(300)
    A[250, 250] = -1.0
    with pytest.raises(np.linalg.LinAlgError, match="column 251 of 300"):
        Host(2).cholesky(A)


@pytest.mark.parametrize("forgotten", ["dtrsm", "dsyrk", "dgemm"])
def test_a_factor_that_forgets_a_kind_of_step_is_noticed(forgotten, monkeypatch):
    routine = cholesky.routine
    monkeypatch.setattr(cholesky, "routine", lambda name: (lambda *a: None) if name == forgotten else routine(name))
    monkeypatch.setattr(cholesky, "PANEL", 8)
    A = 1000.0 * np.eye(37) + 0.1
    L = A.copy()
    cholesky.cholesky_in_place(L, Host(2).at_once, 2)
    assert np.abs(L @ L.T - A).max() > 1e-6


def test_steps_follow_those_they_need_and_each_waits_for_them():
    order = cholesky._order(5)
    for n, those in enumerate(order.after):
        assert all(other > n for other in those)
        assert len(set(those)) == len(those)
    assert sum(order.needs) == sum(map(len, order.after)) and order.needs.count(0) == 1
    i, j, k = 2, 4, 1
    needed = {s for s, those in zip(order.steps, order.after, strict=True) if order.steps.index((j, k, i)) in those}
    assert needed == {(i, k, k), (j, k, k), (j, k - 1, i)}
