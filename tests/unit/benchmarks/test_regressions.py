"""`python -m benchmarks regressions`: tables of measured figures; what cannot be measured says why."""

import json

from benchmarks import regressions
from benchmarks.__main__ import main


def test_tables_and_what_was_not_measured(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(
        regressions._TABLES, "horseshoe", lambda args: regressions._with_data(args, "covertype_cover", None)
    )
    file = tmp_path / "figures.json"
    assert main(["regressions", "--parts", "lasso", "horseshoe", "--threads", "1", "--json", str(file)]) == 0
    figures = json.loads(file.read_text())
    (row,) = figures["lasso: sweeps"]
    assert row["setting"].startswith("lasso n = 425, p = 1000") and 0 < row["ms per sweep"] <= row["median ms"]
    assert figures["horseshoe: on covertype_cover"] == "not measured: needs --data DIR"
    assert "lasso: sweeps" in capsys.readouterr().out


def test_a_data_set_that_is_not_there_is_named(tmp_path, capsys):
    assert main(["regressions", "--parts", "hmc", "--data", str(tmp_path)]) == 2
    assert "--data: found no folder 'mnist'" in capsys.readouterr().err
