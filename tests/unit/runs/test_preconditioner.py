"""`sampler.preconditioner`: what auto takes, what is said of it, what it does not go with."""

import json

import numpy as np
import polars as pl
import pytest
from helpers.small_analysis import ANALYSIS, command, refused, write_files

import mmgibbs

RUN = ("run", "analysis.yaml", "--no-report")
AGE = "    age: {kind: covariate, traits: [weaning_weight]}\n"


def test_auto_absorbs_where_the_effects_allow_it(tmp_path, monkeypatch):
    monkeypatch.setattr("mmgibbs.engines.coloured.unrolled.UNROLL_FROM", 0)
    found = {}
    for name in ("auto", "absorption", "blocks"):
        folder = tmp_path / name
        folder.mkdir()
        write_files(folder, {"analysis.yaml": ANALYSIS.replace(AGE, "")})
        outcome = command(folder, *RUN, "--set", f"sampler.preconditioner={name}")
        assert outcome.code == 0, outcome.err
        found[name] = outcome
    assert [o.record["preconditioner"] for o in found.values()] == ["absorption", "absorption", "blocks"]
    assert "(5 levels of genetic absorbed)" in found["auto"].err
    assert found["auto"].record["absorbed"] == {"term": "genetic", "levels": 5}
    assert found["blocks"].record["absorbed"] is None
    assert "(diagonal blocks of the levels)" in found["blocks"].err
    assert found["auto"].record["iterations"] < found["blocks"].record["iterations"]
    for column in ("mean", "sd"):
        ours, other = (found[name].solutions[column].to_numpy() for name in ("auto", "blocks"))
        np.testing.assert_allclose(ours, other, rtol=0, atol=1e-9 * np.nanmax(np.abs(other)))


def test_what_cannot_be_absorbed_has_blocks(tmp_path):
    write_files(tmp_path, {})
    assert command(tmp_path, *RUN).record["preconditioner"] == "blocks"
    outcome = command(tmp_path, *RUN, "--overwrite", "--set", "sampler.preconditioner=absorption")
    assert outcome.code != 0
    assert "sampler.preconditioner: found absorption, needed auto or blocks" in outcome.err


@pytest.mark.parametrize("method", ["gibbs", "reml"])
def test_other_methods_are_refused_by_name(tmp_path, method):
    write_files(tmp_path, {})
    message = refused(tmp_path, "--set", "sampler.preconditioner=blocks", "--set", f"sampler.method={method}")
    assert f"sampler.preconditioner: found blocks, which cannot be combined with method: {method}" in message


def cows_with_two_records(cows=60, seed=3):
    """(pedigree, phenotypes): the last third are daughters of the others, all have two records."""
    rng = np.random.default_rng(seed)
    founders = cows - cows // 3
    dam = np.concatenate([np.zeros(founders, int), 1 + rng.integers(0, founders, cows - founders)])
    pedigree = pl.DataFrame({"id": 1 + np.arange(cows), "sire": np.zeros(cows, int), "dam": dam})
    cow = np.repeat(1 + np.arange(cows), 2)
    herd = rng.integers(0, 5, cow.size)
    milk = 30.0 + herd + rng.standard_normal(cows)[cow - 1] + rng.standard_normal(cow.size)
    return pedigree, pl.DataFrame({"animal": cow, "herd": herd, "milk": milk})


PERMANENT = {"permanent_environment": {"level": "animal"}}
WITH_GENETIC = {"genetic": {"relationship": "pedigree", "level": "animal"}, **PERMANENT}


@pytest.mark.parametrize("random", [PERMANENT, WITH_GENETIC])
def test_a_term_all_levels_of_which_are_absorbed(random, tmp_path, monkeypatch):
    monkeypatch.setattr("mmgibbs.engines.coloured.unrolled.UNROLL_FROM", 0)
    pedigree, phenotypes = cows_with_two_records()
    config = {
        "name": "cows",
        "data": {"phenotypes": phenotypes} | ({"pedigree": pedigree} if "genetic" in random else {}),
        "traits": ["milk"],
        "model": {"fixed": {"herd": {}}, "random": random},
        "variances": {"residual": 1.0} | dict.fromkeys(random, 0.8),
        "sampler": {"method": "blup"},
    }
    asked = [("auto", 1), ("auto", 3), ("blocks", 1)]
    found = [
        mmgibbs.run(
            config,
            [f"sampler.preconditioner={name}", f"sampler.threads={threads}"],
            directory=tmp_path / f"{name}{threads}",
            progress=False,
        )
        for name, threads in asked
    ]
    runs = [json.loads((tmp_path / f"{name}{threads}" / "run.json").read_text()) for name, threads in asked]
    assert [run["preconditioner"] for run in runs] == ["absorption", "absorption", "blocks"]
    every = {"term": "permanent_environment", "levels": phenotypes["animal"].n_unique()}
    assert [run["absorbed"] for run in runs] == [every, every, None]
    on_one, on_three, of_blocks = (f.solutions["mean"].to_numpy() for f in found)
    np.testing.assert_array_equal(on_one, on_three)
    np.testing.assert_allclose(on_one, of_blocks, rtol=0, atol=1e-11 * np.abs(of_blocks).max())
