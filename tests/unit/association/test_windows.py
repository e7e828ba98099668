"""Windows of SNPs against dense matrices, traits in several environments, and what the page hides."""

import re

import numpy as np
import polars as pl
import pytest
from helpers.new_animals import SNPS
from scipy import integrate, stats

import mmgibbs
from mmgibbs.association.statistics import compute_tests, log_p_of_weighted_chi2
from mmgibbs.errors import ConfigError

GENOMIC = {"kind": "genomic", "blend": 0.1}
QUIET = {"quality": {"maf": 0.0}, "progress": False}


def exceedance(q, weights):
    """P(sum_i w_i chi2(1) > q) by numerical inversion of the characteristic function (Imhof 1961)."""
    angle = lambda u: 0.5 * np.sum(np.arctan(weights * u)) - 0.5 * q * u
    size = lambda u: np.prod((1 + (weights * u) ** 2) ** 0.25)
    value, _ = integrate.quad(lambda u: np.sin(angle(u)) / (u * size(u)), 0, 1e4, limit=5000)
    return 0.5 + value / np.pi


@pytest.mark.parametrize("share_of_mean", [0.5, 1.0, 2.0, 4.0])
def test_p_values_of_weighted_sums(share_of_mean):
    weights = np.array([3.0, 2.0, 1.5, 1.0, 0.5, 0.1, 0.0])
    q = share_of_mean * weights.sum()
    p = 10 ** -log_p_of_weighted_chi2(q, weights)
    np.testing.assert_allclose(p, exceedance(q, weights[weights > 0]), rtol=0.06)


def test_p_values_of_sums_that_are_chi_squares_are_exact():
    np.testing.assert_allclose(10 ** -log_p_of_weighted_chi2(8.0, np.array([2.0])), stats.chi2(1).sf(4.0))
    np.testing.assert_allclose(10 ** -log_p_of_weighted_chi2(8.0, np.full(3, 2.0)), stats.chi2(3).sf(4.0))
    assert 300 < log_p_of_weighted_chi2(5000.0, np.array([3.0, 1.0, 0.2])) < 400


def test_windows_against_dense_matrices(herd, run, dense_projection):
    """Windows of four SNPs on each of five chromosomes of 18."""
    tested = mmgibbs.gwas(run.directory, output=herd.folder / "windows", windows={"snps": 4}, report=True, **QUIET)
    M = herd.genotypes[herd.old] - 1.0
    Z, P, y = dense_projection(0.9 * M @ M.T / (SNPS / 2) + 0.1 * np.eye(len(M)))
    score, covariance = (Z @ M).T @ P @ y, (Z @ M).T @ P @ (Z @ M)
    places = [range(18 * c + k, min(18 * c + k + 4, 18 * c + 18)) for c in range(5) for k in range(0, 18, 4)]
    q = [float(np.sum(score[list(of)] ** 2)) for of in places]
    weights = [np.linalg.eigvalsh(covariance[np.ix_(of, of)]) for of in map(list, places)]
    expected = [log_p_of_weighted_chi2(*of) for of in zip(q, weights, strict=True)]
    np.testing.assert_allclose(tested.windows["log10_p_gain"], expected, rtol=1e-7)
    assert tested.windows["snps"].to_list() == [4, 4, 4, 4, 2] * 5
    assert pl.read_parquet(herd.folder / "windows" / "windows.parquet").equals(tested.windows)
    page = (herd.folder / "windows" / "gwas.html").read_text(encoding="utf-8")
    assert "Strongest windows: gain" in page and "Counted allele" not in page and "Chromosome" in page


def test_windows_of_a_width_and_of_one_chromosome_left_out(herd, run):
    wide = mmgibbs.gwas(run.directory, windows=10_000, loco=True, **QUIET).windows
    assert wide["snps"].sum() == SNPS and wide["start"].to_list() == sorted(wide["start"])
    plain = mmgibbs.gwas(run.directory, windows=10_000, **QUIET).windows
    assert np.abs(wide["log10_p_gain"] - plain["log10_p_gain"]).max() > 1e-3


def test_calibrated_windows_are_near_exact_ones(run, monkeypatch):
    monkeypatch.setattr("mmgibbs.association.run.CALIBRATION_SNPS", 40)
    exact = mmgibbs.gwas(run.directory, windows={"snps": 6}, **QUIET).windows["log10_p_gain"].to_numpy()
    calibrated = mmgibbs.gwas(run.directory, windows={"snps": 6}, exact_limit=0.0, **QUIET)
    assert "calibration" in calibrated.facts
    np.testing.assert_allclose(calibrated.windows["log10_p_gain"], exact, rtol=0.35, atol=0.1)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"windows": {"sizes": 5}}, "gwas: windows.sizes: unknown key; did you mean 'size'"),
        ({"windows": -1.0}, "windows.size: found -1, needed a number above 0"),
        ({"windows": {"snps": 0}}, "windows.snps: found 0, needed a whole number"),
    ],
)
def test_refused_windows(run, options, words):
    with pytest.raises(ConfigError, match=words):
        mmgibbs.gwas(run.directory, **options, **QUIET)


def test_mean_and_differences_of_environments():
    rng = np.random.default_rng(2)
    root = rng.normal(size=(4, 4))
    information, scores = root @ root.T + np.eye(4), rng.normal(size=4)
    tests = compute_tests(scores[None], information[None], [[0, 2, 3]])
    V, b = np.linalg.inv(information), np.linalg.solve(information, scores)
    of = np.ix_([0, 2, 3], [0, 2, 3])
    mean, error = b[[0, 2, 3]].mean(), np.sqrt(V[of].sum()) / 3
    np.testing.assert_allclose([tests.mean_effect[0, 0], tests.mean_error[0, 0]], [mean, error])
    np.testing.assert_allclose(10 ** -tests.mean_log_p[0, 0], 2 * stats.norm.sf(abs(mean / error)))
    contrasts = np.array([[1, -1, 0], [1, 0, -1]])
    of_contrasts = contrasts @ b[[0, 2, 3]]
    chi2 = of_contrasts @ np.linalg.solve(contrasts @ V[of] @ contrasts.T, of_contrasts)
    np.testing.assert_allclose(10 ** -tests.differences_log_p[0, 0], stats.chi2(2).sf(chi2))


def test_a_trait_by_site_has_one_test_across_sites(herd):
    analysis = herd.analysis(GENOMIC)
    analysis["traits"] = {"gain": {"by": "herd"}}
    analysis["model"] = {"random": {"genetic": {"level": "animal", "relationship": GENOMIC}}}
    analysis["variances"] = {"genetic": {"start": (np.full((3, 3), 0.8) + 0.4 * np.eye(3)).tolist()},
                             "residual": {"start": (1.2 * np.eye(3)).tolist()}}  # fmt: skip
    sites = mmgibbs.run(analysis, directory=herd.folder / "sites", progress=False)
    tested = mmgibbs.gwas(sites.directory, output=herd.folder / "sites-gwas", report=True, **QUIET)
    values = tested.values
    effects = values.select(f"effect_gain|{site}" for site in range(3)).to_numpy()
    np.testing.assert_allclose(values["effect_gain"], effects.mean(axis=1), equal_nan=True)
    columns = {"se_gain", "log10_p_gain", "q_gain", "log10_p_differences_gain", "q_differences_gain"}
    assert columns <= set(values.columns)
    assert tested.facts["environments"] == {"gain": ["gain|0", "gain|1", "gain|2"]}
    page = (herd.folder / "sites-gwas" / "gwas.html").read_text(encoding="utf-8")
    assert re.search(r"mean of the effects in 3 environments", page)
    assert "gain: differences between environments" in page
