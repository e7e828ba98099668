"""Steps that draw structured covariance matrices leave the joint distribution of parameters, effects and records as it
is: parameters from the prior, effects and records given them, some steps, and everything has the distribution that it
had before. Replicates are independent, so that the tests need no autocorrelation times.
"""

from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from helpers.goodness import agree, transform_z
from helpers.mutants import mutant
from helpers.selection import first
from helpers.trends import Trend, lag_matrix
from scipy import stats

from mmgibbs.models.covariance import CovarianceModel
from mmgibbs.models.relationships.ar1 import Field, FirstOrder, Lattice
from mmgibbs.models.structures import base, factor_analytic
from mmgibbs.models.structures.antedependence import PRIOR_RATIO, Antedependence
from mmgibbs.models.structures.correlated import Autoregressive, CompoundSymmetry
from mmgibbs.sampler import correlations, structured_covariance

K, Q, NU = 3, 6, 5.0
SIZE = np.array([0.7, 1.0, 1.6])
REPLICATES = 700


def structure_of(name, equal, module=factor_analytic):
    if name == "factor_analytic":
        return module.FactorAnalytic(K, 1, equal, SIZE, SIZE, NU)
    if name == "antedependence":
        return Antedependence(K, equal, SIZE, SIZE, NU)
    return (Autoregressive if name == "ar1" else CompoundSymmetry)(K, equal, SIZE, NU)


CASES = [
    (name, equal)
    for equal in (False, True)
    for name in ("factor_analytic", "compound_symmetry", "ar1", "antedependence")
]


def draw_prior(structure, rng):
    sd = np.abs(rng.standard_t(NU, structure.n_sd)) * SIZE[: structure.n_sd]
    if structure.kind == "factor_analytic":
        return structure.phi(rng.standard_normal((K, 1)) * SIZE[:, None], np.broadcast_to(sd, K) ** 2)
    if structure.kind == "antedependence":
        return np.append(np.log(sd), rng.standard_normal(K - 1) * PRIOR_RATIO * SIZE[1:] / SIZE[:-1])
    u = rng.random()
    return np.append(np.log(sd), np.log(u / (1 - u)))


def transforms(structure, phi):
    """Of (n, p) draws of the prior: probabilities that should be uniform."""
    first_sd = structure.n_loadings if structure.kind == "factor_analytic" else 0
    sd = np.exp(phi[:, first_sd : first_sd + structure.n_sd])
    out = list(2 * stats.t.cdf(sd / SIZE[: structure.n_sd], NU).T - 1)
    others = np.delete(phi, np.arange(first_sd, first_sd + structure.n_sd), axis=1)
    if structure.kind == "factor_analytic":
        return out + list(stats.norm.cdf(others / SIZE).T)
    if structure.kind == "antedependence":
        return out + list(stats.norm.cdf(others / (PRIOR_RATIO * SIZE[1:] / SIZE[:-1])).T)
    return [*out, *stats.logistic.cdf(others).T]


def effects(structure, phi, rng):
    return rng.standard_normal((Q, K)) @ np.linalg.cholesky(structure.matrix(phi)).T


def size_transform(structure, phi, theta):
    """tr(G^-1 S) is chi-square(q k)."""
    G = structure.matrix(phi)
    return stats.chi2(Q * K).cdf(np.trace(np.linalg.solve(G, theta.T @ theta)))


def after_draws(structure, seed=1):
    """z of the parameters and of tr(G^-1 S) after two draws of phi given theta."""
    rng = np.random.default_rng(seed)
    phis, sizes = [], []
    for _ in range(REPLICATES):
        phi = draw_prior(structure, rng)
        theta = effects(structure, phi, rng)
        for _ in range(2):
            phi = structured_covariance.draw_structure(structure, theta.T @ theta, Q, phi, rng)
        phis.append(phi)
        sizes.append(size_transform(structure, phi, theta))
    return [*map(transform_z, transforms(structure, np.array(phis))), transform_z(sizes)]


@pytest.mark.parametrize("name, equal", first(2, CASES))
def test_draws_given_effects(name, equal):
    assert agree(after_draws(structure_of(name, equal)))


@pytest.mark.slow
@pytest.mark.parametrize(
    "name, right, wrong",
    [
        ("factor_analytic", "q - k - np.arange(f)", "q - np.arange(f)"),
        ("factor_analytic", "rng.standard_gamma((counts + nu) / 2, n)", "rng.standard_gamma(counts / 2, n)"),
        ("ar1", "q * log_determinant +", "(q + 1) * log_determinant +"),
    ],
)
def test_spoiled_draws_are_noticed(monkeypatch, name, right, wrong):
    if name == "factor_analytic":
        structure = structure_of(name, False, mutant(factor_analytic, right, wrong))
    else:
        structure = structure_of(name, False)
        monkeypatch.setattr(base.Structure, "log_likelihood", mutant(base, right, wrong).Structure.log_likelihood)
    assert not agree(after_draws(structure))


class OneRecordEach:
    """An engine of y = theta + e, e ~ N(0, I)."""

    def __init__(self, theta, y):
        self.theta, self.y = theta, y

    def scaling_products(self, term, elements):
        columns = [c for c, _ in elements]
        e = (self.y - self.theta)[:, columns]
        return np.diag(np.sum(self.theta[:, columns] ** 2, axis=0)), np.sum(self.theta[:, columns] * e, axis=0)

    def transform_term(self, term, M):
        self.theta = self.theta @ M.T


def after_interweaving(structure, module=structured_covariance, seed=2):
    rng = np.random.default_rng(seed)
    phis, sizes, residuals, accepted = [], [], [], 0
    for replicate in range(REPLICATES):
        phi = draw_prior(structure, rng)
        theta = effects(structure, phi, rng)
        engine = OneRecordEach(theta, theta + rng.standard_normal(theta.shape))
        of = SimpleNamespace(
            structure=structure, engine=engine, term=0, term_name="t", name="G.0", matrices={}, phi=phi,
            key=(replicate, 0),
        )  # fmt: skip
        step = module.StructuredInterweaving(of)
        for number in range(1, 4):
            accepted += step(number)["interweaving_acceptance[t]"]
        phis.append(of.phi)
        sizes.append(size_transform(structure, of.phi, engine.theta))
        residuals.append(stats.chi2(Q * K).cdf(np.sum((engine.y - engine.theta) ** 2)))
    assert accepted > REPLICATES / 3
    return [*map(transform_z, transforms(structure, np.array(phis))), transform_z(sizes), transform_z(residuals)]


@pytest.mark.parametrize("name, equal", first(2, CASES))
def test_scales_of_effects(name, equal):
    assert agree(after_interweaving(structure_of(name, equal)))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["antedependence", "compound_symmetry"])
def test_a_forgotten_jacobian_is_noticed(name):
    spoilt = mutant(structured_covariance, "ratio + structure.log_jacobian(scale)", "ratio")
    assert not agree(after_interweaving(structure_of(name, False), spoilt))


LATTICE = Lattice(2, 3)


@cache
def field():
    return FirstOrder.build(Field((LATTICE,), ("row", "column")), ("row", "column"), (0.1, 0.2), False)


def after_draws_of_correlations(name, module=correlations, seed=3, replicates=300):
    """z of rho, of phi and of the size of theta after a draw of rho and phi given theta."""
    rng, structure = np.random.default_rng(seed), structure_of(name, False)
    rhos, phis, sizes = [], [], []
    bounds = field().parameter_bounds
    for replicate in range(replicates):
        phi, rho = draw_prior(structure, rng), rng.uniform(*bounds.T)
        theta = np.linalg.cholesky(correlation_matrix(rho)) @ effects(structure, phi, rng)
        term = SimpleNamespace(relationship=field(), name="field", n_prior_levels=Q)
        covariance = CovarianceModel(
            structure.matrix(phi), False, (tuple(range(len(structure.sd_scale))),), structure=structure
        )
        model = SimpleNamespace(design=SimpleNamespace(terms=[term]), covariance=lambda _, c=covariance: c)
        engine, matrices = Trend(theta, field()), {"G.0": structure.matrix(phi)}
        step = module.CorrelationsAndStructure(model, 0, engine, matrices, (replicate, 0))
        step.restore({"G.0": structure.matrix(phi), "structure.0": phi, "rho.0": rho})
        step(1)
        rhos.append((step.correlations.rho - bounds[:, 0]) / np.ptp(bounds, axis=1))
        phis.append(step.phi)
        inverse = np.linalg.inv(correlation_matrix(step.correlations.rho))
        G = structure.matrix(step.phi)
        sizes.append(stats.chi2(Q * len(G)).cdf(np.trace(np.linalg.solve(G, theta.T @ inverse @ theta))))
    return [
        *map(transform_z, np.array(rhos).T),
        *map(transform_z, transforms(structure, np.array(phis))),
        transform_z(sizes),
    ]


def correlation_matrix(rho):
    return np.kron(*(lag_matrix(r, np.arange(n)) for r, n in zip(rho, LATTICE, strict=True)))


@pytest.mark.parametrize("name", first(1, ["compound_symmetry", "factor_analytic", "antedependence"]))
def test_draws_of_correlations_beside_a_structure(name):
    assert agree(after_draws_of_correlations(name))


@pytest.mark.slow
@pytest.mark.parametrize(
    "right, wrong",
    [
        ("out - 0.5 * np.sum", "out - 0.2 * np.sum"),
        ("out = 0.5 * len(S) * weights.log_determinant", "out = 0.5 * weights.log_determinant"),
    ],
)
def test_spoiled_draws_of_correlations_are_noticed(right, wrong):
    spoilt = mutant(correlations, right, wrong, compiled=False)
    assert not agree(after_draws_of_correlations("compound_symmetry", spoilt))
