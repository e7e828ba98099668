"""PEV by Monte Carlo against the dense inverse, in units of its own standard error; and mutants that must be seen."""

import numpy as np
import pytest
from helpers.mixed_models import equations_of
from helpers.small_analysis import small_design
from reference import models
from scipy.stats import norm

from mmgibbs.engines.direct.standard_errors import posterior_sd
from mmgibbs.engines.pcg import prediction_errors, solver
from mmgibbs.engines.pcg.prediction_errors import monte_carlo_pev, prior_diagonals
from mmgibbs.engines.pcg.solver import PcgSolver
from mmgibbs.machine.threads import Threads

SAMPLES, SEED = 400, 11
IGNORED = "univariate_inbreeding_ignored"


def estimated(design, G, R, samples=SAMPLES, seed=SEED, kind="colour", threads=1, inbreeding=True):
    solver = PcgSolver(equations_of(design, kind), Threads(threads))
    solver.set_variances(G, R)
    return monte_carlo_pev(solver, G, R, prior_diagonals(design, inbreeding), samples, seed)


def deviations(found, exact):
    """(PEV - the exact one) / its stated error, of what is not set to 0."""
    out = []
    for sd, error, truth in zip(found.sd, found.error, exact, strict=True):
        assert np.all((truth == 0) == (sd == 0)) and np.all((error > 0) == (sd > 0))
        out.append((sd**2 - truth**2)[truth > 0] / error[truth > 0])
    return np.concatenate(out)


def agrees(z):
    """No level is off by more than the largest deviation of one in a thousand such tables."""
    return np.abs(z).max() < norm.isf(0.0005 / z.size)


@pytest.mark.parametrize("name", models.NAMES)
def test_every_model(name):
    example = models.example(name)
    arguments = example.design, example.G, example.R
    z = deviations(estimated(*arguments, inbreeding=name != IGNORED), posterior_sd(*arguments))
    assert agrees(z), np.abs(z).max()


@pytest.mark.slow
def test_the_stated_error_is_the_error():
    """Over many seeds: standard deviation of the estimates, and no bias."""
    example = models.example("bivariate_missing")
    arguments = example.design, example.G, example.R
    exact, seeds = posterior_sd(*arguments), range(40)
    found = [estimated(*arguments, samples=60, seed=s) for s in seeds]
    z = np.stack([deviations(one, exact) for one in found])
    assert 0.85 < np.sqrt(np.mean(z**2)) < 1.15
    pev = np.stack([np.concatenate([sd[t > 0] ** 2 for sd, t in zip(one.sd, exact, strict=True)]) for one in found])
    off = pev.mean(axis=0) - np.concatenate([t[t > 0] ** 2 for t in exact])
    t = off / (pev.std(axis=0, ddof=1) / np.sqrt(len(seeds)))
    assert np.abs(t).max() < norm.isf(0.0005 / t.size)


def _with_the_whole_error(monkeypatch):
    """delta in place of m, though p is added."""
    add = prediction_errors._Sums.add
    monkeypatch.setattr(prediction_errors._Sums, "add", lambda own, delta, m, u: add(own, delta, delta, u))


def _without_what_is_known(monkeypatch):
    put = prediction_errors.PcgSolver.diagonals_of_inverse_blocks
    monkeypatch.setattr(prediction_errors.PcgSolver, "diagonals_of_inverse_blocks", lambda s: [0 * p for p in put(s)])


def _with_a_tenth_more_prior_variance(monkeypatch):
    diagonal = prediction_errors._diagonal
    wrong = lambda term, known: None if diagonal(term, known) is None else 1.1 * diagonal(term, known)
    monkeypatch.setattr(prediction_errors, "_diagonal", wrong)


@pytest.mark.parametrize("wrong", [_with_the_whole_error, _without_what_is_known, _with_a_tenth_more_prior_variance])
def test_mutants_are_seen(monkeypatch, wrong):
    example = models.example("bivariate_missing")
    arguments = example.design, example.G, example.R
    exact = posterior_sd(*arguments)
    wrong(monkeypatch)
    assert not agrees(deviations(estimated(*arguments), exact))


def test_scaled_covariates(tmp_path):
    """On the scale of the file, as the exact ones."""
    design, G, R = small_design(tmp_path)
    assert design.rescale and design.shifts
    assert agrees(deviations(estimated(design, G, R), posterior_sd(design, G, R)))


def test_draws_do_not_depend_on_threads_order_or_company(monkeypatch):
    example = models.example("bivariate_missing")
    arguments = example.design, example.G, example.R
    one = estimated(*arguments, samples=50)
    two = estimated(*arguments, samples=50, threads=2)
    monkeypatch.setattr(solver, "DRAWS_AT_ONCE", 3)
    three = estimated(*arguments, samples=50)
    other = estimated(*arguments, samples=50, kind="equal")
    for a, b, c, d in zip(one.sd, two.sd, three.sd, other.sd, strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-12)
        np.testing.assert_allclose(c, a, rtol=1e-12)
        np.testing.assert_allclose(d, a, rtol=1e-3)  # the iteration stops elsewhere
    assert not np.allclose(estimated(*arguments, samples=50, seed=SEED + 1).sd[-1], one.sd[-1], rtol=1e-6)


def test_where_inbreeding_is_ignored_the_diagonal_is_not_known():
    """1 + 0 is not what A without it has: taken for it, it is seen, and so it is not used."""
    example = models.example(IGNORED)
    arguments = example.design, example.G, example.R
    assert not agrees(deviations(estimated(*arguments), posterior_sd(*arguments)))
    of_pedigree = [i for i, t in enumerate(example.design.terms) if t.kind == "random" and t.relationship.of_pedigree]
    assert of_pedigree and all(prior_diagonals(example.design, False)[i] is None for i in of_pedigree)
