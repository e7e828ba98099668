"""R with unit diagonals against its density, by hand and on a grid, with a mutant that must fail."""

import numpy as np
import pytest
from helpers.goodness import agree, moment_z, transform_z
from scipy import stats

from mmgibbs.sampler import unit_diagonals
from mmgibbs.sampler.unit_diagonals import draw_with_unit_diagonal, log_density

N = 4_000
W2 = np.array([[40.0, 12.0], [12.0, 30.0]])


def draws(df, W, unit, n=N, draw=draw_with_unit_diagonal):
    out, R = np.empty((n, *W.shape)), np.eye(len(W))
    for i in range(n):
        R = draw(df, W, unit, R, i + 1, np.arange(len(W)), 1 << 24, (3, 1))
        out[i] = R
    return out


def test_one_unit_trait_and_one_free_are_as_by_hand():
    """D = W_11.2 / chi2_df and R_12 | D ~ N(W_12 / W_22, D / W_22), for unit trait 2."""
    df = 25.0
    R = draws(df, W2, (1,))
    assert np.all(R[:, 1, 1] == 1.0)
    D = R[:, 0, 0] - R[:, 0, 1] ** 2
    product = W2[0, 0] - W2[0, 1] ** 2 / W2[1, 1]
    z = (R[:, 0, 1] - W2[0, 1] / W2[1, 1]) / np.sqrt(D / W2[1, 1])
    assert agree([transform_z(stats.chi2(df).sf(product / D)), transform_z(stats.norm.cdf(z))])


def grid(df, W, n=1200):
    """Moments of the correlation of two unit traits by quadrature."""
    rho = np.linspace(-1, 1, n + 2)[1:-1]
    log_p = np.array([log_density(np.array([[1, r], [r, 1]]), W, 0.5 * (df + 3)) for r in rho])
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    return p @ rho, p @ rho**2 - (p @ rho) ** 2


@pytest.mark.slow
def test_two_unit_traits_against_the_grid():
    R = draws(30.0, W2, (0, 1))
    assert np.all(np.diagonal(R, axis1=1, axis2=2) == 1.0)
    batches = R[:, 0, 1].reshape(-1, 20).mean(axis=1)  # slices follow one another
    mean, _ = grid(30.0, W2)
    assert agree([(batches.mean() - mean) / batches.std() * np.sqrt(batches.size)])


def test_a_wrong_exponent_is_found(monkeypatch):
    monkeypatch.setattr(unit_diagonals, "log_density", lambda R, W, exponent: log_density(R, W, exponent - 6))
    R = draws(30.0, W2, (0, 1))
    batches = R[:, 0, 1].reshape(-1, 20).mean(axis=1)
    assert not agree([(batches.mean() - grid(30.0, W2)[0]) / batches.std() * np.sqrt(batches.size)])


def test_two_unit_traits_beside_a_free_one():
    """D and B given D have the distributions of the docstring, whatever R_cc is."""
    W = np.array([[50.0, 10.0, 5.0], [10.0, 40.0, -8.0], [5.0, -8.0, 30.0]])
    df = 40.0
    R = draws(df, W, (0, 2))
    f, c = [1], [0, 2]
    B = np.linalg.solve(R[:, c][:, :, c], R[:, c][:, :, f])
    D = R[:, 1, 1] - np.einsum("nij,nij->n", B, R[:, c][:, :, f])
    left = W[1, 1] - W[1, c] @ np.linalg.solve(W[np.ix_(c, c)], W[c, 1])
    chi = left / D
    mean = np.linalg.solve(W[np.ix_(c, c)], W[c, 1])
    z = (B[:, :, 0] - mean) @ np.linalg.cholesky(W[np.ix_(c, c)]) / np.sqrt(D)[:, None]
    assert agree(
        [moment_z(chi, df, 2 * df), transform_z(stats.norm.cdf(z[:, 0])), transform_z(stats.norm.cdf(z[:, 1]))]
    )
    assert np.linalg.eigvalsh(R).min() > 0
