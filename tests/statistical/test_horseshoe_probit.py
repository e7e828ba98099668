"""Horseshoe probit against importance sampling, and against the joint distribution (Geweke 2004)."""

from functools import cache

import numpy as np
import pytest
from helpers.monte_carlo import chain_batches, compare
from helpers.mutants import mutant
from helpers.selection import first
from reference.horseshoe import posterior_moments, prior_draws
from scipy.special import log_ndtr, ndtr

import mmgibbs.regressions.horseshoe.coefficients as coefficients
import mmgibbs.regressions.horseshoe.ellipse as ellipse
import mmgibbs.regressions.horseshoe.prior as prior
import mmgibbs.regressions.horseshoe.probit as horseshoe
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


def draws(X, y, samples, chains=100, burn_in=40, module=horseshoe, seed=11, **options):
    """(chains, samples, 2 p + 3): beta, intercept, log tau, squares of beta and intercept."""
    data = RegressionData(read_predictors(X), y)
    sampler = module.HorseshoeProbitModel.prepare(data, module.HorseshoeProbitOptions(**options), Host(1))
    keys = Keys(seed, tuple(range(chains)))
    state, kept = sampler.start(keys), []
    for sweep in range(1, burn_in + samples + 1):
        state = sampler.step(state, sweep, keys)
        if sweep > burn_in:
            found = sampler.log(state)
            theta = np.column_stack([found["beta"], found["intercept"]])
            kept.append(np.column_stack([theta, np.log(found["tau"]), theta**2]))
    return np.stack(kept, axis=1)


@pytest.mark.parametrize("options", [{"collapsed": False, "precision": "single"}, {"collapsed": True}])
def test_small_posterior(options):
    X, y, exact, error = small_case()
    comparison = compare(chain_batches(draws(X, y, 100, **options)), exact, error)
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
    "noise solved with L": (coefficients, "self.fit.p + 1), transposed=True", "self.fit.p + 1)"),
    "ellipse around 0": (ellipse, "intercept[:, None]], 1) - mean, f]", "intercept[:, None]], 1), f]"),
    "ellipse without the rest": (ellipse, "rows]).sum(1)) - normal", "rows]).sum(1)) * 0.0"),
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
    precision, local = state["global"][:, None], state["local"][:, : min(p, 3)]
    columns = [a, a**2, bounded, bounded**2, -0.5 * np.log(precision), -0.5 * np.log(local), y[:, :2]]
    columns += [y.mean(1, keepdims=True) * a, (y @ X) * bounded, np.tanh(precision**-0.5 * y[:, :1])]
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
    "collapsed": (TALL, {"collapsed": True}),
    "slab": (TALL, SLAB | {"collapsed": False}),
    "rows": (WIDE, {}),
    "plain": (TALL, {"expansion": False, "collapsed": False}),
    "expanded": (TALL, {"collapsed": False}),
}


@pytest.mark.parametrize("name", first(3, JOINT))
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
    comparison = geweke(*JOINT["slab"], spoilt(prior, *MUTANTS_OF_SLAB[name]))
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
