"""The summary's columns, and draws.nc as others open it."""

import json
import subprocess
import sys

import numpy as np
import pytest
import xarray

from mmgibbs.errors import ModelError
from mmgibbs.posterior.moments import Moments
from mmgibbs.posterior.result import ChainResult, pooled, pooled_by_prefix, posterior_mean, sample_stats, stacked_draws
from mmgibbs.posterior.saved import SavedLevels
from mmgibbs.posterior.summary import LevelDraws, summary_table, write_draws

RNG = np.random.default_rng(7)
PARAMETERS = {
    name: RNG.normal(size=(4, 30))
    for name in ("genetic.var[direct:gain/day]", "genetic.cov[direct:a,maternal:a]", "h2[a]")
}


def test_columns_of_the_contract():
    table = summary_table(
        PARAMETERS | {"residual.var[a]": np.ones((4, 30)), "one": np.ones((1, 1))}, fixed=frozenset({"one"})
    )
    assert list(table) == [
        "parameter",
        "mean",
        "median",
        "sd",
        "mcse",
        "ess_bulk",
        "ess_tail",
        "rhat",
        "hpd_low",
        "hpd_high",
    ]
    assert list(table["parameter"]) == [*PARAMETERS, "residual.var[a]", "one"]
    assert all(column.dtype == np.float64 for name, column in table.items() if name != "parameter")
    assert table["mean"][0] == pytest.approx(PARAMETERS["genetic.var[direct:gain/day]"].mean())
    assert (
        table["sd"][3:].tolist() == [0.0, 0.0]
        and np.isnan(table["mcse"][3:]).all()
        and np.isfinite(table["rhat"][:3]).all()
    )


def test_draws_open_as_a_data_tree_of_the_contract(tmp_path):
    path, ids = tmp_path / "draws.nc", ["007", "b/c", "Ä"]
    draws = RNG.normal(size=(4, 30, 3, 2)).astype(np.float32)
    genetic = LevelDraws(draws, ids, ["direct:a", "maternal:a"])
    attributes = {"name": "beef", "seed": 42, "sampler": {"thin": 10}, "done": True, "device": None, "empty": ""}
    write_draws(path, PARAMETERS, {"genetic": genetic, "draw": genetic}, {"accepted": np.ones((4, 30))}, attributes)
    with xarray.open_datatree(path, engine="h5netcdf") as tree:
        assert set(tree.children) == {"posterior", "sample_stats"}
        posterior = tree["posterior"].dataset
        for name, values in PARAMETERS.items():
            stored = posterior[name.replace("/", "|")]
            assert stored.dims == ("chain", "draw") and stored.attrs["long_name"] == name
            np.testing.assert_array_equal(stored.values, values)
        assert posterior["genetic"].dims == ("chain", "draw", "genetic_level", "genetic_component")
        assert posterior["genetic_level"].values.tolist() == ids
        chosen = posterior["genetic"].sel(genetic_level="b/c", genetic_component="maternal:a")
        np.testing.assert_array_equal(chosen.values, draws[:, :, 1, 1])
        assert posterior["draw_"].attrs["long_name"] == "draw"
        assert (tree["sample_stats"]["accepted"].values == 1).all()
        assert json.loads(tree.attrs["sampler"]) == {"thin": 10}
        assert [tree.attrs[name] for name in ("name", "seed", "done", "device")] == ["beef", 42, "true", "null"]


@pytest.mark.parametrize(
    ("parameters", "term", "words"),
    [
        (("h2[a/b]", "h2[a|b]"), "genetic", r"'h2\[a/b\]' and 'h2\[a\|b\]' would both be called 'h2\[a\|b\]'"),
        (("genetic_level",), "genetic", "'genetic_level' and the levels of 'genetic' would both be called"),
        (("chain", "chain_"), "genetic", "'chain' and 'chain_' would both be called 'chain_'"),
    ],
)
def test_names_that_would_be_one_are_refused(parameters, term, words, tmp_path):
    """One of them was lost, or the dimension of the levels met another variable."""
    draws, levels = np.zeros((2, 5)), LevelDraws(np.zeros((2, 5, 1, 1)), ["1"], ["a"])
    with pytest.raises(ModelError, match=f"draws.nc: {words}"):
        write_draws(tmp_path / "draws.nc", dict.fromkeys(parameters, draws), {term: levels})
    with pytest.raises(ModelError, match=r"draws.nc: 'a/b' and 'a\|b'"):
        write_draws(tmp_path / "draws.nc", {}, sample_stats={"a/b": draws, "a|b": draws})


def saved(draws):
    kept = SavedLevels(0, np.arange(draws.shape[1]))
    kept.restore({"draws": draws})
    return kept


def test_draws_of_several_chains_side_by_side():
    def chain(number):
        full = np.full((5, 2, 2), float(number))
        return ChainResult(
            {"R": full, "G.1": full, "G.2": full[:, :1, :1]},
            Moments([], 5, 1),
            {"levels.genetic": saved(full)},
            sample_stats={"accepted": np.ones(5)},
            chain=number,
            seconds=1.0,
            sweeps=50,
        )

    chains = [chain(0), chain(1), chain(2)]
    found = stacked_draws(chains)
    assert {n: d.shape for n, d in found.items()} == {"R": (3, 5, 2, 2), "G.1": (3, 5, 2, 2), "G.2": (3, 5, 1, 1)}
    assert found["R"][2, 0, 0, 0] == 2
    assert pooled(chains, "levels.genetic").shape == (3, 5, 2, 2) and sample_stats(chains)["accepted"].shape == (3, 5)
    assert list(pooled_by_prefix(chains, "levels.")) == ["genetic"] and pooled_by_prefix(chains, "averages.") == {}
    np.testing.assert_array_equal(posterior_mean(found["G.1"]), np.ones((2, 2)))


def test_importing_the_chains_needs_neither_polars_nor_pydantic_nor_xarray():
    code = (
        "import sys\nfor name in ('polars', 'pydantic', 'xarray', 'arviz_stats'): sys.modules[name] = None\n"
        "import mmgibbs.posterior.result, mmgibbs.posterior.summary, mmgibbs.posterior.parameters"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
