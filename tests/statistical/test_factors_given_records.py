"""Loadings and specific variances given the records leave the joint distribution of parameters, effects and records as
it is: related levels, components with unequal numbers of records, cells without any, correlated residuals.
"""

from functools import cache

import numpy as np
import pytest
from helpers.goodness import agree, transform_z
from helpers.mutants import mutant
from helpers.selection import first
from reference import dense, models
from scipy import stats

from mmgibbs.engines.serial import SerialEngine
from mmgibbs.equations.partition import partition
from mmgibbs.equations.structured import structured_equations
from mmgibbs.models.covariance import CovarianceModel, blocks_recorded_together, full_block
from mmgibbs.models.structures.factor_analytic import FactorAnalytic
from mmgibbs.models.structures.shrunken_factors import SLAB_RATE, SLAB_SHAPE, SPIKE, ShrunkenFactors
from mmgibbs.models.terms import Effect
from mmgibbs.sampler import factors
from mmgibbs.sampler.mixed_model import MixedModel
from mmgibbs.sampler.structured_covariance import StructuredCovariance

K, Q, NU = 3, 9, 5.0
SIZE = np.array([0.7, 1.0, 1.6])
R = np.array([[0.5, 0.2, 0.0], [0.2, 1.0, 0.3], [0.0, 0.3, 2.0]])
STRUCTURES = {
    "a variance each": FactorAnalytic(K, 1, False, SIZE, SIZE, NU),
    "equal variances": FactorAnalytic(K, 2, True, SIZE, SIZE, NU),
    "a number of factors that is drawn": ShrunkenFactors(K, 2, False, SIZE, SIZE, NU),
}


@cache
def unbalanced_design():
    """A third of the levels have no record of component 2, and one has none at all; half observe two components."""
    rng = np.random.default_rng(5)
    sire, dam = models.looped_pedigree(rng, Q, 4)
    level = np.concatenate([np.repeat(np.arange(Q - 1), 2), [0, 0, 0, 3]]).astype(np.int32)
    observed = np.ones((len(level), K), bool)
    observed[level % 3 == 0, 2] = False
    observed[::2, 0] = False
    term = models.random_term("line", [Effect("", level, tuple(range(K)))], models.pedigree_relationship(sire, dam), Q)
    return models.with_records(rng, len(level), [term], [np.eye(K)], R, observed)


def model_of(structure):
    design = unbalanced_design()
    covariance = CovarianceModel(np.eye(K), False, full_block(K), structure=structure)
    residual = CovarianceModel(R, True, blocks_recorded_together(design.patterns))
    return MixedModel(design, (covariance,), residual)


def draw_prior(structure, rng):
    f, rest = structure.factors, np.zeros(0)
    sd = np.abs(rng.standard_t(NU, structure.n_sd)) * SIZE[: structure.n_sd]
    if isinstance(structure, ShrunkenFactors):
        v = np.append(rng.random(f - 1), 1.0)
        slab = SLAB_RATE / rng.standard_gamma(SLAB_SHAPE, f)
        theta = np.where(rng.random(f) < np.cumsum(v * np.append(1.0, np.cumprod(1 - v[:-1]))), SPIKE, slab)
        rest = structure.join(np.zeros(0), theta, v)
    phi = np.concatenate([np.zeros(K * f), np.log(sd), rest])
    phi[: K * f] = (rng.standard_normal((K, f)) * structure.prior_sd(phi)).ravel()
    return phi


def after_steps(structure, module=factors, replicates=500, seed=3, given_effects=False):
    """z of parameters, effects and residuals after two steps from the joint distribution."""
    model, rng = model_of(structure), np.random.default_rng(seed)
    design = model.design
    engine = SerialEngine(structured_equations(design, partition(design)))
    root = np.linalg.cholesky(np.linalg.inv(dense.relationship_inverse(design.terms[0])))
    K_inverse, W = dense.relationship_inverse(design.terms[0]), dense.incidence(design.terms[0], K)
    seen, root_of_R = ~np.isnan(design.y), np.linalg.cholesky(R)
    columns = []
    for replicate in range(replicates):
        phi = draw_prior(structure, rng)
        theta = root @ rng.standard_normal((Q, K)) @ np.linalg.cholesky(structure.matrix(phi)).T
        y = W @ theta.ravel() + rng.standard_normal((len(seen), K)) @ root_of_R.T
        engine.start([theta])
        for t in range(K):
            engine.replace_y(t, y[:, t])
        matrices = {"G.0": structure.matrix(phi)}
        engine.set_variances([matrices["G.0"]], R)
        covariance = StructuredCovariance(model, 0, engine, matrices, (replicate, 0))
        covariance.phi = phi
        step = module.FactorInterweaving(covariance, model)
        for number in (1, 2):
            if given_effects:
                covariance(number)
            step(number)
        columns.append(probabilities(structure, covariance.phi, engine, K_inverse, W, y, seen))
    return [transform_z(column) for column in np.array(columns).T]


def probabilities(structure, phi, engine, K_inverse, W, y, seen):
    """Probabilities that should be uniform: of loadings, their sizes, sd, and of the sizes of theta and of e."""
    x = structure.loadings(phi) / structure.prior_sd(phi)
    sd = np.exp(phi[structure.n_loadings :][: structure.n_sd])
    theta = engine.fetch()[0]
    size = np.trace(np.linalg.solve(structure.matrix(phi), theta.T @ K_inverse @ theta))
    e, squares = y - (W @ theta.ravel()).reshape(y.shape), 0.0
    for own, of in zip(e, seen, strict=True):
        squares += own[of] @ np.linalg.solve(R[np.ix_(of, of)], own[of])
    return [
        *stats.norm.cdf(x).ravel(),
        *stats.chi2(structure.factors).cdf(np.sum(x**2, axis=1)),
        *(2 * stats.t.cdf(sd / SIZE[: structure.n_sd], NU) - 1),
        stats.chi2(Q * K).cdf(size),
        stats.chi2(seen.sum()).cdf(squares),
    ]


@pytest.mark.parametrize("name", first(2, STRUCTURES))
def test_parameters_effects_and_records_keep_their_distribution(name):
    assert agree(after_steps(STRUCTURES[name]))


MUTANTS = {
    "scores without noise": ("@ V + E", "@ V"),
    "unrelated noise": ("self.relationship.draw(normals)", "normals"),
    "a standard deviation without its prior": ("rng))\n", "rng) * 1e-9)\n"),
    "specific effects that are not standardised": (") / np.sqrt(psi)", ")"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MUTANTS)
def test_wrong_steps_are_noticed(name):
    assert not agree(after_steps(STRUCTURES["a variance each"], mutant(factors, *MUTANTS[name])))
