"""Simulation-based calibration (Talts et al. 2018) of SNP effects on two traits together.

G, R, shares, states, effects and means from the prior, records from them (some miss a trait), a chain on the records:
the rank of each true value among thinned draws is uniform. Interweaving is part of the chain.
"""

from dataclasses import replace

import numpy as np
import pytest
from reference import models
from scipy.stats import invwishart
from statistical.test_joint_markers import STATES, terms_of
from statistical.test_markers_calibration import calibrated

from mmgibbs.engines.serial import SerialEngine
from mmgibbs.equations.partition import partition
from mmgibbs.equations.structured import structured_equations
from mmgibbs.models.covariance import CovarianceModel, full_block
from mmgibbs.models.markers import JointPriorSpec
from mmgibbs.sampler.markers import joint
from mmgibbs.sampler.mixed_model import MixedModel
from mmgibbs.sampler.schedule import Schedule
from mmgibbs.sampler.steps import gibbs_steps

ANIMALS, SNPS = 50, 10
DRAWS, THIN, BURN_IN, DATA_SETS = 60, 20, 300, 120
NU, S = 8.0, np.array([[1.0, 0.4], [0.4, 1.5]])
NU_R, S_R = 12.0, np.array([[12.0, 4.0], [4.0, 10.0]])
COUNTS = np.array([3.0, 1.0, 1.0, 2.0])
WHOLE = np.array([[False] * 2, [True] * 2, [True] * 2])
FORMS = {  # states, factors, counts, one by one
    "joint": (STATES, np.ones(4), COUNTS, False),
    "one_by_one": (STATES, np.ones(4), COUNTS, True),
    "shared": (WHOLE, np.array([1.0, 0.1, 1.0]), COUNTS[1:], False),
    "rr": (np.array([[True] * 2]), np.ones(1), np.ones(1), False),
}


def spec_of(form):
    states, factor, counts, one_by_one = FORMS[form]
    pi, start = counts / counts.sum(), S / 5
    counts = counts if len(counts) > 1 else None
    return JointPriorSpec((0, 1), states, factor, pi, counts, start, False, NU, S, one_by_one)


def from_prior(spec, rng):
    """(a, G, pi)"""
    G = invwishart.rvs(NU, S, random_state=rng)
    pi = spec.pi if spec.counts is None else rng.dirichlet(spec.counts)
    state = rng.choice(len(pi), SNPS, p=pi)
    b = rng.multivariate_normal([0, 0], G, SNPS) * np.sqrt(spec.factor[state])[:, None]
    return np.where(spec.states[state], b, 0.0), G, pi


def ranks(form, n=DATA_SETS, spoil=lambda step: None):
    rng, out, spec = np.random.default_rng(19), [], spec_of(form)
    codes = rng.binomial(2, 0.4, (SNPS, ANIMALS)).astype(np.uint8)
    x = codes - codes.mean(axis=1)[:, None]
    mean = models.class_term("mean", np.zeros(ANIMALS, int), 1, [0, 1], prior_precision=np.eye(2))
    observed = models.some_observed(rng, ANIMALS, 2)
    plain = models.with_records(rng, ANIMALS, [mean], [None], np.eye(2), observed)
    terms = terms_of(spec, codes, np.arange(ANIMALS, dtype=np.int32), ANIMALS)
    residual = CovarianceModel(np.eye(2), False, full_block(2), NU_R, S_R)
    for i in range(n):
        a, G, pi = from_prior(spec, rng)
        R = invwishart.rvs(NU_R, S_R, random_state=rng)
        y = rng.standard_normal(2) + x.T @ a + rng.multivariate_normal([0, 0], R, ANIMALS)
        design = replace(plain, y=np.where(observed, y, 0.0), markers=terms)
        model = MixedModel(design, (None,), residual)
        engine = SerialEngine(structured_equations(design, partition(design)))
        steps = gibbs_steps(model, engine, Schedule(0, BURN_IN + DRAWS * THIN), (i, 0))
        step = next(s for s in steps if isinstance(s, joint.JointMarkerEffects))
        spoil(step)
        kept = []
        quantities = lambda a, G, pi, R: [
            *G[np.tril_indices(2)],
            *pi[1:],
            R[0, 1],
            *a[:2].ravel(),
            *(a.T @ a).ravel()[:2],
        ]
        for number in range(1, BURN_IN + DRAWS * THIN + 1):
            for s in steps:
                s(number)
            if number > BURN_IN and number % THIN == 0:
                kept.append(quantities(step.a, step.prior.G, step.prior.pi, step.matrices.R))
        truth = np.array(quantities(a, G, pi, R))
        below, ties = (np.array(kept) < truth).sum(axis=0), (np.array(kept) == truth).sum(axis=0)  # 0 in both
        out.append((below + rng.uniform(size=len(below)) * (ties + 1)) / (DRAWS + 1))
    return np.array(out)


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_ranks_are_uniform(form):
    u = ranks(form)
    assert calibrated(u), (u.mean(axis=0), u.std(axis=0))


def accepts_always(step):
    """Interweaving of standard deviations that knows neither their Jacobian nor the prior."""
    scaling = step.prior.scaling
    wrong = scaling._replace(exponents=np.zeros_like(scaling.exponents), S=np.zeros_like(scaling.S))
    type_of_prior = type(step.prior)
    step.prior.__class__ = type("Spoiled", (type_of_prior,), {"scaling": wrong})


def every_snp_counted(step):
    """G as if SNPs without any effect had effects of 0 drawn from it."""
    update = step.prior.update

    def spoiled(a, state, z, number):
        update(a, np.where(state == 0, len(step.prior.pi) - 1, state), z, number)

    step.prior.update = spoiled


@pytest.mark.slow
@pytest.mark.parametrize(("form", "spoil"), [("joint", accepts_always), ("shared", every_snp_counted)])
def test_spoiled_samplers_are_seen(form, spoil):
    assert not calibrated(ranks(form, spoil=spoil))
