"""The steps of traits that are not normal: thresholds against quadrature, everything at once by Geweke's (2004) test.

Spoiled copies must fail: the unconditional variance in the threshold step, the Jacobian of its walk left out, a scale
move that miscounts, a conditional that forgets the other trait.
"""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from helpers.monte_carlo import batches, compare
from helpers.mutants import mutant
from reference import dense, models
from scipy import stats
from scipy.stats import invwishart

from mmgibbs.engines import liabilities as passes
from mmgibbs.engines.serial import SerialEngine
from mmgibbs.equations.partition import partition
from mmgibbs.equations.structured import structured_equations
from mmgibbs.models.covariance import CovarianceModel, full_block
from mmgibbs.models.response import Categories
from mmgibbs.sampler import liabilities
from mmgibbs.sampler.covariances import starting_matrices
from mmgibbs.sampler.mixed_model import MixedModel
from mmgibbs.sampler.schedule import Schedule
from mmgibbs.sampler.steps import gibbs_steps

R = np.array([[1.0, 0.8], [0.8, 1.6]])


def held(start):
    return CovarianceModel(np.array(start), True, full_block(len(start)))


# ------------------------------------------------------------------------------------------------ by quadrature


@cache
def two_traits():
    """24 records of an ordinal trait (four categories) beside a normal one, correlated; no effect but an intercept."""
    rng = np.random.default_rng(8)
    n = 24
    e = rng.standard_normal((n, 2)) @ np.linalg.cholesky(R).T
    y = np.array([0.6, 0.2]) + e
    category = np.searchsorted([0.0, 0.7, 1.5], y[:, 0]).astype(np.int16)
    response = Categories(0, ("a", "b", "c", "d"), category)
    intercept = models.class_term("intercept", np.zeros(n, int), 1, [0, 1], prior_precision=np.eye(2))
    design = models.with_records(rng, n, [intercept], [None], R)
    start = np.column_stack([response.start(), y[:, 1]])
    return MixedModel(replace(design, y=start, responses=(response,)), (None,), held(R))


def thresholds(samples, module=liabilities):
    """(samples, 2) draws of t_2 and t_3 with the location at 0, by the first step alone."""
    model = two_traits()
    engine = SerialEngine(structured_equations(model.design, partition(model.design)))
    matrices = starting_matrices(model, 0)
    step = module.LiabilityStep(model, 0, engine, matrices, (5, 0), 300)
    step._draw_scale = lambda *_: None
    out = np.empty((samples + 300, 2))
    for number in range(1, samples + 301):
        step(number)
        out[number - 1] = step.draws()["threshold.0"]
    return out[300:]


@cache
def by_quadrature():
    """E[t_2], E[t_3], E[t_2^2], E[t_3^2] on a grid: flat in t, each record's category given its normal trait."""
    design = two_traits().design
    category, other = design.responses[0].category, design.y[:, 1]
    mean, sd = R[0, 1] / R[1, 1] * other, np.sqrt(R[0, 0] - R[0, 1] ** 2 / R[1, 1])
    t2 = np.linspace(1e-4, 4, 500)
    t3 = np.linspace(1e-4, 7, 700)
    phi2 = stats.norm.cdf((t2[:, None] - mean) / sd)
    phi3 = stats.norm.cdf((t3[:, None] - mean) / sd)
    phi1 = stats.norm.cdf(-mean / sd)
    b, c, d = (category == k for k in (1, 2, 3))
    log_p = np.log(np.maximum(phi2[:, b] - phi1[b], 1e-300)).sum(1)[:, None]
    log_p = log_p + np.log(np.maximum(1 - phi3[:, d], 1e-300)).sum(1)
    gap = phi3[None, :, c] - phi2[:, None, c]
    log_p += np.where(gap > 0, np.log(np.maximum(gap, 1e-300)), -np.inf).sum(2)
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    m2, m3 = p.sum(1), p.sum(0)
    return [m2 @ t2, m3 @ t3, m2 @ t2**2, m3 @ t3**2]


def agrees_with_quadrature(samples, module=liabilities):
    t = thresholds(samples, module)
    return compare(batches(np.column_stack([t, t**2])), by_quadrature(), 0.002)


def test_thresholds():
    comparison = agrees_with_quadrature(40_000)
    assert comparison.agrees, comparison


@pytest.mark.slow
def test_the_jacobian_is_missed():
    assert not agrees_with_quadrature(40_000, mutant(liabilities, "proposed) + moved.sum()", "proposed)")).agrees


@pytest.mark.slow
def test_the_unconditional_variance_is_noticed(monkeypatch):
    """The fault of other programs: categories judged by eta and R_tt where the record has other traits too."""

    def unconditional(records, category, cuts, proposed, trait, y, e, B, s, first, last):
        eta = y[:, trait] - e[:, trait]
        p = [stats.norm.cdf(t[category + 1] - eta) - stats.norm.cdf(t[category] - eta) for t in (proposed, cuts)]
        return float(np.log(np.maximum(p[0], 1e-300) / np.maximum(p[1], 1e-300)).sum())

    monkeypatch.setattr(passes, "log_ratio_of_cuts", unconditional)
    assert not agrees_with_quadrature(40_000).agrees


# ------------------------------------------------------------------------------------------------------------- Geweke

DF_G, SCALE_G = 9.0, np.array([[6.0, 1.5], [1.5, 5.0]])
DF_R, SCALE_R = 14.0, np.array([[24.0, 6.0], [6.0, 11.0]])  # restricted to R_22 = 1
N_ANIMALS, N_RECORDS, FORWARD = 9, 16, 60_000
HERD = np.array([[0.8, 0.0], [0.0, 1.2]])  # prior precision


@cache
def animal_model():
    """A normal and a binary trait, an inbred pedigree, herds with a normal prior, a residual covariance."""
    rng = np.random.default_rng(31)
    sire, dam = models.looped_pedigree(rng, N_ANIMALS, 3)
    animal = np.concatenate([np.arange(2, N_ANIMALS), rng.integers(2, N_ANIMALS, N_RECORDS - N_ANIMALS + 2)])
    terms = [
        models.class_term("herd", np.arange(N_RECORDS) % 2, 2, [0, 1], prior_precision=HERD),
        models.random_term(
            "genetic",
            [models.Effect("", animal.astype(np.int32), (0, 1))],
            models.pedigree_relationship(sire, dam),
            N_ANIMALS,
        ),
    ]
    design = models.with_records(rng, N_RECORDS, terms, [None, np.eye(2)], np.eye(2))
    response = Categories(1, ("0", "1"), (design.y[:, 1] > 0).astype(np.int16))
    return replace(design, responses=(response,))


def functions(b, u, G, R, y1, ill):
    """(N, m) functions of parameters and data; ill (N, n) bool: the binary trait."""
    lower = np.tril_indices(2)
    columns = [G[:, *lower], np.linalg.inv(G)[:, *lower], R[:, [0], 0], R[:, [0], 1], np.log(R[:, [0], 0])]
    columns += [b.reshape(len(b), -1), b.reshape(len(b), -1) ** 2, u[:, [0, -1]].reshape(len(u), -1)]
    columns += [np.einsum("nia,nib->nab", u, u)[:, *lower], (y1**2).mean(axis=1, keepdims=True)]
    columns += [ill.mean(axis=1, keepdims=True), (ill * y1).mean(axis=1, keepdims=True), R[:, [0], 1] ** 2]
    return np.concatenate(columns, axis=1)


@cache
def forward():
    """Means of the functions under independent draws, in NumPy and SciPy alone, and their standard errors."""
    rng = np.random.default_rng(32)
    design, n = animal_model(), FORWARD
    G = invwishart.rvs(DF_G, SCALE_G, size=n, random_state=rng)
    left = SCALE_R[0, 0] - SCALE_R[0, 1] ** 2 / SCALE_R[1, 1]
    D = left / rng.chisquare(DF_R, n)
    B = SCALE_R[0, 1] / SCALE_R[1, 1] + np.sqrt(D / SCALE_R[1, 1]) * rng.standard_normal(n)
    residual = np.empty((n, 2, 2))
    residual[:, 1, 1], residual[:, 0, 1], residual[:, 1, 0], residual[:, 0, 0] = 1.0, B, B, D + B**2
    K = np.linalg.cholesky(np.linalg.inv(dense.relationship_inverse(design.terms[1])))
    b = rng.standard_normal((n, 2, 2)) @ np.linalg.cholesky(np.linalg.inv(HERD)).T
    u = K @ rng.standard_normal((n, N_ANIMALS, 2)) @ np.swapaxes(np.linalg.cholesky(G), 1, 2)
    e = rng.standard_normal((n, N_RECORDS, 2)) @ np.swapaxes(np.linalg.cholesky(residual), 1, 2)
    herd, animal = (t.effects[0].level for t in design.terms)
    y = b[:, herd] + u[:, animal] + e
    f = functions(b, u, G, residual, y[:, :, 0], y[:, :, 1] > 0)
    return f.mean(axis=0), f.std(axis=0) / np.sqrt(n)


def successive(n, spoil=lambda steps: None, seed=33, burn=200):
    """n draws of the functions from the chain that alternates a sweep given the data with new data given the rest."""
    rng, design = np.random.default_rng(seed), animal_model()
    G = CovarianceModel(SCALE_G / 6, False, full_block(2), DF_G, SCALE_G)
    start = np.array([[2.0, 0.4], [0.4, 1.0]])
    model = MixedModel(design, (None, G), CovarianceModel(start, False, full_block(2), DF_R, SCALE_R, unit=(1,)))
    engine = SerialEngine(structured_equations(design, partition(design)))
    steps = gibbs_steps(model, engine, Schedule(0, n + burn, interweave=(1,)), (seed, 0))
    spoil(steps)
    kept = {name: [] for name in ("b", "u", "G", "R", "y1", "ill")}
    for number in range(1, n + burn + 1):
        for step in steps:
            step(number)
        draws = {name: values for step in steps for name, values in step.draws().items()}
        e = rng.standard_normal((N_RECORDS, 2)) @ np.linalg.cholesky(draws["R"]).T
        y = engine.y - engine.e + e  # sweep order
        engine.take_y(y)
        engine._e = e.copy()
        engine.liabilities.responses[0].category[:] = y[:, 1] > 0
        b, u = engine.fetch()
        for name, value in zip(kept, (b, u, draws["G.1"], draws["R"], y[:, 0], y[:, 1] > 0), strict=True):
            kept[name].append(np.array(value))
    return functions(*(np.array(values[burn:]) for values in kept.values()))


def held_to_forward(n, **options):
    mean, error = forward()
    return compare(batches(successive(n, **options)), mean, error)


def test_everything_at_once():
    comparison = held_to_forward(12_000)
    assert comparison.agrees, comparison


def miscounted_scale(steps):
    density = steps[0].scale_density
    steps[0].scale_density = lambda *sums: (density(*sums)[0] - 8, *density(*sums)[1:])


def other_trait_forgotten(steps):
    """Liabilities drawn as if R were diagonal."""
    engine = steps[0].engine
    draw = engine.liabilities.draw

    def spoiled(response, cuts, y, e, Rinv, number, key):
        return draw(response, cuts, y, e, np.eye(2)[None] * Rinv, number, key)

    engine.liabilities.draw = spoiled


@pytest.mark.slow
@pytest.mark.parametrize("spoil", [miscounted_scale, other_trait_forgotten])
def test_spoiled_samplers_fail(spoil):
    comparison = held_to_forward(12_000, spoil=spoil)
    assert not comparison.agrees, comparison
