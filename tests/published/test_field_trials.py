"""Field trials with a trend that others analysed: their estimates, to the digits that they print."""

import numpy as np
import polars as pl
from helpers.support import shared_data

import mmgibbs


def test_slate_hall_model_4(tmp_path):
    """Gilmour, Cullis & Verbyla (1997), Table 2, model 4, as agridat's help page fits it by ASReml.

    AR1 x AR1 has no nugget: a residual variance of next to nothing stands for it. ASReml's log likelihood is that of
    the covariate as it is; the logarithm of its standard deviation is between that and this program's.
    """
    records = pl.read_csv(shared_data("data/agridat/gilmour.slatehall.txt"), separator="\t")
    run = mmgibbs.run(
        {
            "data": {"phenotypes": records},
            "traits": ["yield"],
            "model": {
                "fixed": {"gen": {}, "trend": {"column": "row", "kind": "covariate"}},
                "random": {
                    "col": {},
                    "row": {},
                    "field": {"relationship": {"kind": "ar1", "row": "row", "column": "col"}},
                },
            },
            "variances": {"residual": {"start": 0.001, "fixed": True}},
            "sampler": {"method": "reml"},
            "output": {"directory": str(tmp_path / "run")},
        }
    )
    found = dict(run.summary.select("parameter", "mean").iter_rows())
    names = ("col.var[yield]", "row.var[yield]", "field.var[yield]", "field.rho[column]", "field.rho[row]")
    printed = [2518.9, 20292.8, 23945.4, 0.4391, 0.1246]
    digits = np.array([0.05, 0.1, 0.1, 1e-4, 1e-4])
    assert np.all(np.abs(np.array([found[name] for name in names]) - printed) <= digits)
    log_likelihood = run.info["log_likelihood_without_2_pi"] - np.log(np.std(records["row"].to_numpy()))
    np.testing.assert_allclose(log_likelihood, -716.1663, atol=5e-5)
    cells = run.solutions.filter(term="field")
    assert cells["level"].to_list()[:2] == ["1:1", "1:2"]
    assert cells.height == 150


def test_linear_variances_of_an_alpha_design(tmp_path):
    """Piepho & Williams (2010): a random walk has the contrasts of linear variances; the deviance is LMMsolver's."""
    run = mmgibbs.run(
        {
            "data": {"phenotypes": pl.read_csv(shared_data("data/agridat/john.alpha.txt"), separator="\t")},
            "traits": ["yield"],
            "model": {
                "fixed": {"rep": {}, "gen": {}},
                "random": {"line": {"relationship": {"kind": "random_walk", "order": 1, "of": "row", "within": "rep"}}},
            },
            "sampler": {"method": "reml"},
            "output": {"directory": str(tmp_path / "run")},
        },
        progress=False,
    )
    assert round(-2 * run.info["log_likelihood"], 2) == 54.49
