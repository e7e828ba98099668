"""`mmgibbs bench evaluation`: where the time of a sweep goes, step by step."""

import json

import pytest
from helpers.support import ROOT

from mmgibbs.cli import main


def figures_of(name, tmp_path, *more):
    file = tmp_path / "figures.json"
    config = str(ROOT / "configs" / f"{name}.yaml")
    assert main(["bench", "evaluation", config, "--sweeps", "4", "--json", str(file), *more]) == 0
    return json.loads(file.read_text())


def test_every_step_has_its_milliseconds_and_bytes(tmp_path, capsys):
    found = figures_of("beef", tmp_path)
    assert "milliseconds per sweep" in capsys.readouterr().out
    assert found["milliseconds per sweep"] > 0 and found["sweeps"] == 4 and found["equations"] == 15_195
    steps = {row["step"]: row for row in found["steps of a sweep (medians)"]}
    terms = ("genetic", "maternal_environment")
    assert list(steps) == [
        "location effects",
        *(f"covariance of {term}" for term in terms),
        *(f"interweaving of {term}" for term in terms),
        "residual covariance",
        "recording of a kept draw",
    ]
    assert all(row["ms"] > 0 for row in steps.values())
    kept = steps.pop("recording of a kept draw")
    assert "MB" not in kept and steps["location effects"]["MB"] == max(row["MB"] for row in steps.values())


def test_values_of_the_file_may_be_set(tmp_path):
    found = figures_of("beef", tmp_path, "--set", "sampler.interweave=false", "--set", "sampler.engine=serial")
    assert found["engine"].startswith("serial")
    assert not any("interweaving" in row["step"] for row in found["steps of a sweep (medians)"])


@pytest.mark.parametrize(
    ("name", "more", "steps"),
    [
        ("disease", (), {"liabilities of pneumonia", "scale prior of animal", "variances on the observed scale"}),
        ("genomic", (), {"SNP effects of snps on birth_weight"}),
        ("selfing", ("--set", "sampler.engine=marginal"), {"variances, location effects integrated out"}),
    ],
)
def test_every_step_is_named_in_words(tmp_path, name, more, steps):
    found = {row["step"] for row in figures_of(name, tmp_path, *more)["steps of a sweep (medians)"]}
    assert steps <= found
    assert not any(step.isidentifier() for step in found), "the name of a class"
