"""Draws as a table: every draw of every chain, from a mixed model and a regression, and what is refused."""

import numpy as np
import polars as pl
import pytest
from helpers.finished_run import write_run

from mmgibbs.cli import main
from mmgibbs.errors import ConfigError
from mmgibbs.exchange.draws_write import draws_frame, export_draws
from mmgibbs.report.finished import read_finished


@pytest.mark.parametrize("mixed", [True, False])
def test_the_table_has_every_draw(tmp_path, mixed, capsys):
    run = write_run(tmp_path / "run", mixed=mixed)
    assert main(["export", "--format", "draws", str(run)]) == 0
    assert capsys.readouterr().out == f"written to {tmp_path / 'run-draws'}\n"
    table = pl.read_parquet(tmp_path / "run-draws" / "draws.parquet")
    expected = read_finished(run).draws
    assert len(expected) >= 4
    assert table.columns == ["chain", "draw", *expected]
    chains, kept = next(iter(expected.values())).shape
    assert table.height == chains * kept
    assert table["chain"].to_list() == [chain for chain in range(1, chains + 1) for _ in range(kept)]
    for name, values in expected.items():
        second = table.filter(chain=2).sort("draw")[name].to_numpy()
        assert np.array_equal(second, values[1])
    from_csv = pl.read_csv(tmp_path / "run-draws" / "draws.csv", infer_schema_length=None)
    assert from_csv.equals(table), "every digit"


def test_what_is_refused(tmp_path, capsys):
    run = write_run(tmp_path / "run")
    export_draws(run, tmp_path / "out")
    assert main(["export", "--format", "draws", str(run), "--output", str(tmp_path / "out")]) == 2
    assert "holds draws (draws.csv, draws.json, draws.parquet)" in capsys.readouterr().err
    export_draws(run, tmp_path / "out", overwrite=True)
    with pytest.raises(ConfigError, match="is the folder of a run"):
        export_draws(run, run)
    with pytest.raises(ConfigError, match="export: .*nothing"):
        export_draws(tmp_path / "nothing")
    with pytest.raises(ConfigError, match=r"expected a run with draws \(method: gibbs\), got one of method reml"):
        export_draws(write_run(tmp_path / "reml", method="reml"))
    (run / "draws.nc").unlink()
    with pytest.raises(ConfigError, match="export: "):
        export_draws(run, tmp_path / "other")


def test_parameters_that_are_called_as_the_numbers():
    assert draws_frame({"chain": np.zeros((2, 3)), "b": np.ones((2, 3))}).columns == ["chain", "draw", "chain_", "b"]
