"""The step of the shares of classes of SNPs: proposals, their ratio against plain loops, what a refusal leaves."""

from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import gammaln
from statistical.test_marker_scales import model
from statistical.test_markers import markers_of, spec

from mmgibbs.engines.serial import SerialEngine
from mmgibbs.equations.partition import partition
from mmgibbs.equations.structured import structured_equations
from mmgibbs.machine.barrier import places_of_threads
from mmgibbs.sampler.markers.arguments import Animals, Classes, Genotypes, Products
from mmgibbs.sampler.markers.effects import NO_CLASSES, MarkerEffects
from mmgibbs.sampler.markers.priors.base import (
    Mixture,
    Site,
    gamma_scale,
    inverse_chi_square_scale,
    inverse_gamma_scale,
)
from mmgibbs.sampler.markers.share_moves import SWEEPS_BETWEEN, ShareMoves, shifted_shares
from mmgibbs.sampler.markers.sweep import gram_blocks, make_block, sweep_mixture
from mmgibbs.sampler.schedule import Schedule
from mmgibbs.sampler.steps import gibbs_steps

SNPS, ANIMALS, PLACES = 7, 20, 128


def test_a_shifted_share():
    pi = np.array([0.6, 0.3, 0.1])
    moved = shifted_shares(pi, 1, 0.7)
    assert moved.sum() == pytest.approx(1.0)
    assert np.log(moved[1] / (1 - moved[1])) == pytest.approx(np.log(0.3 / 0.7) + 0.7)
    assert moved[0] / moved[2] == pytest.approx(6.0)
    np.testing.assert_allclose(shifted_shares(moved, 1, -0.7), pi)


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
    """What sweep_mixture takes before the prior, and the centred genotypes (SNPS, PLACES)."""
    rng = np.random.default_rng(3)
    codes = rng.binomial(2, 0.4, (SNPS, ANIMALS)).astype(np.uint8)
    m = markers_of(codes, np.arange(ANIMALS, dtype=np.int32), spec("bayes_r"), ANIMALS)
    values = m.genotypes.values(m.centre, m.scale, m.mean)
    d, s, g = np.zeros((3, PLACES))
    d[:ANIMALS], s[:ANIMALS] = rng.uniform(0.5, 2.0, ANIMALS), 2 * rng.standard_normal(ANIMALS)
    products = Products(gram_blocks(m.genotypes, values, d, size), 1.0)
    packed, x = Genotypes(m.genotypes.array, values, 1), np.zeros((SNPS, PLACES))
    x[:, :ANIMALS] = m.genotypes.decode(np.arange(SNPS), values)
    return packed, products, Animals(d, s, g), x


def sums_of_weights(C, q, v, log_share):
    """log sum_k pi_k f_k of one SNP, and the probability of each class."""
    each = log_share.copy()
    for k in np.flatnonzero(v):
        each[k] += 0.5 * (q**2 / (C + 1 / v[k]) - np.log(1 + C * v[k]))
    return np.log(np.exp(each).sum()), np.exp(each) / np.exp(each).sum()


def plain_sweep(x, animals, a, z, u, prior, compared, is_backward):
    """Effects and the sum of log ratios, by plain loops."""
    d, s, _ = animals
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
    block, of_class = make_block(products.gram.shape[1], PLACES, np.dtype(float)), np.ones(SNPS, np.int8)
    chances = np.zeros((SNPS, 3), np.float32)
    arguments = places_of_threads(1), 0, block, packed, products, animals, a, of_class
    sweep_mixture(*arguments, prior, compared, is_backward, z, u, chances)
    np.testing.assert_allclose(a, expected, rtol=1e-5)
    assert block.log_ratio[0] == pytest.approx(total, rel=1e-5)
    sweep_mixture(*arguments, prior, NO_CLASSES, is_backward, z, u, chances)
    assert block.log_ratio[0] == pytest.approx(total, rel=1e-5)  # as it was


def chain_step(kind):
    of = model(kind)
    engine = SerialEngine(structured_equations(of.design, partition(of.design)))
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


def test_a_direction_holds_until_a_proposal_is_refused():
    moves = chain_step("bayes_c").share_moves
    scaling = inverse_chi_square_scale(0.4, 6.0, 0.9)
    direction = moves.direction[1]
    for log_ratio, sign in ((1e9, direction), (-1e9, -direction), (1e9, -direction)):
        proposal = moves.propose(6, scaling)
        moves.decide(proposal, log_ratio, 100)
        assert moves.direction[1] == sign and moves.accepted == (log_ratio > 0)
    assert np.sign(moves.propose(6, scaling).pi[1] - moves.shares.pi[1]) == -direction


def test_steps_adapt_in_burn_in_alone():
    moves = chain_step("bayes_c").share_moves
    proposal = moves.propose(6, None)
    start = moves.log_steps.copy()
    moves.decide(proposal, -1e9, 11)
    np.testing.assert_array_equal(moves.log_steps, start)
    moves.decide(proposal, -1e9, 10)
    assert moves.log_steps[1] < start[1]


def test_a_state_continues():
    moves, other = chain_step("bayes_r").share_moves, chain_step("bayes_r").share_moves
    moves.decide(moves.propose(6, None), -1e9, 6)
    other.restore({name: value.copy() for name, value in moves.state().items()})
    for number in (8, 10):
        np.testing.assert_array_equal(moves.propose(number, None).pi, other.propose(number, None).pi)


def test_fixed_shares_do_not_move():
    of = model("bayes_c")
    of.design.markers[0].prior.options["counts"] = None
    engine = SerialEngine(structured_equations(of.design, partition(of.design)))
    step = next(s for s in gibbs_steps(of, engine, Schedule(0, 5), (3, 0)) if isinstance(s, MarkerEffects))
    assert step.share_moves is None and not any("share_moves" in name for name in step.state())


FACTOR, COUNTS, DF, SCALE = np.array([0.0, 0.3, 1.0]), np.array([2.0, 1.0, 1.5]), 6.0, 1.2


def exact_means(x, animals):
    """E(pi | y) and E(log v | y) with v ~ SCALE / chi2(DF): every combination of classes, v on a grid."""
    A, b = (x * animals.d) @ x.T, x @ animals.s
    classes = np.array(list(product(range(3), repeat=SNPS)))
    n = np.array([(classes == k).sum(1) for k in range(3)]).T
    log_pi = gammaln(COUNTS + n).sum(1)  # the shares are integrated out
    log_v = np.linspace(-5.0, 5.0, 41)
    log_p = np.empty((log_v.size, len(classes)))
    for i, v in enumerate(np.exp(log_v)):
        root = np.sqrt(v * FACTOR[classes])
        M = np.eye(SNPS) + root[:, :, None] * A * root[:, None, :]
        rhs = root * b
        quadratic = np.sum(rhs * np.linalg.solve(M, rhs[:, :, None])[:, :, 0], axis=1)
        log_p[i] = log_pi + 0.5 * (quadratic - np.linalg.slogdet(M)[1]) - 0.5 * DF * np.log(v) - 0.5 * SCALE / v
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    return np.append(p.sum(0) @ ((COUNTS + n) / (COUNTS.sum() + SNPS)), p.sum(1) @ log_v)


def chain_means(packed, products, animals, n_draws=30_000, batches=30):
    """Means and errors of pi and log v of a chain whose classes, shares and effects move by proposals alone."""
    rng = np.random.default_rng(8)
    shares = SimpleNamespace(pi=np.array([0.4, 0.3, 0.3]), counts=COUNTS)
    moves = ShareMoves(shares, FACTOR, Site(0, np.arange(SNPS, dtype=np.uint64), (5, 0)), 0)
    moves.log_steps[:] = np.log(1.2)
    a, of_class, v = np.zeros(SNPS), np.zeros(SNPS, np.int8), 0.5
    chances, draws = np.zeros((SNPS, 3), np.float32), np.empty((n_draws, 4))
    for i in range(n_draws):
        proposal = moves.propose(SWEEPS_BETWEEN * i, inverse_chi_square_scale(v, DF, SCALE))
        if proposal is not None:
            now = Mixture(v * FACTOR[:, None], np.log(shares.pi))
            prior, compared = (Classes(m.variance, m.log_share) for m in (proposal.changed(now), now))
            before = [array.copy() for array in (a, of_class, *animals)]
            block = make_block(products.gram.shape[1], PLACES, np.dtype(float))
            sweep_mixture(
                places_of_threads(1), 0, block, packed, products, animals, a, of_class, prior, compared,
                proposal.is_backward, rng.standard_normal(SNPS), rng.random(SNPS), chances,
            )  # fmt: skip
            if moves.decide(proposal, float(block.log_ratio[0]), SWEEPS_BETWEEN * i + 1):
                shares.pi, v = proposal.pi, v * proposal.square
            else:
                for array, values in zip((a, of_class, *animals), before, strict=True):
                    array[:] = values
        squares, n = np.sum(a[of_class > 0] ** 2 / FACTOR[of_class[of_class > 0]]), np.count_nonzero(of_class)
        v = (squares + SCALE) / rng.chisquare(DF + n)
        draws[i] = [*shares.pi, np.log(v)]
    means = draws[n_draws // 20 :].reshape(batches, -1, 4).mean(1)
    return means.mean(0), means.std(0, ddof=1) / np.sqrt(batches)


def test_a_chain_of_proposals_has_the_posterior_of_shares_and_scale():
    packed, products, animals, x = prepared(3)
    expected = exact_means(x, animals)
    means, errors = chain_means(packed, products, animals)
    assert (errors < 0.06).all()
    assert (np.abs(means - expected) < 4 * errors).all(), (means, expected, errors)
