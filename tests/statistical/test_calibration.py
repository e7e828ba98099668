"""Simulation-based calibration of every structure, family and prior that is sampled (helpers/calibration.py), each with
a mutant that must fail: one line of the program made wrong.

A new structure, family or prior needs an entry here.
"""

from dataclasses import replace
from functools import partial
from typing import get_args

import numpy as np
import pytest
from helpers.calibration import (
    FALSE_ALARM,
    Bounds,
    Classes,
    Counts,
    Flat,
    HalfT,
    Length,
    Mixed,
    Regression,
    Snps,
    Structured,
    UniformHeritability,
    Wishart,
    p_value,
    records,
    root,
    spoil,
    uniforms,
)
from reference import models
from scipy.stats import invwishart
from statistical.test_joint_markers import STATES, terms_of
from statistical.test_markers import markers_of

from mmgibbs.config.markers import ACROSS_TRAITS
from mmgibbs.config.structures import Structure
from mmgibbs.config.traits import Trait
from mmgibbs.engines.direct import engine as direct
from mmgibbs.engines.liabilities import Liabilities
from mmgibbs.models.marker_priors import MARKER_PRIORS
from mmgibbs.models.markers import JointPriorSpec, MarkerPriorSpec
from mmgibbs.models.priors.flat import Flat as FlatPrior
from mmgibbs.models.priors.mixture import Mixture
from mmgibbs.models.relationships import random_walk
from mmgibbs.models.relationships import spline as splines
from mmgibbs.models.relationships.ar1 import Field, FirstOrder, Lattice, TimeSeries
from mmgibbs.models.relationships.identity import Identity
from mmgibbs.models.structures.antedependence import Antedependence
from mmgibbs.models.structures.base import Structure as BaseStructure
from mmgibbs.models.structures.correlated import Autoregressive, CompoundSymmetry, Correlated
from mmgibbs.models.structures.factor_analytic import FactorAnalytic
from mmgibbs.models.structures.reduced_rank import ReducedRank
from mmgibbs.models.structures.shrunken_factors import ShrunkenFactors
from mmgibbs.models.terms import Related
from mmgibbs.regressions import lasso
from mmgibbs.regressions.hierarchical.slice import HierarchicalSliceModel, HierarchicalSliceSampler
from mmgibbs.regressions.horseshoe.prior import Horseshoe, RegularisedHorseshoe
from mmgibbs.regressions.horseshoe.probit import HorseshoeProbitModel
from mmgibbs.regressions.multinomial.hmc import MultinomialHMCModel, MultinomialHMCSampler
from mmgibbs.regressions.multinomial.polya_gamma import MultinomialPGModel, MultinomialPGSampler
from mmgibbs.regressions.registry import plugin_names
from mmgibbs.sampler import (
    correlations,
    covariances,
    liabilities,
    reduced_rank,
    unit_diagonals,
)
from mmgibbs.sampler.marginal.target import Target
from mmgibbs.sampler.markers.priors.bayes_a import OwnVariances
from mmgibbs.sampler.markers.priors.bayes_r import Classes as MarkerClasses
from mmgibbs.sampler.markers.priors.horseshoe import Horseshoe as MarkerHorseshoe
from mmgibbs.sampler.markers.priors.joint import JointPrior
from mmgibbs.sampler.markers.priors.lasso import Lasso as MarkerLasso
from mmgibbs.sampler.markers.priors.ridge import Ridge

QUICK = Length(sets=150)
SHORT = Length(sets=40, draws=15, thin=3, burn_in=30)  # of sweeps that take long
ROUNDS = Length(sets=40, draws=12, thin=2, burn_in=20)  # of several rounds in a sweep
MARGINAL = Length(sets=100, draws=20, thin=5, burn_in=80)
MARKERS = Length(sets=50, thin=8)
JOINT = MARKERS._replace(sets=40)
NU, SIZE = 5.0, np.array([1.0, 1.5, 2.0])  # of half-t priors
Effect = models.Effect


def matrix(k, variance, correlation=0.3):
    """A scale of inverse Wishart priors."""
    return variance * (correlation + (1 - correlation) * np.eye(k))


# Layouts: unequal numbers of records, empty cells, animals without records


def animals(T, n=24, q=10, weight=False, observed=True, fixed="normal", effects=None):
    """A herd effect, and animals of an inbred pedigree."""
    rng = np.random.default_rng(5)
    sire, dam = models.looped_pedigree(rng, q, 4)
    animal = rng.integers(2, q, n).astype(np.int32)
    traits = tuple(range(T))
    precision = np.eye(T) if fixed == "normal" else None
    genetic = [Effect("direct", animal, traits)]
    if effects == "maternal":
        genetic.append(Effect("maternal", dam[animal], (0,)))
    terms = [
        models.class_term("herd", rng.integers(0, 3, n) if fixed == "normal" else np.arange(n) % 3, 3, traits,
                          prior_precision=precision),
        models.random_term("genetic", genetic, models.pedigree_relationship(sire, dam), q),
    ]  # fmt: skip
    return records(
        rng, n, terms, T, None if observed else models.some_observed(rng, n, T),
        rng.uniform(0.4, 2.5, n) if weight else None,
    )  # fmt: skip


def lines(k=3, q=10, rank=None):
    """Lines in k environments, each with a trait of its own; some lines are not in all."""
    rng = np.random.default_rng(6)
    n = 20 * k
    line, place = rng.integers(0, q, n).astype(np.int32), rng.integers(0, k, n)
    terms = [
        models.class_term("mean", np.zeros(n, int), 1, range(k)),
        models.random_term("line", [Effect("", line, tuple(range(k)))], Identity(q), q),
    ]
    if rank is not None:
        terms[1] = replace(terms[1], prior=Related(terms[1].relationship, rank))
    return records(rng, n, terms, k, np.eye(k, dtype=bool)[place])


def of_levels(T, relationship, per_level=2, order=1):
    """Records of the levels of a relationship; the last level has none."""
    rng, q = np.random.default_rng(7), relationship.n_levels // order
    level = order * np.sort(np.append(np.arange(q - 1), rng.integers(0, q - 1, (per_level - 1) * q))).astype(np.int32)
    traits = tuple(range(T))
    terms = [
        models.class_term("mean", np.zeros(level.size, int), 1, traits),
        models.random_term("curve", [Effect("", level, traits)], relationship, relationship.n_levels),
    ]
    return records(rng, level.size, terms, T)


# Structures


def structured(structure, drawn, rank=None):
    return Mixed(
        lines(structure.k, rank=rank), {1: Structured(structure, drawn)},
        Wishart(8.0, 2.0 * np.eye(structure.k), diagonal=True),
        interweave=() if rank is not None else (1,),
        engine="pcg" if rank is None else "serial",  # means and effects of lines at once
    )  # fmt: skip


def half_t(rng, k, scale=SIZE):
    return np.abs(rng.standard_t(NU, k)) * scale[:k]


def compound_symmetry():
    def draw(rng):
        sd, rho = half_t(rng, 3), rng.uniform(-0.5, 1)
        return sd[:, None] * (rho + (1 - rho) * np.eye(3)) * sd

    return structured(CompoundSymmetry(3, False, SIZE, NU), draw)


def ar1():
    at = np.array([0.0, 1.0, 3.0])

    def draw(rng):
        r = rng.uniform(0.005, 0.995)
        return half_t(rng, 1)[0] ** 2 * r ** (np.abs(np.subtract.outer(at, at)) / 1.5)

    return structured(Autoregressive(3, True, SIZE, NU, tuple(at)), draw)


def antedependence():
    def draw(rng):
        B = np.diag(rng.standard_normal(2) * 2 * SIZE[1:] / SIZE[:-1], -1)
        A = np.linalg.inv(np.eye(3) - B) * half_t(rng, 3)
        return A @ A.T

    return structured(Antedependence(3, False, SIZE, SIZE, NU), draw)


def factor_analytic():
    def draw(rng):
        L = rng.standard_normal((3, 1)) * SIZE[:, None]
        return L @ L.T + np.diag(half_t(rng, 3) ** 2)

    return structured(FactorAnalytic(3, 1, False, SIZE, SIZE, NU), draw)


def number_of_factors():
    def draw(rng):
        v = rng.random()
        theta = np.where(rng.random(2) < [v, 1.0], 0.01, 2.0 / rng.standard_gamma(2.0, 2))
        L = rng.standard_normal((3, 2)) * SIZE[:, None] * np.sqrt(theta)
        return L @ L.T + np.diag(half_t(rng, 3) ** 2)

    return structured(ShrunkenFactors(3, 2, False, SIZE, SIZE, NU), draw)


def rank_two():
    def draw(rng):
        L = rng.standard_normal((3, 2)) * SIZE[:, None]
        return L @ L.T

    return structured(ReducedRank(3, 2, SIZE), draw, rank=2)


# Correlations of levels, curves

GAPS = np.array([0, 1, 1, 3, 2, 0, 2, 1, 1, 4])  # days between the times of two cows


def days():
    first = np.cumsum(GAPS == 0)
    lag = np.abs(np.subtract.outer(np.cumsum(GAPS), np.cumsum(GAPS)))
    kin = FirstOrder.build(TimeSeries(GAPS.astype(float), "day", 1.0), ("day",), (0.3,), False)

    def correlate(rho):
        return np.where(first[:, None] == first, np.sign(rho) ** lag * np.abs(rho) ** lag, 0.0)

    return kin, {1: (kin.parameter_bounds, correlate)}


def ar1_in_time():
    kin, rho = days()
    return Mixed(of_levels(2, kin), {1: Wishart(8.0, matrix(2, 8.0))}, Wishart(8.0, matrix(2, 4.0)), rho=rho)


def ar1_in_time_with_a_structure():
    kin, rho = days()

    def draw(rng):
        sd, r = half_t(rng, 2), rng.uniform(-1, 1)
        return sd[:, None] * np.array([[1, r], [r, 1]]) * sd

    prior = Structured(CompoundSymmetry(2, False, SIZE[:2], NU), draw)
    return Mixed(of_levels(2, kin), {1: prior}, Wishart(8.0, matrix(2, 4.0)), rho=rho)


def ar1_in_space():
    kin = FirstOrder.build(Field((Lattice(3, 4),), ("row", "column")), ("row", "column"), (0.1, 0.2), False)
    line = lambda r, n: np.array([[r ** abs(i - j) for i in range(n)] for j in range(n)])
    rho = {1: (kin.parameter_bounds, lambda r: np.kron(line(r[0], 3), line(r[1], 4)))}
    return Mixed(of_levels(1, kin, 3), {1: Wishart(8.0, matrix(1, 8.0))}, Wishart(8.0, matrix(1, 4.0)), rho=rho)


TIMES = np.array([0.0, 0.5, 3.0, 4.0, 9.0, 10.0])


def walk(order):
    gap = np.diff(TIMES)
    kin = random_walk.RandomWalk.build(gap, np.arange(gap.size) == 0, order, "day")
    t = TIMES[1:] / gap.mean()
    low, high = np.minimum.outer(t, t), np.maximum.outer(t, t)
    K = low
    if order == 2:  # f and f' of each time
        K = np.empty((2 * t.size, 2 * t.size))
        K[::2, ::2], K[1::2, 1::2] = low**2 * (3 * high - low) / 6, low
        K[::2, 1::2] = np.where(t[:, None] < t, t[:, None] ** 2 / 2, t * t[:, None] - t**2 / 2)
        K[1::2, ::2] = K[::2, 1::2].T
    X = np.vander(np.append(0.0, t), order)
    M = np.eye(len(X)) - X @ np.linalg.pinv(X)
    scale = np.sum(M[1:, 1:] * K[::order, ::order]) / len(X)
    rho = {1: (np.zeros((0, 2)), lambda _: K / scale)}
    return Mixed(of_levels(1, kin, 3, order), {1: Wishart(6.0, matrix(1, 6.0))}, Wishart(6.0, matrix(1, 3.0)), rho=rho)


def spline():
    """B-splines in truncated powers."""
    low, width, segments = TIMES[0], np.ptp(TIMES) / 3, 3
    block = splines.curve_covariance(TIMES, low, TIMES[-1], segments, 3, 2)
    kin = splines.Spline.build([block], "spline over day")
    knots = low + width * np.arange(-3, segments + 4)
    B = np.where(TIMES[:, None] >= knots, (TIMES[:, None] - knots) ** 3, 0.0)
    B = B @ np.diff(np.eye(len(knots)), n=4, axis=0).T / (6 * width**3)
    D = np.diff(np.eye(B.shape[1]), n=2, axis=0)
    K = B @ np.linalg.pinv(D.T @ D, rcond=1e-12, hermitian=True) @ B.T
    X = np.vander(TIMES, 2)
    M = np.eye(len(X)) - X @ np.linalg.pinv(X)
    K = K / (np.trace(M @ K) / len(X)) + 1e-6 * np.eye(len(X))
    rho = {1: (np.zeros((0, 2)), lambda _: K)}
    return Mixed(of_levels(1, kin, 3), {1: Wishart(6.0, matrix(1, 6.0))}, Wishart(6.0, matrix(1, 3.0)), rho=rho,
                 engine="marginal")  # fmt: skip


# Families


def one_trait(kind, G, R, engine="serial"):
    interweave = (1,) if engine == "serial" else ()
    return Mixed(animals(1), {1: G}, R, kinds={0: kind}, interweave=interweave, engine=engine)


UNIT = Wishart(8.0, np.eye(1), unit=(0,))


def two_classes_of_residuals():
    S = np.array([[12.0, 3.0], [3.0, 9.0]]), np.array([[8.0, 6.0], [6.0, 12.0]])
    R = Wishart(9.0, S[0], unit=(1,)), Wishart(9.0, S[1])
    design = animals(2, n=30)
    return Mixed(design, {1: Wishart(9.0, matrix(2, 6.0))}, R, kinds={1: Classes()}, interweave=(1,),
                 of_record=(np.arange(30) % 5 > 2).astype(int))  # fmt: skip


def mixture():
    R = Wishart(9.0, np.array([[9.0, 2.0, -1.0], [2.0, 8.0, 2.0], [-1.0, 2.0, 8.0]]), unit=(1, 2))
    G = HalfT(2.0, np.array([1.0, 0.6, 0.8]))
    return Mixed(animals(3, n=30, observed=False), {1: G}, R, kinds={1: Classes(), 2: Classes(3)}, interweave=(1,))


def classes_of_residuals():
    R = tuple(Wishart(7.0, matrix(2, size)) for size in (3.0, 20.0))
    return Mixed(animals(2, observed=False), {1: Wishart(8.0, matrix(2, 6.0))}, R, of_record=np.arange(24) % 3 // 2)


# Priors of SNP effects

SNPS, ANIMALS, NU_SNP, S_SNP = 8, 40, 6.0, 0.15
GAMMA, COUNTS = (0.0, 0.1, 1.0), (3.0, 2.0, 2.0)
NU_2, S_2 = 8.0, np.array([[1.0, 0.4], [0.4, 1.5]])
EVERY = np.array([[True] * 2])


def genotypes():
    codes = np.random.default_rng(8).binomial(2, 0.4, (SNPS, ANIMALS)).astype(np.uint8)
    return codes, codes - codes.mean(axis=1)[:, None]


def of_animals(T):
    rng = np.random.default_rng(9)
    mean = models.class_term("mean", np.zeros(ANIMALS, int), 1, range(T), prior_precision=np.eye(T))
    return records(rng, ANIMALS, [mean], T, models.some_observed(rng, ANIMALS, T))


def own_draws(draws):
    return {name.rsplit(".", 1)[1]: value for name, value in draws.items() if name.startswith("markers.")}


def snps(kind):
    """One trait."""

    def draw(rng, p):
        normal = rng.standard_normal((p, 1))
        if kind == "lasso":
            lambda2 = rng.gamma(4.0) / 0.5
            return rng.laplace(0, 1 / np.sqrt(lambda2), (p, 1)), [lambda2]
        if kind == "horseshoe":
            tau = 0.3 * abs(rng.standard_cauchy())
            return tau * np.abs(rng.standard_cauchy((p, 1))) * normal, [tau**2]
        pi = rng.dirichlet(COUNTS if kind == "bayes_r" else COUNTS[:2])
        if kind in ("bayes_a", "bayes_b"):
            scale = rng.gamma(3.0) / 15.0
            a = np.sqrt(NU_SNP * scale / rng.chisquare(NU_SNP, (p, 1))) * normal
            return (a, [scale]) if kind == "bayes_a" else (np.where(rng.random((p, 1)) < pi[0], 0, a), [scale, pi[0]])
        v = NU_SNP * S_SNP / rng.chisquare(NU_SNP)
        if kind == "rr":
            return np.sqrt(v) * normal, [v]
        factor = np.array(GAMMA if kind == "bayes_r" else (0.0, 1.0))
        return np.sqrt(v * rng.choice(factor, (p, 1), p=pi)) * normal, [v, pi[0]]

    def named(draws):
        own = own_draws(draws)
        first = next(own[name] for name in ("scale", "lambda2", "tau2", "variance") if name in own)
        return [first, *([own["pi"][0]] if "pi" in own else [])]

    classes, counts = (GAMMA, COUNTS) if kind == "bayes_r" else ((0.0, 1.0), COUNTS[:2])
    options = {"classes": classes, "pi": tuple(c / sum(counts) for c in counts), "counts": counts, "global_scale": 0.3}
    options |= {"shape": 4.0, "rate": 0.5} if kind == "lasso" else {"shape": 3.0, "rate": 15.0}
    codes, x = genotypes()
    spec = MarkerPriorSpec(kind, S_SNP, False, NU_SNP, S_SNP, options)
    term = markers_of(codes, np.arange(ANIMALS, dtype=np.int32), spec, ANIMALS)
    return Mixed(of_animals(1), {}, Wishart(10.0, matrix(1, 12.0)), snps=Snps((term,), x, draw, named))


def snps_of_two_traits(states, factor, counts, one_by_one=False):
    factor, counts = np.array(factor), np.array(counts)
    several = len(counts) > 1

    def draw(rng, p):
        G, pi = invwishart.rvs(NU_2, S_2, random_state=rng), rng.dirichlet(counts)
        state = rng.choice(len(pi), p, p=pi)
        b = rng.standard_normal((p, 2)) @ np.linalg.cholesky(G).T * np.sqrt(factor[state])[:, None]
        return np.where(states[state], b, 0.0), [*G[np.tril_indices(2)], *pi[1:]]

    def named(draws):
        own = own_draws(draws)
        return [*own["covariance"][np.tril_indices(2)], *(own["pi"][1:] if several else [])]

    spec = JointPriorSpec((0, 1), states, factor, counts / counts.sum(), counts if several else None, S_2 / 5, False,
                          NU_2, S_2, one_by_one)  # fmt: skip
    codes, x = genotypes()
    terms = terms_of(spec, codes, np.arange(ANIMALS, dtype=np.int32), ANIMALS)
    return Mixed(of_animals(2), {}, Wishart(12.0, matrix(2, 12.0)), snps=Snps(terms, x, draw, named))


# Regressions

X = np.random.default_rng(10).standard_normal((12, 3))


def lasso_regression(n, p):
    predictors = np.random.default_rng(11).standard_normal((n, p))

    def draw(rng):
        lam, sigma2 = np.sqrt(rng.gamma(4.0) / 1.0), 3.0 / rng.gamma(4.0)
        beta, alpha = rng.laplace(0, np.sqrt(sigma2) / lam, p), 2 * rng.standard_normal()
        y = alpha + predictors @ beta + np.sqrt(sigma2) * rng.standard_normal(n)
        return np.array([*beta, alpha, sigma2, lam]), y

    options = {"residual_shape": 4.0, "residual_scale": 3.0, "penalty_shape": 4.0, "penalty_rate": 1.0}
    ranked = lambda log: [*log["beta"], log["intercept"], log["sigma2"], log["lambda"]]
    return Regression(lasso.Lasso, options, predictors, draw, ranked)


def horseshoe_regression(slab, collapsed):
    def draw(rng):
        while True:
            tau, lam = 0.7 * abs(rng.standard_cauchy()), np.abs(rng.standard_cauchy(3))
            precision = (tau * lam) ** -2.0
            c2 = rng.gamma(2.5) / (2.5 * 1.5**2) if slab else 0.0
            beta, a = rng.standard_normal(3) / np.sqrt(precision + c2), rng.standard_normal()
            y = rng.standard_normal(len(X)) < a + X @ beta
            if 0 < y.sum() < len(X):
                return np.array([*beta, a, tau, *([c2**-0.5] if slab else [])]), y.astype(int)

    options = {"intercept_prior_sd": 1.0, "global_scale": 0.7, "collapsed": collapsed}
    options |= {"slab_scale": 1.5, "slab_df": 5.0} if slab else {}
    ranked = lambda log: [*log["beta"], log["intercept"], log["tau"], *([log["slab"]] if slab else [])]
    return Regression(HorseshoeProbitModel, options, X, draw, ranked)


def multinomial(model, options, coefficients):
    """Three classes, two trials a row; coefficients: rng -> (4, 2), the intercepts last."""

    def draw(rng):
        while True:
            B = coefficients(rng)
            eta = np.column_stack([X @ B[:3] + B[3], np.zeros(len(X))])
            p = np.exp(eta - eta.max(axis=1, keepdims=True))
            y = rng.multinomial(2, p / p.sum(axis=1, keepdims=True))
            if np.count_nonzero(y.any(axis=0)) > 1:
                return B.ravel(), y

    return Regression(model, options, X, draw, lambda log: [*log["beta"].ravel(), *log["intercept"]])


def pg_regression():
    options = {"prior_mean": 0.6, "prior_precision": 1.0, "intercept_mean": -0.5, "intercept_precision": 2.0}
    draw = lambda rng: np.append(0.6 + rng.standard_normal((3, 2)), -0.5 + rng.standard_normal((1, 2)) / 2**0.5, axis=0)
    return multinomial(MultinomialPGModel, options, draw)


def hmc_regression(prior):
    law = (lambda rng, n: rng.standard_cauchy((n, 2))) if prior == "cauchy" else lambda rng, n: rng.normal(size=(n, 2))
    options = {"prior": prior, "scale": 0.8, "intercept_scale": 1.5, "leapfrog_steps": 8}
    return multinomial(
        MultinomialHMCModel, options, lambda rng: np.append(0.8 * law(rng, 3), 1.5 * law(rng, 1), axis=0)
    )


def hierarchical_regression(family, method):
    rng = np.random.default_rng(12)
    groups = np.repeat(np.arange(6), [2, 5, 3, 6, 2, 4])
    x, z = rng.standard_normal((len(groups), 1)), rng.standard_normal((6, 1))

    def draw(rng):
        while True:
            population = 0.8 * rng.standard_normal((2, 2))
            V = invwishart.rvs(10, 7 * 0.5 * np.eye(2), random_state=rng)
            beta = np.column_stack([np.ones(6), z]) @ population + rng.standard_normal((6, 2)) @ root(V).T
            eta = beta[groups, 0] * x[:, 0] + beta[groups, 1]
            y = rng.poisson(np.exp(np.minimum(eta, 12))) if family == "poisson" else rng.logistic(size=eta.size) < eta
            if np.any(y != y[0]):
                return np.array([*population.ravel(), *V[np.tril_indices(2)], *beta[0]]), y.astype(int)

    def ranked(log):
        V = log["covariance"]
        return [*log["population"].ravel(), *V[np.tril_indices(2)], *log["beta"][0].ravel(), log["intercept"][0]]

    options = {"family": family, "method": method, "population_sd": 0.8, "covariance_df": 10.0, "covariance_mean": 0.5}
    return Regression(HierarchicalSliceModel, options, x, draw, ranked, {"groups": groups, "group_predictors": z})


def of_two_traits(*parts):
    return lambda: snps_of_two_traits(*parts)


def of_records(design, G, R, **options):
    return lambda: Mixed(design(), {1: G}, R, **options)


SUBSETS = STATES, [1.0] * 4, [3.0, 1.0, 1.0, 2.0]
SHARED = np.append(~EVERY, EVERY.repeat(2, axis=0), axis=0), [1.0, 0.1, 1.0], [1.0, 1.0, 2.0]
ONE, TWO = Wishart(8.0, matrix(1, 6.0)), Wishart(8.0, matrix(2, 6.0))
APART = replace(TWO, diagonal=True)
MATERNAL = partial(animals, 2, weight=True, observed=False, effects="maternal")

CASES = {  # name -> (what makes it, how long it runs)
    "full": (of_records(MATERNAL, Wishart(10.0, matrix(3, 20.0)), TWO, interweave=(1,)), Length()),
    "diagonal": (of_records(partial(animals, 2, fixed="flat"), APART, APART), Length()),
    "flat": (of_records(partial(animals, 1, fixed="flat"), Flat(4.0), Flat(3.0)), Length(draws=30)),
    "half_t": (of_records(partial(animals, 2), HalfT(2.0, SIZE[:2]), HalfT(2.0, SIZE[:2]), interweave=(1,)), Length()),
    "compound_symmetry": (compound_symmetry, SHORT),
    "ar1": (ar1, SHORT),
    "antedependence": (antedependence, SHORT),
    "factor_analytic": (factor_analytic, ROUNDS),
    "factor_analytic, auto": (number_of_factors, ROUNDS),
    "reduced_rank": (rank_two, Length(thin=10, burn_in=80)),
    "ar1 in time": (ar1_in_time, Length()),
    "ar1 in time, structured": (ar1_in_time_with_a_structure, Length(sets=40, draws=15, thin=5, burn_in=40)),
    "ar1 in space": (ar1_in_space, Length()),
    "random_walk": (partial(walk, 1), QUICK),
    "random_walk, order 2": (partial(walk, 2), QUICK),
    "spline": (spline, MARGINAL),
    "marginal": (of_records(partial(animals, 1), ONE, HalfT(2.0, np.ones(1)), engine="marginal"), MARGINAL),
    "classes of residuals": (classes_of_residuals, Length()),
    "binary": (partial(one_trait, Classes(), UniformHeritability(), UNIT), Length()),
    "binary, marginal": (partial(one_trait, Classes(), UniformHeritability(), UNIT, engine="marginal"), MARGINAL),
    "binary, classes of residuals": (two_classes_of_residuals, Length()),
    "ordinal": (partial(one_trait, Classes(4), ONE, UNIT), Length(draws=30)),
    "censored": (partial(one_trait, Bounds(), ONE, ONE), Length()),
    "count": (partial(one_trait, Counts(), Wishart(8.0, matrix(1, 3.0)), Wishart(8.0, matrix(1, 4.0))), Length()),
    "normal, binary, ordinal": (mixture, Length(sets=40, thin=6)),
    **{prior: (partial(snps, prior), MARKERS) for prior in MARKER_PRIORS},
    "joint": (of_two_traits(*SUBSETS), JOINT),
    "one_by_one": (of_two_traits(*SUBSETS, True), JOINT),
    "shared": (of_two_traits(*SHARED), JOINT),
    "rr, joint": (of_two_traits(EVERY, [1.0], [1.0]), JOINT),
    "bayesian_lasso": (partial(lasso_regression, 12, 3), QUICK),
    "bayesian_lasso, wide": (partial(lasso_regression, 6, 8), QUICK),
    "horseshoe_probit": (partial(horseshoe_regression, False, False), Length(thin=10, burn_in=80)),
    "horseshoe_probit, slab": (partial(horseshoe_regression, True, True), Length()),
    "multinomial_pg": (pg_regression, QUICK),
    "multinomial_hmc": (partial(hmc_regression, "cauchy"), Length(thin=4)),
    "multinomial_hmc, normal": (partial(hmc_regression, "normal"), Length(thin=4)),
    "hierarchical_slice": (partial(hierarchical_regression, "logit", "polya_gamma"), QUICK),
    "hierarchical_slice, Poisson": (partial(hierarchical_regression, "poisson", "slice"), QUICK),
}

OF_ALL = (HierarchicalSliceSampler, "_draw_hyperparameters")
MUTANTS = {  # name -> (module or class, function, right, wrong)
    "full": (covariances, "draw_covariance", "wishart(nu + count, S +", "wishart(count, S +"),
    "diagonal": (covariances, "draw_covariance", "wishart(nu + count, W, now", "wishart(count, W, now"),
    "flat": (FlatPrior, "degrees", "return -(size + 1.0)", "return 2.0"),
    "half_t": (Mixture, "conditional", "_conditional_shape(size)", "_conditional_shape(size) + 3"),
    "compound_symmetry": (Correlated, "log_prior", "self.sd_scale[", "0.1 * self.sd_scale["),
    "ar1": (BaseStructure, "log_likelihood", "-0.5 * (q *", "-0.5 * (0.3 * q *"),
    "antedependence": (Antedependence, "log_prior", "-0.5 * np.sum", "-8.0 * np.sum"),
    "factor_analytic": (FactorAnalytic, "_draw_specific", "(counts + nu) / 2", "counts / 4"),
    "factor_analytic, auto": (
        ShrunkenFactors,
        "prior_sd",
        "np.sqrt(self.theta(phi))",
        "0.1 * np.sqrt(self.theta(phi))",
    ),
    "reduced_rank": (
        reduced_rank,
        "draw_given_records",
        "rng.standard_normal(s.size)",
        "3 * rng.standard_normal(s.size)",
    ),
    "ar1 in time": (correlations._Density, "__call__", "0.5 * len(S) *", "2.0 * len(S) *"),
    "ar1 in time, structured": (correlations._Density, "__call__", "0.5 * len(S) *", "2.0 * len(S) *"),
    "ar1 in space": (correlations._Density, "__call__", "out -= 0.5", "out -= 0.2"),
    "random_walk": (random_walk, "_inverse", "[[1 / h]]", "[[h]]"),
    "random_walk, order 2": (random_walk, "mean_variance", "np.where(n > order, variance, 0.0)", "6 * variance"),
    "spline": (splines, "mean_variance", "return max(total, 0.0)", "return 0.1 * max(total, 0.0)"),
    "marginal": (Target, "evaluate", "return self.likelihood", "return 4 * self.likelihood"),
    "classes of residuals": (covariances.ResidualCovariance, "__call__", "n[c], number)", "n[0] + n[1], number)"),
    "binary": (Mixture, "scale_exponents", "return 2 * self", "return -2 * self"),
    "binary, marginal": (direct, "power_of_scale", "np.count_nonzero(", "3 * np.count_nonzero("),
    "binary, classes of residuals": (Liabilities, "draw", "y, e, Rinv)", "y, e, 9 * Rinv)"),
    "ordinal": (liabilities.LiabilityStep, "_draw_thresholds", "np.exp(moved))", "np.exp(moved + 0.5))"),
    "censored": (Liabilities, "draw", "y, e, Rinv)", "y, e, 3 * Rinv)"),
    "count": (Liabilities, "draw", "y, e, Rinv)", "y, e, 3 * Rinv)"),
    "normal, binary, ordinal": (unit_diagonals, "_draw_regression", "return mean + root", "return 3 * mean + root"),
    "rr": (Ridge, "update", "self.p, number)", "3 * self.p, number)"),
    "bayes_a": (OwnVariances, "update", "(self.df + inside,", "(self.df + 4 * inside,"),
    "bayes_b": (OwnVariances, "update", "np.sum(1 / self.v)", "np.sum(1 / self.v[inside])"),
    "bayes_c": (MarkerClasses, "update", "int(inside.sum())", "4 * int(inside.sum())"),
    "bayes_r": (MarkerClasses, "update", "int(inside.sum())", "4 * int(inside.sum())"),
    "lasso": (MarkerLasso, "update", "self.shape + len(self.v)", "self.shape"),
    "horseshoe": (MarkerHorseshoe, "update", "0.5 * (len(squares) + 1)", "0.5"),
    "joint": (JointPrior, "update", "n += len(b)", "n += 5 * len(b)"),
    "one_by_one": (JointPrior, "update", "n += len(b)", "n += 5 * len(b)"),
    "shared": (JointPrior, "update", "n += len(b)", "n += 5 * len(b)"),
    "rr, joint": (JointPrior, "update", "n += len(b)", "n += 0"),
    "bayesian_lasso": (lasso.LassoSampler, "step", "0.5 * (self.n - 1)", "0.5 * (self.n - 1 + self.p)"),
    "bayesian_lasso, wide": (lasso.LassoSampler, "step", "0.5 * (self.n - 1)", "0.5 * (self.n - 1 + self.p)"),
    "horseshoe_probit": (Horseshoe, "draw_global", "0.5 * (self.p + 1)", "0.5 * (self.p + 4)"),
    "horseshoe_probit, slab": (RegularisedHorseshoe, "draw_slab", "return 0.5 * df * x", "return 1.5 * df * x"),
    "multinomial_pg": (MultinomialPGSampler, "step", "+ self.prior_precision[j]", "+ 5 * self.prior_precision[j]"),
    "multinomial_hmc": (MultinomialHMCSampler, "target", "value - np.log1p", "value - 3 * np.log1p"),
    "multinomial_hmc, normal": (MultinomialHMCSampler, "target", ".sum((1, 2)) / 2", ".sum((1, 2)) * 2"),
    "hierarchical_slice": (*OF_ALL, "self.nu + len(self.labels)", "self.nu"),
    "hierarchical_slice, Poisson": (*OF_ALL, "self.nu + len(self.labels)", "self.nu"),
}


def ranks(name, share=1):
    make, length = CASES[name]
    return uniforms(make(), length._replace(sets=length.sets // share))


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_ranks_are_uniform(name):
    u = ranks(name)
    assert p_value(u) > FALSE_ALARM, (u.mean(axis=0), u.std(axis=0))


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_mutants_are_found(monkeypatch, name):
    spoil(monkeypatch, *MUTANTS[name])
    assert p_value(ranks(name, 2)) < FALSE_ALARM


def test_everything_that_is_sampled_has_an_entry():
    """Structures, types of traits, priors of SNP effects on one trait and on several, regressions."""
    keys = (Structure, "kind"), (Trait, "type")
    structures, types = (get_args(section.model_fields[key].annotation) for section, key in keys)
    words = {word for name in CASES for word in name.split(", ")}
    assert words >= {*structures, *types, *MARKER_PRIORS, *ACROSS_TRAITS, *plugin_names()}
    assert CASES.keys() == MUTANTS.keys()
