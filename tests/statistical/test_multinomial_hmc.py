"""MultinomialHMC samples the right posterior: quadrature, Cauchy quantiles, E exp(-dH) = 1. Chains are the batches."""

import numpy as np
import pytest
from helpers.monte_carlo import compare, mean_and_variance, with_squares
from scipy import stats

from mmgibbs.regressions.arrays.base import Host
from mmgibbs.regressions.loop import SideBySideChains
from mmgibbs.regressions.multinomial import hamiltonian as hmc
from mmgibbs.regressions.multinomial.hmc import MultinomialHMCModel, MultinomialHMCOptions
from mmgibbs.regressions.multinomial.polya_gamma import MultinomialPGModel, MultinomialPGOptions
from mmgibbs.regressions.options import fill_options
from mmgibbs.regressions.predictors import read_predictors
from mmgibbs.regressions.protocol import Keys, RegressionData

CHAINS = 200
FIXED = {"adaptation": "none", "mass": "identity", "step_size": 0.3, "leapfrog_steps": 4}


def prepare(X, y, **options):
    return MultinomialHMCModel.prepare(
        RegressionData(read_predictors(np.asarray(X)), y), fill_options(MultinomialHMCOptions, options), Host(1)
    )


def draws(model, burn_in, samples, seed=1):
    """beta and intercept side by side, (chains, draws, m)."""
    run = SideBySideChains(model, model.arrays, Keys(seed, tuple(range(CHAINS))), burn_in)
    run.advance(burn_in + samples)
    kept = run.result().draws
    return np.concatenate([kept[name].reshape(CHAINS, samples, -1) for name in kept], axis=2)


def quadrature(model, ends):
    """(mean (2,), variance (2,)) of two coefficients, on a grid over `ends`, at whose edge there is next to no mass."""
    axes = [np.linspace(a, b, 401) for a, b in ends]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    log_density = model.target(grid.reshape(-1, model.K - 1, model.D)).log_density
    weight = np.exp(log_density - log_density.max())
    edge = weight.reshape(401, 401)
    assert max(edge[0].max(), edge[-1].max(), edge[:, 0].max(), edge[:, -1].max()) < 1e-6
    weight /= weight.sum()
    mean = weight @ grid
    return mean, weight @ (grid - mean) ** 2


RNG = np.random.default_rng(4)
ONE = RNG.normal(size=(18, 1))
TWO_CLASSES = np.array([0, 1] * 9), ONE  # a coefficient and an intercept
THREE_CLASSES = np.array([0, 1, 2] * 6), ONE  # two coefficients
COUNTS = RNG.integers(0, 4, (18, 3)), ONE


def two_coefficients(y, X, **options):
    model = prepare(X, y, intercept=y.ndim == 1 and y.max() == 1, scale=0.9, intercept_scale=2.0, **options)
    exact = quadrature(model, [(-9, 9), (-9, 9)])
    sampled = draws(model, 100, 150)[..., :2]
    return compare(with_squares(sampled, exact[0]).mean(axis=1), mean_and_variance(exact[0], np.sqrt(exact[1])))


CASES = {
    "two classes, fixed": (TWO_CLASSES, FIXED),
    "two classes, single precision": (TWO_CLASSES, {"precision": "single"}),
    "three classes": (THREE_CLASSES, {}),
    "three classes, normal prior": (THREE_CLASSES, {"prior": "normal", "mass": "diagonal"}),
    "counts, chains apart": (COUNTS, {"adaptation": "separate", "mass": "diagonal"}),
    "counts, normal prior": (COUNTS, {"prior": "normal"} | FIXED | {"step_size": 0.15}),
}


@pytest.mark.parametrize(
    "name", [pytest.param(c, marks=pytest.mark.slow) if c == "counts, chains apart" else c for c in CASES]
)
def test_posterior_against_quadrature(name):
    data, options = CASES[name]
    comparison = two_coefficients(*data, **options)
    assert comparison.agrees, comparison


def test_same_posterior_as_polya_gamma_under_a_normal_prior():
    """Two predictors and an intercept for two of three classes: means and variances of all six coefficients."""
    rng = np.random.default_rng(9)
    X, y = rng.normal(size=(25, 2)), np.arange(25) % 3
    X[:, 0] += 0.7 * y
    hamiltonian = prepare(X, y, prior="normal", scale=1.5, intercept_scale=2.0)
    options = fill_options(MultinomialPGOptions, {"prior_precision": 1 / 1.5**2, "intercept_precision": 1 / 2.0**2})
    polya_gamma = MultinomialPGModel.prepare(RegressionData(read_predictors(X), y), options, Host(1))
    one, other = draws(hamiltonian, 100, 100), draws(polya_gamma, 20, 80)
    centre = other.mean(axis=(0, 1))
    one, other = (with_squares(d, centre).mean(axis=1) for d in (one, other))
    comparison = compare(one, other.mean(axis=0), other.std(axis=0, ddof=1) / np.sqrt(CHAINS))
    assert comparison.agrees, comparison


def full_kicks_and_two_half_ones(target, velocity, start, momentum, step, steps):
    point, momentum = start, momentum + hmc.expand_chains(step / 2) * start.gradient
    for _ in range(int(steps.max())):
        point = target(point.position + hmc.expand_chains(step) * velocity(momentum))
        momentum = momentum + hmc.expand_chains(step) * point.gradient
    return point, momentum + hmc.expand_chains(step / 2) * point.gradient


@pytest.mark.slow
@pytest.mark.parametrize("spoilt", ["released leapfrog", "acceptance forgotten"])
def test_spoilt_samplers_are_seen(monkeypatch, spoilt):
    if spoilt == "released leapfrog":
        monkeypatch.setattr(hmc, "leapfrog", full_kicks_and_two_half_ones)
    else:
        monkeypatch.setattr(hmc, "accept", lambda start, tried, u, T: tried.end)
    assert not two_coefficients(*TWO_CLASSES, **FIXED | {"step_size": 0.45}).agrees


def quantiles(scale, mass):
    """Three classes, one column of zeros: two coefficients, each Cauchy(0, scale); against Cauchy(0, 1.5)."""
    model = prepare(
        np.zeros((12, 1)),
        np.arange(12) % 3,
        scale=scale,
        mass=mass,
        adaptation="none",
        step_size=0.7,
        leapfrog_steps=8,
        temperature=1.0,
    )
    levels = np.array([0.1, 0.25, 0.5, 0.75, 0.9])
    below = draws(model, 50, 300)[..., :2, None] < stats.cauchy.ppf(levels, scale=1.5)
    return compare(below.mean(axis=1).reshape(CHAINS, -1), np.tile(levels, 2))


@pytest.mark.parametrize("mass", ["hessian", pytest.param("diagonal", marks=pytest.mark.slow)])
def test_a_column_of_zeros_returns_the_quantiles_of_its_prior(mass):
    comparison = quantiles(1.5, mass)
    assert comparison.agrees, comparison


@pytest.mark.slow
def test_a_wrong_scale_misses_the_quantiles():
    assert not quantiles(1.8, "hessian").agrees


def test_mean_of_exp_of_minus_the_energy_error_is_one():
    """E exp(-dH) = 1 over the posterior and the momenta, whatever the step: 0.9, where a good many are refused."""
    model = prepare(RNG.normal(size=(30, 2)), np.arange(30) % 3, adaptation="none", step_size=0.9, leapfrog_steps=3)
    rng, now = np.random.default_rng(6), model.start(Keys(2, tuple(range(CHAINS))))["position"]
    now, ratios, accepted = model.target(now), [], []
    for sweep in range(300):
        tried = hmc.trajectory(
            model.target, model.mass, now, rng.normal(size=now.position.shape), np.full(CHAINS, 0.9), np.full(CHAINS, 3)
        )
        now = hmc.accept(now, tried, rng.random(CHAINS))
        if sweep >= 50:
            ratios.append(np.exp(-tried.energy_error))
            accepted.append(tried.acceptance.mean())
    assert 0.5 < np.mean(accepted) < 0.95
    comparison = compare(np.transpose(ratios).mean(axis=1)[:, None], 1.0)
    assert comparison.agrees, comparison
