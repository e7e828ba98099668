"""The scale of SNP effects and the shares of their classes, drawn with the effects, against posteriors by quadrature.

Two SNPs, one trait, residual variance fixed. Each effect is normal with the variance s tau_j: s is common to both, and
tau_j is a class (0 or gamma_k) or a local scale. Given s and both tau the effects are integrated out in closed form; s
and local scales are integrated over by quantiles of their priors (Gauss-Legendre), shares by their Dirichlet.
"""

from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import pytest
from helpers.monte_carlo import batches, compare
from helpers.selection import first
from reference import models
from scipy import stats
from statistical.test_markers import markers_of

from mmgibbs.engines.serial import SerialEngine
from mmgibbs.equations.partition import partition
from mmgibbs.equations.structured import structured_equations
from mmgibbs.models.covariance import CovarianceModel, full_block
from mmgibbs.models.markers import MarkerPriorSpec
from mmgibbs.sampler.markers import effects
from mmgibbs.sampler.mixed_model import MixedModel
from mmgibbs.sampler.schedule import Schedule
from mmgibbs.sampler.steps import gibbs_steps

ANIMALS, SNPS, NODES = 30, 2, 64
MEAN_PRECISION = 0.5  # of the intercept
NU, S = 6.0, 0.15  # of the variance of an effect
SHAPE, RATE = 3.0, 15.0  # of S in bayes_a and bayes_b
LAMBDA = (4.0, 0.5)  # shape and rate of lambda^2
GLOBAL = 0.3  # scale of the horseshoe
CLASSES = {"bayes_b": (0.0, 1.0), "bayes_c": (0.0, 1.0), "bayes_r": (0.0, 0.1, 1.0)}
COUNTS = (2.0, 1.5, 1.0)
LONG_STEP = 3.0  # of a share: wrong ratios are seen where many proposals are refused
KINDS = ("rr", "bayes_a", "bayes_b", "bayes_c", "bayes_r", "lasso", "horseshoe")


@cache
def data():
    """Codes (SNPS, ANIMALS), centred codes, and records."""
    rng = np.random.default_rng(31)
    codes = rng.binomial(2, 0.4, (SNPS, ANIMALS)).astype(np.uint8)
    codes[1] = np.where(rng.random(ANIMALS) < 0.6, codes[0], codes[1])
    x = codes - codes.mean(axis=1)[:, None]
    return codes, x, 0.7 * x[0] + rng.standard_normal(ANIMALS)


def spec(kind):
    classes = CLASSES.get(kind, (1.0,))
    counts = COUNTS[: len(classes)]
    shape, rate = LAMBDA if kind == "lasso" else (SHAPE, RATE)
    options = {"classes": classes, "pi": tuple(np.array(counts) / sum(counts)), "counts": counts}
    options |= {"shape": shape, "rate": rate, "global_scale": GLOBAL}
    return MarkerPriorSpec(kind, S, False, NU, S, options)


def model(kind):
    codes, _, y = data()
    animal = np.arange(ANIMALS, dtype=np.int32)
    mean = models.class_term("mean", np.zeros(ANIMALS, int), 1, [0], prior_precision=MEAN_PRECISION * np.eye(1))
    design = models.with_records(np.random.default_rng(1), ANIMALS, [mean], [None], np.eye(1))
    design = replace(design, y=y[:, None], markers=(markers_of(codes, animal, spec(kind), ANIMALS),))
    return MixedModel(design, (None,), CovarianceModel(np.eye(1), True, full_block(1)))


def chain(kind, samples, change=lambda step: None, seed=9):
    """(samples, m) log s, effects, their squares, and the shares but the last."""
    of = model(kind)
    engine = SerialEngine(structured_equations(of.design, partition(of.design)))
    steps = gibbs_steps(of, engine, Schedule(0, samples), (seed, 0))
    step = next(s for s in steps if isinstance(s, effects.MarkerEffects))
    if step.share_moves is not None:
        step.share_moves.log_steps[:] = np.log(LONG_STEP)
    change(step)
    out = []
    for number in range(1, samples + 101):
        for s in steps:
            s(number)
        if number > 100:
            shares = step.prior.shares.pi[:-1] if kind in CLASSES else []
            out.append([np.log(step.prior.scaling.v), *step.a, *step.a**2, *shares])
    return np.array(out)


def quantiles():
    """Nodes and weights of the mean of a function of a uniform."""
    x, w = np.polynomial.legendre.leggauss(NODES)
    return (x + 1) / 2, w / 2


def scales(kind, u):
    """s at quantiles of its prior."""
    if kind in ("bayes_a", "bayes_b"):
        return stats.gamma.ppf(u, SHAPE) / RATE
    if kind == "lasso":
        return LAMBDA[1] / stats.gamma.ppf(u, LAMBDA[0])
    if kind == "horseshoe":
        return (GLOBAL * np.tan(np.pi * u / 2)) ** 2
    return NU * S / stats.chi2.ppf(u, NU)


def local_scales(kind, u):
    """tau of an effect that is not 0, at quantiles of its prior; one of 1 where there is none."""
    if kind in ("bayes_a", "bayes_b"):
        return NU / stats.chi2.ppf(u, NU)
    if kind == "lasso":
        return -2 * np.log(u)
    return np.tan(np.pi * u / 2) ** 2 if kind == "horseshoe" else np.ones(1)


@cache
def by_quadrature(kind):
    """Posterior means of what `chain` returns."""
    _, x, y = data()
    noise = np.eye(ANIMALS) + np.full((ANIMALS, ANIMALS), 1 / MEAN_PRECISION)
    inverse = np.linalg.inv(noise)
    C, b = x @ inverse @ x.T, x @ inverse @ y
    u, w = quantiles()
    s, tau = scales(kind, u), local_scales(kind, u)
    w_tau = w if len(tau) > 1 else np.ones(1)
    classes, counts = CLASSES.get(kind, (1.0,)), np.array(COUNTS)[: len(CLASSES.get(kind, (1.0,)))]
    total, sums = 0.0, 0.0
    for of_class in product(range(len(classes)), repeat=SNPS):
        in_class = np.bincount(of_class, minlength=len(classes))
        prior = np.prod([np.prod(c + np.arange(n)) for c, n in zip(counts, in_class, strict=True)])
        first, second = (classes[k] * tau for k in of_class)
        grid = np.stack(np.broadcast_arrays(s[:, None, None] * first[:, None], s[:, None, None] * second), axis=-1)
        weight = prior * w[:, None, None] * w_tau[:, None] * w_tau
        A = np.eye(SNPS) + C * grid[..., None, :]  # I + C D
        covariance = grid[..., :, None] * np.linalg.inv(A)
        mean = covariance @ b
        weight = weight * np.exp(0.5 * mean @ b) / np.sqrt(np.linalg.det(A))
        square = mean**2 + np.diagonal(covariance, axis1=-2, axis2=-1)
        log_s = np.broadcast_to(np.log(s)[:, None, None, None], (*mean.shape[:-1], 1))
        shares = ((counts + in_class) / (counts.sum() + SNPS))[:-1]
        values = np.concatenate([log_s, mean, square, np.broadcast_to(shares, (*mean.shape[:-1], len(shares)))], -1)
        total += weight.sum()
        sums = sums + np.tensordot(weight, values, 3)
    return sums / total


def held_to_quadrature(kind, samples, **options):
    draws = chain(kind, samples, **options)
    return compare(batches(draws), by_quadrature(kind))


@pytest.mark.parametrize("kind", first(3, KINDS))
def test_scales_and_shares(kind):
    comparison = held_to_quadrature(kind, 8000)
    assert comparison.agrees, comparison


def without_prior(step):
    """Interweaving that forgets the prior of the scale."""
    prior = type(step.prior)

    class Forgetful(prior):
        @property
        def scaling(self):
            return replace(super().scaling, exponent=0.0, scale=0.0, precision=0.0)

    step.prior.__class__ = Forgetful


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["bayes_a", "lasso", "horseshoe"])
def test_a_wrong_scale_is_seen(kind):
    comparison = held_to_quadrature(kind, 6000, change=without_prior)
    assert not comparison.agrees, comparison


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(CLASSES))
def test_wrong_steps_of_shares_are_seen(kind):
    """Proposals judged without their prior; the weights are held to plain loops in unit/sampler/test_share_moves.py."""

    def change(step):
        decide = step.share_moves.decide
        step.share_moves.decide = lambda proposal, *rest: decide(replace(proposal, log_prior_ratio=0.0), *rest)

    comparison = held_to_quadrature(kind, 6000, change=change)
    assert not comparison.agrees, comparison
