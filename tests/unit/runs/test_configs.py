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
from mmgibbs.config.schema import MODELINE
from mmgibbs.results.columns import OUTPUTS, meaning
from mmgibbs.runs.run import run
from mmgibbs.simulation.command import KINDS
from mmgibbs.simulation.files import FILES as FILES_OF_OTHER_TRAITS
from mmgibbs.simulation.simulate import FILES, simulate_beef, write_beef

FILES_OF_ANALYSES = sorted(ROOT.glob("configs/*.yaml"))
REGRESSIONS = [p for p in FILES_OF_ANALYSES if "plugin:" in p.read_text()]
CONFIGS = [p for p in FILES_OF_ANALYSES if p not in REGRESSIONS]
SAMPLES = sorted(p for p in ROOT.glob("data_samples/[!_]*") if p.is_dir())

# What the sizes of groups decide stands beside the data alone.
CALVING_EASE = dict(pl.read_csv(ROOT / "data_samples/calving_ease/true_parameters.csv").rows())

# True parameters of each analysis (PROVENANCE.txt of its data), and the rows of solutions.csv that a reader of it looks
# for.
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
    "calving_ease": {
        "contemporary_group.var[birth_weight]": 2.25,
        "contemporary_group.var[calving_ease]": 0.2,
        "genetic.var[direct:birth_weight]": 7.0,
        "genetic.var[direct:calving_ease]": 0.4,
        "genetic.var[maternal:calving_ease]": 0.25,
        "genetic.corr[direct:birth_weight,direct:calving_ease]": 1 / 2.8**0.5,
        "genetic.corr[direct:calving_ease,maternal:calving_ease]": -0.08 / 0.1**0.5,
        "residual.var[calving_ease]": 1.0,
        "residual.cov[birth_weight,calving_ease]": 1.0,
        "h2[calving_ease]": 0.4 / 1.77,
        "threshold[calving_ease:assisted|difficult]": CALVING_EASE["threshold[calving_ease:assisted|difficult]"],
    },
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
    "disease": {
        "contemporary_group.var[pneumonia]": 0.25,
        "animal.var[pneumonia]": 0.5,
        "h2[pneumonia]": 0.5 / 1.75,
    },
    "first": {"animal.var[yearling_weight]": 380.0, "residual.var[yearling_weight]": 450.0},
    "genomic": {"residual.var[birth_weight]": 11.0, "h2[birth_weight]": 7 / 18},
    "longevity": {
        "herd_year.var[productive_life]": 0.05,
        "animal.var[productive_life]": 0.12,
        "residual.var[productive_life]": 0.3,
        "h2[productive_life]": 0.12 / 0.47,
    },
    "mastitis": {
        "herd_year.var[mastitis_cases]": 0.1,
        "genetic.var[mastitis_cases]": 0.35,
        "permanent_environment.var[mastitis_cases]": 0.2,
        "residual.var[mastitis_cases]": 0.3,
        "h2[mastitis_cases]": 0.35 / 0.95,
    },
    "random_regression": {
        "genetic.var[rr.0:body_weight]": 24.0,
        "genetic.var[rr.1:body_weight]": 4.0,
        "genetic.cov[rr.0:body_weight,rr.1:body_weight]": 4.0,
        "permanent_environment.var[rr.0:body_weight]": 16.0,
        "permanent_environment.var[rr.1:body_weight]": 4.0,
        "residual.var[body_weight]": 9.0,
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
    "single_step": {"genetic.var[birth_weight]": 7.0, "residual.var[birth_weight]": 11.0, "h2[birth_weight]": 7 / 18},
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
ROWS = {
    "beef": [
        ("genetic", "maternal", "weaning_weight"),
        ("genetic", "direct", "yearling_weight"),
        ("dam_age", "", "birth_weight"),
    ],
    "blup": [("animal", "", "yearling_weight")],
    "calving_ease": [
        ("genetic", "direct", "birth_weight"),
        ("genetic", "maternal", "calving_ease"),
        ("contemporary_group", "", "calving_ease"),
        ("dam_age", "", "calving_ease"),
    ],
    "covariates": [("age", "", "fleece_weight"), ("shearing_day", "", "fleece_weight")],
    "decisions": [("genetic", "maternal", "weaning_weight")],
    "disease": [("animal", "", "pneumonia"), ("season", "", "pneumonia")],
    "first": [("animal", "", "yearling_weight"), ("sex", "", "yearling_weight")],
    "genomic": [("genetic", "", "birth_weight"), ("snps", "gebv", "birth_weight"), ("sex", "", "birth_weight")],
    "longevity": [("animal", "", "productive_life"), ("age_at_first_calving", "", "productive_life")],
    "mastitis": [("permanent_environment", "", "mastitis_cases"), ("lactation", "", "mastitis_cases")],
    "random_regression": [
        ("genetic", "rr.0", "body_weight"),
        ("permanent_environment", "rr.1", "body_weight"),
        ("age", "", "body_weight"),
    ],
    "relationship_file": [("line", "", "yield"), ("block", "", "yield")],
    "residual_classes": [("genetic", "", "daily_gain"), ("housing", "", "backfat")],
    "repeated_records": [("permanent_environment", "", "fleece_weight")],
    "single_step": [("genetic", "", "birth_weight"), ("sex", "", "birth_weight")],
    "selfing": [("line", "", "yield"), ("block", "", "yield")],
    "unknown_parent_groups": [("genetic", "group", "fleece_weight")],
    "weights": [("genetic", "", "fibre_diameter")],
}


def test_every_analysis_file_is_here():
    assert [p.stem for p in CONFIGS] == sorted(TRUTH) == sorted(ROWS)
    assert [p.stem for p in REGRESSIONS] == sorted(TRUTH_OF_REGRESSIONS)


@pytest.mark.parametrize("path", CONFIGS, ids=lambda p: p.stem)
def test_runs_to_a_complete_run_folder(path, tmp_path_factory):
    folder = shared_run(tmp_path_factory, path.stem)
    assert {p.name for p in folder.iterdir()} >= {
        "summary.csv",
        "summary.parquet",
        "solutions.csv",
        "solutions.parquet",
        "draws.nc",
        "run.json",
    }
    summary = pl.read_csv(folder / "summary.csv", infer_schema_length=None)
    assert set(TRUTH[path.stem]) <= set(summary["parameter"])
    assert summary["mean"].is_finite().all() and summary["mean"].null_count() == 0
    for file in OUTPUTS:
        table = folder / file
        if table.exists():
            columns = (pl.read_parquet(table) if table.suffix == ".parquet" else pl.read_csv(table, n_rows=0)).columns
            assert [c for c in columns if meaning(file, c) is None] == [], file
    solutions = pl.read_parquet(folder / "solutions.parquet")
    assert solutions["mean"].is_finite().all() and solutions["mean"].null_count() == 0
    found = set(solutions.select(pl.col("term"), pl.col("effect").fill_null(""), "trait").unique().iter_rows())
    assert set(ROWS[path.stem]) <= found
    facts = json.loads((folder / "run.json").read_text())
    assert facts["name"] == path.stem.replace("_", "-") and facts["equations"] > 60
    assert facts["analysis"]["sampler"]["samples"] == 60


@pytest.mark.parametrize("path", REGRESSIONS, ids=lambda p: p.stem)
def test_regressions_find_the_true_parameters(path, tmp_path):
    """A shorter run than shipped: true values within 3.5 posterior SDs, and a complete run folder."""
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
    from mmgibbs.config import load_config

    beside, shipped = (
        load_config(path).resolved(),
        load_config(ROOT / "configs" / f"{path.parent.name}.yaml").resolved(),
    )
    assert beside["model"] == shipped["model"] and beside["traits"] == shipped["traits"]


# The tutorials show what these find, and are run as written by tests/unit/test_tutorials.py.
IN_TUTORIALS = (
    "calving_ease", "disease", "first", "genomic", "longevity", "mastitis", "random_regression", "single_step",
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("path", [p for p in CONFIGS if p.stem not in IN_TUTORIALS], ids=lambda p: p.stem)
def test_finds_the_true_parameters(path, tmp_path):
    """As shipped: true values within 3.5 posterior SDs (each analysis is one data set), chains that agree."""
    summary = run(path, directory=tmp_path / "run", progress=False).summary
    rows = {r["parameter"]: r for r in summary.iter_rows(named=True)}
    for name, truth in TRUTH[path.stem].items():
        assert abs(rows[name]["mean"] - truth) <= 3.5 * rows[name]["sd"], name
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


def test_beef_is_what_its_command_makes(tmp_path):
    sample = ROOT / "data_samples" / "beef"
    note = (sample / "PROVENANCE.txt").read_text()
    same_numpy(note)
    animals, years, seed = map(int, re.search(r"--animals (\d+) --years (\d+) --seed (\d+)", note).groups())
    made = write_beef(simulate_beef(animals, seed, years), tmp_path / "beef")
    for name in FILES:
        if name != "PROVENANCE.txt":
            text = (made / name).read_text().removeprefix(MODELINE)
            assert text == (sample / name).read_text(), name


@pytest.mark.slow
def test_genomic_is_what_its_command_makes(tmp_path):
    sample = ROOT / "data_samples" / "genomic"
    note = (sample / "PROVENANCE.txt").read_text()
    same_numpy(note)
    words = shlex.split(re.search(r"^Made by: mmgibbs (simulate .*)$", note, re.MULTILINE).group(1))
    made = tmp_path / "genomic"
    assert main([str(made) if word == "DIRECTORY" else word for word in words]) == 0
    for path in sample.iterdir():
        if path.name != "PROVENANCE.txt":
            assert (made / path.name).read_bytes() == path.read_bytes(), path.name


def test_single_step_is_what_its_script_makes(tmp_path):
    sample = ROOT / "data_samples" / "single_step"
    spec = importlib.util.spec_from_file_location("make_samples", ROOT / "data_samples" / "make_samples.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.single_step(tmp_path / "made")
    for path in sample.iterdir():
        assert (tmp_path / "made" / path.name).read_bytes() == path.read_bytes(), path.name


@pytest.mark.parametrize("name", KINDS)
def test_other_traits_are_what_their_command_makes(name, tmp_path):
    sample = ROOT / "data_samples" / name
    note = (sample / "PROVENANCE.txt").read_text()
    same_numpy(note)
    words = shlex.split(re.search(r"^Made by: mmgibbs (simulate .*)$", note, re.MULTILINE).group(1))
    made = tmp_path / name
    assert main([str(made) if word == "DIRECTORY" else word for word in words]) == 0
    for file in FILES_OF_OTHER_TRAITS:
        if file != "PROVENANCE.txt":
            assert (made / file).read_text().removeprefix(MODELINE) == (sample / file).read_text(), file


@pytest.mark.parametrize("name", ["sheep", "lines", "selfed", "markers", "pigs"])
def test_samples_are_what_their_script_makes(name, tmp_path):
    sample = ROOT / "data_samples" / name
    same_numpy((sample / "PROVENANCE.txt").read_text())
    spec = importlib.util.spec_from_file_location("make_samples", ROOT / "data_samples" / "make_samples.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    getattr(module, name)(tmp_path / name)
    for path in sample.glob("*.csv"):
        assert (tmp_path / name / path.name).read_text() == path.read_text(), path.name
    for path in sample.glob("*.txt"):
        if path.name != "PROVENANCE.txt":  # a kinship inverse in double precision: the last digits are the machine's
            one, other = (np.loadtxt(p, usecols=2) for p in (path, tmp_path / name / path.name))
            np.testing.assert_allclose(one, other, rtol=1e-6)
