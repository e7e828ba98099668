"""`sampler.method: reml` from the analysis file to the run folder: what is written, what is refused."""

import json
import subprocess
import sys

import numpy as np
import polars as pl
import pytest
from helpers.estimates import estimates
from helpers.milk_records import ANALYSIS, no_variance, records, starts
from helpers.support import ROOT

import mmgibbs
from mmgibbs.build.assemble import assemble
from mmgibbs.cli import main
from mmgibbs.config import load_config
from mmgibbs.data.prepare import prepare
from mmgibbs.errors import ConfigError, ModelError
from mmgibbs.reml.estimate import estimate
from mmgibbs.runs.reml import estimates_table


@pytest.fixture
def folder(tmp_path, monkeypatch):
    records().write_csv(tmp_path / "records.csv")
    (tmp_path / "analysis.yaml").write_text(ANALYSIS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_run(folder):
    assert main(["check", "analysis.yaml"]) == 0
    assert main(["run", "analysis.yaml", "--quiet"]) == 0
    info = json.loads((folder / "run" / "run.json").read_text())
    assert info["method"] == "reml" and info["engine"] == "direct" and info["iterations"] > 1
    assert info["distance_to_maximum"] <= info["analysis"]["sampler"]["tolerance"]
    assert info["aic"] == pytest.approx(-2 * info["log_likelihood"] + 2 * 6)
    freedom = 180 + 144 - 8
    assert info["bic"] == pytest.approx(-2 * info["log_likelihood"] + 6 * np.log(freedom))
    summary = pl.read_parquet(folder / "run" / "summary.parquet")
    assert summary["sd"].null_count() == 0 and summary["rhat"].null_count() == summary.height
    assert {"cow.corr[milk,fat]", "residual.corr[milk,fat]", "ratio[cow:milk]"} <= set(summary["parameter"])
    solutions = pl.read_parquet(folder / "run" / "solutions.parquet").filter(pl.col("term") == "cow")
    assert solutions.height == 120 and solutions["reliability"].is_between(0, 1).all()
    page = (folder / "run" / "report.html").read_text()
    assert "log likelihood" in page and "Estimates by REML" in page and "sampled, flat" not in page


def test_standard_errors_by_the_delta_method(folder):
    analysis = load_config("analysis.yaml")
    assembled = assemble(analysis, prepare(analysis))
    model = assembled.model
    found = estimate(model.design, model.covariances, model.residual, 1e-6, 100)
    table = estimates_table(found, assembled)
    errors = dict(zip(table["parameter"], table["sd"], strict=True))
    (a, c, b, ra, _, _), V = found.vector, found.covariance
    r = c / np.sqrt(a * b)
    J = np.array([-r / (2 * a), 1 / np.sqrt(a * b), -r / (2 * b), 0, 0, 0])
    assert errors["cow.corr[milk,fat]"] == pytest.approx(np.sqrt(J @ V @ J), rel=1e-5)
    J = np.array([ra, 0, 0, -a, 0, 0]) / (a + ra) ** 2
    assert errors["ratio[cow:milk]"] == pytest.approx(np.sqrt(J @ V @ J), rel=1e-5)
    assert errors["cow.var[milk]"] == pytest.approx(np.sqrt(V[0, 0]), rel=1e-6)


def test_solutions_are_those_of_blup_at_the_estimates(folder):
    estimated = mmgibbs.run("analysis.yaml", progress=False)
    solved = mmgibbs.run("analysis.yaml", ["sampler.method=blup", *starts(estimated)], directory="blup", progress=False)
    for column in ("mean", "sd", "pev", "reliability"):
        one, other = (s.solutions[column].to_numpy() for s in (estimated, solved))
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-8)


def test_a_matrix_that_is_held_fixed(folder):
    result = mmgibbs.run("analysis.yaml", ["variances.cow={start: [[2, 0.5], [0.5, 1]], fixed: true}"], progress=False)
    row = result.summary.filter(parameter="cow.var[milk]").row(0, named=True)
    assert (row["mean"], row["sd"]) == (2.0, 0.0)
    assert result.info["estimated_elements"] == 3


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("variances.cow.prior={df: 5, scale: [[1, 0], [0, 1]]}", "variances.cow.prior: cannot be combined with .*reml"),
        ("variances.mode=fixed", "needed blup, or variances to estimate"),
        ("sampler.engine=serial", "sampler.engine: found serial, which cannot be combined with method: reml"),
        ("sampler.precision=single", "found single, which cannot be combined with method: reml"),
        ("sampler.update=site", "found site, which cannot be combined with method: reml"),
        ("sampler.device=gpu", "found gpu, which cannot be combined with method: reml"),
        ("sampler.stop={rhat: 1.01}", "cannot be combined with method: reml"),
        ("traits.fat.type=ordinal", "reml cannot be combined with traits.fat.type: ordinal"),
    ],
)
def test_what_is_refused(folder, setting, words):
    starts = ["variances.cow.start=[[2, 0.5], [0.5, 1]]", "variances.residual.start=[[1, 0], [0, 1]]"]
    more = starts if "mode" in setting else []
    text = ANALYSIS.replace("traits: [milk, fat]", "traits: {milk: {}, fat: {}}")
    (folder / "analysis.yaml").write_text(text)
    with pytest.raises(ConfigError, match=words):
        mmgibbs.check("analysis.yaml", [*more, setting])


def test_what_does_not_converge(folder, capsys):
    result = mmgibbs.run("analysis.yaml", ["sampler.max_iterations=1"], progress=False)
    (warning,) = result.info["warnings"]
    assert "not converged after 1 iteration, " in warning and "standard errors from the best ones" in warning
    assert not result.info["converged"] and result.info["iterations"] == 1
    assert main(["run", "analysis.yaml", "--quiet", "--overwrite", "--set", "sampler.max_iterations=1"]) == 0
    assert f"warning: {warning}" in capsys.readouterr().err


def test_effects_with_the_same_levels_are_named(folder):
    """Cows, and cows once more: their sum alone is determined, and is that of a model with one of them."""
    records().with_columns(again=pl.col("cow")).write_csv("records.csv")
    result = mmgibbs.run("analysis.yaml", ["traits=[milk]", "model.random={cow: {}, again: {}}"], progress=False)
    values = estimates(result)
    errors = dict(result.summary.select("parameter", "sd").rows())
    (warning,) = (text for text in result.info["warnings"] if "do not determine" in text)
    assert "each of the variances of cow (milk) and again (milk), only their sum" in warning
    assert "Leave out model.random.cow or model.random.again, or add records" in warning
    assert errors["cow.var[milk]"] is None and errors["again.var[milk]"] is None and errors["residual.var[milk]"] > 0
    one = mmgibbs.run("analysis.yaml", ["traits=[milk]"], directory="one", progress=False)
    total = values["cow.var[milk]"] + values["again.var[milk]"]
    assert total == pytest.approx(one.summary.filter(parameter="cow.var[milk]")["mean"][0], rel=1e-5)
    assert one.info["warnings"] == []


def test_a_variance_of_which_the_data_say_nothing(folder):
    records().with_columns(farm=pl.lit("one")).write_csv("records.csv")
    given = ["traits=[milk]", "model.random={cow: {}, farm: {}}", "variances.farm.start=5.0"]
    result = mmgibbs.run("analysis.yaml", given, progress=False)
    (warning,) = result.info["warnings"]
    assert warning.startswith("variances.farm: the records say nothing of the variance of farm (milk)")
    assert "and the shares made of it, come from the starting values alone" in warning
    assert "Leave out model.random.farm" in warning
    rows = {row["parameter"]: row for row in result.summary.to_dicts()}
    assert rows["farm.var[milk]"]["mean"] == pytest.approx(5.0, rel=1e-3)
    assert rows["farm.var[milk]"]["sd"] is None and rows["ratio[farm:milk]"]["sd"] is None


def test_what_the_data_do_not_determine_is_no_parameter(tmp_path):
    """A covariance of traits that no level has together leaves AIC as it is without it."""
    rng = np.random.default_rng(4)
    line = np.repeat(np.arange(40), 3)
    y = rng.standard_normal(40)[line] + rng.standard_normal(120)
    table = pl.DataFrame({"line": [f"L{i}" for i in line], "site": np.where(line < 20, "A", "B"), "y": y})
    analysis = {
        "data": {"phenotypes": table},
        "traits": {"y": {"by": "site"}},
        "model": {"random": {"line": {}}},
        "sampler": {"method": "reml"},
    }
    runs = [
        mmgibbs.run(analysis | {"variances": {"line": {"structure": kind}}}, directory=tmp_path / kind, progress=False)
        for kind in ("full", "diagonal")
    ]
    assert runs[0].info["aic"] == pytest.approx(runs[1].info["aic"], abs=1e-4)


def test_no_more_observations_than_fixed_effects(folder):
    records().unique("herd", keep="first").write_csv("records.csv")
    with pytest.raises(ModelError, match="needs more observations than fixed effects; got 4 observations and 4"):
        mmgibbs.run("analysis.yaml", ["traits=[milk]"], progress=False)


def results(table, starts, unit=1.0, name="run"):
    """(estimates, standard errors or NaN, notes) of milk in other units from starts."""
    table.with_columns(milk=pl.col("milk") * unit).write_csv("records.csv")
    given = [f"variances.{term}.start={start}" for term, start in starts.items()]
    found = mmgibbs.run("analysis.yaml", ["traits=[milk]", *given, f"output.directory={name}"], progress=False)
    return found.summary["mean"].to_numpy(), found.summary["sd"].cast(float).to_numpy(), found.info["notes"]


@pytest.mark.parametrize("boundary", [False, True])
@pytest.mark.parametrize("start", [None, 1.0])
def test_another_unit_changes_nothing_but_units(folder, boundary, start):
    table = no_variance() if boundary else records()
    starts = {} if start is None else {"cow": start, "residual": start}
    mean, sd, notes = results(table, starts)
    found = results(table, starts, unit=1000.0, name="grams")
    squares = np.array([1e6, 1e6, *[1.0] * (len(mean) - 2)])
    np.testing.assert_allclose(found[0] / squares, mean, rtol=1e-5)
    np.testing.assert_allclose(found[1] / squares, sd, rtol=1e-5)
    assert found[2] == notes


def test_weights_that_differ_a_millionfold(folder):
    """Half of the records are means of a million: what they say of cows is not lost among the others."""
    rng = np.random.default_rng(8)
    w = np.where(np.arange(180) % 2 == 0, 1.0, 1e6)
    own = 1.5 * rng.standard_normal(60)
    y = np.repeat(own, 3) + rng.standard_normal(180) / np.sqrt(w)
    table = records().with_columns(milk=pl.Series(y), w=pl.Series(w))
    (folder / "analysis.yaml").write_text(ANALYSIS.replace("data: {", "data: {weights: w, "))
    mean, sd, notes = results(table, {})
    assert not any("on the boundary" in note for note in notes)
    np.testing.assert_array_less(abs(mean[:2] - [2.25, 1.0]), 4 * sd[:2])


def test_a_boundary_has_no_standard_error(folder):
    no_variance().write_csv("records.csv")
    result = mmgibbs.run("analysis.yaml", ["traits=[milk]"], progress=False)
    row = result.summary.filter(parameter="cow.var[milk]").row(0, named=True)
    assert row["mean"] < 1e-4 and row["sd"] is None
    sd = dict(result.summary.select("parameter", "sd").rows())
    assert sd["ratio[cow:milk]"] is None and sd["residual.var[milk]"] > 0  # its share is as little known
    assert any("the variance of milk is on the boundary" in note for note in result.info["notes"])


CONFIGS = (
    "weights", "residual_classes", "covariates", "unknown_parent_groups", "selfing", "random_regression",
    "repeated_records", "relationship_file",
)  # fmt: skip


@pytest.mark.parametrize("name", [*CONFIGS, pytest.param("beef", marks=pytest.mark.slow)])
def test_every_kind_of_analysis_converges(tmp_path, name):
    """Weights, classes of residuals, slopes, groups, selfing, curves, correlated effects, a user's relationships."""
    flat = ["variances.line.prior=flat", "variances.residual.prior=flat"] if name == "relationship_file" else []
    path = ROOT / "configs" / f"{name}.yaml"
    result = mmgibbs.run(path, ["sampler.method=reml", *flat], directory=tmp_path / "run", progress=False)
    assert result.info["em_steps"] == 0 and result.info["iterations"] < 15
    assert result.summary["sd"].null_count() == 0
    random = result.solutions.filter(pl.col("pev").is_not_null())
    assert random.height and (random["pev"] > 0).all()


NEEDLESS = (
    "mmgibbs.engines.coloured", "mmgibbs.engines.hybrid", "mmgibbs.engines.pcg", "mmgibbs.sampler.markers",
    "mmgibbs.sampler.marginal", "mmgibbs.sampler.chain", "mmgibbs.regressions", "mmgibbs.report.plots", "matplotlib",
    "scipy.cluster", "scipy.stats", "joblib", "psutil", "asyncio", "distributed", "xarray", "pandas", "arviz_stats",
    "jinja2",
)  # fmt: skip


@pytest.mark.parametrize(
    ("flags", "needless"), [(["--no-report"], NEEDLESS), pytest.param([], ("scipy.cluster",), marks=pytest.mark.slow)]
)
def test_reml_imports_neither_sweeps_nor_chains(folder, flags, needless):
    """A process that estimates variances waits for no engine that samples, for no sampler, and for no library of
    processes, of diagnostics of draws and of pages; a page without large matrices waits for no clustering."""
    script = f"""
import sys
from mmgibbs.cli import main
assert main(["run", "analysis.yaml", "--quiet", *{flags}]) == 0
print([name for name in sys.modules if name.startswith({needless})])
"""
    outcome = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert outcome.stdout.strip() == "[]"
