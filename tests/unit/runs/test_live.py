"""The page while a run works: what it shows, where it goes when the run ends, and that it touches no run."""

import gc
import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from helpers.html_page import Page
from helpers.small_analysis import ANALYSIS, replaced, write_files

import mmgibbs
from mmgibbs.posterior.summary import summary_table
from mmgibbs.report import make, running
from mmgibbs.report.running import ChainProgress, Running, write_running
from mmgibbs.results.reading import RunFiles
from mmgibbs.results.tables import summary_frame
from mmgibbs.runs import live
from mmgibbs.runs.checkpoints import Checkpoints
from mmgibbs.runs.live import LivePage, together
from mmgibbs.runs.mixed_model import MixedModelProblem
from mmgibbs.runs.progress_file import Position
from mmgibbs.sampler.schedule import Schedule

GIBBS = replaced(ANALYSIS, "method: blup", "chains: 1, burn_in: 20, samples: 1000, thin: 2, checkpoint_every: 200")
for matrix in ("[[6, 8], [8, 90]]", "[[9, 10], [10, 160]]"):
    GIBBS = replaced(GIBBS, matrix, f"{{start: {matrix}, prior: {{df: 5, scale: {matrix}}}}}")


# ------------------------------------------------------------------------------------------------ draws so far


def test_chains_of_unequal_length_are_cut_to_what_leaves_most():
    chain = lambda n, first: {"G": np.arange(first, first + n)}
    found = together([chain(100, 0), chain(3, 0), chain(90, 1000)])
    assert found["G"].shape == (2, 90) and found["G"][1, 0] == 1000
    assert together([chain(4, 0), chain(0, 0)])["G"].shape == (1, 4)
    assert together([]) == together([{}]) == together([chain(0, 0)]) == {}


# ------------------------------------------------------------------------------------------------ the page itself


def facts(n=100, **more):
    random = np.random.default_rng(3)
    draws = {f"h2[<{t}>]": random.normal(0.3, 0.02, (3, n)) for t in ("birth", "weaning")} if n else {}
    summary = summary_frame(summary_table(draws)) if n else None
    chains = [ChainProgress(f"chain {c + 1}", sweep, 1200) for c, sweep in enumerate((700, 650, 0))]
    return Running("calves", "2026-01-02 03:04:05", 200, chains, draws=draws, summary=summary, **more)


def test_a_running_page_shows_traces_and_loads_itself(tmp_path):
    page = Page(write_running(facts(left="0:12:30 left, done about 16:40 UTC"), tmp_path / "report.html"))
    assert "As of <time>2026-01-02 03:04:05</time> UTC" in page.text
    assert "Running" in page.text and "0:12:30 left" in page.text and "location.reload()" in page.text
    assert "From the first 100 kept draws of 3 chains" in page.text and "sweep 700 of 1,200" in page.text
    assert {p["title"] for p in page.plots} == {"Trace of h2[<birth>]", "Trace of h2[<weaning>]"}
    assert all("R-hat is" in p["desc"] for p in page.plots) and len(page.plots) == 2
    assert len(page.column("Heritabilities", "R-hat")) == 2
    assert "mix worst come first" in page.text and page.text.count(", ESS ") == 2
    assert page.links in ([], ["data:,"]) or all(link.startswith(("#", "data:")) for link in page.links)


def test_one_chain_has_no_column_of_r_hat(tmp_path):
    one = facts()
    draws = {name: values[:1] for name, values in one.draws.items()}
    one = replace(one, draws=draws, summary=summary_frame(summary_table(draws)))
    page = Page(write_running(one, tmp_path / "report.html"))
    assert "R-hat" not in page.table("Heritabilities")["head"] and "ESS bulk" in page.table("Heritabilities")["head"]
    assert "of 1 chain;" in page.text and "R-hat needs two chains." in page.text
    several = Page(write_running(facts(), tmp_path / "several.html"))
    assert "R-hat needs two chains" not in several.text


def test_before_there_are_draws(tmp_path):
    page = Page(write_running(facts(0), tmp_path / "report.html"))
    assert "No draws yet" in page.text and "time left: not known yet" in page.text and page.plots == []
    few = Page(write_running(facts(running.FEWEST - 1), tmp_path / "few.html"))
    assert few.plots == []


def test_a_stopped_page_stays_as_it_is(tmp_path):
    page = Page(write_running(facts(stopped="stopped by SIGINT; continue with --resume"), tmp_path / "report.html"))
    assert "location.reload" not in page.text and "stopped by SIGINT" in page.text and ">Running<" not in page.text


# ------------------------------------------------------------------------------------------------ beside a run


class Factory:
    names, labels, schedule = ("chain-1",), ("chain 1",), Schedule(10, 100, chains=1)

    def keys_of_draws(self, keys):
        return [key for key in keys if key.startswith("draws.")]

    def kept_draws(self, state):
        return [{key.removeprefix("draws."): values for key, values in state.items()}]


@pytest.fixture
def beside(tmp_path, monkeypatch):
    monkeypatch.setattr(live, "FIRST", 0.02)
    monkeypatch.setattr(live, "LOOK", 0.02)
    monkeypatch.setattr(live, "SHARE", 1.0)
    (tmp_path / "checkpoint").mkdir()
    kept, said = Checkpoints(tmp_path / "checkpoint", ""), []
    page = LivePage(tmp_path, "calves", Factory(), kept, lambda draws: draws, said.append)
    return SimpleNamespace(page=page, path=tmp_path / "report.html", kept=kept, said=said)


def until(condition, seconds=20.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def save(kept, n):
    values = np.random.default_rng(n).normal(size=n)
    kept.write("chain-1", {"draws.h2[y]": values, "theta": np.zeros(5)}, {"sweep": n})


def test_every_checkpoint_is_a_page(beside):
    heard = []
    show = beside.page.forward_to(lambda chain, position: heard.append(chain))
    with beside.page:
        until(beside.path.exists)
        assert "No draws yet" in beside.path.read_text()
        show(0, Position(5))
        show(0, Position(40))
        save(beside.kept, 30)
        until(lambda: "first 30 kept draws" in beside.path.read_text())
        assert "sweep 40 of 110" in beside.path.read_text() and "left, done about" in beside.path.read_text()
        save(beside.kept, 60)
        until(lambda: "first 60 kept draws" in beside.path.read_text())
    assert heard == [0, 0] and beside.said == []


def test_a_page_is_dated_in_utc(beside, monkeypatch):
    """As that of a finished run, whatever the zone of the machine."""
    monkeypatch.setattr(time, "gmtime", lambda *_: time.struct_time((2026, 1, 2, 3, 4, 5, 4, 2, 0)))
    assert beside.page._running("").at == "2026-01-02 03:04:05"


def test_a_run_that_ends_early_says_so(beside):
    with beside.page:
        until(beside.path.exists)
    beside.page.ended_early("stopped by SIGINT; continue with --resume", True)
    assert "stopped by SIGINT" in beside.path.read_text() and "location.reload" not in beside.path.read_text()
    beside.page.ended_early("stopped", False)
    assert not beside.path.exists()  # as nothing of the run is kept


def test_the_page_of_a_finished_run_stays_meanwhile(beside, tmp_path):
    (tmp_path / "run.json").write_text("{}")
    beside.path.write_text("finished")
    page = LivePage(tmp_path, "calves", Factory(), beside.kept, lambda draws: draws, beside.said.append)
    with page:
        until((tmp_path / "running.html").exists)
    page.ended_early("stopped by SIGINT", True)
    assert "stopped by SIGINT" in (tmp_path / "running.html").read_text()
    page.ended_early("stopped", False)
    assert beside.path.read_text() == "finished" and not (tmp_path / "running.html").exists()


# ------------------------------------------------------------------------------------------------ a run


@pytest.fixture
def quick(monkeypatch):
    for name, value in (("FIRST", 0.0), ("LOOK", 0.0), ("SHARE", 1.0), ("AGAIN", 0.0)):
        monkeypatch.setattr(live, name, value)
    pages, write = [], running.write_running

    def written(facts, path):
        pages.append(facts)
        return write(facts, path)

    monkeypatch.setattr(running, "write_running", written)
    return pages


def test_a_run_with_a_page_has_the_same_draws(tmp_path, quick):
    write_files(tmp_path / "a", {"analysis.yaml": GIBBS})
    file = tmp_path / "a" / "analysis.yaml"
    plain = mmgibbs.run(file, directory=tmp_path / "plain", progress=False)
    assert quick == [] and not (plain.directory / "report.html").exists()
    paged = mmgibbs.run(file, directory=tmp_path / "paged", progress=False, report=True)
    assert plain.summary.equals(paged.summary) and plain.solutions.equals(paged.solutions)
    assert quick and all(page.chains[0].total == 1020 for page in quick)
    assert all(isinstance(page.summary, pl.DataFrame) for page in quick if page.draws)
    text = (paged.directory / "report.html").read_text()
    assert "location.reload" not in text and "Finished " in text


@pytest.mark.slow
def test_a_regression_has_a_page_too(tmp_path, quick, monkeypatch):
    monkeypatch.setattr(live, "MOST_PARAMETERS", 3)
    random = np.random.default_rng(1)
    table = pl.DataFrame({f"x{j}": random.normal(size=40) for j in range(4)} | {"y": random.normal(size=40)})
    model = {"plugin": "bayesian_lasso", "response": "y", "predictors": "x*"}
    sampler = {"chains": 2, "burn_in": 10, "samples": 3000, "checkpoint_every": 500}
    mmgibbs.run(
        {"data": {"phenotypes": table}, "model": model, "sampler": sampler},
        directory=tmp_path / "lasso", progress=False, report=True,
    )  # fmt: skip
    drawn = [page for page in quick if page.draws]
    assert drawn and list(drawn[-1].draws)[:3] == ["intercept", "sigma2", "lambda"] and drawn[-1].left_out == 4
    assert drawn[-1].kept[0] == 2


def test_a_run_whose_page_fails_is_a_run(tmp_path, quick, monkeypatch, capsys):
    monkeypatch.setattr(running, "write_running", lambda *_: 1 / 0)
    write_files(tmp_path / "a", {"analysis.yaml": GIBBS})
    result = mmgibbs.run(tmp_path / "a" / "analysis.yaml", directory=tmp_path / "run", report=True)
    assert result.summary.height and (result.directory / "report.html").exists()
    assert capsys.readouterr().err.count("no page while it runs: ZeroDivisionError") == 1


def test_the_page_at_the_end_holds_neither_data_nor_a_second_table_of_solutions(tmp_path, monkeypatch):
    """Of ten million animals each has gigabytes."""
    write_files(tmp_path)
    (tmp_path / "analysis.yaml").write_text(replaced(GIBBS, "samples: 1000", "samples: 100"))
    problems, read, page = [], [], make.report_after_run
    of_file = RunFiles.table_if_any

    def at_the_end(*of_run):
        problems.extend(o for o in gc.get_objects() if type(o) is MixedModelProblem and str(tmp_path) in repr(o))
        monkeypatch.setattr(RunFiles, "table_if_any", lambda run, name: read.append(name) or of_file(run, name))
        return page(*of_run)

    monkeypatch.setattr(make, "report_after_run", at_the_end)
    result = mmgibbs.run(tmp_path / "analysis.yaml", directory=tmp_path / "run", progress=False, report=True)
    assert problems == [] and "animals.parquet" in read and "solutions.parquet" not in read
    again = make.make_report([result.directory], tmp_path / "again.html")
    assert "solutions.parquet" in read and again.read_bytes() == (result.directory / "report.html").read_bytes()
