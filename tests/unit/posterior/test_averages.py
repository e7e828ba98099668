"""Means of groups of levels in every draw: those of the draws of all levels."""

import numpy as np
import polars as pl
import pytest
from helpers.support import ROOT

import mmgibbs
from mmgibbs.posterior import averages
from mmgibbs.posterior.averages import LevelAverages


def test_large_groups_are_spread_evenly(monkeypatch):
    monkeypatch.setattr(averages, "MOST", 5)
    of = LevelAverages.by_group(np.repeat([0, 1], [101, 2]), ["a", "b"])
    assert of.codes.tolist() == [0, 25, 50, 75, 100, 101, 102] and of.starts.tolist() == [0, 5]


def test_a_run_keeps_the_genetic_trend_in_every_draw(tmp_path):
    """Against the draws of every animal, kept in the same run."""
    settings = [
        "sampler.chains=1",
        "sampler.burn_in=5",
        "sampler.samples=20",
        "sampler.thin=2",
        "output.save_levels=[animal]",
    ]
    result = mmgibbs.run(ROOT / "configs" / "first.yaml", settings, directory=tmp_path / "run", progress=False)
    posterior = result.draws["/posterior"]
    trend, every = posterior["trend[animal]"], posterior["animal"]
    animals = pl.read_parquet(tmp_path / "run" / "animals.parquet")
    birth = dict(zip(animals["id"], animals["birth"], strict=True))
    years = np.array([birth[level] for level in every["animal_level"].values.tolist()])
    labels = trend["trend[animal]_level"].values.tolist()
    assert trend.shape == (1, 10, len(labels), 1) and labels == sorted(labels) and len(labels) > 10
    for i, label in enumerate(labels):
        assert trend.values[:, :, i] == pytest.approx(every.values[:, :, years == float(label)].mean(axis=2), abs=1e-12)
