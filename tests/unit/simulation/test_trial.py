"""Simulated trials are what their docstring says, and their analyses run."""

import numpy as np
import polars as pl
import pytest

import mmgibbs
from mmgibbs.simulation import trial


def test_every_line_is_in_every_block_of_every_site(tmp_path):
    simulated = trial.simulate_trial(23, 3, seed=2)
    counts = simulated.plots.group_by("site", "rep", "line").len()
    assert counts.height == 3 * trial.REPLICATES * 23 and (counts["len"] == 1).all()
    assert simulated.plots.select("site", "row", "column").is_unique().all()
    draw = lambda seed: trial.simulate_trial(12, 2, seed).plots
    assert draw(1).equals(draw(1)) and not draw(1).equals(draw(2))


def test_values_and_residuals_have_their_variances():
    simulated = trial.simulate_trial(4000, 3, seed=2)
    around = simulated.values - simulated.values.mean(axis=0)
    assert np.cov(around, rowvar=False) == pytest.approx(simulated.covariance, rel=0.12)
    wide = pl.DataFrame({"line": simulated.lines} | {s: simulated.values[:, i] for i, s in enumerate(simulated.sites)})
    values = wide.unpivot(index="line", variable_name="site", value_name="value")
    away = simulated.plots.join(values, on=["line", "site"]).with_columns(
        away=pl.col("yield") - pl.col("value") - (pl.col("yield") - pl.col("value")).mean().over("site", "rep")
    )
    for i, site in enumerate(simulated.sites):
        plots = away.filter(site=site)
        assert plots["away"].var() == pytest.approx(simulated.residual[i] + trial.TREND, rel=0.1)
        for place, correlation in (("row", trial.ROW_CORRELATION), ("column", trial.COLUMN_CORRELATION)):
            neighbours = plots.join(plots.with_columns(pl.col(place) + 1), on=["row", "column"])
            covariance = (neighbours["away"] * neighbours["away_right"]).mean()
            assert covariance == pytest.approx(trial.TREND * correlation, rel=0.15)


def test_its_analyses_run(tmp_path):
    made = mmgibbs.simulate(tmp_path / "trial", traits="trial", lines=30, sites=3)
    assert {path.name for path in made.files} >= set(trial.FILES)
    overrides = ["sampler.tolerance=1e-2"]
    result = mmgibbs.run(made.analysis, overrides, directory=tmp_path / "all", progress=False)
    truth = pl.read_csv(tmp_path / "trial" / "true_parameters.csv")
    assert set(truth["parameter"]) <= set(result.summary["parameter"])
    means = result.means.with_columns(site=pl.col("trait").str.slice(len("yield|")))
    both = means.join(made.true_values.rename({"line": "level"}), on=["level", "site"])
    assert both.select(pl.corr("mean", "value")).item() > 0.85
    one = mmgibbs.run(tmp_path / "trial" / "one_site.yaml", overrides, directory=tmp_path / "one", progress=False)
    assert one.means.height == 30 and "field.var[yield]" in set(one.summary["parameter"])
