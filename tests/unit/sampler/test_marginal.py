"""log p(x | y) of all variances against dense formulas, its derivatives, and that each move leaves a prior alone."""

import numpy as np
import pytest
from helpers.mixed_models import equations_of
from helpers.monte_carlo import batches, compare
from helpers.mutants import mutant
from helpers.selection import first
from helpers.support import mixed_model
from reference import dense, models
from scipy import special, stats

import mmgibbs.sampler.marginal.log_cholesky as log_cholesky_module
import mmgibbs.sampler.marginal.moves as moves_module
import mmgibbs.sampler.marginal.step as step_module
import mmgibbs.sampler.marginal.surrogate as surrogate_module
from mmgibbs.engines.direct.engine import MarginalEngine
from mmgibbs.errors import ModelError
from mmgibbs.models.covariance import CovarianceModel, diagonal_blocks, full_block
from mmgibbs.models.priors import HalfT, UniformHeritability
from mmgibbs.models.priors.inverse_wishart import InverseWishart
from mmgibbs.sampler.chain import Chain
from mmgibbs.sampler.covariances import starting_matrices
from mmgibbs.sampler.marginal.moves import AUTOREGRESSION, GRADIENT, INDEPENDENCE, SURROGATE, WALK, Shape, log_t
from mmgibbs.sampler.marginal.target import Target
from mmgibbs.sampler.mixed_model import MixedModel
from mmgibbs.sampler.schedule import Schedule


def model_of(prior):
    """Two traits with missing records under one kind of prior of every matrix."""
    example = models.example("bivariate_missing")
    k = 2

    def covariance(start):
        match prior:
            case "flat":
                return CovarianceModel(start, False, full_block(k))
            case "inverse Wishart":
                return CovarianceModel(start, False, full_block(k), InverseWishart(7.5, 2.0 * start))
            case "diagonal":
                return CovarianceModel(
                    np.diag(np.diag(start)), False, diagonal_blocks(k), InverseWishart(5.0, 2.0 * start)
                )
            case "half-t":
                return CovarianceModel(start, False, full_block(k), prior=HalfT(2.0, np.array([3.0, 1.5])))
            case _:
                return CovarianceModel(start, False, diagonal_blocks(k), prior=UniformHeritability())

    covariances = tuple(None if g is None else covariance(np.asarray(g, float)) for g in example.G)
    return MixedModel(example.design, covariances, covariance(np.asarray(example.R, float)))


PRIORS = ["flat", "inverse Wishart", "diagonal", "half-t"]


def engine_of(model):
    return MarginalEngine(equations_of(model, "term"))


def dense_log_density(model, space, x):
    """log p(G, R | y) from dense formulas + log|dG/dx| by differences."""
    psi = space.psi(x)[0]
    at, G = 0, []
    for c in model.covariances:
        G.append(None if c is None else psi[at : at + c.start.size].reshape(c.start.shape))
        at += 0 if c is None else c.start.size
    R = psi[at:].reshape(2, 2)
    total = dense.log_marginal_likelihood(model.design, G, R)
    for covariance, matrix in zip(
        [*(c for c in model.covariances if c is not None), *model.residual.matrices],
        [*(g for g in G if g is not None), R],
        strict=True,
    ):
        total += log_prior(covariance, matrix)
    e = space.elements
    places = e.place[e.matrix] + e.row * e.size[e.matrix] + e.column
    J = np.empty((x.size, x.size))
    for i in range(x.size):
        step = 1e-6 * np.eye(x.size)[i]
        J[:, i] = (space.psi(x + step)[0][places] - space.psi(x - step)[0][places]) / 2e-6
    return total + np.linalg.slogdet(J)[1]


def log_prior(covariance, matrix):
    """Up to a constant, from scipy's inverse Wishart; half-t with its auxiliary variables integrated out on a grid."""
    total = 0.0
    for block in covariance.blocks:
        own = matrix[np.ix_(block, block)]
        if covariance.prior.mixture is not None:
            total += log_half_t(covariance.prior, own)
        elif not covariance.flat:
            nu, S = covariance.inverse_wishart(block)
            total += stats.invwishart.logpdf(own, nu, S)
    return total


def log_half_t(prior, G):
    """log of the mean over a of IW(G; nu + k - 1, 2 nu diag(1/a)): a on a grid of log a, two components."""
    logs = np.linspace(-12, 16, 400)
    k = len(G)
    inverse = np.linalg.inv(G)
    out = -(prior.nu + 2 * k) / 2 * np.linalg.slogdet(G)[1]
    for i in range(k):  # given G they are independent
        a = np.exp(logs)
        terms = -(prior.nu + k - 1) / 2 * logs - prior.nu * inverse[i, i] / a
        terms += -1.5 * logs - 1 / (prior.A[i] ** 2 * a) + logs
        out += special.logsumexp(terms)
    return out


def spaces_of(model, linear):
    """x of a model about its start, log l_ii or with one standard deviation of it a third of l_ii."""
    space = log_cholesky_module.log_cholesky(model)
    start = space.x(space.start)
    if linear:
        space = space.extrapolate(start, np.full(len(space), 1 / 3))
    return space, space.x(space.start)


@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize("prior", PRIORS)
def test_density_against_dense_formulas(prior, linear):
    model = model_of(prior)
    space, start = spaces_of(model, linear)
    target = Target(space, engine_of(model).integrated)
    rng = np.random.default_rng(5)
    points = [start + 0.4 * rng.standard_normal(len(space)) for _ in range(4)]
    differences = [target.evaluate(x)[0] - dense_log_density(model, space, x) for x in points]
    assert np.ptp(differences) < 1e-4


def test_the_prior_of_a_uniform_heritability():
    """s/(1 + s) is uniform, so that p(x) is 2 sqrt(s)/(1 + s)^2 times the slope of sqrt(s)."""
    model = model_of("uniform")
    space = log_cholesky_module.log_cholesky(model)
    x = np.zeros(len(space))
    other = x.copy()
    other[0] = 0.7
    expected = []
    for at in (x, other):
        s = space.psi(at)[0][0]
        expected.append(np.log(np.sqrt(s) / (1 + s) ** 2 * space.slopes(at)[0]))
    np.testing.assert_allclose(space.psi(other)[1] - space.psi(x)[1], expected[1] - expected[0])


@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize("prior", PRIORS)
def test_gradient_against_differences(prior, linear):
    model = model_of(prior)
    space, start = spaces_of(model, linear)
    target = Target(space, engine_of(model).integrated)
    x = start + 0.3 * np.random.default_rng(6).standard_normal(len(space))
    target.evaluate(x)
    found = target.gradient(x)
    for i, step in enumerate(1e-5 * np.eye(x.size)):
        expected = (target.evaluate(x + step)[0] - target.evaluate(x - step)[0]) / 2e-5
        assert found[i] == pytest.approx(expected, rel=1e-5, abs=1e-5)


class NoData:
    """A likelihood that says nothing: the posterior is the prior."""

    def evaluate(self, psi):
        return 0.0

    def keep(self):
        pass

    def gradient(self, kept=False):
        return [np.zeros((2, 2))], np.zeros((1, 2, 2))


DF = 12.0
SCALE = np.array([[30.0, 9.0], [9.0, 24.0]])


def wrong_surrogate(p):
    """Of points and weights at random."""
    rng = np.random.default_rng(8)
    return surrogate_module.Surrogate(rng.normal(size=(p, 20)), rng.normal(size=20), np.array(1.5))


def draws_of_the_prior(kind, n=6_000, surrogate=None):
    """log|M| and the elements of M^-1 of G and R, drawn by one kind of move from IW(DF, SCALE) each."""
    example = models.example("bivariate_missing")
    number = next(i for i, g in enumerate(example.G) if g is not None)
    G = [None if g is None else SCALE / 9 for g in example.G]
    model = mixed_model(example.design, G, SCALE / 9, {number: (DF, SCALE), "residual": (DF, SCALE)})
    step = step_module.MarginalVariances(model, NoData(), starting_matrices(model, 0), 400, (3, 0))
    kept = []
    for sweep in range(1, n + 400):
        if sweep == 401:
            step._main = np.array(kind)
            step._surrogate = surrogate or step._surrogate
            step._kind = lambda _number: kind
        step(sweep)
        if sweep > 400:
            M = np.stack([step.draws()[f"G.{number}"], step.draws()["R"]])
            inverse = np.linalg.inv(M)
            kept.append(np.concatenate([np.linalg.slogdet(M)[1], inverse[:, [0, 1, 1], [0, 0, 1]].ravel()]))
    return np.array(kept)


def expected_moments():
    log_det = np.linalg.slogdet(SCALE)[1] - 2 * np.log(2) - special.digamma(DF / 2) - special.digamma((DF - 1) / 2)
    inverse = DF * np.linalg.inv(SCALE)
    return np.array([log_det, log_det, *2 * [inverse[0, 0], inverse[1, 0], inverse[1, 1]]])


@pytest.mark.parametrize("kind", first(2, [INDEPENDENCE, AUTOREGRESSION, WALK, GRADIENT, SURROGATE]))
def test_each_move_leaves_the_prior_alone(kind):
    comparison = compare(batches(draws_of_the_prior(kind)), expected_moments())
    assert comparison.agrees, comparison


def test_a_surrogate_is_near_what_it_learns_from():
    """A density that is not normal, from as many points as burn-in leaves: the standard deviation of the error of log s
    where the density is, beside that of the t alone."""

    def log_p(x):
        return -0.5 * (x @ x) + 0.3 * x[0] ** 2 * x[1] - 0.1 * x[0] ** 4 - np.logaddexp(0, x[2])

    rng = np.random.default_rng(9)
    shape = Shape(np.array([0.0, 0.3, -0.4]), np.diag([0.8, 1.0, 0.9]))
    points = shape.center + 1.3 * rng.standard_normal((240, 3)) @ shape.root
    surrogate = surrogate_module.learn(shape, points, np.array([log_p(x) for x in points]))
    there = shape.center + rng.standard_normal((500, 3)) @ shape.root
    apart = np.array([log_p(x) - log_t(shape.u(x)) for x in there])
    error = apart - np.array([surrogate.r(shape.u(x)) for x in there])
    assert error.std() < 0.1 < 0.5 * apart.std()


def test_a_surrogate_that_is_not_learnt_again_serves_on():
    """As after a late jump to a far higher density, which leaves too few points near it."""
    model = model_of("inverse Wishart")
    step = step_module.MarginalVariances(model, engine_of(model).integrated, starting_matrices(model, 0), 100, (3, 0))
    for sweep in range(1, 100):
        step(sweep)
    before, others = step._surrogate, step.state()
    step._points[np.isfinite(step._points[:, -1]), -1] -= 100.0
    step._jumps[SURROGATE] = 1e6, 1.0
    step(100)
    assert before is not None and step._main == SURROGATE and step._surrogate is before
    step(101)
    step.restore({name: array for name, array in others.items() if "surrogate_" not in name})
    step._jumps[SURROGATE] = 1e6, 1.0
    step._points[:] = np.nan
    step(100)
    assert step._surrogate is None and step._main != SURROGATE


MUTANTS = {
    "surrogate without its ratio": (
        surrogate_module,
        "log_t(now) + before - log_t(u) - after",
        "0.0",
        SURROGATE,
    ),
    "no Jacobian": (log_cholesky_module, "jacobian_exponents(model.blocks) - prior", "-prior", INDEPENDENCE),
    "independence without its ratio": (
        moves_module,
        "return shape.x(u), log_t(shape.u(x)) - log_t(u)",
        "return shape.x(u), 0.0",
        INDEPENDENCE,
    ),
    "autoregression without its ratio": (
        moves_module,
        "return shape.x(u), log_t(now) - log_t(u)",
        "return shape.x(u), 0.0",
        AUTOREGRESSION,
    ),
    "gradient without the way back": (
        moves_module,
        "return -0.5 * float(z @ z)",
        "return -0.5 * float(z @ z) * 0.0",
        GRADIENT,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MUTANTS)
def test_wrong_moves_are_seen(name, monkeypatch):
    module, right, wrong, kind = MUTANTS[name]
    spoilt = mutant(module, right, wrong, compiled=False)
    for function in ("log_cholesky", "independent", "autoregressive", "log_density_back", "along_surrogate"):
        if hasattr(spoilt, function):
            monkeypatch.setattr(step_module, function, getattr(spoilt, function))
    if module is log_cholesky_module:  # compiled again: its kernel is another
        monkeypatch.setattr(spoilt, "_matrices", log_cholesky_module._matrices)
    elif module is surrogate_module:
        monkeypatch.setattr(spoilt, "_walk", surrogate_module._walk)
    else:
        monkeypatch.setattr(spoilt, "_fill", moves_module._fill)
    surrogate = wrong_surrogate(6) if kind == SURROGATE else None
    comparison = compare(batches(draws_of_the_prior(kind, surrogate=surrogate)), expected_moments())
    assert not comparison.agrees, comparison


def test_variances_that_are_all_fixed():
    """Draws of the effects at their posterior, one after another independent."""
    example = models.example("direct_maternal")
    model = mixed_model(example.design, example.G, example.R, saved=[t.name for t in example.design.terms])
    chain = Chain(model, engine_of(model), Schedule(0, 4000), (2, 0))
    chain.advance(4000)
    truth, tracked = dense.build(example.design, example.G, example.R), chain.result().tracked
    assert all(t.active is None for t in example.design.terms)
    draws = np.hstack([tracked[f"levels.{t.name}"].draws.reshape(4000, -1) for t in example.design.terms])
    sd = np.sqrt(np.diag(truth.covariance))
    assert np.abs((draws.mean(axis=0) - truth.solution) / sd * np.sqrt(4000)).max() < 4.5
    np.testing.assert_allclose(draws.std(axis=0), sd, rtol=0.08)


def test_starts_that_cannot_be_factorised_are_refused():
    model = model_of("flat")
    step = step_module.MarginalVariances(model, engine_of(model).integrated, starting_matrices(model, 0), 0, (1, 0))
    with pytest.raises(ModelError, match="not positive definite at the starting variances"):
        step._start(np.full(len(step.space), -900.0))
