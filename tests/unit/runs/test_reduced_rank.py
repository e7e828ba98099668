"""`structure: reduced_rank` from the analysis file to the run folder; factors that vanish, and more than needed."""

import json

import numpy as np
import polars as pl
import pytest
import yaml
from helpers.estimates import covariance_matrix, estimates

import mmgibbs
from mmgibbs.cli import main
from mmgibbs.errors import ConfigError, MmgibbsError, ModelError
from mmgibbs.reml import structured
from mmgibbs.report.make import make_report

SITES, LINES = 5, 60
SHORT = {"chains": 1, "burn_in": 5, "samples": 20, "thin": 1, "seed": 4}
TWO = {"kind": "reduced_rank", "factors": 2}


def simulate(seed, factors, specific=0.0):
    """Two plots of each line at each site; lines have so many factors, and specific effects if asked for."""
    rng = np.random.default_rng(seed)
    L = np.column_stack([np.full(SITES, 0.9), np.linspace(-0.8, 0.8, SITES)])[:, :factors]
    u = rng.standard_normal((LINES, factors)) @ L.T
    if specific:
        u += specific * rng.standard_normal((LINES, SITES))
    rows = [
        {"line": f"l{line}", "site": f"s{t}", "y": round(5 + u[line, t] + 0.7 * rng.standard_normal(), 4)}
        for line in range(LINES)
        for t in range(SITES)
        for _ in range(2)
    ]
    return pl.DataFrame(rows)


@pytest.fixture(scope="module")
def plots(tmp_path_factory):
    path = tmp_path_factory.mktemp("plots") / "plots.csv"
    simulate(2, 2).write_csv(path)
    return path


def analysis(plots, path, structure, variances=None, **sampler):
    return {
        "data": {"phenotypes": plots if isinstance(plots, pl.DataFrame) else str(plots)},
        "traits": {"y": {"by": "site"}},
        "model": {"random": {"line": {}}},
        "variances": {"line": {"structure": structure} | (variances or {})},
        "sampler": sampler,
        "output": {"directory": str(path), "means": ["line"]},
    }


def run(plots, path, structure, variances=None, **sampler):
    return mmgibbs.run(analysis(plots, path, structure, variances, **sampler), overwrite=True, progress=False)


def matrix(result):
    return covariance_matrix(result, "line", [f"y|s{t}" for t in range(SITES)])


@pytest.fixture(scope="module")
def fitted(plots, tmp_path_factory):
    folder = tmp_path_factory.mktemp("fitted")
    kinds = {"rank": TWO, "factors": {"kind": "factor_analytic", "factors": 2}, "full": "full"}
    return {name: run(plots, folder / name, kind, method="reml") for name, kind in kinds.items()}


@pytest.mark.parametrize("slow, converges", [(structured.SLOW, True), (np.inf, False)])
def test_two_factors_of_four_sites_converge(tmp_path, monkeypatch, slow, converges):
    """Without what the slopes say of the curvature, each step leaves 94 % of the distance: over 100 iterations."""
    monkeypatch.setattr(structured, "SLOW", slow)
    assert main(["simulate", str(tmp_path / "trials"), "--traits", "trial"]) == 0
    source = yaml.safe_load((tmp_path / "trials" / "analysis.yaml").read_text())
    source["data"]["phenotypes"] = str(tmp_path / "trials" / "phenotypes.csv")
    source["variances"]["line"]["structure"] = TWO
    found = mmgibbs.run(source | {"output": {"directory": str(tmp_path / "run")}}, progress=False)
    assert found.info["log_likelihood"] == pytest.approx(-1049.614, abs=1e-3)
    assert found.info["converged"] == converges and (found.info["iterations"] <= 20) == converges


def test_reml(fitted):
    """Nine loadings, and five residual variances; below the models that contain it."""
    rank, factors, full = (fitted[name].info for name in ("rank", "factors", "full"))
    assert rank["converged"] and rank["warnings"] == [] and rank["estimated_elements"] == 9 + 5
    assert rank["log_likelihood"] < factors["log_likelihood"] + 1e-3 < full["log_likelihood"] + 2e-3
    assert np.linalg.matrix_rank(matrix(fitted["rank"]), tol=1e-8) == 2
    summary = fitted["rank"].summary
    assert not any("specific" in name for name in summary["parameter"])
    L = np.array([[estimates(fitted["rank"])[f"line.loading[y|s{t}:{j}]"] for j in (1, 2)] for t in range(SITES)])
    np.testing.assert_allclose(L @ L.T, matrix(fitted["rank"]), atol=1e-8)
    assert (summary.filter(pl.col("parameter").str.contains(r"loading|\.var\["))["sd"] > 0).all()
    shares = [estimates(fitted["rank"])[f"line.explained[{j}]"] for j in (1, 2)]
    assert sum(shares) == pytest.approx(1.0) and shares[0] > shares[1]


def test_scores_means_and_page(fitted, tmp_path):
    result = fitted["rank"]
    scores = result.factor_scores
    L = np.array([[estimates(result)[f"line.loading[y|s{t}:{j}]"] for j in (1, 2)] for t in range(SITES)])
    values = result.solutions.filter(term="line").pivot("trait", index="level", values="mean").join(scores, on="level")
    expected = values.select("score_1", "score_2").to_numpy() @ L.T
    np.testing.assert_allclose(values.select([f"y|s{t}" for t in range(SITES)]).to_numpy(), expected, atol=1e-6)
    assert result.means.height == LINES * SITES and (result.means["se"] > 0).all()
    page = make_report([result.directory], tmp_path / "page.html").read_text(encoding="utf-8")
    assert "of 2 common factors alone (reduced rank)" in page and "Factors: line" in page
    assert "Specific variance" not in page


def test_likelihood_ratio_test(fitted):
    text = mmgibbs.compare(fitted["rank"].directory, fitted["factors"].directory).text
    assert "reduced_rank with 2 factors instead of factor_analytic with 2 factors (5 parameters fewer)" in text


def test_blup_at_the_estimates_is_the_solution_of_reml(plots, fitted, tmp_path):
    residual = {f"s{t}": estimates(fitted["rank"])[f"residual.var[y|s{t}]"] for t in range(SITES)}
    config = analysis(plots, tmp_path / "blup", TWO, {"start": matrix(fitted["rank"]).tolist()}, method="blup")
    config["variances"]["residual"] = {"start": np.diag(list(residual.values())).tolist(), "structure": "diagonal"}
    blup = mmgibbs.run(config, progress=False)
    for column in ("mean", "sd"):
        np.testing.assert_allclose(blup.solutions[column], fitted["rank"].solutions[column], atol=1e-7)
    config["variances"]["line"]["start"] = matrix(fitted["full"]).tolist()
    with pytest.raises(ModelError, match=r"variances\.line\.start: expected a matrix of rank 2 .* got one that has"):
        mmgibbs.run(config, overwrite=True, progress=False)


def test_validation_at_the_variances_of_the_run(plots, fitted, tmp_path):
    path = tmp_path / "analysis.yaml"
    path.write_text(json.dumps(analysis(plots, tmp_path / "run", TWO, method="reml")), encoding="utf-8")
    arguments = ["validate", str(path), "--method", "kfold", "--by", "cell", "--folds", "3", "--output"]
    assert main([*arguments, str(tmp_path / "out"), "--variances", str(fitted["rank"].directory)]) == 0


def test_sampling(plots, fitted, tmp_path):
    result = run(plots, tmp_path / "gibbs", TWO, chains=2, burn_in=100, samples=400, thin=1, seed=1)
    both = fitted["rank"].summary.join(result.summary, on="parameter", suffix="_sampled")
    rows = both.filter(pl.col("parameter").str.contains(r"line\.(corr|loading.*:1)"))
    assert rows.height == 15 and ((rows["mean"] - rows["mean_sampled"]).abs() < 1.5 * rows["sd"]).all()
    assert result.info["not_interweaved"]["line"].startswith("its loadings are drawn given the records")


@pytest.mark.parametrize("engine", ["pcg", "hybrid", "marginal"])
def test_engines_without_it_refuse(plots, tmp_path, engine):
    with pytest.raises(MmgibbsError, match="of reduced rank .* use engine: serial, or structured on the CPU"):
        run(plots, tmp_path / "run", TWO, **SHORT | {"engine": engine, "burn_in": 500})


@pytest.mark.parametrize(
    "structure, variances, sampler, said",
    [
        (TWO | {"factors": 5}, {}, SHORT, r"structure\.factors: expected at most 4 for 5 components, got 5"),
        (TWO | {"variances": "equal"}, {}, SHORT, r"structure\.variances: expected free for kind: reduced_rank"),
        (TWO, {"prior": {"half_t": {"df": 2}}}, SHORT, r"variances\.line\.prior: expected no prior for structure"),
        (TWO, {}, SHORT | {"partition": "effect", "update": "site"}, r"sampler\.partition: found effect, which cannot"),
        (TWO, {}, {"method": "reml", "engine": "pcg"}, r"variances\.line\.structure: reduced_rank"),
    ],
)
def test_mistakes_are_named(plots, tmp_path, structure, variances, sampler, said):
    with pytest.raises((ConfigError, ModelError), match=said):
        run(plots, tmp_path / "run", structure, variances, **sampler)


def test_categories_refuse(tmp_path):
    table = simulate(1, 1).with_columns(y=(pl.col("y") > 5).cast(pl.Int64))
    config = analysis(table, tmp_path / "run", "reduced_rank", **SHORT)
    config["traits"], config["output"] = {"y": {"by": "site", "type": "binary"}}, {"directory": str(tmp_path / "run")}
    with pytest.raises(ModelError, match="reduced_rank cannot be combined with traits that are not normal"):
        mmgibbs.run(config, progress=False)


def test_a_field_trend_beside_it(tmp_path):
    table = simulate(2, 2).with_columns(row=pl.int_range(pl.len()) // 2 % LINES, column=pl.int_range(pl.len()) % 2)
    config = analysis(table, tmp_path / "run", TWO, method="reml")
    known = {"kind": "ar1", "row": "row", "rho": 0.4, "fixed": True}
    config["model"]["random"]["field"] = {"traits": ["y|s0"], "relationship": known}
    result = mmgibbs.run(config, progress=False)
    assert any("no covariance matrix of reduced rank" in note for note in result.info["notes"])
    config["model"]["random"]["field"]["relationship"] = {"kind": "ar1", "row": "row"}
    with pytest.raises(ModelError, match="cannot be combined with correlations that are estimated"):
        mmgibbs.run(config, overwrite=True, progress=False)


# ------------------------------------------------------------------------------------------------ surplus factors


def test_a_factor_that_vanishes_is_not_counted(tmp_path):
    """The likelihood of three factors is that of two, with as many parameters: a warning says so."""
    table = simulate(1, 1)
    kinds = [{"kind": "factor_analytic", "factors": n} for n in (3, 2)]
    more, fewer = (run(table, tmp_path / f"{kind['factors']}", kind, method="reml").info for kind in kinds)
    (warning,) = more["warnings"]
    assert warning == (
        "variances.line.structure: 1 factor of 3 at 0: the likelihood is highest without; of all parameters "
        f"{fewer['estimated_elements']} are estimated, and AIC and BIC count these; needed factors: 2"
    )
    assert more["converged"] and fewer["warnings"] == []
    assert more["log_likelihood"] == pytest.approx(fewer["log_likelihood"], abs=2e-3)
    assert more["estimated_elements"] == fewer["estimated_elements"] == 14


def test_more_factors_than_the_matrix_determines(plots, fitted, tmp_path):
    more = run(plots, tmp_path / "three", {"kind": "factor_analytic", "factors": 3}, method="reml").info
    (warning,) = more["warnings"]
    assert warning.startswith("variances.line.structure: 3 factors of 5 components have 17 parameters, and a full")
    assert f"of all parameters {more['estimated_elements']} are estimated" in warning
    assert more["log_likelihood"] <= fitted["full"].info["log_likelihood"] + 2e-3
    assert fitted["factors"].info["warnings"] == []
