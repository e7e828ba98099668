"""`python -m benchmarks choice`: estimates beside measurements, for a model with a factor and for one without."""

import json

import pytest
from helpers.support import ROOT

from benchmarks import choice
from benchmarks.__main__ import main


def test_estimates_stand_beside_measurements(tmp_path, monkeypatch):
    monkeypatch.setattr(choice, "SECONDS", 0.0)
    file = tmp_path / "figures.json"
    files = [str(ROOT / "configs" / f"{name}.yaml") for name in ("selfing", "calving_ease")]
    assert main(["choice", *files, "--json", str(file)]) == 0
    (rows,) = [found for found in json.loads(file.read_text()).values() if isinstance(found, list)]
    assert [row["auto"] for row in rows] == ["marginal", "structured"]
    for row in rows:
        assert all(row[f"{name}, {how}"] > 0 for name in ("serial", "structured") for how in ("estimated", "measured"))
    assert rows[0]["factor, estimated"] > 0 and rows[0]["factor, measured"] > 0
    assert rows[0]["elements of L"] == 2369 and not {"factor, measured", "elements of L"} & set(rows[1])


def test_the_least_of_what_fits_counts(monkeypatch):
    times = iter([0.0, 0.0, 1.0, 3.0, 2.0, 2.5, 2.6, 9.0])
    monkeypatch.setattr(choice.time, "perf_counter", lambda: next(times))
    monkeypatch.setattr(choice, "SECONDS", 2.8)
    assert choice.least(lambda: None) == pytest.approx(1000 * (2.6 - 2.5))
