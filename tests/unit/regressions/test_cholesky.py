"""Cholesky factors over threads: those of LAPACK, whatever the size, the vectors and the number of threads."""

from threading import Thread

import numpy as np
import pytest
from helpers.mutants import mutant

from mmgibbs.machine.barrier import places_of_threads
from mmgibbs.regressions.arrays import base as arrays
from mmgibbs.regressions.arrays import cholesky
from mmgibbs.regressions.arrays.base import Host, PlusDiagonal, PlusDiagonalInStrips, in_turn
from mmgibbs.regressions.arrays.cholesky import WIDTH, StripFactors


def positive_definite(C, m):
    """Diagonals from 1e-3 to 1e12, as precisions of the horseshoe have."""
    rng = np.random.default_rng(m)
    X = rng.standard_normal((C, m, 2 * m))
    A = X @ X.swapaxes(1, 2)
    A[:, np.arange(m), np.arange(m)] += 10 ** rng.uniform(-3, 12, (C, m))
    return A


def of_strips(A, module=cholesky):
    """Upper factor U'U = A of one matrix, and the solutions of L x = 1 and L'x = 1."""
    factors = module.StripFactors(1, len(A))
    factors.strips.pack(0, A, in_turn)
    factors.factor(0, factors.strips.values[0], None, in_turn, 1)
    L, one = np.full_like(A, np.nan), np.ones((1, len(A)))
    factors.strips.lower(0, L, in_turn)
    return L, factors.solve(one)[0], factors.solve(one, transposed=True)[0]


@pytest.mark.parametrize("m", [1, 7, 24, 25, 60, 131])
@pytest.mark.parametrize("C", [1, 3])
def test_factors_equal_those_of_lapack(m, C, monkeypatch):
    monkeypatch.setattr(arrays, "LARGE", 1)
    A = positive_definite(C, m)
    given = A.copy()
    L = [Host(threads).cholesky(A) for threads in (1, 2, 5)]
    np.testing.assert_allclose(L[0], np.linalg.cholesky(A), rtol=1e-12, atol=1e-9)
    np.testing.assert_array_equal(A, given)
    assert all(np.array_equal(L[0], other) for other in L[1:])
    np.testing.assert_array_equal(L[0][-1], Host(1).cholesky(A[-1]))


@pytest.mark.parametrize("m", [5, 50, 131])
@pytest.mark.parametrize("C", [1, 3])
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_factors_of_a_matrix_plus_diagonals(m, C, threads, monkeypatch):
    """Those made before are overwritten, and leave nothing behind; small matrices go to LAPACK."""
    rng, A = np.random.default_rng(m), positive_definite(1, m)[0]
    host = Host(threads)
    assert type(host.plus_diagonal(A)) is PlusDiagonal
    monkeypatch.setattr(arrays, "LARGE", 1)
    sums = host.plus_diagonal(A)
    assert type(sums) is PlusDiagonalInStrips
    for number in (C, C, 2):
        d, b = 10 ** rng.uniform(-3, 280, (number, m)), rng.standard_normal((number, m))
        factors, dense = sums.factor(d), PlusDiagonal(host, A).factor(d)
        for transposed in (False, True):
            np.testing.assert_allclose(factors.solve(b, transposed), dense.solve(b, transposed), rtol=1e-10)


def test_solutions_are_those_of_the_factor():
    L, forward, back = of_strips(positive_definite(1, 131)[0])
    np.testing.assert_allclose(L @ forward, np.ones(131), rtol=1e-10)
    np.testing.assert_allclose(L.T @ back, np.ones(131), rtol=1e-10)


@pytest.mark.parametrize("lanes", [2, 4, 8])
def test_the_length_of_vectors_changes_no_bit_of_a_factor(lanes):
    A = positive_definite(1, 60)[0]
    other = of_strips(A, mutant(cholesky, "LANES, PARTS = _lanes(), 3", f"LANES, PARTS = {lanes}, 3"))
    here = of_strips(A)
    np.testing.assert_array_equal(other[0], here[0])
    for x, y in zip(other[1:], here[1:], strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-12)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_matrix_that_is_not_positive_definite_is_named(threads):
    A = np.eye(300)
    A[250, 250] = -1.0
    with pytest.raises(np.linalg.LinAlgError, match="column 251 of 300"):
        Host(threads).cholesky(A)
    with pytest.raises(np.linalg.LinAlgError, match="column 251 of 300"):
        Host(threads).plus_diagonal(A).factor(np.full((1, 300), 1e-3))
    with pytest.raises(np.linalg.LinAlgError, match="column 3 of 300"):
        Host(threads).plus_diagonal(np.eye(300)).factor(np.where(np.arange(300) == 2, np.nan, 1.0)[None])


MUTANTS = {
    "products are added": ("builder.fsub(row, builder.fmul", "builder.fadd(row, builder.fmul"),
    "the last product is forgotten": (
        'icmp_signed("<", following, n), loop, after)\n\n',
        'icmp_signed("<", b.add(following, INDEX(1)), n), loop, after)\n\n',
    ),
    "no rows of the own group": (
        "for k in range(r):\n                    out[r]",
        "for k in range(0):\n                    out[r]",
    ),
    "the first divisor for all": ("b.load(at(divisors, r))", "b.load(at(divisors, 0))"),
    "no products before the diagonal": ("start + column, n, 0)", "start + column, 0, 0)"),
    "the diagonal is not less its own rows": ("range(column + r, WIDTH)", "range(column + r + 1, WIDTH)"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_wrong_factor_is_noticed(name):
    A = 1000.0 * np.eye(60) + 0.1 + np.arange(60)[:, None] * np.arange(60) / 1000
    L = of_strips(A)[0]
    assert np.abs(L @ L.T - A).max() < 1e-9
    L = of_strips(A, mutant(cholesky, *MUTANTS[name]))[0]
    assert not np.abs(L @ L.T - A).max() < 1e-6


def test_a_strip_waits_for_another_that_it_needs():
    """The first strip is another thread's, which is not done with it, and then gives up."""
    factors = StripFactors(1, 3 * WIDTH)
    factors.strips.pack(0, np.eye(3 * WIDTH), in_turn)
    U, done = factors.strips.values[0], places_of_threads(4)
    done[3, 0] = 1
    other = Thread(target=cholesky.factor_strips, args=(U, np.zeros(3 * WIDTH), U, factors.inverse[0], done))
    other.start()
    other.join(0.3)
    assert other.is_alive() and not done[:3, 0].any()
    done[4, 0] = 1
    other.join(10)
    assert not other.is_alive() and not done[:3, 0].any()
