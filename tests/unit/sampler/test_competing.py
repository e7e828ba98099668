"""Competing terms: which pairs they are, the density of both matrices, the sweep outside C, and what stays as it is."""

from dataclasses import replace

import numpy as np
import pytest
from reference import dense, models

import mmgibbs.engines.competing
import mmgibbs.machine.threads
from mmgibbs.engines.coloured.engine import StructuredEngine
from mmgibbs.engines.competing import CompetingTerms, in_bins
from mmgibbs.engines.serial import SerialEngine
from mmgibbs.equations.partition import partition
from mmgibbs.equations.structured import structured_equations
from mmgibbs.errors import ModelError
from mmgibbs.machine.threads import ALONE
from mmgibbs.model.covariance import CovarianceModel, full_block
from mmgibbs.model.relationships.identity import Identity
from mmgibbs.model.shared_levels import shared_levels
from mmgibbs.model.terms import Effect
from mmgibbs.runs.memory_estimate import sampling_bytes
from mmgibbs.sampler.chain import Chain, sample_chain
from mmgibbs.sampler.competing import (
    CompetingVariances,
    bytes_drawn_together,
    competing_terms,
    log_density,
    prior_of,
    reason_not_joint,
    reasons_not_competing,
    weights,
)
from mmgibbs.sampler.covariances import CovarianceMatrices
from mmgibbs.sampler.mixed_model import MixedModel
from mmgibbs.sampler.schedule import Schedule

KEY = (5, 1)
Q = 30


def model(kind="two traits", seed=3, n=90):
    """Animals of an inbred line, and what goes with their levels."""
    rng = np.random.default_rng(seed)
    sire, dam = models.looped_pedigree(rng, Q, 9)
    animal = rng.integers(6, Q, n).astype(np.int32)
    joins = np.eye(Q) * 1.6
    for i in range(0, Q - 3, 2):
        joins[i, i + 3] = joins[i + 3, i] = -0.4
    traits = (0, 1) if kind in ("two traits", "related") else (0,)
    effects = [Effect("", animal, traits)]
    other = effects[0]
    if kind == "maternal":
        effects = [Effect("direct", animal, (0,)), Effect("maternal", dam[animal], (0,))]
        other = Effect("", dam[animal], (0,))
    if kind == "regression":
        x = np.stack([np.ones(n), rng.normal(size=n)], axis=1)
        effects = [Effect("", animal, (0,), x, ("0", "1"))]
        other = effects[0]
    K_p = models.user_inverse(joins) if kind == "related" else Identity(Q)
    terms = [
        models.class_term("herd", np.arange(n) % 3, 3, list(traits)),
        models.random_term("genetic", effects, models.pedigree_relationship(sire, dam), Q),
        models.random_term("permanent", [other], K_p, Q),
    ]
    spread = lambda k, seed: np.cov(np.random.default_rng(seed).normal(size=(k, 4 * k))).reshape(k, k) + 0.5 * np.eye(k)
    G = [None, spread(terms[1].n_components, 1), spread(terms[2].n_components, 2)]
    design = models.with_records(rng, n, terms, G, spread(len(traits), 3))
    prior = lambda start: CovarianceModel(start, False, full_block(len(start)), len(start) + 4.0, 0.7 * start)
    return MixedModel(design, (None, prior(G[1]), prior(G[2])), prior(spread(len(traits), 3)))


KINDS = ("two traits", "related", "maternal", "regression")


def engine_of(made, make=SerialEngine, **options):
    engine = make(structured_equations(made.design, partition(made.design, "colour")), **options)
    rng = np.random.default_rng(8)
    engine.start([rng.normal(size=(t.n_levels, t.n_components)) for t in made.design.terms])
    return engine


def levels_of(made):
    """CompetingTerms in model order, for the dense formulas, after `take`."""
    equations = structured_equations(made.design, partition(made.design, "term"))
    (shared,) = competing_terms(made)
    levels = CompetingTerms(equations, shared, ALONE)
    rng = np.random.default_rng(9)
    theta = [rng.normal(size=(Q, made.design.terms[i].n_components)) for i in (shared.a, shared.p)]
    levels.take(*theta)
    return levels, theta


def joint_precision(made, A, Q_):
    """(q k_a, q k_a) K_a^-1 (x) A and the same of p, levels of the model with their components together."""
    K_a, K_p = (dense.relationship_inverse(made.design.terms[i]) for i in (1, 2))
    return np.kron(K_a, A), np.kron(K_p, Q_)


def of_x(made, levels, A, Q_, a, p, s):
    """Mean and precision of x at the levels C given all else; the exponent and log determinant of the joint density
    with x integrated out. Dense: a (q, k_a) and p (q, k_p) have 0 for the effects of C."""
    P_a, P_p = joint_precision(made, A, Q_)
    n, k_a, k = len(levels), a.shape[1], p.shape[1]
    to_a, to_p = np.zeros((a.size, n * k)), np.zeros((p.size, n * k))
    for i in range(n):
        for t, m in enumerate(levels.components):
            to_a[levels.at_a[i] * k_a + m, i * k + t] = 1.0
            to_p[levels.at_p[i] * k + t, i * k + t] = 1.0
    fixed_p = p.ravel() + to_p @ s.ravel()  # p where x is 0
    P = to_a.T @ P_a @ to_a + to_p.T @ P_p @ to_p
    b = to_p.T @ P_p @ fixed_p - to_a.T @ P_a @ a.ravel()
    exponent = a.ravel() @ P_a @ a.ravel() + fixed_p @ P_p @ fixed_p - b @ np.linalg.solve(P, b)
    return np.linalg.solve(P, b).reshape(n, k), P, -0.5 * exponent - 0.5 * np.linalg.slogdet(P)[1]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bins", [1, 40])
def test_density_of_both_matrices(kind, bins, monkeypatch):
    """Up to a constant it is that of the effects outside C, with the Jacobians of the orbit, from dense matrices."""
    monkeypatch.setattr(mmgibbs.engines.competing, "BINS", bins)
    made = model(kind)
    levels, _ = levels_of(made)
    assert levels.alike == (bins == 40)
    sums = levels.sums()
    a, p, s, m = levels.a.copy(), levels.p.copy(), levels.s.copy(), levels.components
    A, Q_ = (np.linalg.inv(made.covariances[i].start) for i in (1, 2))
    (nu_a, S_a), (nu_p, S_p) = (prior_of(made.covariances[i]) for i in (1, 2))
    step = CompetingVariances(made, levels.shared, engine_of(made), CovarianceMatrices([], np.eye(1)), KEY)
    rng, found, expected = np.random.default_rng(4), [], []
    for at in (np.zeros((3, m.size)), 0.4 * rng.normal(size=(3, m.size)), 0.3 * rng.normal(size=(3, m.size))):
        point = log_density(at, sums, A, Q_, *step.fixed_prior)
        if not levels.alike:
            end = weights(at, m, A, Q_)
            point += levels.of_levels(*end) - mmgibbs.sampler.competing.of_bins(*end, sums)
        found.append(point)
        sd_a, sd_p = np.ones(len(A)), np.exp(at[1])
        sd_a[m] = np.exp(at[0])
        G_a, G_p = np.linalg.inv(A) * sd_a[:, None] * sd_a, np.linalg.inv(Q_) * sd_p[:, None] * sd_p
        moved_a, moved_p = a.copy(), p.copy()
        moved_a[:, m] *= np.exp(at[2])
        moved_p[levels.other_p] += a[levels.other_a][:, m] - moved_a[levels.other_a][:, m]
        density = of_x(made, levels, np.linalg.inv(G_a), np.linalg.inv(G_p), moved_a, moved_p, s)[2]
        density -= Q * (np.linalg.slogdet(G_a)[1] + np.linalg.slogdet(G_p)[1]) / 2
        density += dense.log_inverse_wishart(G_a, nu_a[0], S_a) + dense.log_inverse_wishart(G_p, nu_p[0], S_p)
        density += (len(A) + 1) * at[0].sum() + (len(Q_) + 1) * at[1].sum() + (Q - len(levels)) * at[2].sum()
        expected.append(density)
    np.testing.assert_allclose(np.diff(found), np.diff(expected), rtol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_sweep_over_the_levels_outside(kind):
    """Level by level the conditional mean and precision of the dense joint density, x of C integrated out."""
    made = model(kind)
    levels, _ = levels_of(made)
    levels.sums()
    A, Q_ = (np.linalg.inv(made.covariances[i].start) for i in (1, 2))
    m, k = levels.components, len(Q_)
    scale = np.linspace(0.8, 1.3, k)
    levels.expect(weights(np.stack([0 * scale, 0 * scale, np.log(scale)]), m, A, Q_), scale)
    a, p, s = levels.a.copy(), levels.p.copy(), levels.s
    normals = np.random.default_rng(6).normal(size=(len(levels.outside), k))
    levels.sweep(A, Q_, normals)
    assert len(levels.outside) == (Q - len(levels) if kind != "related" else Q - 24)
    in_x = np.ix_(levels.at_a, m)
    for level, pair, z in zip(levels.outside, levels.outside_p, normals, strict=True):
        a[in_x] = 0.0
        joint = lambda change: with_change(made, levels, A, Q_, a, p, s, level, pair, change)  # noqa: B023
        gradient, precision = derivatives(joint, k)
        L = np.linalg.cholesky(precision)
        change = np.linalg.solve(precision, gradient) + np.linalg.solve(L.T, z)
        a[level, m] += change
        if pair >= 0:
            p[pair] -= change
    a[in_x] = 0.0
    means, *_ = of_x(made, levels, A, Q_, a, p, s)
    a[in_x] = means
    np.testing.assert_allclose(levels.a, a, atol=2e-6)
    np.testing.assert_allclose(levels.p, p, atol=2e-6)
    P = of_x(made, levels, A, Q_, np.where(np.isin(np.arange(Q), levels.at_a)[:, None], 0.0, a), p, s)[1]
    before, normals = levels.a.copy(), np.random.default_rng(7).normal(size=(len(levels), k))
    levels.draw(normals.copy())
    for i in range(len(levels)):
        L = np.linalg.cholesky(P[i * k : (i + 1) * k, i * k : (i + 1) * k])
        moved = (levels.a - before)[levels.at_a[i], m]
        np.testing.assert_allclose(moved, np.linalg.solve(L.T, normals[i]), atol=1e-9)


def with_change(made, levels, A, Q_, a, p, s, level, pair, change):
    a, p = a.copy(), p.copy()
    a[level, levels.components] += change
    if pair >= 0:
        p[pair] -= change
    return of_x(made, levels, A, Q_, a, p, s)[2]


def derivatives(function, k):
    """Gradient and minus the Hessian at 0 of a quadratic function, from differences, which have no error but
    rounding."""
    e = np.eye(k)
    gradient = np.array([(function(x) - function(-x)) / 2 for x in e])
    at_0 = function(0.0 * e[0])
    H = [[function(x + y) - function(x) - function(y) + at_0 for y in e] for x in e]
    return gradient, -np.array(H)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("make", [SerialEngine, StructuredEngine])
def test_sums_and_residuals_stay(kind, make):
    """What the records see does not move, and everything else does: effects and both matrices."""
    made = model(kind)
    engine = engine_of(made, make)
    matrices = CovarianceMatrices([None if c is None else c.start for c in made.covariances], made.residual.start)
    engine.set_variances(matrices.G, matrices.R)
    before, e, G = engine.fetch(), engine.e.copy(), [g for g in matrices.G if g is not None]
    (shared,) = competing_terms(made)
    facts = CompetingVariances(made, shared, engine, matrices, KEY)(1)
    assert 0.0 < facts["joint_draw_acceptance[genetic, permanent]"] < 1.0
    after = engine.fetch()
    m = list(shared.components)
    together = [theta[1][shared.levels[0]][:, m] + theta[2][shared.levels[1]] for theta in (before, after)]
    np.testing.assert_allclose(*together, atol=1e-12)
    assert np.abs(after[1][:, m] - before[1][:, m]).min() > 0.0 or kind == "related"
    assert np.array_equal(np.delete(after[1], m, axis=1), np.delete(before[1], m, axis=1))
    np.testing.assert_array_equal(engine.e, e)
    engine.refresh()
    np.testing.assert_allclose(engine.e, e, atol=1e-12)
    for was, now in zip(G, [g for g in matrices.G if g is not None], strict=True):
        assert np.allclose(now, now.T) and not np.allclose(was, now)
        sd = [np.sqrt(np.diag(g)) for g in (was, now)]
        np.testing.assert_allclose(now / sd[1][:, None] / sd[1], was / sd[0][:, None] / sd[0], atol=1e-12)


def test_levels_that_no_relationship_joins():
    made = model("related")
    (shared,) = competing_terms(made)
    K = [dense.relationship_inverse(made.design.terms[i]) for i in (1, 2)]
    levels, _ = levels_of(made)
    for at, inverse in ((levels.at_a, K[0]), (levels.at_p, K[1])):
        among = inverse[np.ix_(at, at)]
        np.testing.assert_allclose(among, np.diag(np.diag(among)), atol=1e-12)
    left = np.setdiff1d(shared.levels[0], levels.at_a)
    joins = np.abs(K[0][np.ix_(left, levels.at_a)]) + np.abs(K[1][np.ix_(left, levels.at_p)])
    assert np.all(joins.max(axis=1) > 1e-3)  # no more could be taken
    assert len(levels) > 5 and shared.levels.shape == (2, 24)


def test_bins():
    kappa = np.array([[2.0, 1.0], [1.0, 1.0], [2.0, 1.0], [1.5, 1.0]])
    order, first, values, alike = in_bins(kappa)
    assert alike and list(first) == [0, 1, 2, 4] and np.array_equal(kappa[order], np.repeat(values, [1, 1, 2], axis=0))
    many = np.stack([np.linspace(1.0, 3.0, 1000), np.ones(1000)], axis=1)[np.random.default_rng(1).permutation(1000)]
    order, first, values, alike = in_bins(many)
    assert not alike and len(values) == mmgibbs.engines.competing.BINS and first[-1] == 1000
    for i, mean in enumerate(values):
        np.testing.assert_allclose(many[order[first[i] : first[i + 1]]].mean(axis=0), mean)
    assert np.abs(many[order, 0] - np.repeat(values[:, 0], np.diff(first))).max() < 0.05


def test_the_chain_does_not_depend_on_threads_or_rests(monkeypatch):
    monkeypatch.setattr(mmgibbs.engines.competing, "PIECE", 4)
    made = model("two traits")
    schedule = Schedule(0, 12, competing=competing_terms(made), interweave=(1, 2))
    draws = [
        sample_chain(made, engine_of(made, StructuredEngine, threads=t), schedule, KEY).draws["G.1"] for t in (1, 2, 3)
    ]
    assert np.array_equal(draws[0], draws[1]) and np.array_equal(draws[0], draws[2])
    first = Chain(made, engine_of(made, StructuredEngine, threads=2), schedule, KEY)
    first.advance(5)
    state = {name: array.copy() for name, array in first.state().items()}
    second = Chain(made, engine_of(made, StructuredEngine, threads=2), schedule, KEY, state)
    second.advance(12)
    np.testing.assert_array_equal(second.result().draws["G.1"], draws[0])


def test_single_precision_follows_double():
    made = model("maternal")
    results = []
    for precision in ("double", "single"):
        engine = SerialEngine(structured_equations(made.design, partition(made.design), precision))
        results.append(sample_chain(made, engine, Schedule(0, 3, competing=competing_terms(made)), KEY))
    np.testing.assert_allclose(results[0].draws["G.2"], results[1].draws["G.2"], rtol=1e-3)


def test_which_terms_compete():
    found = {kind: competing_terms(model(kind)) for kind in KINDS}
    assert all(len(pairs) == 1 and (pairs[0].a, pairs[0].p) == (1, 2) for pairs in found.values())
    assert [pairs[0].components for pairs in found.values()] == [(0, 1), (0, 1), (1,), (0, 1)]
    assert competing_terms(model(), False) == ()


def test_terms_that_do_not_compete():
    made = model("two traits")
    design, (effect,) = made.design, made.design.terms[1].effects
    p = lambda **changes: replace(
        design, terms=(*design.terms[:2], models.random_term("p", [replace(effect, **changes)], Identity(Q), Q))
    )
    assert shared_levels(p(), 1, 2) is not None
    one_less = np.where(np.arange(effect.level.size) == 3, -1, effect.level)
    assert shared_levels(p(level=one_less), 1, 2) is None  # a record that meets one term alone
    assert shared_levels(p(level=effect.level // 2), 1, 2) is None  # two animals with one level of p
    assert shared_levels(p(level=np.arange(effect.level.size) % Q), 1, 2) is None
    assert shared_levels(p(covariates=np.full((effect.level.size, 1), 2.0)), 1, 2) is None
    assert shared_levels(p(traits=(1,)), 1, 2).components == (1,)
    assert shared_levels(p(traits=(1,)), 2, 1) is None  # p has a trait that a lacks
    nobody = np.full(effect.level.size, -1, np.int32)
    assert shared_levels(p(level=nobody), 1, 2) is None
    shifted = shared_levels(p(level=(effect.level + 5) % Q), 1, 2)
    assert np.array_equal((shifted.levels[0] + 5) % Q, shifted.levels[1])


@pytest.mark.parametrize(
    "change, why",
    [
        (lambda t, c: (t, replace(c, fixed=True)), "its covariance matrix is fixed"),
        (lambda t, c: (t, replace(c, unit=(0,))), "a variance of it is 1 by convention"),
        (
            lambda t, c: (replace(t, active=np.arange(2 * Q).reshape(Q, 2) > 3), c),
            "some effects of its levels are set to 0",
        ),
    ],
)
def test_why_a_term_is_not_drawn_together(change, why):
    made = model("two traits")
    term, covariance = change(made.design.terms[2], made.covariances[2])
    design = replace(made.design, terms=(*made.design.terms[:2], term))
    other = replace(made, design=design, covariances=(*made.covariances[:2], covariance))
    assert reason_not_joint(made, 2) is None and reason_not_joint(other, 2) == why
    assert competing_terms(other) == ()
    assert reasons_not_competing(other) == [f"term 'permanent': {why}"]


def test_why_nothing_is_drawn_together():
    made = model("two traits")
    design = replace(made.design, terms=made.design.terms[:2])
    (why,) = reasons_not_competing(replace(made, design=design, covariances=made.covariances[:2]))
    assert why.startswith("no two random effects compete: needed two on the same traits")


def test_a_level_that_cannot_be_drawn_is_said():
    """What C takes away leaves the precision of a level outside without a factor: nothing is drawn from it."""
    made = model("two traits")
    levels, _ = levels_of(made)
    k, k_a = len(levels.components), levels.a.shape[1]
    A, Q_, normals = np.eye(k_a), np.eye(k), np.zeros((len(levels.outside), k))
    levels.follow = np.zeros((len(levels), k, k))
    assert levels.sweep(A, Q_, normals) == -1
    levels.follow = np.tile(1e6 * np.eye(k), (len(levels), 1, 1))
    before, failed = levels.a.copy(), levels.sweep(A, Q_, normals)
    assert failed in levels.outside and (levels.a[failed] == before[failed]).all()


def test_a_chain_stops_at_a_level_that_cannot_be_drawn(monkeypatch):
    made = model("two traits")
    engine = engine_of(made)
    matrices = CovarianceMatrices([None if c is None else c.start for c in made.covariances], made.residual.start)
    engine.set_variances(matrices.G, matrices.R)
    (shared,) = competing_terms(made)
    step = CompetingVariances(made, shared, engine, matrices, KEY)
    monkeypatch.setattr(CompetingTerms, "sweep", lambda *_: 4)
    level = engine.equations.terms[shared.a].code[4] + 1
    with pytest.raises(ModelError, match=rf"level number {level} of .* cannot be solved"):
        step(1)


def test_where_all_are_left_out_none_is_said_to_be_missing():
    """Two that would compete, both with fixed variances."""
    made = model("two traits")
    fixed = tuple(None if c is None else replace(c, fixed=True) for c in made.covariances)
    reasons = reasons_not_competing(replace(made, covariances=fixed))
    assert len(reasons) == 2 and not any("no two random effects" in reason for reason in reasons)


@pytest.mark.parametrize("kind", KINDS)
def test_bytes_that_are_asked_for(kind):
    """What a step holds for each level, and what it makes in a call."""
    made = model(kind)
    engine = engine_of(made)
    matrices = CovarianceMatrices([None if c is None else c.start for c in made.covariances], made.residual.start)
    engine.set_variances(matrices.G, matrices.R)
    (shared,) = competing_terms(made)
    step = CompetingVariances(made, shared, engine, matrices, KEY)
    step(1)
    held = sum(v.nbytes for v in vars(step.levels).values() if isinstance(v, np.ndarray))
    asked = bytes_drawn_together(made.design, shared)
    assert held < asked < 6 * held


def test_memory_of_a_chain_counts_every_pair():
    made = model()
    (shared,) = competing_terms(made)

    def needed(pairs):
        return sampling_bytes(made, Schedule(10, 10, competing=(shared,) * pairs), 0, made.design.y.dtype)

    assert needed(30) - needed(20) == 10 * bytes_drawn_together(made.design, shared)  # where a chain at work needs most
