"""MultinomialHMC samples the right posterior, by quadrature. Chains are the batches."""

import numpy as np
import pytest
from helpers.monte_carlo import compare, mean_and_variance, with_squares

from mmgibbs.regressions.arrays.base import Host
from mmgibbs.regressions.loop import SideBySideChains
from mmgibbs.regressions.multinomial import hamiltonian as hmc
from mmgibbs.regressions.multinomial.hmc import MultinomialHMCModel, MultinomialHMCOptions
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
