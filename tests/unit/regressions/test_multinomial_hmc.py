"""MultinomialHMC: density, gradient, integrator, adaptation and state against formulas and dense references."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy import stats
from scipy.special import log_softmax

from mmgibbs.errors import ConfigError, DataError
from mmgibbs.regressions.arrays.base import Host
from mmgibbs.regressions.loop import SideBySideChains
from mmgibbs.regressions.multinomial import hamiltonian as hmc
from mmgibbs.regressions.multinomial import softmax_curvature, softmax_gradient
from mmgibbs.regressions.multinomial.hmc import MultinomialHMCModel, MultinomialHMCOptions
from mmgibbs.regressions.options import fill_options
from mmgibbs.regressions.predictors import read_predictors
from mmgibbs.regressions.protocol import Keys, RegressionData

N, P, K = 40, 3, 4
RNG = np.random.default_rng(8)
X = RNG.normal(1.0, 2.0, (N, P))
LABELS = np.concatenate([np.arange(K), RNG.integers(0, K, N - K)])
COUNTS = RNG.integers(0, 4, (N, K))
KEYS = Keys(5, (0, 1, 2))
FIXED = {"adaptation": "none", "step_size": 0.05, "leapfrog_steps": 7}


def sampler(y=LABELS, table=X, standardise=False, threads=1, **options):
    data = RegressionData(read_predictors(table, standardise=standardise), y)
    return MultinomialHMCModel.prepare(data, fill_options(MultinomialHMCOptions, options), Host(threads))


def points(C=3, D=P + 1, size=0.7):
    return np.random.default_rng(1).normal(0, size, (C, K - 1, D))


def dense_log_posterior(B, y, Z, prior="cauchy", scale=2.5, intercept_scale=10.0, intercept=True):
    """(C,): scipy's densities at B (C, K - 1, D)."""
    Z = np.column_stack([Z, np.ones(len(Z))]) if intercept else Z
    counts = y if y.ndim == 2 else np.eye(K)[y]
    E = np.concatenate([Z @ np.swapaxes(B, 1, 2), np.zeros((len(B), len(Z), 1))], axis=2)
    scales = np.append(np.full(Z.shape[1] - intercept, scale), [intercept_scale] * intercept)
    law = stats.cauchy if prior == "cauchy" else stats.norm
    return (counts * log_softmax(E, axis=2)).sum((1, 2)) + law.logpdf(B, scale=scales).sum((1, 2))


@pytest.mark.parametrize("y", [LABELS, COUNTS], ids=["labels", "counts"])
@pytest.mark.parametrize(
    "options",
    [{}, {"prior": "normal", "scale": 0.8, "intercept_scale": 3.0}, {"intercept": False}],
    ids=["cauchy", "normal", "no intercept"],
)
def test_log_posterior_is_that_of_scipy(y, options):
    B = points(D=P + options.get("intercept", 1))
    got, exact = sampler(y, **options).target(B).log_density, dense_log_posterior(B, y, X, **options)
    assert np.allclose(np.diff(got), np.diff(exact), rtol=0, atol=1e-10)


@pytest.mark.parametrize("kind", ["float64", "float32", "uint8", "int8"])
def test_predictors_of_any_type_and_standardised(kind):
    table = np.round(X * 10 + 40).astype(kind)
    for standardise in (False, True):
        Z = (table - table.mean(0, dtype=float)) / table.std(0, dtype=float) if standardise else table.astype(float)
        B = points(size=0.05)
        exact = dense_log_posterior(B, LABELS, Z)
        for precision, tolerance in (("double", {"rtol": 0, "atol": 1e-9}), ("single", {"rtol": 1e-5, "atol": 1e-3})):
            found = sampler(table=table, standardise=standardise, precision=precision).target(B).log_density
            assert np.allclose(np.diff(found), np.diff(exact), **tolerance)


def gradient_error(model, B):
    """Largest difference to central finite differences, relative to the largest element."""
    gradient, h = model.target(B).gradient, 1e-5
    numeric = np.empty_like(B)
    for index in np.ndindex(*B.shape[1:]):
        step = np.zeros_like(B)
        step[(slice(None), *index)] = h
        there, back = (model.target(B + sign * step).log_density for sign in (1, -1))
        numeric[(slice(None), *index)] = (there - back) / (2 * h)
    return np.abs(gradient - numeric).max() / np.abs(gradient).max()


def wrong_prior_gradient(model):
    """The paper's sign: plus 2 B / (scale^2 + B^2)."""
    right = model.target

    def target(B):
        point = right(B)
        return replace(point, gradient=point.gradient + 4 * B / (model.scale**2 + B**2))

    model.target = target
    return model


@pytest.mark.parametrize("y", [LABELS, COUNTS], ids=["labels", "counts"])
@pytest.mark.parametrize("prior", ["cauchy", "normal"])
def test_gradient_against_finite_differences(y, prior):
    assert gradient_error(sampler(y, prior=prior, standardise=True), points()) < 1e-8


def test_wrong_sign_of_the_priors_gradient_is_seen():
    assert gradient_error(wrong_prior_gradient(sampler(scale=0.5)), points()) > 1e-3


def test_logits_of_any_size_stay_finite():
    point = sampler().target(points(size=1e4))
    assert np.isfinite(point.log_density).all() and np.isfinite(point.gradient).all()


def test_threads_change_no_bit_and_blocks_only_the_last(monkeypatch):
    table, y = np.random.default_rng(3).normal(size=(3000, P)), np.arange(3000) % K
    B = points()
    whole = sampler(y, table).target(B)
    monkeypatch.setattr(softmax_gradient, "BLOCK_BYTES", 1 << 12)
    one, three = (sampler(y, table, threads=t) for t in (1, 3))
    assert len(three.likelihood.parts) > 10
    one, three = one.target(B), three.target(B)
    assert np.array_equal(one.gradient, three.gradient) and np.array_equal(one.log_density, three.log_density)
    assert np.allclose(one.gradient, whole.gradient, rtol=0, atol=1e-9) and np.allclose(
        one.log_density, whole.log_density, rtol=1e-13
    )


# Integrator


MASSES = {
    "kronecker": hmc.KroneckerMass(
        np.array([[[1.0, 0.3, 0.1], [0.3, 2.0, 0.2], [0.1, 0.2, 0.7]]]) * 5, np.diag([20.0, 9.0, 30.0, 4.0])[None] + 3
    ),
    "diagonal": hmc.DiagonalMass(np.linspace(0.01, 0.05, (K - 1) * (P + 1)).reshape(1, K - 1, P + 1)),
    "identity": hmc.DiagonalMass(1.0),
}


@pytest.mark.parametrize("name", MASSES)
def test_mass_is_a_matrix_with_its_inverse_and_root(name):
    mass, d = MASSES[name], (K - 1) * (P + 1)
    unit = np.eye(d).reshape(d, K - 1, P + 1)
    M = mass.times(unit).reshape(d, d)
    root = mass.momentum(unit).reshape(d, d)  # rows: images of unit vectors
    assert np.allclose(root.T @ root, M, atol=1e-12) and np.allclose(mass.velocity(mass.times(unit)), unit, atol=1e-12)
    assert np.linalg.eigvalsh(M).min() > 0


def biased_leapfrog(target, velocity, start, momentum, step, steps):
    """The released code: L full kicks and two half ones."""
    point, momentum = start, momentum + hmc.expand_chains(step / 2) * start.gradient
    for _ in range(int(steps.max())):
        point = target(point.position + hmc.expand_chains(step) * velocity(momentum))
        momentum = momentum + hmc.expand_chains(step) * point.gradient
    return point, momentum + hmc.expand_chains(step / 2) * point.gradient


def there_and_back(integrator, mass):
    model, steps, step = sampler(), np.array([5, 12, 1]), np.array([0.02, 0.01, 0.04])
    if mass is MASSES["identity"]:
        step = step / 3
    start = model.target(points())
    momentum = mass.momentum(np.random.default_rng(2).normal(size=start.position.shape))
    end, last = integrator(model.target, mass.velocity, start, momentum, step, steps)
    back, first = integrator(model.target, mass.velocity, end, -last, step, steps)
    assert np.abs(end.position - start.position).max() > 0.01
    return max(np.abs(back.position - start.position).max(), np.abs(first + momentum).max())


@pytest.mark.parametrize("name", MASSES)
def test_trajectories_reverse_and_those_of_too_many_kicks_do_not(name):
    assert there_and_back(hmc.leapfrog, MASSES[name]) < 1e-12
    assert there_and_back(biased_leapfrog, MASSES[name]) > 1e-4


def energy_error_order(model):
    """log2 of |dH| at eps over |dH| at eps / 2, trajectories of the same length."""
    start, mass = model.target(points()), model.mass
    z = np.random.default_rng(4).normal(size=start.position.shape)
    errors = [
        hmc.trajectory(model.target, mass, start, z, np.full(3, 0.05 / m), np.full(3, 10 * m)).energy_error
        for m in (1, 2, 4)
    ]
    return np.log2(np.abs(errors[0] / errors[1])), np.log2(np.abs(errors[1] / errors[2]))


def test_energy_error_falls_with_the_square_of_the_step():
    model = sampler(scale=0.5)
    assert all(np.allclose(order, 2, atol=0.1) for order in energy_error_order(model))
    assert not any(np.allclose(order, 2, atol=0.5) for order in energy_error_order(wrong_prior_gradient(model)))


def test_a_trajectory_that_diverges_is_refused():
    model = sampler()
    start = model.target(points())
    tried = hmc.trajectory(
        model.target, model.mass, start, np.ones_like(start.position), np.full(3, 1e200), np.full(3, 3)
    )
    assert np.all(tried.energy_error == np.inf) and not tried.acceptance.any()
    now = hmc.accept(start, tried, np.full(3, 1e-300), 1e3)
    assert np.array_equal(now.position, start.position)


def test_annealing():
    T, seen = np.full(1, 1000.0), []
    for _ in range(70):
        T = hmc.cooler(T)
        seen.append(T[0])
    assert np.allclose(seen[:3], [900, 810, 729]) and seen[64] > 1 and seen[65:] == [1.0] * 5
    model = sampler(**FIXED)
    start = model.target(points())
    tried = hmc.Trajectory(start, start.gradient, np.full(3, 2.0), np.full(3, np.exp(-2.0)))
    end = replace(start, position=start.position + 1)
    for T, u, moves in ((1.0, 0.13, True), (1.0, 0.14, False), (10.0, 0.81, True), (10.0, 0.82, False)):
        assert np.all((hmc.accept(start, replace(tried, end=end), np.full(3, u), T).position == end.position) == moves)


def test_hessian_as_a_product():
    """Exact where all rows have the same probabilities; elsewhere S and A as they are defined, with the floor."""
    model = sampler(COUNTS, prior="normal", scale=0.7, intercept_scale=5.0)
    Z, n = np.column_stack([X, np.ones(N)]), COUNTS.sum(1)
    f = model.curvature.frequencies[:-1]
    C = np.diag(f) - np.outer(f, f)
    M = model.mass.times(np.eye((K - 1) * (P + 1)).reshape(-1, K - 1, P + 1)).reshape((K - 1) * (P + 1), -1)
    prior = np.kron(C / np.diag(C).mean(), np.diag(1 / np.append(np.full(P, 0.7), 5.0) ** 2))
    assert np.allclose(M, (1 + softmax_curvature.FLOOR) * np.kron(C, (Z * n[:, None]).T @ Z) + prior)
    B = points(C=2)
    mass = model.curvature.mass(B)
    probability = np.exp(log_softmax(np.concatenate([Z @ B.swapaxes(1, 2), np.zeros((2, N, 1))], axis=2), axis=2))[
        ..., :-1
    ]
    for c, P_c in enumerate(probability):
        w = n * ((P_c * (1 - P_c)).sum(1) + softmax_curvature.FLOOR * np.trace(C))
        of_rows = [np.diag(p) - np.outer(p, p) + softmax_curvature.FLOOR * C for p in P_c]
        S = np.tensordot(n, of_rows, 1) / w.sum()
        A = (Z * w[:, None]).T @ Z + np.diag(model.curvature.prior_precision / np.diag(S).mean())
        assert np.allclose(mass.S[c], S) and np.allclose(mass.A[c], A)


# State, chains, adaptation


@pytest.mark.parametrize("options", [{}, {"adaptation": "separate", "mass": "diagonal"}], ids=["pooled", "separate"])
def test_step_is_pure_and_resumes(options):
    def run(sweeps, state=None, first=1):
        model = sampler(**options)
        model.adapt_until(20)
        begun = model.start(KEYS)
        state = begun if state is None else state
        for sweep in range(first, first + sweeps):
            before = {name: value.copy() for name, value in state.items()}
            new = model.step(state, sweep, KEYS)
            assert all(np.array_equal(before[name], state[name]) for name in before)
            assert new.keys() == state.keys() and all(v.shape[0] == 3 and v.dtype == np.float64 for v in new.values())
            state = new
        assert all(np.array_equal(value, model.start(KEYS)[name]) for name, value in begun.items())
        return state

    whole, resumed = run(24), run(12, {n: v.copy() for n, v in run(12).items()}, 13)
    assert all(np.array_equal(whole[name], resumed[name]) for name in whole)


@pytest.mark.parametrize("options", [{"adaptation": "separate"}, {"mass": "diagonal"} | FIXED])
def test_several_chains_are_the_single_ones(options):
    def draws(chains):
        model = sampler(**options)
        run = SideBySideChains(model, model.arrays, Keys(5, chains), 20)
        run.advance(28)
        return run.result().draws

    together = draws((0, 1, 2))
    for c in range(3):
        alone = draws((c,))
        assert all(np.allclose(alone[name][0], together[name][c], rtol=0, atol=1e-8) for name in alone)


@pytest.mark.parametrize("mass", ["hessian", "diagonal"])
def test_what_is_learnt_is_frozen_after_the_burn_in(mass):
    model = sampler(mass=mass)
    run = SideBySideChains(model, model.arrays, KEYS, 40)
    run.advance(40)
    learnt = dict(run.current)
    run.advance(60)
    changed = {name for name in learnt if not np.array_equal(learnt[name], run.current[name])}
    assert changed <= {"position", "log_density", "gradient", "acceptance", "steps"}
    assert np.ptp(run.current["mean_log_step"]) == 0  # pooled: all chains alike
    assert np.ptp(run.result().statistics["step_size"]) == 0 and run.result().statistics["n_steps"].min() >= 1


def learn(sweeps, exact_length):
    """What 16 chains learn on a standard normal of 20 dimensions, and the acceptance of the second half."""
    target = lambda q: hmc.Point(q, -(q**2).sum((1, 2)) / 2, -q)
    learner = hmc.Adaptation(0.1, 1000, pooled=True)
    rng, mass = np.random.default_rng(0), hmc.DiagonalMass(1.0)
    now = target(np.random.default_rng(1).normal(size=(16, 2, 10)))
    learnt, accepted = learner.start(now.position), []
    for sweep in range(1, sweeps + 1):
        step, length = np.exp(learnt["log_step"]), hmc.jitter(sweep) * np.exp(learnt["log_length"])
        if exact_length:  # many small steps, no step beyond the length
            steps = np.full(16, 20)
            step = length / steps
        else:
            steps = np.clip(np.ceil(length / step), 1, 1000)
        start, tried = now, hmc.trajectory(target, mass, now, rng.normal(size=(16, 2, 10)), step, steps)
        now = hmc.accept(start, tried, rng.random(16))
        learnt |= learner.learn(learnt, start, now, tried, mass, sweep)
        accepted.append(tried.acceptance.mean())
    return learnt, np.mean(accepted[sweeps // 2 :])


def test_length_that_is_learnt(monkeypatch):
    """E sin^2(h t), ChEES of a standard normal over jitters h in (0, 1), is largest where tan 2t = 2t, t = 2.247."""
    monkeypatch.setattr(hmc, "WANTED_ACCEPTANCE", 1.01)  # the step learns to be small and bounds no length
    learnt, _ = learn(800, exact_length=True)
    assert np.allclose(np.exp(learnt["mean_log_length"]), 2.247, rtol=0.08)
    assert np.abs(learnt["centre"]).max() < 0.5


def test_step_that_is_learnt():
    assert abs(learn(400, exact_length=False)[1] - hmc.WANTED_ACCEPTANCE) < 0.03


def test_jitter_fills_the_unit_interval():
    h = np.array([hmc.jitter(s) for s in range(1, 64)])
    assert np.array_equal(h[:3], [0.5, 0.25, 0.75]) and np.array_equal(np.sort(h), np.arange(1, 64) / 64)


# Output and input


def test_log_is_on_the_scale_of_the_columns_as_given():
    model = sampler(standardise=True)
    state = model.start(KEYS)
    log, Z = model.log(state), (X - X.mean(0)) / X.std(0)
    B = state["position"]
    inner = np.einsum("ckd,nd->cnk", B[..., :P], Z) + B[:, None, :, P]
    assert np.allclose(np.einsum("cpk,np->cnk", log["beta"], X) + log["intercept"][:, None], inner)


def test_prediction_averages_the_softmax():
    rng, m = np.random.default_rng(2), 130
    draws = {"beta": rng.normal(size=(m, P, K - 1)), "intercept": rng.normal(size=(m, K - 1))}
    E = np.concatenate(
        [np.einsum("np,mpk->mnk", X, draws["beta"]) + draws["intercept"][:, None], np.zeros((m, N, 1))], axis=2
    )
    exact = np.exp(log_softmax(E, axis=2)).mean(0)
    assert np.allclose(MultinomialHMCModel.predict(draws, read_predictors(X), list(range(K))), exact, atol=1e-12)


@pytest.mark.parametrize(
    "y, options, error, text",
    [
        (LABELS[:-1], {}, DataError, "found 39 rows, needed 40"),
        (LABELS, {"adaptation": "none"}, ConfigError, "step_size: found nothing"),
        (LABELS, {"intercept": False, "standardise": True}, ConfigError, "found false with centred predictors"),
        (LABELS, {"scale": 0}, ConfigError, "scale: found 0"),
        (LABELS, {"leapfrog_steps": 0}, ConfigError, "leapfrog_steps: found 0"),
        (LABELS, {"prior": "laplace"}, ConfigError, "'cauchy' or 'normal'"),
    ],
)
def test_bad_input_is_named(y, options, error, text):
    with pytest.raises(error, match=text):
        sampler(y, **options)


def test_a_mass_matrix_that_cannot_be_held_is_refused():
    with pytest.raises(ConfigError, match="20,002 coefficients for each class, whose matrices take 10 GB"):
        sampler(np.array([0, 1]), np.zeros((2, 20_001), np.uint8))


def test_estimator_keeps_labels_and_names():
    from mmgibbs import MultinomialHMC

    table = np.random.default_rng(1).normal(5, 3, (300, 2))
    y = np.array(["calf", "cow", "bull"])[np.where(table[:, 0] > 6, 0, np.where(table[:, 1] > 5, 1, 2))]
    frame = pl.DataFrame({"weight": table[:, 0], "age": table[:, 1]})
    model = MultinomialHMC(chains=2, burn_in=100, samples=100, threads=1).fit(frame, y)
    assert list(model.classes_) == ["bull", "calf", "cow"] and model.coef_.shape == (2, 2)
    assert model.score(table, y) > 0.9 and np.allclose(model.predict_proba(table).sum(1), 1)
    assert "beta[age,calf]" in model.summary()["parameter"]
    assert list(model.posterior["beta"].dims) == ["chain", "draw", "predictor", "contrast"]
