"""K^-1 of autoregressions against the inverse of K in plain form, its derivatives, its determinant, and its draws."""

import numpy as np
import pytest
from helpers.trends import lag_matrix
from scipy.linalg import block_diag
from scipy.sparse import csr_array

from mmgibbs.models.relationships.ar1 import Field, FirstOrder, Lattice, TimeSeries


def field_K(structure, rho):
    given = dict(zip(structure.directions, rho, strict=True))
    blocks = [
        np.kron(*(lag_matrix(given.get(d, 0.0), np.arange(n)) for d, n in zip(("row", "column"), lattice, strict=True)))
        for lattice in structure.lattices
    ]
    return block_diag(*blocks)


def time_K(structure, rho):
    starts = np.flatnonzero(structure.gap == 0)
    series = np.split(np.cumsum(structure.gap), starts[1:])
    return block_diag(*[lag_matrix(rho[0], days) for days in series])


FIELD = Field((Lattice(3, 4), Lattice(2, 2), Lattice(1, 3)), ("row", "column"))
ROWS = Field((Lattice(5, 1), Lattice(2, 1)), ("row",))
DAYS = TimeSeries(np.array([0, 1, 1, 3, 0, 2, 0, 1.0]), "day", 1.0)
PARTS = TimeSeries(np.array([0, 0.5, 1.25, 0, 3.0]), "day", 2.0)
CASES = [
    (FIELD, (0.6, -0.3), field_K),
    (FIELD, (0.0, 0.9), field_K),
    (ROWS, (0.7,), field_K),
    (DAYS, (0.8,), time_K),
    (DAYS, (-0.6,), time_K),
    (PARTS, (0.5,), time_K),
]


def relationship(structure, rho, held=False):
    return FirstOrder.build(structure, tuple("ab"[: len(rho)]), rho, held)


def dense(kind, values=None):
    indptr, indices, own = kind.inverse_csr()
    return csr_array((own if values is None else values, indices, indptr), shape=(kind.n_levels,) * 2).toarray()


@pytest.mark.parametrize(("structure", "rho", "K"), CASES)
def test_the_inverse_and_its_determinant_are_those_of_K(structure, rho, K):
    kind, plain = relationship(structure, rho), K(structure, rho)
    np.testing.assert_allclose(dense(kind) @ plain, np.eye(len(plain)), atol=1e-10)
    assert kind.weigh(np.array(rho)).log_determinant == pytest.approx(-np.linalg.slogdet(plain)[1], abs=1e-10)
    assert np.all(np.diff(kind.indices)[np.diff(np.repeat(np.arange(kind.n_levels), np.diff(kind.indptr))) == 0] > 0)


@pytest.mark.parametrize(("structure", "rho", "K"), CASES)
def test_derivatives_are_those_of_differences(structure, rho, K):
    kind, rho = relationship(structure, rho), np.array(rho)
    weights, step = kind.weigh(rho), 1e-6
    for p in range(rho.size):
        up, down = rho.copy(), rho.copy()
        up[p] += step
        down[p] -= step
        change = (np.linalg.inv(K(structure, up)) - np.linalg.inv(K(structure, down))) / (2 * step)
        np.testing.assert_allclose(dense(kind, kind.fixed_matrices @ weights.derivatives[p]), change, atol=1e-6)
        slope = (kind.weigh(up).log_determinant - kind.weigh(down).log_determinant) / (2 * step)
        assert weights.log_determinant_derivatives[p] == pytest.approx(slope, abs=1e-6)


@pytest.mark.parametrize(("structure", "rho", "K"), CASES)
def test_draws_of_the_identity_are_a_root_of_K(structure, rho, K):
    kind = relationship(structure, rho)
    root = kind.draw(np.eye(kind.n_levels))
    np.testing.assert_allclose(root @ root.T, K(structure, rho), atol=1e-10)


def test_time_that_is_not_in_whole_steps_has_no_negative_correlation():
    assert relationship(DAYS, (0.5,)).parameter_bounds[0, 0] < 0 < relationship(PARTS, (0.5,)).parameter_bounds[0, 0]
