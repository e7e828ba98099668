"""Running moments against the same formulas on stored draws, and the MCSE against theory on autoregressive series."""

import numpy as np
import pytest
from scipy import signal, stats

from mmgibbs.posterior.moments import Moments, PooledMoments, batches_per_chain, pool


def accumulate(draws, n_batches, n_draws=None):
    """draws: (chains, draws, q, k) -> one Moments per chain, of one term."""
    out = []
    for chain in draws:
        moments = Moments([chain.shape[1:]], n_draws or len(chain), n_batches)
        for draw in chain:
            moments.add([draw])
        out.append(moments)
    return out


def batch_means_on_stored_draws(draws, L):
    """The formulas of the module's docstring, written out with all draws in memory."""
    chains, n = draws.shape[:2]
    N = chains * n
    sd = draws.reshape(N, *draws.shape[2:]).std(axis=0, ddof=1)
    batches = np.concatenate([c[: n // L * L].reshape(n // L, L, *draws.shape[2:]).mean(axis=1) for c in draws])
    mcse = np.sqrt(L / N * batches.var(axis=0, ddof=1)) if len(batches) > 1 else None
    return draws.mean(axis=(0, 1)), sd, mcse, len(batches)


@pytest.mark.parametrize(
    "chains, n, n_batches", [(1, 100, 10), (4, 103, 10), (3, 97, 50), (2, 10, 100), (4, 2, 50), (1, 2, 1), (2, 7, 1)]
)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_moments_equal_the_formulas_on_stored_draws(chains, n, n_batches, dtype):
    rng = np.random.default_rng(1)
    draws = (rng.normal(size=(chains, n, 6, 2)) * rng.uniform(0.1, 30, (6, 2)) + rng.normal(size=(6, 2)) * 50).astype(
        dtype
    )
    moments = accumulate(draws, n_batches)
    pooled = pool(moments)
    L = max(1, n // n_batches)
    mean, sd, mcse, B = batch_means_on_stored_draws(draws.astype(np.float64), L)
    assert moments[0].batch_length == L and pooled.n_draws == chains * n and pooled.n_batches == B
    np.testing.assert_allclose(pooled.mean[0], mean, rtol=1e-12)
    np.testing.assert_allclose(pooled.sd[0], sd, rtol=1e-10)
    if B > 1:
        np.testing.assert_allclose(pooled.mcse[0], mcse, rtol=1e-10)
        np.testing.assert_allclose(pooled.ess[0], (sd / mcse) ** 2, rtol=1e-10)
    else:
        assert np.isnan(pooled.mcse[0]).all() and np.isnan(pooled.ess[0]).all()


def test_a_large_mean_does_not_cancel():
    draws = np.random.default_rng(3).normal(size=(2, 200, 4, 1)) + 1e9
    pooled = pool(accumulate(draws, 10))
    np.testing.assert_allclose(pooled.sd[0], draws.reshape(400, 4, 1).std(axis=0, ddof=1), rtol=1e-6)
    squares = (draws**2).sum(axis=(0, 1)) - 400 * draws.mean(
        axis=(0, 1)
    ) ** 2  # the textbook formula, which does cancel
    assert not np.allclose(np.sqrt(np.abs(squares) / 399), pooled.sd[0], rtol=0.1)


def test_a_level_held_at_a_value_has_sd_and_mcse_0_and_no_ess():
    draws = np.zeros((3, 47, 2, 1))
    draws[:, :, 1] = 0.1 + 0.2
    pooled = pool(accumulate(draws, 10))
    assert pooled.mean[0].ravel().tolist() == [0.0, 0.1 + 0.2]
    assert not pooled.sd[0].any() and not pooled.mcse[0].any() and np.isnan(pooled.ess[0]).all()


def test_several_terms_are_kept_apart_and_arrays_may_be_views():
    rng = np.random.default_rng(4)
    shapes = [(5, 3), (0, 2), (1, 1), (4,)]
    moments = Moments(shapes, 30, 10)
    stored = [rng.normal(size=(30, *shape)) for shape in shapes]
    for t in range(30):
        moments.add([np.asfortranarray(stored[0][t]), stored[1][t], stored[2][t], np.repeat(stored[3][t], 2)[::2]])
    pooled = pool([moments])
    for mean, sd, draws in zip(pooled.mean, pooled.sd, stored):
        np.testing.assert_allclose(mean, draws.mean(axis=0), rtol=1e-12)
        np.testing.assert_allclose(sd, draws.std(axis=0, ddof=1), rtol=1e-10)
    assert moments.nbytes == 4 * 8 * (15 + 1 + 4)
    with pytest.raises(ValueError, match=r"shapes .* needed"):
        moments.add([np.zeros((3, 5)), *(draws[0] for draws in stored[1:])])


def test_a_stored_state_continues_bit_for_bit():
    draws = np.random.default_rng(5).normal(size=(57, 8, 2))
    through, first = Moments([(8, 2)], 57, 10), Moments([(8, 2)], 57, 10)
    for draw in draws[:23]:
        first.add([draw])
    second = Moments.from_state({name: array.copy() for name, array in first.state().items()})
    first.add([draws[0]])  # the copy does not follow
    for draw in draws[23:]:
        second.add([draw])
    for draw in draws:
        through.add([draw])
    assert second.shapes == through.shapes
    for name, array in through.state().items():
        assert array.dtype == second.state()[name].dtype and array.tobytes() == second.state()[name].tobytes()


def test_pooling_refuses_chains_that_do_not_match():
    a, b = Moments([(2, 1)], 100, 10), Moments([(2, 1)], 100, 20)
    with pytest.raises(ValueError, match="length of batches"):
        pool([a, b])
    with pytest.raises(ValueError, match="no draws"):
        pool([a, a])


def test_computed_solutions_have_no_monte_carlo_error():
    solution = [np.ones((3, 1))]
    blank, known = PooledMoments.exact(solution), PooledMoments.exact(solution, [np.full((3, 1), 0.5)])
    assert (known.sd[0] == 0.5).all() and np.isnan(blank.sd[0]).all()
    assert np.isnan(known.mcse[0]).all() and np.isnan(known.ess[0]).all() and (blank.mean[0] == 1).all()


@pytest.mark.parametrize("chains", [1, 2, 4, 7])
@pytest.mark.parametrize("n", [1, 3, 50, 200, 1000, 20_000, 1_000_000])
def test_the_number_of_batches(n, chains):
    moments = Moments([], n, batches_per_chain(n, chains))
    in_all = chains * (n // moments.batch_length)
    if n * chains >= 50:
        assert in_all >= 50
    if n * chains >= 1000:
        assert in_all >= 100 and moments.batch_length >= 5
    if n * chains >= 100_000:
        assert moments.batch_length >= 0.5 * np.sqrt(n * chains)


def autoregressive(rho, chains, n, elements, seed):
    """Stationary series of variance 1 and autocorrelation rho^t: (chains, n, elements, 1)."""
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=(chains, n, elements)) * np.sqrt(1 - rho**2)
    noise[:, 0] = rng.normal(size=(chains, elements))
    return signal.lfilter([1], [1, -rho], noise, axis=1)[..., None]


@pytest.mark.parametrize("rho", [0.0, 0.6, 0.9])
def test_mcse_of_autoregressive_series_is_that_of_theory(rho):
    """Var(mean of n) = (1/n) [(1 + rho)/(1 - rho) - 2 rho (1 - rho^n) / (n (1 - rho)^2)], of a chain and of a batch."""
    chains, n, elements = 4, 2500, 400

    def variance_of_mean(m):
        return ((1 + rho) / (1 - rho) - 2 * rho * (1 - rho**m) / (m * (1 - rho) ** 2)) / m

    moments = accumulate(autoregressive(rho, chains, n, elements, seed=11), batches_per_chain(n, chains))
    pooled, L = pool(moments), moments[0].batch_length
    mean, mcse = pooled.mean[0].ravel(), pooled.mcse[0].ravel()
    B = pooled.n_batches
    assert B == 100 and L == 100

    def agrees(mcse):
        """The mean of mcse^2 over the elements in its own standard errors; chi-square, B - 1 degrees of freedom."""
        expected = variance_of_mean(L) * L / (chains * n)
        within = abs(np.mean(mcse**2) / expected - 1) < 4 * np.sqrt(2 / (B - 1) / elements)
        z = mean / mcse
        largest = np.abs(z).max() < stats.t.isf(0.5e-3 / elements, B - 1)
        band = abs(np.mean(z**2) - 1) < 4 * np.sqrt(2.2 / elements) + abs(1 - variance_of_mean(n) / chains / expected)
        return within and largest and band

    assert agrees(mcse)
    assert not agrees(mcse * 0.9)  # the limits see an MCSE that is 10 % short
    assert agrees(pooled.sd[0].ravel() / np.sqrt(chains * n)) == (rho == 0)  # draws taken for independent
    assert np.median(pooled.ess[0]) == pytest.approx(chains * n * (1 - rho) / (1 + rho), rel=0.15 if rho else 0.05)
