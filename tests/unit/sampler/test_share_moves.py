"""The step of the shares of classes of SNPs: proposals, their ratio against plain loops, what a refusal leaves."""

import numpy as np
import pytest
from helpers.mixed_models import equations_of
from statistical.test_marker_scales import model
from statistical.test_markers import markers_of, spec

from mmgibbs.engines.device_sweep import ClassDraws
from mmgibbs.engines.serial import SerialEngine
from mmgibbs.machine.barrier import places_of_threads
from mmgibbs.sampler.markers.arguments import NO_CLASSES, Animals, Classes, Genotypes, Products
from mmgibbs.sampler.markers.block import gram_blocks, make_block
from mmgibbs.sampler.markers.effects import MarkerEffects
from mmgibbs.sampler.markers.priors.base import (
    gamma_scale,
    inverse_chi_square_scale,
    inverse_gamma_scale,
)
from mmgibbs.sampler.markers.share_moves import SWEEPS_BETWEEN, shifted_shares
from mmgibbs.sampler.markers.sweep import sweep
from mmgibbs.sampler.schedule import Schedule
from mmgibbs.sampler.steps import gibbs_steps

SNPS, ANIMALS, PLACES = 7, 20, 128


@pytest.mark.parametrize(
    ("pi", "step"),
    [([1.0, 0.0], 0.5), ([0.5, 0.5, 0.0], 0.5), ([0.5, 0.5], 800.0), ([0.5, 0.5], -800.0), ([0.99, 0.01], -709.0)],
)
def test_shares_of_zero_do_not_move(pi, step):
    assert shifted_shares(np.array(pi), 1, step) is None


@pytest.mark.parametrize(
    ("scaling", "log_density"),
    [
        (gamma_scale(0.4, 3.0, 15.0), lambda v: 2 * np.log(v) - 15 * v),
        (inverse_chi_square_scale(0.4, 6.0, 0.9), lambda v: -4 * np.log(v) - 0.45 / v),
        (inverse_gamma_scale(0.4, 4.0, 0.5), lambda v: -5 * np.log(v) - 0.5 / v),
    ],
)
def test_the_prior_of_a_scale_is_that_of_its_variance(scaling, log_density):
    """By the density of v, and the derivative of v by log v, which is v."""
    for square in (0.3, 1.0, 2.5):
        v = 0.4 * square
        expected = log_density(v) + np.log(v) - log_density(0.4) - np.log(0.4)
        assert scaling.log_ratio(square) == pytest.approx(expected)


def prepared(size):
    """What a sweep takes before the prior, and the centred genotypes (SNPS, PLACES)."""
    rng = np.random.default_rng(3)
    codes = rng.binomial(2, 0.4, (SNPS, ANIMALS)).astype(np.uint8)
    m = markers_of(codes, np.arange(ANIMALS, dtype=np.int32), spec("bayes_r"), ANIMALS)
    values = m.genotypes.values(m.centre, m.scale, m.mean)
    d, s, g = np.zeros((3, PLACES))
    d[:ANIMALS], s[:ANIMALS] = rng.uniform(0.5, 2.0, ANIMALS), 2 * rng.standard_normal(ANIMALS)
    products = Products(gram_blocks(m.genotypes, values, d, size)[None], np.ones((1, 1, 1)))
    packed, x = Genotypes(m.genotypes.array, values, 1), np.zeros((SNPS, PLACES))
    x[:, :ANIMALS] = m.genotypes.decode(np.arange(SNPS), values)
    return packed, products, Animals(d[None, None], s[None], g[None]), x


def sums_of_weights(C, q, v, log_share):
    """log sum_k pi_k f_k of one SNP, and the probability of each class."""
    each = log_share.copy()
    for k in np.flatnonzero(v):
        each[k] += 0.5 * (q**2 / (C + 1 / v[k]) - np.log(1 + C * v[k]))
    return np.log(np.exp(each).sum()), np.exp(each) / np.exp(each).sum()


def plain_sweep(x, animals, a, z, u, prior, compared, is_backward):
    """Effects and the sum of log ratios, by plain loops."""
    d, s = animals.D[0, 0], animals.s[0]
    a, s, total = a.copy(), s.copy(), 0.0
    for j in range(SNPS)[:: -1 if is_backward else 1]:
        C = x[j] @ (d * x[j])
        q = x[j] @ s + C * a[j]
        of_prior, chances = sums_of_weights(C, q, prior.variance[:, 0], prior.log_share)
        total += of_prior - sums_of_weights(C, q, compared.variance[:, 0], compared.log_share)[0]
        k = int(np.searchsorted(np.cumsum(chances), u[j]))
        precision = C + 1 / prior.variance[k, 0] if k else np.inf
        new = q / precision + z[j] / np.sqrt(precision)
        s -= d * x[j] * (new - a[j])
        a[j] = new
    return a, total


@pytest.mark.parametrize("is_backward", [False, True])
@pytest.mark.parametrize("size", [1, 3, 64])
def test_the_ratio_of_a_sweep_by_plain_loops(size, is_backward):
    rng = np.random.default_rng(4)
    packed, products, animals, x = prepared(size)
    prior = Classes(np.array([[0.0], [0.1], [0.8]]), np.log([0.3, 0.3, 0.4]))
    compared = Classes(np.array([[0.0], [0.2], [1.6]]), np.log([0.5, 0.4, 0.1]))
    a, z, u = np.zeros(SNPS), rng.standard_normal(SNPS), rng.random(SNPS)
    expected, total = plain_sweep(x, animals, a, z, u, prior, compared, is_backward)
    block, of_class = make_block(1, PLACES, size, np.dtype(float)), np.ones(SNPS, np.int8)
    draws = ClassDraws(of_class, prior, compared, z, u, np.zeros((SNPS, 3), np.float32))
    arguments = places_of_threads(1), 0, block, packed, products, animals, a[:, None]
    sweep(*arguments, draws, is_backward)
    np.testing.assert_allclose(a, expected, rtol=1e-5)
    assert block.log_ratio[0] == pytest.approx(total, rel=1e-5)
    sweep(*arguments, draws._replace(compared=NO_CLASSES), is_backward)
    assert block.log_ratio[0] == pytest.approx(total, rel=1e-5)  # as it was


def chain_step(kind):
    of = model(kind)
    engine = SerialEngine(equations_of(of, "term"))
    steps = gibbs_steps(of, engine, Schedule(10, 20), (3, 0))
    for number in range(1, 6):
        for s in steps:
            s(number)
    return next(s for s in steps if isinstance(s, MarkerEffects))


@pytest.mark.parametrize("kind", ["bayes_b", "bayes_c", "bayes_r"])
def test_a_refused_proposal_changes_nothing(kind):
    step = chain_step(kind)
    step.share_moves.decide = lambda proposal, log_ratio, number: False
    kept = {name: value.copy() for name, value in step.state().items()}
    step._draw_effects(6)
    assert 6 % SWEEPS_BETWEEN == 0
    for name, value in step.state().items():
        np.testing.assert_array_equal(value, kept[name], err_msg=name)


def test_steps_adapt_in_burn_in_alone():
    moves = chain_step("bayes_c").share_moves
    proposal = moves.propose(6, None)
    start = moves.log_steps.copy()
    moves.decide(proposal, -1e9, 11)
    np.testing.assert_array_equal(moves.log_steps, start)
    moves.decide(proposal, -1e9, 10)
    assert moves.log_steps[1] < start[1]


def test_fixed_shares_do_not_move():
    of = model("bayes_c")
    of.design.markers[0].prior.options["counts"] = None
    engine = SerialEngine(equations_of(of, "term"))
    step = next(s for s in gibbs_steps(of, engine, Schedule(0, 5), (3, 0)) if isinstance(s, MarkerEffects))
    assert step.share_moves is None and not any("share_moves" in name for name in step.state())
