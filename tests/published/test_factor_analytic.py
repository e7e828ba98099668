"""Factor-analytic REML of the trial of Besag & Higdon (1999) in six counties, table besag.met of agridat.

By dense matrices too the log likelihood is -3767.0651 at the maximum, where the specific variances of C2 and C5 are 0.
"""

import polars as pl
import pytest
from helpers.support import ROOT

import mmgibbs

FILE = ROOT.parent / "shared" / "data" / "agridat" / "besag.met.txt"
pytestmark = pytest.mark.skipif(not FILE.exists(), reason="needs ../shared/data/agridat")


@pytest.fixture(scope="module")
def trial():
    return pl.read_csv(FILE, separator="\t", null_values="NA")


def fitted(trial, path, structure):
    return mmgibbs.run(
        {
            "data": {"phenotypes": trial},
            "traits": {"yield": {"by": "county"}},
            "model": {"fixed": {"rep": {}}, "random": {"gen": {}}},
            "variances": {"gen": {"structure": structure}},
            "sampler": {"method": "reml"},
            "output": {"directory": str(path)},
        },
        progress=False,
    )


def test_one_factor(trial, tmp_path):
    result = fitted(trial, tmp_path / "run", "factor_analytic")
    assert result.info["converged"]
    assert result.info["log_likelihood_without_2_pi"] == pytest.approx(-3767.0651, abs=5e-4)
    notes = " ".join(result.info["notes"])
    assert "specific[yield|C2] is on the boundary" in notes and "specific[yield|C5] is on the boundary" in notes
    summary = dict(result.summary.select("parameter", "mean").iter_rows())
    loadings = [summary[f"gen.loading[yield|C{i}:1]"] for i in range(1, 7)]
    assert loadings == pytest.approx([6.603, 6.676, 7.829, 5.340, 8.929, 3.499], abs=2e-3)
    specific = [summary[f"gen.specific[yield|C{i}]"] for i in (1, 3, 4, 6)]
    assert specific == pytest.approx([6.293, 24.81, 1.46, 10.36], abs=0.02)
