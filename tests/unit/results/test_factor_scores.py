"""Scores on factors: conditional expectations, overall performance and stability of lines over environments."""

import numpy as np
import polars as pl
import pytest

import mmgibbs
from mmgibbs.cli import main
from mmgibbs.results.factor_scores import read_factors, scores_frame

TRAITS = ["y|S1", "y|S2", "y|S3"]
L = np.array([[1.2, 0.3], [0.8, -0.5], [0.9, 0.1]])
SPECIFIC = np.array([0.2, 0.1, 0.4])
LINES = ["a", "b", "c", "d"]


def summary(k=2, specific=SPECIFIC):
    names = [(f"line.loading[{t}:{j + 1}]", L[i, j]) for j in range(k) for i, t in enumerate(TRAITS)]
    names += [(f"line.specific[{t}]", value) for t, value in zip(TRAITS, specific, strict=True)]
    return pl.DataFrame(names, schema=["parameter", "mean"], orient="row")


def solutions(effect=("",)):
    rng = np.random.default_rng(3)
    rows = [("line", e, t, line, rng.normal()) for e in effect for t in TRAITS for line in LINES]
    return pl.DataFrame(rows, schema=["term", "effect", "trait", "level", "mean"], orient="row")


def test_performance_and_stability():
    frame = scores_frame(summary(), solutions())
    f = frame.select("score_1", "score_2").to_numpy()
    np.testing.assert_allclose(frame["overall_performance"], L[:, 0].mean() * f[:, 0])
    rest = np.outer(f[:, 1], L[:, 1])
    np.testing.assert_allclose(frame["stability"], np.sqrt((rest**2).sum(axis=1) / 3))
    assert frame["overall_performance"].is_sorted(descending=True) and set(frame["level"]) == set(LINES)
    u = solutions().filter(level=frame["level"][0])["mean"].to_numpy()
    np.testing.assert_allclose(f[0], L.T @ np.linalg.solve(L @ L.T + np.diag(SPECIFIC), u))


def test_one_factor_has_no_stability():
    frame = scores_frame(summary(k=1), solutions())
    assert frame["stability"].null_count() == len(LINES) and "score_2" not in frame.columns


@pytest.mark.parametrize("effect", [("direct", "maternal"), ("line.0", "line.1")])
def test_components_that_are_no_traits_have_no_scores(effect):
    assert scores_frame(summary(), solutions(effect)) is None
    assert scores_frame(pl.DataFrame({"parameter": ["line.var[y]"], "mean": [1.0]}), solutions()) is None


def test_factors_are_read_in_their_order():
    factors = read_factors(summary())["line"]
    assert factors.components == TRAITS
    np.testing.assert_array_equal(factors.loadings, L)
    np.testing.assert_array_equal(factors.specific, SPECIFIC)


@pytest.fixture(scope="module")
def run_of_sites(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sites")
    mmgibbs.simulate(folder / "data", traits="trial", lines=30)
    variances = "variances={line: {structure: {kind: factor_analytic, factors: 2}}}"
    return mmgibbs.run(folder / "data" / "analysis.yaml", [variances], directory=folder / "run", progress=False)


def test_a_run_writes_scores_and_shows_them(run_of_sites):
    scores = run_of_sites.factor_scores
    assert len(scores) == 30 and scores["stability"].null_count() == 0
    u = pl.read_parquet(run_of_sites.directory / "solutions.parquet").filter(term="line")
    means = u.group_by("level").agg(pl.col("mean").mean())
    joined = scores.join(means, on="level")
    assert np.corrcoef(joined["overall_performance"], joined["mean"])[0, 1] > 0.95
    assert main(["report", str(run_of_sites.directory)]) == 0
    page = (run_of_sites.directory / "report.html").read_text(encoding="utf-8")
    assert "Overall performance and stability" in page and f"The 20 highest of {30} levels" in page
