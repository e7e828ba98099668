"""`factors: auto` from the analysis file to the run folder."""

import numpy as np
import polars as pl
import pytest
from unit.runs.test_reduced_rank import SHORT, simulate

import mmgibbs
from mmgibbs.errors import ConfigError
from mmgibbs.report.make import make_report

AUTO = {"kind": "factor_analytic", "factors": "auto"}


def analysis(table, path, structure=AUTO, **sampler):
    return {
        "data": {"phenotypes": table},
        "traits": {"y": {"by": "site"}},
        "model": {"random": {"line": {}}},
        "variances": {"line": {"structure": structure}},
        "sampler": sampler,
        "output": {"directory": str(path)},
    }


@pytest.mark.slow
def test_the_number_is_found(tmp_path):
    factors = 2
    config = analysis(simulate(1, factors, 0.3), tmp_path / "run", chains=1, burn_in=100, samples=200, thin=1, seed=1)
    result = mmgibbs.run(config, progress=False)
    values = dict(result.summary.select("parameter", "mean").iter_rows())
    probabilities = [values[f"line.factors[{j}]"] for j in range(3)]
    assert sum(probabilities) == pytest.approx(1.0) and probabilities[factors] > 0.9
    assert values["line.factors"] == pytest.approx(probabilities[1] + 2 * probabilities[2])
    assert values["line.explained[1]"] > values["line.explained[2]"] > values["line.explained[3]"]
    page = make_report([result.directory], tmp_path / "page.html").read_text(encoding="utf-8")
    assert "factor-analytic with a number of factors drawn" in page
    said = page.partition("Posterior probability of the number of active factors: ")[2][:80]
    assert said.startswith("0 active: 0") and "1 active: " in said, said


def test_engines_give_the_same_chain_and_a_run_in_pieces_is_the_run_in_one_go(tmp_path):
    table = simulate(1, 1, 0.3)
    serial = mmgibbs.run(analysis(table, tmp_path / "serial", engine="serial", **SHORT), progress=False)
    other = mmgibbs.run(analysis(table, tmp_path / "structured", engine="structured", **SHORT), progress=False)
    for summary in (serial.summary, other.summary):
        assert summary.filter(pl.col("parameter").str.starts_with("line.factors")).height == 4
    np.testing.assert_allclose(other.summary["mean"], serial.summary["mean"], rtol=1e-6, atol=1e-9)
    config = analysis(table, tmp_path / "pieces", engine="serial", **SHORT | {"samples": 9})
    mmgibbs.run(config, progress=False)
    assert mmgibbs.run(config, extend=11, progress=False).summary.equals(serial.summary)


@pytest.mark.parametrize(
    "structure, sampler, said",
    [
        (AUTO, {"method": "reml"}, "factors: found auto, which needs sampler.method: gibbs; needed a number; mmgibbs"),
        (AUTO | {"kind": "reduced_rank"}, SHORT, "factors: expected a number for kind: reduced_rank, got auto"),
        (AUTO | {"kind": "ar1"}, SHORT, "factors: expected no factors for kind: ar1, got auto"),
        (AUTO | {"factors": "some"}, SHORT, "factors: found 'some', needed a whole number above 0, or auto"),
        (AUTO | {"factors": 0}, SHORT, "factors: found 0, needed a whole number above 0, or auto"),
    ],
)
def test_mistakes_are_named(structure, sampler, said, tmp_path):
    with pytest.raises(ConfigError, match=said):
        mmgibbs.run(analysis(simulate(1, 1, 0.3), tmp_path / "run", structure, **sampler), progress=False)


def test_two_components_have_one_factor_at_most(tmp_path):
    table = simulate(1, 1, 0.3).filter(pl.col("site").is_in(["s0", "s1"]))
    with pytest.raises(ConfigError, match="expected at least 3 components for auto, got 2; needed factors: 1"):
        mmgibbs.run(analysis(table, tmp_path / "run", **SHORT), progress=False)
