"""Simulation-based calibration of the marginal engine, as test_calibration.py, with mutants of its density.

A Jacobian that is missing is seen in tests/unit/sampler/test_marginal.py."""

import numpy as np
import pytest
from helpers.support import mixed_model
from joblib import Parallel, delayed
from verification.test_calibration import DRAWS, beef, p_values, parameters, tiny, uniform

from mmgibbs.engines.direct.engine import MarginalEngine
from mmgibbs.equations.partition import partition
from mmgibbs.equations.structured import structured_equations
from mmgibbs.sampler.chain import Chain
from mmgibbs.sampler.marginal.target import Target
from mmgibbs.sampler.schedule import Schedule


class WithoutLogG(Target):
    """q log|G| of the last random term is forgotten."""

    def evaluate(self, x):
        value, psi = super().evaluate(x)
        sizes, levels, *_ = self.likelihood.matrices.sizes
        at, k = int((sizes[:-1] ** 2).sum()), int(sizes[-1])
        return value + 0.5 * levels[-1] * np.linalg.slogdet(psi[at : at + k * k].reshape(k, k))[1], psi


class WrongSign(Target):
    """+ rhs' C^-1 rhs in place of -."""

    def evaluate(self, x):
        value, psi = super().evaluate(x)
        last = self.likelihood.last
        with np.errstate(over="ignore"):  # it grows without end where a variance is near 0
            return value - float(np.sum(last.w**2 * last.reciprocal)), psi


MUTANTS = {"without log|G|": WithoutLogG, "wrong sign": WrongSign}


def marginal_ranks(joint, replicate, thin, burn_in, target=None, seed=84):
    """Ranks of the true parameters among DRAWS draws of their posterior, for one data set."""
    rng = np.random.default_rng([seed, replicate])
    theta, G, R, y = joint.draw(rng, 1)
    truth = parameters([t[0] for t in theta], [None if g is None else g[0] for g in G], R[0])
    means = [None if p is None else np.asarray(p[1]) / p[0] for p in (*joint.priors, joint.residual_prior)]
    priors = {i: p for i, p in enumerate(joint.priors) if p is not None} | {"residual": joint.residual_prior}
    model = mixed_model(joint.with_records(y[0]), means[:-1], means[-1], priors)
    engine = MarginalEngine(structured_equations(model.design, partition(model.design)))
    chain = Chain(model, engine, Schedule(burn_in, DRAWS * thin, thin), (seed, replicate))
    if target is not None:
        step = chain.steps[0]

        def take_space(space):
            step.space, step.target = space, target(space, step.likelihood)

        step._take_space = take_space
    draws = []
    for last in range(burn_in + thin, burn_in + DRAWS * thin + 1, thin):
        chain.advance(last)
        now = chain.draws()
        draws.append(parameters(engine.fetch(), [now.get(f"G.{i}") for i in range(len(model.covariances))], now["R"]))
    return np.sum(np.array(draws) < truth, axis=0)


def all_ranks(joint, replicates, jobs=1, **options):
    return np.array(Parallel(n_jobs=jobs)(delayed(marginal_ranks)(joint, r, **options) for r in range(replicates)))


@pytest.mark.slow
def test_tiny_model():
    found = all_ranks(tiny(), 80, thin=8, burn_in=150)
    assert uniform(found, bins=4), p_values(found, 4)


@pytest.mark.slow
@pytest.mark.parametrize("name", MUTANTS)
def test_tiny_model_with_a_wrong_density(name):
    found = all_ranks(tiny(), 80, thin=8, burn_in=150, target=MUTANTS[name])
    assert not uniform(found, bins=4), p_values(found, 4)


def test_one_replicate_of_the_beef_model():
    found = marginal_ranks(beef(), 0, thin=2, burn_in=0)
    assert found.shape == (44,) and 0 < found.mean() < DRAWS and np.unique(found).size > 5  # draws of NaN have rank 0


@pytest.mark.slow
def test_beef_model():
    found = all_ranks(beef(), 48, jobs=2, thin=60, burn_in=600)
    assert uniform(found, bins=4), p_values(found, 4)
