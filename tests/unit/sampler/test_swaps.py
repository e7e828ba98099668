"""Effects that move between SNPs that are alike, against enumeration of every state of a few SNPs.

SNP 1 is SNP 0 with alleles swapped, SNP 2 differs from it in a copy of one of 300 animals (r^2 = .993), SNP 3 is
another, and SNP 4 is SNP 0 among the animals with records. One effect is large, of SNP 0. Means are flat, R and the
prior given:

    log P(states) = sum log pi - log|B| / 2 - log|C + B^-1| / 2 + b'(C + B^-1)^-1 b / 2,    C = X'X (x) R^-1, X centred
"""

from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import polars as pl
import pytest
from helpers.mixed_models import equations_of
from helpers.monte_carlo import batches, compare
from helpers.selection import first
from reference import models
from scipy import stats
from statistical.test_markers import markers_of

import mmgibbs
from mmgibbs.engines.serial import SerialEngine
from mmgibbs.models.covariance import CovarianceModel, full_block
from mmgibbs.models.markers import JointPriorSpec, MarkerPriorSpec, states_of_traits
from mmgibbs.sampler.markers.priors.bayes_a import OwnVariancesOrZero
from mmgibbs.sampler.markers.step import MarkerStep
from mmgibbs.sampler.mixed_model import MixedModel
from mmgibbs.sampler.schedule import Schedule
from mmgibbs.sampler.steps import gibbs_steps

RECORDED, OTHERS, SNPS = 300, 40, 5
R = np.array([[1.0, 0.4], [0.4, 1.5]])
GAMMA, PI, V = (0.0, 0.1, 1.0), (0.98, 0.01, 0.01), 0.5
DF, SCALE = 5.0, 0.3  # of bayes_b


@cache
def data():
    """Codes (SNPs, animals), animals with records first, and y (records, 2)."""
    rng = np.random.default_rng(12)
    codes = rng.binomial(2, 0.4, (SNPS, RECORDED + OTHERS)).astype(np.uint8)
    codes[1], codes[2], codes[4] = 2 - codes[0], codes[0], codes[0]
    codes[2, np.flatnonzero(codes[0] == 0)[0]] = 1
    codes[4, RECORDED:] = rng.binomial(2, 0.4, OTHERS)
    x = codes[:, :RECORDED].astype(float)
    y = 3.0 + 0.9 * np.outer(x[0], [1.0, 0.7]) + rng.normal(size=(RECORDED, 2)) @ np.linalg.cholesky(R).T
    return codes, y


def enumerate_states(y, R, covariances, log_pi, snps=range(SNPS)):
    """(SNPs, K) probability of each state, whose effects have covariances (K, T, T)."""
    snps, T = list(snps), y.shape[1]
    x = data()[0][snps, :RECORDED].T.astype(float)
    x, y = x - x.mean(axis=0), y - y.mean(axis=0)
    precision = np.linalg.inv(R)
    C, b = np.kron(x.T @ x, precision), (x.T @ y @ precision).ravel()
    log_p, states = [], list(product(range(len(log_pi)), repeat=len(snps)))
    for state in states:
        B = np.zeros_like(C)
        for i, k in enumerate(state):
            B[i * T : (i + 1) * T, i * T : (i + 1) * T] = covariances[k]
        use = np.flatnonzero(np.diag(B) > 0)
        at = np.ix_(use, use)
        A = C[at] + np.linalg.inv(B[at])
        log_p.append(
            sum(log_pi[k] for k in state) - 0.5 * (np.linalg.slogdet(B[at])[1] + np.linalg.slogdet(A)[1])
            + 0.5 * b[use] @ np.linalg.solve(A, b[use])
        )  # fmt: skip
    p = np.exp(np.array(log_p) - max(log_p))
    classes = np.array(states)[:, :, None] == np.arange(len(log_pi))
    return np.einsum("m,mik->ik", p / p.sum(), classes)


def make_chain(markers, y, R, samples, spoil=lambda step: None):
    """The step of the SNP effects after each sweep but the first hundred."""
    T = y.shape[1]
    intercept = models.class_term("intercept", np.zeros(RECORDED, int), 1, range(T))
    design = models.with_records(np.random.default_rng(1), RECORDED, [intercept], [None], R)
    design = replace(design, y=y, markers=markers)
    of = MixedModel(design, (None,), CovarianceModel(R, True, full_block(T)))
    engine = SerialEngine(equations_of(design, "term", "double"))
    steps = gibbs_steps(of, engine, Schedule(0, samples), (8, 0))
    step = next(s for s in steps if isinstance(s, MarkerStep))
    spoil(step)
    for number in range(1, samples + 101):
        for s in steps:
            s(number)
        if number > 100:
            yield step


def animals():
    return np.arange(RECORDED, dtype=np.int32)


# ------------------------------------------------------------------------------------------------ which SNPs


# ------------------------------------------------------------------------------------------------ probabilities


@pytest.mark.parametrize("prior", first(1, ["bayes_r", "bayes_c"]))
def test_a_run_finds_the_probabilities_within_their_errors(prior, tmp_path):
    codes, y = data()
    gamma, pi = (GAMMA, PI) if prior == "bayes_r" else ((0.0, 1.0), (0.995, 0.005))
    ids, names = [f"a{i}" for i in range(RECORDED + OTHERS)], [f"s{j}" for j in range(SNPS)]
    pl.DataFrame({"id": ids[:RECORDED], "y": y[:, 0]}).write_csv(tmp_path / "records.csv")
    pl.DataFrame({"id": ids} | dict(zip(names, codes, strict=True))).write_csv(tmp_path / "snps.csv")
    classes = {"classes": list(gamma)} if prior == "bayes_r" else {}
    term = {"level": "id", "prior": prior, "pi": {"start": list(pi), "fixed": True}, "variance":
            {"start": V, "fixed": True}} | classes  # fmt: skip
    analysis = {
        "data": {"phenotypes": str(tmp_path / "records.csv"), "genotypes": str(tmp_path / "snps.csv")},
        "traits": ["y"], "model": {"markers": {"snps": term}}, "variances": {"mode": "fixed", "residual": 1.0},
        "sampler": {"chains": 2, "burn_in": 100, "samples": 4000, "seed": 3},
    }  # fmt: skip
    mmgibbs.run(analysis, directory=tmp_path / "run", progress=False)
    found = pl.read_parquet(tmp_path / "run" / "markers.parquet")
    pip, error = found["pip_y"].to_numpy(), found["pip_mcse_y"].to_numpy()
    exact = 1 - enumerate_states(y[:, :1], R[:1, :1], V * np.array(gamma)[:, None, None], np.log(pi))[:, 0]
    assert pip[0] == pip[1]
    assert (np.abs(pip - exact) < 4 * error).all(), (pip, exact, error)
    assert (error < 0.02).all()


@pytest.mark.parametrize("redraws", first(0, [True, False]))
def test_bayes_b(redraws):
    """With the variance of a SNP integrated out by 24 nodes of Gauss and Legendre; a prior whose variances stay with
    their SNPs, as that of a plugin may, has the densities of the effects in the ratio."""
    codes, y = data()
    options = {"classes": (0.0, 1.0), "pi": (0.98, 0.02), "counts": None, "shape": None, "rate": None}
    spec = MarkerPriorSpec("bayes_b", SCALE, True, DF, SCALE, options)
    term = markers_of(codes[[0, 1, 3]], animals(), spec, RECORDED)
    u, weight = np.polynomial.legendre.leggauss(24)
    v = DF * SCALE / stats.chi2.isf((u + 1) / 2, DF)
    log_pi = np.log(np.concatenate([[0.98], 0.02 * weight / 2]))
    exact = enumerate_states(y[:, :1], R[:1, :1], np.append(0, v)[:, None, None], log_pi, [0, 1, 3])

    def hold(step):
        step.prior.redraws_variances = redraws

    chain = make_chain((term,), y[:, :1], R[:1, :1], 20_000, hold)
    draws = np.array([np.append(step.chances[:, 1], step.a != 0) for step in chain])
    assert OwnVariancesOrZero.redraws_variances
    compared = compare(batches(draws), np.tile(1 - exact[:, 0], 2))
    assert compared.agrees, compared
    assert np.array_equal(draws[:, 0], draws[:, 1]) == redraws


@pytest.mark.parametrize("across", first(1, ["joint", "one_by_one", "shared"]))
def test_two_traits(across):
    codes, y = data()
    G = 0.5 * np.array([[1.0, 0.3], [0.3, 1.0]])
    if across == "shared":
        states, factor, pi = np.array([[False] * 2, [True] * 2, [True] * 2]), np.array([1.0, 0.1, 1.0]), np.array(PI)
    else:
        states, factor, pi = states_of_traits(2), np.ones(4), np.array([0.97, 0.01, 0.01, 0.01])
    spec = JointPriorSpec((0, 1), states, factor, pi, None, G, True, 7.0, 7.0 * G, across == "one_by_one")
    of_trait = [MarkerPriorSpec("bayes_c", 0.5, True, 5.0, 0.5, {}) for _ in range(2)]
    terms = tuple(
        replace(markers_of(codes, animals(), of, RECORDED, t), joint=spec) for t, of in enumerate(of_trait)
    )  # fmt: skip
    exact = enumerate_states(y, R, factor[:, None, None] * G * (states[:, :, None] & states[:, None, :]), np.log(pi))
    draws = np.array([step.chances[:, 1:].ravel().copy() for step in make_chain(terms, y, R, 6000)])
    seen = draws.std(axis=0) > 1e-4
    compared = compare(batches(draws[:, seen]), exact[:, 1:].ravel()[seen])
    assert compared.agrees, compared
    assert np.abs(draws.mean(axis=0) - exact[:, 1:].ravel()).max() < 0.05
