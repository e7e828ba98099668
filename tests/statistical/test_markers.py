"""SNP effects against posteriors by enumeration of every model of a few SNPs, and one chain for every size of block.

Two traits with a residual covariance and missing records, repeated and weighted records, animals without genotypes or
records, missing genotypes; effects on the first trait.
"""

from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import pytest
from helpers.monte_carlo import batches, compare
from helpers.selection import first
from reference import models

from mmgibbs.engines.serial import SerialEngine
from mmgibbs.equations.partition import partition
from mmgibbs.equations.structured import structured_equations
from mmgibbs.genotypes.store import FixedGenotypes, store_genotypes
from mmgibbs.models.covariance import CovarianceModel, full_block
from mmgibbs.models.markers import MarkerPriorSpec, Markers
from mmgibbs.sampler.markers import effects
from mmgibbs.sampler.markers.block import gram_blocks
from mmgibbs.sampler.mixed_model import MixedModel
from mmgibbs.sampler.schedule import Schedule
from mmgibbs.sampler.steps import gibbs_steps

ANIMALS, RECORDS, SNPS = 24, 40, 5
R = np.array([[1.0, 0.5], [0.5, 2.0]])
V, GAMMA, PI = 0.4, (0.0, 0.2, 1.0), (0.5, 0.3, 0.2)
MEANS = np.eye(2) / 3  # prior precision of the means


class Codes:
    real_valued = False

    def __init__(self, codes):
        self.codes, (self.n_snps, self.n_animals) = codes, codes.shape

    def block(self, first, stop):
        return self.codes[first:stop]


def markers_of(codes, animal, spec, n_recorded, trait=0, kind=None, scale=None):
    known = codes < 3
    mean = np.where(known, codes, 0).sum(axis=1) / known.sum(axis=1)
    store = store_genotypes(Codes(codes), np.arange(codes.shape[1]), np.arange(len(codes)), kind=kind)
    scale = np.ones(len(codes)) if scale is None else scale
    return Markers("snps", trait, animal, store, np.arange(len(codes)), mean, scale, mean, spec, n_recorded)


def standard_deviations():
    """(SNPS,) of the known genotypes."""
    codes = data()[1]
    return np.nanstd(np.where(codes == 3, np.nan, codes), axis=1)


def make_data(seed, n_snps, effects):
    """(design, codes, animal, (SNPS, RECORDS) genotypes of the records); effects (SNPS, 2) add to the records."""
    rng = np.random.default_rng(seed)
    codes = rng.binomial(2, 0.4, (n_snps, ANIMALS)).astype(np.uint8)
    codes[1] = np.where(rng.random(ANIMALS) < 0.8, codes[0], codes[1])  # two SNPs in linkage disequilibrium
    codes[rng.random(codes.shape) < 0.08] = 3
    animal = np.concatenate([np.arange(20), rng.integers(0, 20, RECORDS - 22), [-1, -1]]).astype(np.int32)
    weight, observed = rng.uniform(0.5, 2.0, RECORDS), models.some_observed(rng, RECORDS, 2)
    intercept = models.class_term("intercept", np.zeros(RECORDS, int), 1, [0, 1], prior_precision=MEANS)
    design = models.with_records(rng, RECORDS, [intercept], [None], R, observed, weight)
    x = np.where(codes == 3, np.nan, codes)
    x = np.nan_to_num(x - np.nanmean(x, axis=1)[:, None])
    of_record = np.where(animal >= 0, x[:, animal], 0.0)
    return replace(design, y=design.y + of_record.T @ np.array(effects)), codes, animal, of_record


def equations(design, of_record, traits):
    """C and b of the means and effects (SNP by SNP, on these traits), without their prior."""
    rows = [(r, t) for r in range(RECORDS) for t in range(2) if design.patterns[design.pattern[r], t]]
    y = np.array([design.y[r, t] for r, t in rows])
    W = np.zeros((len(rows), 2 + len(traits) * len(of_record)))
    noise = np.zeros((len(rows), len(rows)))
    for i, (r, t) in enumerate(rows):
        W[i, t] = 1.0
        if t in traits:
            W[i, 2 + traits.index(t) :: len(traits)] = of_record[:, r]
        for j, (s, u) in enumerate(rows):
            noise[i, j] = R[t, u] / design.weight[r] if r == s else 0.0
    inverse = np.linalg.inv(noise)
    return W.T @ inverse @ W, W.T @ inverse @ y


@cache
def data():
    return make_data(61, SNPS, [[0.6, 0], [0, 0], [0, 0], [-0.5, 0], [0, 0]])


def spec(kind, **options):
    return MarkerPriorSpec(kind, V, True, 5.0, V, {"classes": GAMMA, "pi": PI, "counts": None} | options)


def model(prior, kind=None, standard=False):
    design, codes, animal, _ = data()
    scale = 1 / standard_deviations() if standard else None
    design = replace(design, markers=(markers_of(codes, animal, prior, 20, kind=kind, scale=scale),))
    return MixedModel(design, (None,), CovarianceModel(R, True, full_block(2)))


def chain(prior, samples, precision="double", kind=None, seed=5, standard=False, spoil=lambda step: None):
    """(samples, 3 SNPS) effects, their squares, and the chances of a nonzero one."""
    of = model(prior, kind, standard)
    engine = SerialEngine(structured_equations(of.design, partition(of.design), precision))
    steps = gibbs_steps(of, engine, Schedule(0, samples), (seed, 0))
    step = next(s for s in steps if isinstance(s, effects.MarkerEffects))
    spoil(step)
    out = np.empty((samples, 3 * SNPS))
    for number in range(1, samples + 101):
        for s in steps:
            s(number)
        if number > 100:
            inside = step.chances[:, 1:].sum(axis=1) if step.prior.n_classes > 1 else np.ones(SNPS)
            out[number - 101] = np.concatenate([step.a, step.a**2, inside])
    return out


@cache
def by_enumeration(gamma=GAMMA, pi=PI, standard=False):
    """E[a], E[a^2], P(a is not 0): every assignment of classes, effects and means integrated out."""
    design, _, _, of_record = data()
    of_record = of_record / standard_deviations()[:, None] if standard else of_record
    C, b = equations(design, of_record, (0,))
    total, sums = [], []
    for classes in product(range(len(gamma)), repeat=SNPS):
        variances = np.array([gamma[k] * V for k in classes])
        use = np.concatenate([[True, True], variances > 0])
        prior = np.concatenate([np.diag(MEANS), 1 / variances[variances > 0]])
        A = C[np.ix_(use, use)] + np.diag(prior)
        mean = np.linalg.solve(A, b[use])
        log_p = np.log([pi[k] for k in classes]).sum() + 0.5 * np.log(prior).sum()
        log_p += 0.5 * (b[use] @ mean - np.linalg.slogdet(A)[1])
        effect, square = np.zeros(SNPS), np.zeros(SNPS)
        effect[variances > 0] = mean[2:]
        square[variances > 0] = mean[2:] ** 2 + np.diag(np.linalg.inv(A))[2:]
        total.append(log_p)
        sums.append(np.concatenate([effect, square, variances > 0]))
    p = np.exp(np.array(total) - np.max(total))
    return p @ np.array(sums) / p.sum()


def agrees(prior, samples=12_000, gamma=GAMMA, pi=PI, **options):
    draws = chain(prior, samples, **options)
    expected = by_enumeration(gamma, pi, options.get("standard", False))
    moving = draws.std(axis=0) > 0
    assert np.allclose(draws[:, ~moving].mean(axis=0), expected[~moving])
    return compare(batches(draws[:, moving]), expected[moving])


CASES = {  # gamma of the standard scale multiplies the variance of the effect of one standard deviation of a genotype
    "bayes_r": {},
    "bayes_c": {"gamma": (0.0, 1.0), "pi": (0.7, 0.3)},
    "rr": {"gamma": (0.0, 1.0), "pi": (1e-300, 1.0)},
    "bayes_r, standard scale": {"standard": True},
}


@pytest.mark.parametrize("name", first(2, CASES))
def test_by_enumeration(name):
    options = {"gamma": GAMMA, "pi": PI} | CASES[name]
    prior = spec(name.partition(",")[0], classes=options["gamma"], pi=options["pi"])
    comparison = agrees(prior, **options)
    assert comparison.agrees, comparison


def wrong_odds(step):
    """The class drawn as if the effect had no prior variance to integrate over."""
    conditional = step.prior.conditional

    def spoiled():
        found = conditional()
        return replace(found, log_share=found.log_share + 0.5 * np.log(1 + 10 * np.array(GAMMA)))

    step.prior.conditional = spoiled


def missing_genotypes_as_zero(step):
    step.values[:, 3] = -step.markers.centre


def gamma_per_standard_deviation(step):
    """The classes of effects of an allele with the variances that effects of a standard deviation would have."""
    conditional = step.prior.conditional

    def spoiled():
        found = conditional()
        return replace(found, variance=found.variance / standard_deviations() ** 2)

    step.prior.conditional = spoiled


@pytest.mark.slow
@pytest.mark.parametrize("spoil", [wrong_odds, missing_genotypes_as_zero, gamma_per_standard_deviation])
def test_spoiled_samplers_fail(spoil):
    assert not agrees(spec("bayes_r"), spoil=spoil).agrees


@pytest.mark.parametrize("kind", ["rr", "bayes_r"])
@pytest.mark.parametrize("size", [1, 2])
def test_any_size_of_block_gives_the_same_chain(monkeypatch, kind, size):
    whole = chain(spec(kind), 40)
    monkeypatch.setattr(effects, "gram_blocks", lambda *arguments: gram_blocks(*arguments, size=size))
    np.testing.assert_allclose(chain(spec(kind), 40), whole, rtol=1e-5, atol=1e-7)


def test_fixed_point_gives_the_same_chain():
    """0, 1 and 2 are exact in 8 bits."""
    np.testing.assert_allclose(
        chain(spec("bayes_r"), 40, kind=FixedGenotypes), chain(spec("bayes_r"), 40), rtol=1e-5, atol=1e-7
    )
