"""Trials of lines with genomic relationships, factor-analytic: REML by scores gives the run that G^-1 gives."""

import numpy as np
import polars as pl
import pytest
import yaml

import mmgibbs
from mmgibbs.likelihood import choice

LINES, SNPS, TRIALS = 40, 80, ("north", "east", "south", "west")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Unequal replicates; the last line has no plots, and each trial lacks other lines."""
    rng, path = np.random.default_rng(6), tmp_path_factory.mktemp("trials")
    codes = 2 * rng.integers(0, 2, (LINES, SNPS))
    ids = [f"line {i}" for i in range(LINES)]
    pl.DataFrame({"id": ids} | {f"snp{j}": codes[:, j] for j in range(SNPS)}).write_csv(path / "snps.csv")
    common = (codes - codes.mean(axis=0)) @ rng.normal(size=SNPS)
    common /= common.std()
    rows = []
    for t, trial in enumerate(TRIALS):
        for i in rng.choice(LINES - 1, 25 + 3 * t, replace=False):
            for plot in range(rng.integers(1, 4)):
                y = 5 + t + (0.5 + 0.3 * t) * common[i] + rng.normal() * 0.7
                rows.append({"trial": trial, "block": plot, "line": ids[i], "y": round(y, 4)})
    pl.DataFrame(rows).write_csv(path / "plots.csv")
    analysis = {
        "data": {"phenotypes": "plots.csv", "genotypes": "snps.csv"},
        "traits": {"y": {"by": "trial"}},
        "model": {
            "random": {"block": {}, "line": {"relationship": {"kind": "genomic", "blend": 0.05, "with": "I"}}},
        },
        "variances": {"line": {"structure": "factor_analytic"}, "block": {"structure": "diagonal"}},
        "sampler": {"method": "reml", "tolerance": 1e-7},
        "output": {"directory": "run", "means": ["line"]},
    }
    (path / "analysis.yaml").write_text(yaml.safe_dump(analysis))
    return path


def run(folder, name):
    mmgibbs.check(folder / "analysis.yaml")
    return mmgibbs.run(folder / "analysis.yaml", directory=folder / name, progress=False)


def test_scores_give_what_the_inverse_gives(folder, monkeypatch):
    scores = run(folder, "scores")
    monkeypatch.setattr(choice, "count_factors", lambda design, covariances: {})
    inverse = run(folder, "inverse")
    assert [r.info["likelihood"] for r in (scores, inverse)] == ["sparse, by scores", "sparse"]
    assert scores.info["log_likelihood"] == pytest.approx(inverse.info["log_likelihood"], abs=1e-8)
    for found, expected in (
        (scores.summary, inverse.summary),
        (scores.solutions, inverse.solutions),
        (scores.means, inverse.means),
    ):
        for name in expected.columns:
            if expected.schema[name].is_float():
                a, b = found[name].to_numpy(), expected[name].to_numpy()
                np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5, err_msg=name)
            else:
                assert found[name].to_list() == expected[name].to_list()
