"""x'Py and x'Px of every kind of model against dense matrices of the records, and the tests that follow from them."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from helpers.mutants import mutant
from reference import dense, models
from scipy import stats

import mmgibbs.association.projection as module
from mmgibbs.association.chunks import plan_chunks
from mmgibbs.association.projection import InformationByMatrix, InformationBySolutions
from mmgibbs.association.scan import Genotypes, Limits, scan
from mmgibbs.association.statistics import compute_tests, genomic_inflation, log_p_of_chi2
from mmgibbs.likelihood.matrices import Variances
from mmgibbs.results.windows import log_p_of_z

EXAMPLES = [
    "univariate_animal", "bivariate_missing", "direct_maternal", "three_traits_maternal", "random_regression",
    "user_relationship", "genomic_relationships", "single_step_maternal", "fixed_covariates",
]  # fmt: skip
N_SNPS = 70  # more than are solved for at once


def dense_projection(example):
    """P of the observed records, (records T, records T) with 0 where not observed, and y (records T,)."""
    design = example.design
    made = dense.build(design, example.G, example.R)
    n, T = design.y.shape
    observed = ~np.isnan(design.y).ravel()
    W = made.W.reshape(n * T, -1)[observed]
    Rinv = np.zeros((n * T, n * T))
    for r in range(n):
        Rinv[r * T : (r + 1) * T, r * T : (r + 1) * T] = made.record_precision[r]
    Rinv = Rinv[np.ix_(observed, observed)]
    is_proper = np.diag(made.prior) != 0
    Z, X = W[:, is_proper], W[:, ~is_proper]
    V = Z @ np.linalg.inv(made.prior[np.ix_(is_proper, is_proper)]) @ Z.T + np.linalg.inv(Rinv)
    V_inverse = np.linalg.inv(V)
    VX = V_inverse @ X
    P = np.zeros((n * T, n * T))
    P[np.ix_(observed, observed)] = V_inverse - VX @ np.linalg.pinv(X.T @ VX) @ VX.T
    return P, np.where(observed, design.y.ravel(), 0.0)


def animals_of(design, share=0.8):
    """An animal of each record: several records of each, some of none."""
    rng = np.random.default_rng(2)
    m = max(4, design.n_records // 2)
    animal = rng.integers(0, m, design.n_records)
    animal[:m] = np.arange(m)
    animal[rng.random(design.n_records) > share] = -1
    return animal, m


def genotypes(m, p=N_SNPS, seed=3):
    x = np.random.default_rng(seed).integers(0, 3, (m, p)).astype(float)
    return x - x.mean(axis=0)


def projection_of(example, source=module):
    animal, m = animals_of(example.design)
    R = np.asarray(example.R)
    variances = Variances(list(example.G), R if R.ndim == 3 else R[None])
    return source.Projection(example.design, variances, animal, m)


def dense_scores(example, x):
    """(p, T) x_t'Py and (p, T, T) x_t'P x_u."""
    P, y = dense_projection(example)
    animal, _ = animals_of(example.design)
    n, T = example.design.y.shape
    columns = np.zeros((T, n, T, x.shape[1]))
    for t in range(T):
        columns[t, animal >= 0, t] = x[animal[animal >= 0]]
    columns = columns.reshape(T, n * T, -1)
    return np.einsum("trp,r->pt", columns, P @ y), np.einsum("trp,rs,usp->ptu", columns, P, columns, optimize=True)


@pytest.mark.parametrize("name", EXAMPLES)
def test_against_dense_matrices(name):
    example = models.example(name)
    projection = projection_of(example)
    x = genotypes(projection.n_animals)
    scores, information = dense_scores(example, x)
    np.testing.assert_allclose(x.T @ projection.scores, scores, rtol=1e-8, atol=1e-8 * np.abs(scores).max())
    for way in (InformationBySolutions, InformationByMatrix):
        np.testing.assert_allclose(way(projection)(x), information, rtol=1e-8, atol=1e-9 * np.abs(information).max())


def weighted_example():
    example = models.example("univariate_animal")
    weight = np.random.default_rng(5).uniform(0.5, 3.0, example.design.n_records)
    return replace(example, design=replace(example.design, weight=weight))


def test_weights_and_repeated_records():
    example = weighted_example()
    projection = projection_of(example)
    x = genotypes(projection.n_animals)
    scores, information = dense_scores(example, x)
    np.testing.assert_allclose(x.T @ projection.scores, scores, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(InformationBySolutions(projection)(x), information, rtol=1e-8)


WEIGHTS = "self.design.weight[records, None, None] * "


@pytest.mark.parametrize(
    ("right", "wrong"),
    [("out[columns, t, u] -= explained", "out[columns, t, u] -= 0.99 * explained"), (WEIGHTS, "")],
)
def test_a_spoiled_formula_is_noticed(right, wrong):
    example = weighted_example()
    spoilt = mutant(module, right, wrong, compiled=False)
    projection = projection_of(example, spoilt)
    x = genotypes(projection.n_animals)
    found = spoilt.InformationBySolutions(projection)(x)
    assert np.abs(found / dense_scores(example, x)[1] - 1).max() > 1e-4


def test_the_quicker_way_is_taken():
    projection = projection_of(models.example("univariate_animal"))
    assert isinstance(projection.information(1), InformationBySolutions)
    assert isinstance(projection.information(1_000_000), InformationByMatrix)
    assert projection.cost(1_000_000) == projection.cost_by_matrix.seconds(1_000_000)


def test_tests_of_one_trait_and_of_two():
    tests = compute_tests(np.array([[3.0], [0.0]]), np.array([[[4.0]], [[0.0]]]))
    np.testing.assert_allclose(tests.effect[0], 0.75)
    np.testing.assert_allclose(tests.error[0], 0.5)
    np.testing.assert_allclose(10 ** -tests.log_p[0], 2 * stats.norm.sf(1.5))
    np.testing.assert_allclose(tests.joint_log_p[0], tests.log_p[0, 0])
    assert np.isnan(tests.effect[1]).all() and np.isnan(tests.joint_log_p[1])
    information, scores = np.array([[4.0, 1.5], [1.5, 2.0]]), np.array([3.0, -1.0])
    tests = compute_tests(scores[None], information[None])
    effect = np.linalg.solve(information, scores)
    np.testing.assert_allclose(tests.effect[0], effect)
    np.testing.assert_allclose(tests.error[0], np.sqrt(np.diag(np.linalg.inv(information))))
    np.testing.assert_allclose(10 ** -tests.joint_log_p[0], stats.chi2(2).sf(scores @ effect))


def test_p_values_and_their_inflation():
    np.testing.assert_allclose(log_p_of_z(np.array([10.0, 50.0])), [22.81702, 544.66531], rtol=1e-6)
    np.testing.assert_allclose(log_p_of_chi2(np.array([20.0]), 3), -np.log10(stats.chi2(3).sf(20.0)), rtol=1e-10)
    far = log_p_of_chi2(np.array([1400.0, 1600.0]), 3)
    assert np.isfinite(far).all() and 42 < far[1] - far[0] < 44  # 200 / 2 / log 10
    p = (np.arange(1, 1000) - 0.5) / 999
    assert genomic_inflation(-np.log10(p)) == pytest.approx(1.0, abs=1e-3)


class Source:
    """Genotypes in memory, as a file gives them."""

    real_valued = False

    def __init__(self, codes):
        self.codes = codes.astype(np.uint8)
        self.n_snps, self.n_animals = codes.shape

    def block(self, first, stop):
        return self.codes[first:stop]


def source_of(m, p=600):
    rng = np.random.default_rng(8)
    codes = rng.binomial(2, rng.uniform(0.1, 0.9, (p, 1)), (p, m))
    codes[rng.random((p, m)) < 0.02] = 3
    codes[7], codes[8] = 1, 0
    codes[8, 0], codes[9, : m // 2] = 1, 3
    return Source(codes)


def scan_source(projection, source, limits, exact):
    """All animals and SNPs of a source, in the model as it is."""
    genotypes = Genotypes(source, np.arange(source.n_animals), limits)
    chunks = plan_chunks(pl.Series([None] * source.n_snps, dtype=pl.String), False)
    return scan(lambda chromosome: projection, genotypes, chunks, exact, 1)


def test_scans_leave_out_what_cannot_be_tested_and_count_missing_genotypes_as_the_mean():
    projection = projection_of(models.example("univariate_animal"))
    found = scan_source(projection, source_of(projection.n_animals), Limits(0.05, 0.9), True)
    assert found.left_out[[7, 8, 9]].tolist() == ["does not vary", "minor allele frequency", "call rate"]
    assert np.isnan(found.tests.effect[[7, 8, 9]]).all() and found.is_exact[found.left_out == ""].all()
    assert np.isfinite(found.tests.effect[found.left_out == ""]).all()
    projection = projection_of(models.example("univariate_animal"))
    m = projection.n_animals
    source = source_of(m)
    found = scan_source(projection, source, Limits(0.0, 0.0), True)
    j = int(np.flatnonzero((source.codes == 3).any(axis=1) & (found.left_out == ""))[0])
    copies = np.where(source.codes[j] == 3, np.nan, source.codes[j].astype(float))
    x = np.nan_to_num(copies - np.nanmean(copies))[:, None]
    scores, information = dense_scores(models.example("univariate_animal"), x)
    np.testing.assert_allclose(found.tests.effect[j, 0], scores[0, 0] / information[0, 0, 0], rtol=1e-8)
    np.testing.assert_allclose(found.frequency[j], np.nanmean(copies) / 2)


def test_calibrated_tests_are_near_exact_ones():
    projection = projection_of(models.example("univariate_animal"))
    arguments = projection, source_of(projection.n_animals), Limits(0.05, 0.9)
    exact, calibrated = scan_source(*arguments, True), scan_source(*arguments, False)
    tested = exact.left_out == ""
    ratio = (calibrated.tests.error / exact.tests.error)[tested, 0]
    assert abs(np.median(ratio) - 1) < 0.05 and calibrated.calibration.n_snps == 100
    assert ratio.std() < calibrated.calibration.variation[0]  # of errors, half of that of variances
    np.testing.assert_allclose(exact.effective_tests, calibrated.effective_tests)


def test_calibrated_tests_near_significance_are_exact(monkeypatch):
    """With the limit put lower: those beyond it are exact, the others are not."""
    monkeypatch.setattr("mmgibbs.association.scan.NEAR", 1.0)
    projection = projection_of(models.example("univariate_animal"))
    arguments = projection, source_of(projection.n_animals), Limits(0.05, 0.9)
    exact, calibrated = scan_source(*arguments, True), scan_source(*arguments, False)
    near = calibrated.is_exact
    assert 5 < near.sum() < 200 and (exact.tests.log_p[near, 0] > 0.8).all()
    np.testing.assert_allclose(calibrated.tests.error[near], exact.tests.error[near], rtol=1e-8)
    tested = (exact.left_out == "") & ~near
    assert np.abs(calibrated.tests.error[tested] / exact.tests.error[tested] - 1).max() > 1e-4
