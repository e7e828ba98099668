"""Horseshoe probit against importance sampling, against the joint distribution (Geweke 2004), and on the coefficients
of Terenin et al.
"""

from functools import cache

import numpy as np
import pytest
from helpers.monte_carlo import chain_batches, compare
from helpers.mutants import mutant
from reference.horseshoe import log_horseshoe, posterior_moments, prior_draws
from scipy.special import log_ndtr, ndtr

import mmgibbs.regressions.horseshoe.coefficients as coefficients
import mmgibbs.regressions.horseshoe.ellipse as ellipse
import mmgibbs.regressions.horseshoe.prior as prior
import mmgibbs.regressions.horseshoe.probit as horseshoe
from mmgibbs import HorseshoeProbit
from mmgibbs.regressions.arrays.base import Host
from mmgibbs.regressions.horseshoe.rows import LATENT, Latent
from mmgibbs.regressions.predictors import read_predictors
from mmgibbs.regressions.protocol import Keys, RegressionData


@cache
def small_case():
    """60 rows, 3 predictors, the mean far from 1/2; moments of the posterior and their errors."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((60, 3))
    y = rng.random(60) < ndtr(X @ [1.2, -0.4, 0.0] - 0.7)
    return X, y, *posterior_moments(X, y, 40_000, rng)


def draws(X, y, samples, chains=100, burn_in=40, module=horseshoe, seed=11, change=None, **options):
    """(chains, samples, 2 p + 3): beta, intercept, log tau, squares of beta and intercept."""
    data = RegressionData(read_predictors(X), y)
    sampler = module.HorseshoeProbitModel.prepare(data, module.HorseshoeProbitOptions(**options), Host(1))
    if change is not None:
        change(sampler)
    keys = Keys(seed, tuple(range(chains)))
    state, kept = sampler.start(keys), []
    for sweep in range(1, burn_in + samples + 1):
        state = sampler.step(state, sweep, keys)
        if sweep > burn_in:
            found = sampler.log(state)
            theta = np.column_stack([found["beta"], found["intercept"]])
            kept.append(np.column_stack([theta, np.log(found["tau"]), theta**2]))
    return np.stack(kept, axis=1)


VARIANTS = {
    "plain": {"expansion": False, "collapsed": False},
    "expanded": {"collapsed": False},
    "collapsed": {"collapsed": True},
    "single": {"precision": "single"},
}


@pytest.mark.parametrize("variant", [pytest.param(v, marks=pytest.mark.slow) if v == "plain" else v for v in VARIANTS])
def test_small_posterior(variant):
    X, y, exact, error = small_case()
    comparison = compare(chain_batches(draws(X, y, 150, **VARIANTS[variant])), exact, error)
    assert comparison.agrees, comparison


def test_small_posterior_by_rows():
    """The draw for n < p is right for any n and p."""
    X, y, exact, error = small_case()

    def by_rows(sampler):
        sampler.coefficients = coefficients.CoefficientsByRowGram(sampler.rows, sampler.arrays)

    comparison = compare(chain_batches(draws(X, y, 100, change=by_rows)), exact, error)
    assert comparison.agrees, comparison


MUTANTS = {
    "expansion without its Jacobian": (horseshoe, "(len(keys), 1), 0.5 * self.n)", "(len(keys), 1), 0.5)"),
    "expansion with the rate z'z": (coefficients, "latent.square - (half**2).sum(1)", "latent.square"),
    "intercept penalised": (horseshoe, "0.0 if sd is None else sd**-2", "1.0"),
    "rate of lambda without 1/2": (
        prior,
        '0.5 * state["global"][:, None] * square',
        'state["global"][:, None] * square',
    ),
    "shape p/2 of tau": (prior, "0.5 * (self.p + 1))", "0.5 * self.p)"),
    "noise solved with L": (
        coefficients,
        "COEFFICIENTS, self.fit.p + 1), transposed=True",
        "COEFFICIENTS, self.fit.p + 1)",
    ),
    "ellipse around 0": (ellipse, "intercept[:, None]], 1) - mean, f]", "intercept[:, None]], 1), f]"),
    "ellipse without the rest": (
        ellipse,
        "eta[chains, :, rows]).sum(1)) - normal",
        "eta[chains, :, rows]).sum(1)) * 0.0",
    ),
}


def spoilt(where, right, wrong):
    """The sampler's module with one line of it, or of a module that it uses, changed."""
    if where is horseshoe:
        return mutant(horseshoe, right, wrong)
    same = "standardise = True"
    whole, part = mutant(horseshoe, same, f"{same} "), mutant(where, right, wrong)
    own = [name for name, thing in vars(part).items() if getattr(thing, "__module__", None) == part.__name__]
    for name in set(own) & set(vars(whole)):
        setattr(whole, name, getattr(part, name))
    return whole


@pytest.mark.slow
@pytest.mark.parametrize("name", MUTANTS)
def test_wrong_samplers_are_found(name):
    X, y, exact, error = small_case()
    comparison = compare(
        chain_batches(draws(X, y, 60, module=spoilt(*MUTANTS[name]), collapsed="ellipse" in name)), exact, error
    )
    assert not comparison.agrees, comparison


# Geweke's test: a sweep given y, then y given everything, leaves the joint distribution as it is. Chains start in it.

PRIOR = {"intercept_prior_sd": 1.0, "global_scale": 0.7}
SLAB = {"slab_scale": 1.5, "slab_df": 5.0}


class ManyResponses(horseshoe.ProbitRows):
    """A response for each chain: what the sampler asks of z, dense. `positive` (C, n)."""

    def latent(self, beta, intercept, keys, sweep, keep=False):
        eta = self.eta(beta[:, None], intercept[:, None])[:, 0]
        z = self.arrays.truncated_normals(keys, sweep, LATENT, eta, self.positive)
        W = np.column_stack([self.X.values, np.ones(self.n)])
        return Latent(z @ W, (z**2).sum(1), z)


class Signed:
    """What the collapsed draw asks of the rows, for a response for each chain:
    linear predictors come with the sign of the response.
    """

    def __init__(self, rows):
        self.rows = rows

    def eta(self, beta, intercept):
        return self.rows.eta(beta, intercept) * np.where(self.rows.positive, 1.0, -1.0)[:, None]

    def log_likelihood(self, eta):
        return log_ndtr(eta(slice(None))).sum(1)


def functions(X, state, y):
    """(C, m): bounded or logarithmic, for the priors have no mean."""
    bounded = np.tanh(state["beta"])
    a, p = state["intercept"][:, None], X.shape[1]
    columns = [
        a,
        a**2,
        bounded,
        bounded**2,
        -0.5 * np.log(state["global"])[:, None],
        -0.5 * np.log(state["local"][:, : min(p, 3)]),
    ]
    columns += [
        y[:, :2],
        y.mean(1, keepdims=True) * a,
        (y @ X) * bounded,
        np.tanh(state["global"][:, None] ** -0.5 * y[:, :1]),
    ]
    if state["slab"].any():
        columns += [np.log(state["slab"])[:, None], state["slab"][:, None]]
    return np.concatenate(columns, axis=1)


def joint(rng, X, n, options):
    """States and responses, drawn from prior and likelihood."""
    slab = {k: options[k] for k in SLAB if k in options}
    beta, a, tau, lam, c = prior_draws(rng, n, X.shape[1], PRIOR["global_scale"], PRIOR["intercept_prior_sd"], **slab)
    local, tau = lam**-2.0, tau**-2.0
    auxiliary = (
        rng.exponential(size=local.shape) / (1 + local),
        rng.exponential(size=n) / (PRIOR["global_scale"] ** -2 + tau),
    )
    state = {"beta": beta, "intercept": a, "local": local, "global": tau, "slab": c, "tries": np.zeros(n)}
    state |= {"local_auxiliary": auxiliary[0], "global_auxiliary": auxiliary[1]}
    return state, rng.random((n, len(X))) < ndtr(beta @ X.T + a[:, None])


def geweke(X, options, module=horseshoe, chains=200, sweeps=60, seed=5):
    rng, options = np.random.default_rng(seed), PRIOR | options
    forward = functions(X, *joint(rng, X, 200_000, options))
    exact, error = forward.mean(0), forward.std(0) / np.sqrt(len(forward))
    data = RegressionData(read_predictors(X), np.arange(len(X)) % 2)
    sampler = module.HorseshoeProbitModel.prepare(data, module.HorseshoeProbitOptions(**options), Host(1))
    sampler.rows = rows = ManyResponses(sampler.X, np.zeros(len(X), bool), Host(1))
    if sampler.ellipse is not None:  # any expansion is right: here one that does not know the responses
        W = np.column_stack([X, np.ones(len(X))])
        sampler.ellipse = ellipse.Ellipse(
            Signed(rows), np.full(W.shape[1], 0.2), np.ones(W.shape[1]), 0.3 * W.T @ W, Host(1)
        )
    if len(X) < X.shape[1]:
        sampler.coefficients = coefficients.CoefficientsByRowGram(rows, Host(1))
    keys = Keys(seed, tuple(range(chains)))
    state, y = joint(rng, X, chains, options)
    kept = []
    for sweep in range(1, sweeps + 1):
        rows.positive = y
        state = sampler.step(state, sweep, keys)
        kept.append(functions(X, state, y))
        y = rng.random(y.shape) < ndtr(state["beta"] @ X.T + state["intercept"][:, None])
    return compare(chain_batches(np.stack(kept, axis=1)), exact, error)


TALL, WIDE = np.random.default_rng(9).normal(size=(6, 2)), np.random.default_rng(9).normal(size=(4, 6))
JOINT = {
    "plain": (TALL, {"expansion": False, "collapsed": False}),
    "expanded": (TALL, {"collapsed": False}),
    "collapsed": (TALL, {"collapsed": True}),
    "slab": (TALL, SLAB | {"collapsed": False}),
    "rows": (WIDE, {}),
}


@pytest.mark.parametrize("name", JOINT)
def test_the_joint_distribution_stays(name):
    comparison = geweke(*JOINT[name])
    assert comparison.agrees, comparison


MUTANTS_OF_SLAB = {
    "lambda as without a slab": ("xp.where(u[..., 1] * ratio(old) < ratio(new), new, old)", "exponential / rate"),
    "tau without the volume": ("return 0.5 * x - new * rate[c]", "return -new * rate[c]"),
    "slab without its share of the prior": ("0.5 * xp.log(overall[c, None] * local[c] + new[:, None]).sum(1)", "0.0"),
    "tau as without a slab": ("0.5 * xp.log(new[:, None] * local[c] + slab[c, None]).sum(1)", "0.5 * self.p * x"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MUTANTS_OF_SLAB)
def test_wrong_slabs_are_found(name):
    comparison = geweke(TALL, SLAB | {"collapsed": False}, spoilt(prior, *MUTANTS_OF_SLAB[name]))
    assert not comparison.agrees, comparison


LOCAL_MUTANTS = {
    "no correction": ("u[..., 1] * ratio(old) < ratio(new)", "u[..., 1] >= 0"),
    "wrong odds": ("odds = xp.sqrt(np.pi * k * rate)", "odds = xp.sqrt(k * rate)"),
}


@pytest.mark.parametrize("name", ["right", *LOCAL_MUTANTS])
def test_lambda_under_a_slab(name):
    """h^-1/2 (h + k)^1/2 exp(-rate h), 20,000 of each kind, against quadrature. A kind is a chain."""
    module = prior if name == "right" else mutant(prior, *LOCAL_MUTANTS[name])
    kinds = [(0.3, 2.0), (4.0, 0.5), (0.01, 1.0), (50.0, 30.0)]
    k, rate = np.array(kinds).T
    rate = np.repeat(rate[:, None], 20_000, axis=1)
    scales, h = module.RegularisedHorseshoe(20_000, 1.0, 1.0, 4.0, Host(1)), 1.0 / rate
    for sweep in range(1, 16):
        h = scales.draw_local(rate, {"local": h, "slab": k, "global": np.ones(4)}, Keys(2, (0, 1, 2, 3)), sweep)
    u = np.linspace(-30, 8, 20_001)  # log h
    exact = []
    for kind, r in kinds:
        weight = np.exp(0.5 * u - r * np.exp(u)) * np.sqrt(np.exp(u) + kind)
        exact += [weight @ u / weight.sum(), weight @ (r * np.exp(u)) / weight.sum()]
    found = np.stack([np.log(h), rate * h], -1).reshape(4, 100, 200, 2).mean(2).transpose(1, 0, 2).reshape(100, 8)
    comparison = compare(found, exact)
    assert comparison.agrees == (name == "right"), comparison


@pytest.mark.parametrize("separated", [True, False])
def test_separated_classes_have_no_posterior_under_a_flat_intercept(separated):
    """The marginal likelihood of 10^k < beta < 10^(k+1), p = 1, tau = 1:
    the same for every k where classes are separated.
    """
    x = np.array([-1.0, -0.6, 0.5, 1.2])
    sign = np.where(x > 0, 1.0, -1.0) if separated else np.array([-1.0, 1.0, -1.0, 1.0])

    def mass(k):
        log_b = np.linspace(k, k + 1, 40) * np.log(10)
        b = np.exp(log_b)[:, None]
        a = np.linspace(-1, 1, 1001) * (1.3 * b + 8)
        likelihood = np.exp(sum(log_ndtr(s * (a + b * at)) for s, at in zip(sign, x, strict=True))).sum(1) * (
            a[:, 1] - a[:, 0]
        )
        return np.sum(likelihood * np.exp(log_horseshoe(b[:, 0], 1.0)) * b[:, 0]) * (log_b[1] - log_b[0])

    masses = np.array([mass(k) for k in (1, 2, 3)])
    if separated:
        np.testing.assert_allclose(masses, masses[0], rtol=0.02)
    else:
        assert masses.max() < 1e-6


TRUE = np.array([1.3, 4, -1, 1.6, 5, -2])  # Terenin, Dong & Draper (2018), then zeros


def signs_and_zeros(n, p, burn_in, samples):
    """Their synthetic data: the six are found with their signs, the others are left out."""
    rng = np.random.default_rng(12)
    X = rng.standard_normal((n, p))
    beta = np.concatenate([TRUE, np.zeros(p - 6)])
    y = rng.random(n) < ndtr(X @ beta)
    model = HorseshoeProbit(chains=2, burn_in=burn_in, samples=samples, threads=1).fit(X, y)
    found = model.posterior["beta"].values.reshape(-1, p)
    low, high = np.quantile(found, [0.005, 0.995], axis=0)
    assert np.all(np.sign(low[:6]) == np.sign(TRUE)) and np.all(np.sign(high[:6]) == np.sign(TRUE))
    # the posterior of all six shares a factor, the scale of z: their ratios are known best
    ratio = found[:, :6] / np.linalg.norm(found[:, :6], axis=1, keepdims=True)
    np.testing.assert_array_less(np.abs(ratio.mean(0) - TRUE / np.linalg.norm(TRUE)), 4.5 * ratio.std(0))
    assert np.mean((low[6:] <= 0) & (high[6:] >= 0)) > 0.97
    assert np.abs(found[:, 6:].mean(0)).max() < 0.2 * np.abs(found[:, :6].mean(0)).min()


def test_terenin_small():
    signs_and_zeros(1500, 40, 150, 400)


@pytest.mark.slow
def test_terenin():
    signs_and_zeros(10_000, 1000, 300, 700)
