"""Every analysis file that is shipped runs, and finds what its data were made with;
the samples are what their notes say.
"""

import importlib.util
import json
import re
import shlex

import numpy as np
import polars as pl
import pytest
from helpers.shared_runs import shared_run
from helpers.support import ROOT

from mmgibbs.cli import main
from mmgibbs.config import load_config
from mmgibbs.config.schema import MODELINE
from mmgibbs.results.columns import OUTPUTS, meaning
from mmgibbs.runs.run import run
from mmgibbs.simulation.command import KINDS

FILES_OF_ANALYSES = sorted(ROOT.glob("configs/*.yaml"))
REGRESSIONS = [p for p in FILES_OF_ANALYSES if "plugin:" in p.read_text()]
CONFIGS = [p for p in FILES_OF_ANALYSES if p not in REGRESSIONS]
SAMPLES = sorted(p for p in ROOT.glob("data_samples/[!_]*") if p.is_dir())

# The tutorials show what these find, and are run as written by tests/unit/test_tutorials.py.
IN_TUTORIALS = (
    "calving_ease", "disease", "first", "genomic", "longevity", "mastitis", "random_regression", "single_step",
)  # fmt: skip
# True parameters of the other analyses (PROVENANCE.txt of their data)
TRUTH = {
    "beef": {
        "genetic.var[direct:birth_weight]": 7.0,
        "genetic.var[direct:weaning_weight]": 170.0,
        "genetic.var[direct:yearling_weight]": 380.0,
        "genetic.var[maternal:weaning_weight]": 90.0,
        "genetic.cov[direct:weaning_weight,direct:yearling_weight]": 200.0,
        "genetic.cov[direct:weaning_weight,maternal:weaning_weight]": -25.0,
        "maternal_environment.var[weaning_weight]": 70.0,
        "residual.var[weaning_weight]": 300.0,
        "residual.cov[weaning_weight,yearling_weight]": 220.0,
        "h2[birth_weight]": 7 / 18,
    },
    "blup": {"animal.var[yearling_weight]": 380.0, "residual.var[yearling_weight]": 450.0},
    "covariates": {
        "genetic.var[fleece_weight]": 0.20,
        "permanent_environment.var[fleece_weight]": 0.12,
        "residual.var[fleece_weight]": 0.30,
    },
    "decisions": {
        "genetic.var[direct:yearling_weight]": 380.0,
        "genetic.var[maternal:weaning_weight]": 90.0,
        "residual.var[yearling_weight]": 450.0,
    },
    "relationship_file": {"line.var[yield]": 0.50, "residual.var[yield]": 0.40},
    "repeated_records": {
        "genetic.var[fleece_weight]": 0.20,
        "permanent_environment.var[fleece_weight]": 0.12,
        "residual.var[fleece_weight]": 0.30,
    },
    "residual_classes": {
        "genetic.var[daily_gain]": 1600.0,
        "genetic.cov[daily_gain,backfat]": 14.0,
        "residual.var[daily_gain|indoor]": 2500.0,
        "residual.var[daily_gain|outdoor]": 6400.0,
        "residual.var[backfat|indoor]": 1.5,
        "residual.var[backfat|outdoor]": 3.0,
        "residual.cov[daily_gain,backfat|outdoor]": 50.0,
        "residual.corr[daily_gain,backfat|indoor]": 12 / (2500 * 1.5) ** 0.5,
        "h2[daily_gain|indoor]": 1600 / 4100,
        "h2[daily_gain|outdoor]": 0.2,
    },
    "selfing": {"line.var[yield]": 0.30, "residual.var[yield]": 0.45},
    "unknown_parent_groups": {
        "genetic.var[fleece_weight]": 0.20,
        "permanent_environment.var[fleece_weight]": 0.12,
        "residual.var[fleece_weight]": 0.30,
    },
    "weights": {
        "genetic.var[fibre_diameter]": 1.2,
        "permanent_environment.var[fibre_diameter]": 0.5,
        "residual.var[fibre_diameter]": 4.0,
    },
}
TRUTH_OF_REGRESSIONS = {
    "hierarchical": {
        "population[intercept,intercept]": -0.8,
        "population[intercept,colostrum]": 0.5,
        "covariance[intercept,intercept]": 0.6,
        "covariance[colostrum,colostrum]": 0.2,
    },
    "horseshoe_probit": {"beta[snp_09]": 0.8, "beta[snp_23]": -0.9, "beta[snp_48]": 0.7, "beta[snp_01]": 0.0},
    "lasso": {"beta[snp_05]": 6.0, "beta[snp_18]": -4.0, "beta[snp_31]": 5.0, "beta[snp_42]": 3.0, "sigma2": 144.0},
    "multinomial": {
        "beta[calf_size,assisted]": 0.9,
        "beta[calf_size,difficult]": 1.6,
        "beta[dam_age,difficult]": -0.5,
        "intercept[assisted]": 0.5,
    },
    "multinomial_hmc": {
        "beta[calf_size,assisted]": 0.9,
        "beta[calf_size,difficult]": 1.6,
        "beta[dam_age,difficult]": -0.5,
        "intercept[difficult]": 0.5,
    },
}


def test_every_analysis_file_is_here():
    assert [p.stem for p in CONFIGS] == sorted([*TRUTH, *IN_TUTORIALS])
    assert [p.stem for p in REGRESSIONS] == sorted(TRUTH_OF_REGRESSIONS)


@pytest.mark.parametrize("path", CONFIGS, ids=lambda p: p.stem)
def test_runs_to_a_complete_run_folder(path, tmp_path_factory):
    folder = shared_run(tmp_path_factory, path.stem)
    tables = {f"{table}.{kind}" for table in ("summary", "solutions") for kind in ("csv", "parquet")}
    assert {p.name for p in folder.iterdir()} >= {*tables, "draws.nc", "run.json"}
    summary = pl.read_csv(folder / "summary.csv", infer_schema_length=None)
    assert set(TRUTH.get(path.stem, ())) <= set(summary["parameter"])
    assert summary["mean"].is_finite().all() and summary["mean"].null_count() == 0
    for file in OUTPUTS:
        table = folder / file
        if table.exists():
            columns = (pl.read_parquet(table) if table.suffix == ".parquet" else pl.read_csv(table, n_rows=0)).columns
            assert [c for c in columns if meaning(file, c) is None] == [], file
    solutions = pl.read_parquet(folder / "solutions.parquet")
    assert solutions["mean"].is_finite().all() and solutions["mean"].null_count() == 0
    facts = json.loads((folder / "run.json").read_text())
    model = facts["analysis"]["model"]
    assert {*model["fixed"], *model["random"], *model["markers"]} <= set(solutions["term"])
    assert facts["name"] == path.stem.replace("_", "-") and facts["equations"] > 60
    assert facts["analysis"]["sampler"]["samples"] == 60


@pytest.mark.parametrize("path", REGRESSIONS, ids=lambda p: p.stem)
def test_regressions_find_the_true_parameters(path, tmp_path):
    short = ["sampler.chains=2", "sampler.burn_in=200", "sampler.samples=400", "sampler.thin=2"]
    result = run(path, short, directory=tmp_path / "run", progress=False)
    assert {p.name for p in result.directory.iterdir()} >= {"summary.csv", "summary.parquet", "draws.nc", "run.json"}
    rows = {r["parameter"]: r for r in result.summary.iter_rows(named=True)}
    for name, truth in TRUTH_OF_REGRESSIONS[path.stem].items():
        assert abs(rows[name]["mean"] - truth) <= 3.5 * rows[name]["sd"], name
    assert result.summary["mean"].is_finite().all()


@pytest.mark.parametrize("path", sorted(ROOT.glob("data_samples/*/analysis.yaml")), ids=lambda p: p.parent.name)
def test_analysis_beside_a_sample_is_that_of_configs(path):
    """`mmgibbs simulate` wrote it: the model is the one of configs/, which is run above."""
    beside, shipped = (load_config(p).resolved() for p in (path, ROOT / "configs" / f"{path.parent.name}.yaml"))
    assert beside["model"] == shipped["model"] and beside["traits"] == shipped["traits"]


@pytest.mark.slow
@pytest.mark.parametrize("name", TRUTH)
def test_finds_the_true_parameters(name, tmp_path):
    """As shipped: true values within 3.5 posterior SDs (each analysis is one data set), chains that agree."""
    summary = run(ROOT / "configs" / f"{name}.yaml", directory=tmp_path / "run", progress=False).summary
    rows = {r["parameter"]: r for r in summary.iter_rows(named=True)}
    for parameter, truth in TRUTH[name].items():
        assert abs(rows[parameter]["mean"] - truth) <= 3.5 * rows[parameter]["sd"], parameter
    rhat = summary["rhat"].drop_nulls()
    assert len(rhat) == 0 or rhat.max() < 1.15


# ------------------------------------------------------------------------------------------------------ samples


def same_numpy(note: str) -> None:
    """NumPy keeps the streams of its generators within a version only."""
    made = re.search(r"numpy (\d+\.\d+)", note, re.IGNORECASE).group(1)
    if not np.__version__.startswith(made + "."):
        pytest.skip(f"the samples were made with NumPy {made}; this is {np.__version__}")


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda p: p.name)
def test_samples_are_small_and_say_where_they_come_from(sample):
    note = (sample / "PROVENANCE.txt").read_text()
    assert "Made by: " in note and "seed" in note and "True parameters" in note
    assert sum(p.stat().st_size for p in sample.iterdir()) < 1_000_000


@pytest.mark.parametrize("name", ["beef", *KINDS, pytest.param("genomic", marks=pytest.mark.slow)])
def test_samples_are_what_their_command_makes(name, tmp_path):
    sample = ROOT / "data_samples" / name
    note = (sample / "PROVENANCE.txt").read_text()
    same_numpy(note)
    words = shlex.split(re.search(r"^Made by: mmgibbs (simulate .*)$", note, re.MULTILINE).group(1))
    made = tmp_path / name
    assert main([str(made) if word == "DIRECTORY" else word for word in words]) == 0
    for path in sample.iterdir():
        if path.name != "PROVENANCE.txt":
            assert (made / path.name).read_bytes().removeprefix(MODELINE.encode()) == path.read_bytes(), path.name


@pytest.mark.parametrize("name", ["sheep", "lines", "selfed", "markers", "pigs", "single_step"])
def test_samples_are_what_their_script_makes(name, tmp_path):
    sample = ROOT / "data_samples" / name
    if name != "single_step":  # which is chosen from the animals of `genomic`, not drawn
        same_numpy((sample / "PROVENANCE.txt").read_text())
    spec = importlib.util.spec_from_file_location("make_samples", ROOT / "data_samples" / "make_samples.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    getattr(module, name)(tmp_path / name)
    for path in sample.iterdir():
        made = tmp_path / name / path.name
        if path.suffix == ".txt" and "inverse" in path.name:  # in double precision: the last digits are the machine's
            np.testing.assert_allclose(*(np.loadtxt(p, usecols=2) for p in (path, made)), rtol=1e-6)
        elif path.name != "PROVENANCE.txt":
            assert made.read_bytes() == path.read_bytes(), path.name
