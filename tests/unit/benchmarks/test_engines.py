"""`python -m benchmarks engines` on a small share of the poster's systems:
every figure is there, on a GPU too where there is one.
"""

import json
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import benchmarks.effective
from benchmarks.__main__ import main
from benchmarks.classic import ClassicEngine
from benchmarks.effective import SAMPLED, Mixing, sweeps_that_fit
from benchmarks.engines import one_system

ESS = "ESS/s, genetic variances (least)", "ESS/s, breeding values (median)"


def test_every_engine_has_its_figures(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    file = tmp_path / "figures.json"
    command = ["engines", "--scale", "0.001", "--sweeps", "1", "--ess-sweeps", "20", "--json", str(file)]
    assert main(command) == 0
    assert "ESS/s" in capsys.readouterr().out
    figures = json.loads(file.read_text())
    rows = {row["engine"]: row for row in figures["small: engines"]}
    ours = [name for name in rows if "poster" not in name and "GPU" not in name]
    assert len(ours) == 4
    for name in ours:
        assert all(rows[name][column] > 0 for column in ("bytes", "s per sample", SAMPLED, *ESS))
    for name in ("hybrid on a GPU", "structured on a GPU"):
        assert rows[name]["s per sample"] == "not measured" and not {"of classic", *ESS} & set(rows[name])
    assert figures["small: GPU"].startswith("device: gpu needs CuPy")
    assert figures["small: sweeps behind ESS, levels, interwoven"] == 20


def test_an_engine_that_does_not_fit_says_what_it_needs(monkeypatch):
    monkeypatch.setattr("benchmarks.engines.free_bytes", lambda: 1000)
    args = SimpleNamespace(scale=0.0005, seed=1, sweeps=1, ess_sweeps=0, engines=["structured"])
    _, rows = one_system("small", args, classic=ClassicEngine)
    assert rows[0]["s per sample"] == "not run: about 0.0 GB needed, 0.0 GB free"
    assert rows[1]["s per sample"] > 0 and "of classic" not in rows[1] and SAMPLED not in rows[1]


@pytest.mark.parametrize("seconds, sweeps", [(1e-4, 2000), (0.5, 120), (10.0, 50)])
def test_a_chain_takes_about_a_minute(seconds, sweeps):
    assert sweeps_that_fit(seconds) == sweeps


def test_effective_draws_per_second(monkeypatch):
    rng = np.random.default_rng(3)
    n = 2000
    watched = SimpleNamespace(draws=rng.normal(size=(n, 3, 2)))
    result = SimpleNamespace(draws={"G.1": rng.normal(size=(n, 2, 2))}, tracked={"levels.genetic": watched})
    monkeypatch.setattr(benchmarks.effective, "sample_chain", lambda *_: result)
    monkeypatch.setattr(benchmarks.effective, "terms_to_interweave", lambda *_: ())
    found = benchmarks.effective.mixing(SimpleNamespace(random_terms=[1]), None, True, (1, 0), n)
    assert found.of_variances == pytest.approx(1.0, abs=0.15) and found.of_values == pytest.approx(1.0, abs=0.15)
    assert Mixing(n, 0.5, 0.25).per_second(0.1) == {SAMPLED: 0.1, ESS[0]: 5.0, ESS[1]: 2.5}


def test_genomic_relationships_are_measured(tmp_path):
    file = tmp_path / "figures.json"
    command = f"relationships --sizes 150x300 --sweeps 2 --pcg --animals 600 --threads 2 --json {file}"
    assert main(command.split()) == 0
    rows = json.loads(file.read_text())["single-step"]
    assert len(rows) == 2
    assert all(row["ms a sweep"] > 0 and row["iterations of PCG"] > 1 for row in rows)
    assert rows[-1]["s of its inverse"] > 0 and rows[-1]["error"] < 1e-6
