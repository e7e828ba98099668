"""Simulation-based calibration (Talts et al. 2018) of every prior of SNP effects.

Hyper-parameters and effects from the prior, records from them, a chain on the records: the rank of each true value
among thinned draws is uniform. Interweaving is part of the chain.
"""

from dataclasses import replace

import numpy as np
import pytest
from helpers.goodness import agree, transform_z
from reference import models
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

ANIMALS, SNPS = 60, 12
DRAWS, THIN, BURN_IN, DATA_SETS = 60, 20, 300, 120
NU, S = 6.0, 0.15  # of the variance of an effect
DF_R, SCALE_R = 10.0, 12.0
GAMMA, COUNTS = (0.0, 0.1, 1.0), (3.0, 2.0, 2.0)
SHAPE, RATE = 3.0, 15.0  # of S in bayes_a and bayes_b
LASSO = (4.0, 0.5)  # shape and rate of lambda^2
A = 0.3  # global scale of the horseshoe


def draw_prior(kind, rng):
    """(a, quantities that are ranked) from the prior."""
    if kind in ("bayes_a", "bayes_b"):
        scale = rng.gamma(SHAPE) / RATE
        v = NU * scale / rng.chisquare(NU, SNPS)
        a = np.sqrt(v) * rng.standard_normal(SNPS)
        if kind == "bayes_a":
            return a, [scale]
        pi = rng.beta(COUNTS[0], COUNTS[1])
        return np.where(rng.random(SNPS) < pi, 0.0, a), [scale, pi]
    if kind == "lasso":
        lambda2 = rng.gamma(LASSO[0]) / LASSO[1]
        return rng.laplace(0, 1 / np.sqrt(lambda2), SNPS), [lambda2]
    if kind == "horseshoe":
        tau = A * abs(rng.standard_cauchy())
        return tau * np.abs(rng.standard_cauchy(SNPS)) * rng.standard_normal(SNPS), [tau**2]
    v = NU * S / rng.chisquare(NU)
    if kind == "rr":
        return np.sqrt(v) * rng.standard_normal(SNPS), [v]
    gamma, counts = (GAMMA, COUNTS) if kind == "bayes_r" else ((0.0, 1.0), COUNTS[:2])
    pi = rng.dirichlet(counts)
    of_class = rng.choice(len(gamma), SNPS, p=pi)
    return np.sqrt(v * np.array(gamma)[of_class]) * rng.standard_normal(SNPS), [v, pi[0]]


def spec(kind):
    gamma, counts = (GAMMA, COUNTS) if kind == "bayes_r" else ((0.0, 1.0), COUNTS[:2])
    options = {"classes": gamma, "pi": tuple(c / sum(counts) for c in counts), "counts": counts}
    options |= {"shape": LASSO[0] if kind == "lasso" else SHAPE, "rate": LASSO[1] if kind == "lasso" else RATE}
    return MarkerPriorSpec(kind, S, False, NU, S, options | {"global_scale": A})


def hyper_parameters(draws):
    own = {name.rsplit(".", 1)[1]: value for name, value in draws.items() if name.startswith("markers.")}
    named = [own[name] for name in ("scale", "lambda2", "tau2", "variance") if name in own]
    return [float(x) for x in named] + ([float(own["pi"][0])] if "pi" in own else [])


def ranks(kind, n=DATA_SETS, spoil=lambda step: None):
    rng, out = np.random.default_rng(17), []
    codes = rng.binomial(2, 0.4, (SNPS, ANIMALS)).astype(np.uint8)
    x = codes - codes.mean(axis=1)[:, None]
    animal = np.arange(ANIMALS, dtype=np.int32)
    mean = models.class_term("mean", np.zeros(ANIMALS, int), 1, [0], prior_precision=np.eye(1))
    plain = models.with_records(rng, ANIMALS, [mean], [None], np.eye(1))
    markers = markers_of(codes, animal, spec(kind), ANIMALS)
    residual = CovarianceModel(np.eye(1), False, full_block(1), DF_R, np.array([[SCALE_R]]))
    for i in range(n):
        a, true = draw_prior(kind, rng)
        R = SCALE_R / rng.chisquare(DF_R)
        y = rng.standard_normal() + x.T @ a + np.sqrt(R) * rng.standard_normal(ANIMALS)
        model = MixedModel(replace(plain, y=y[:, None], markers=(markers,)), (None,), residual)
        engine = SerialEngine(structured_equations(model.design, partition(model.design)))
        steps = gibbs_steps(model, engine, Schedule(0, BURN_IN + DRAWS * THIN), (i, 0))
        step = next(s for s in steps if isinstance(s, effects.MarkerEffects))
        spoil(step)
        kept = []
        for number in range(1, BURN_IN + DRAWS * THIN + 1):
            for s in steps:
                s(number)
            if number > BURN_IN and number % THIN == 0:
                draws = {name: value for s in steps for name, value in s.draws().items()}
                kept.append([*hyper_parameters(draws), draws["R"].item(), *step.a[:3], step.a @ step.a])
        truth = np.array([*true, R, *a[:3], a @ a])
        below, ties = (np.array(kept) < truth).sum(axis=0), (np.array(kept) == truth).sum(axis=0)  # 0 in both
        out.append((below + rng.uniform(size=len(below)) * (ties + 1)) / (DRAWS + 1))
    return np.array(out)


def calibrated(u):
    return agree([transform_z(column) for column in u.T])


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["rr", "bayes_a", "bayes_b", "bayes_c", "bayes_r", "lasso", "horseshoe"])
def test_ranks_are_uniform(kind):
    u = ranks(kind)
    assert calibrated(u), (u.mean(axis=0), u.std(axis=0))


def no_jacobian(step):
    """Interweaving that leaves the change of the effects out: the variance moves alone."""
    rescale = step.prior.rescale
    step.prior.rescale = lambda square: rescale(square**2)


@pytest.mark.slow
def test_a_wrong_interweaving_is_seen():
    assert not calibrated(ranks("rr", spoil=no_jacobian))
