"""SNP effects on two traits together against enumeration of every state of a few SNPs, at given G and R.

Repeated and weighted records, missing traits, animals without genotypes, missing genotypes, two SNPs in disequilibrium.
"""

from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import pytest
from helpers.monte_carlo import batches, compare
from helpers.selection import first
from statistical.test_markers import MEANS, R, equations, make_data, markers_of

from mmgibbs.engines.serial import SerialEngine
from mmgibbs.equations.partition import partition
from mmgibbs.equations.structured import structured_equations
from mmgibbs.models.covariance import CovarianceModel, full_block
from mmgibbs.models.markers import JointPriorSpec, MarkerPriorSpec, states_of_traits
from mmgibbs.sampler.markers import joint
from mmgibbs.sampler.markers.block import gram_blocks
from mmgibbs.sampler.mixed_model import MixedModel
from mmgibbs.sampler.schedule import Schedule
from mmgibbs.sampler.steps import gibbs_steps

SNPS = 4
G = np.array([[0.4, 0.25], [0.25, 0.5]])
STATES = states_of_traits(2)
OF_STATES = np.array([0.4, 0.2, 0.1, 0.3])


def prior(states=STATES, factor=None, pi=OF_STATES, one_by_one=False, G=G, fixed=True, counts=None):
    factor = np.ones(len(states)) if factor is None else np.array(factor)
    return JointPriorSpec((0, 1), states, factor, np.array(pi), counts, G, fixed, 7.0, 7.0 * G, one_by_one)


SHARED = prior(np.array([[False] * 2, [True] * 2, [True] * 2]), (1.0, 0.2, 1.0), (0.5, 0.3, 0.2))
EVERY = prior(np.array([[True] * 2]), pi=(1.0,))
PRIORS = {"joint": prior(), "one_by_one": prior(one_by_one=True), "shared": SHARED, "rr": EVERY}


@cache
def data():
    return make_data(63, SNPS, [[0.5, 0.4], [0, 0], [0.3, 0], [0, -0.3]])


def terms_of(spec, codes, animal, n_recorded):
    """One term on each trait of the prior."""
    own = [MarkerPriorSpec("bayes_c", v, True, 5.0, v, {}) for v in np.diag(spec.start)]
    each = zip(spec.traits, own, strict=True)
    return tuple(replace(markers_of(codes, animal, of, n_recorded, t), joint=spec) for t, of in each)


def chain(spec, samples, precision="double", seed=5, spoil=lambda step: None):
    """(samples, ...) effects on both traits, their squares, and the chances of each state."""
    design, codes, animal, _ = data()
    design = replace(design, markers=terms_of(spec, codes, animal, 20))
    of = MixedModel(design, (None,), CovarianceModel(R, True, full_block(2)))
    engine = SerialEngine(structured_equations(design, partition(design), precision))
    steps = gibbs_steps(of, engine, Schedule(0, samples), (seed, 0))
    step = next(s for s in steps if isinstance(s, joint.JointMarkerEffects))
    spoil(step)
    out = []
    for number in range(1, samples + 101):
        for s in steps:
            s(number)
        if number > 100:
            inside = np.concatenate([own.chances[:, 0] for own in step.on_traits])
            out.append(np.concatenate([step.a.ravel(), (step.a**2).ravel(), step.chances.ravel(), inside]))
    return np.array(out)


def by_enumeration(spec):
    """E[a], E[a^2], P(state), P(no effect on a trait): every assignment of states, means and effects integrated out."""
    design, *_, of_record = data()
    C, b = equations(design, of_record, (0, 1))
    total, sums = [], []
    for states in product(range(len(spec.pi)), repeat=SNPS):
        active = spec.states[list(states)]  # (SNPS, 2)
        use = np.concatenate([[True, True], active.ravel()])
        precision, log_p = np.zeros_like(C), np.log(spec.pi[list(states)]).sum()
        precision[:2, :2] = MEANS
        for j, k in enumerate(states):
            own = np.flatnonzero(active[j])
            B = spec.factor[k] * spec.start[np.ix_(own, own)]
            precision[np.ix_(2 + 2 * j + own, 2 + 2 * j + own)] = np.linalg.inv(B)
            log_p -= 0.5 * np.linalg.slogdet(B)[1]
        A = (C + precision)[np.ix_(use, use)]
        mean, covariance = np.linalg.solve(A, b[use]), np.linalg.inv(A)
        log_p += 0.5 * (b[use] @ mean - np.linalg.slogdet(A)[1])
        effect, square = np.zeros((2, len(use)))
        effect[use], square[use] = mean, mean**2 + np.diag(covariance)
        chances = np.eye(len(spec.pi))[list(states)].ravel()
        total.append(log_p)
        sums.append(np.concatenate([effect[2:], square[2:], chances, (~active).T.ravel()]))
    p = np.exp(np.array(total) - np.max(total))
    return p @ np.array(sums) / p.sum()


def agrees(spec, samples=24_000, **options):
    draws, expected = chain(spec, samples, **options), by_enumeration(spec)
    moving = draws.std(axis=0) > 1e-12
    if spec is EVERY:  # chances of a prior without classes are 1, by either name
        moving[-2 * SNPS :] = False
    return compare(batches(draws[:, moving]), expected[moving])


@pytest.mark.parametrize("kind", first(0, PRIORS))
def test_by_enumeration(kind):
    comparison = agrees(PRIORS[kind])
    assert comparison.agrees, comparison


def determinant_left_out(step):
    """States drawn with the wrong odds: without |B_k|."""
    of_states = step.prior.state_precisions

    def spoiled():
        precision, _ = of_states()
        return precision, step.prior.log_pi

    step.prior.state_precisions = spoiled


def effects_left_out_as_zero(step):
    """One trait at a time, as if the b of traits that are out were 0."""
    left_out = step.prior.left_out
    step.prior.left_out = lambda: (0 * left_out()[0], 0 * left_out()[1])


def residual_covariance_forgotten(step):
    """The records as if their residuals did not covary."""
    passes = step.engine.marker_passes
    sums = passes.sum_by_animal
    passes.sum_by_animal = lambda markers, n: 0.5 * sums(markers, n)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "spoil"),
    [
        ("joint", determinant_left_out),
        ("rr", residual_covariance_forgotten),
        ("one_by_one", effects_left_out_as_zero),
        ("shared", determinant_left_out),
    ],
)
def test_spoiled_samplers_fail(kind, spoil):
    assert not agrees(PRIORS[kind], spoil=spoil).agrees


@pytest.mark.parametrize("kind", PRIORS)
def test_any_size_of_block_gives_the_same_chain(monkeypatch, kind):
    whole = chain(PRIORS[kind], 40)
    for size in (1, 3):
        monkeypatch.setattr(joint, "gram_blocks", lambda *arguments, size=size: gram_blocks(*arguments, size=size))
        np.testing.assert_allclose(chain(PRIORS[kind], 40), whole, rtol=1e-5, atol=1e-6)
