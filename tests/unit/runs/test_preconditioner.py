"""`sampler.preconditioner`: what auto takes, what is said of it, what it does not go with."""

import numpy as np
import pytest
from helpers.small_analysis import ANALYSIS, command, refused, write_files

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
