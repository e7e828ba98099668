"""Making the page: by `mmgibbs report`, after a run, and of what is no finished run."""

import re

import pytest
from helpers.finished_run import write_run
from helpers.html_page import Page

from mmgibbs import open_run
from mmgibbs.cli import main
from mmgibbs.errors import ConfigError
from mmgibbs.report import make, plots, render
from mmgibbs.report.page import write_report


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return write_run(tmp_path_factory.mktemp("report") / "calves")


def test_missing_libraries_are_told_and_the_run_stays(run, monkeypatch, capsys):
    monkeypatch.setattr(render, "LIBRARIES", ("matplotlib_of_the_future", "jinja2"))
    said = []
    assert make.report_after_run(run, said.append) is None
    (text,) = said
    assert "found no matplotlib_of_the_future" in text and "the run is complete" in text
    assert "pip install matplotlib_of_the_future, then mmgibbs report" in text
    assert main(["report", str(run)]) == 2
    assert "found no matplotlib_of_the_future" in capsys.readouterr().err


@pytest.mark.parametrize("method", ["save_figures", "plot_trace", "plot_posterior", "plot_breeding_values"])
def test_a_result_without_the_libraries_says_what_to_install(run, monkeypatch, method):
    monkeypatch.setattr(render, "LIBRARIES", ("matplotlib_of_the_future",))
    draw = getattr(open_run(run), method)
    with pytest.raises(ConfigError, match=f"^{method}: found no matplotlib_of_the_future; needed: pip install "):
        draw()


def test_a_page_that_fails_costs_no_run(run, monkeypatch):
    monkeypatch.setattr(plots, "paint_histogram", lambda values: 1 / 0)
    said = []
    assert make.report_after_run(run, said.append) is None
    assert "ZeroDivisionError" in said[0]


def test_the_command_writes_where_it_is_told(tmp_path, capsys):
    run = write_run(tmp_path / "run", trend=False)
    (run / "draws.nc").unlink()
    assert main(["report", str(run), "--output", str(tmp_path / "my page.html"), "--top", "3"]) == 0
    assert capsys.readouterr().out == f"written to {tmp_path / 'my page.html'}\n"
    assert len(Page(tmp_path / "my page.html").column("direct, birth: the 3 highest", "Animal")) == 3
    assert main(["report", str(run), "--output", str(tmp_path / "nowhere" / "page.html")]) == 2
    assert "cannot write" in capsys.readouterr().err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["my page.html", "run"]


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda d: (d / "run.json").unlink(), "is not the folder of a finished run: found no run.json"),
        (lambda d: (d / "run.json").write_text("{"), "run.json' cannot be read"),
        (lambda d: (d / "run.json").write_text("[]"), "holds no run"),
        (lambda d: (d / "solutions.parquet").write_bytes(b"PAR1"), "solutions.parquet' cannot be read"),
        (lambda d: (d / "draws.nc").write_bytes(b"nothing"), "draws.nc' cannot be read"),
    ],
)
def test_what_is_no_finished_run_is_refused(tmp_path, spoil, message):
    run = write_run(tmp_path / "run", trend=False)
    spoil(run)
    with pytest.raises(ConfigError, match=re.escape(message)):
        write_report(run)
