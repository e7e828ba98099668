"""Several runs side by side: facts that differ, parameters, correlations and ranks right against the solutions."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from helpers.finished_run import solutions, write_run
from helpers.genomic_run import write_genomic_run
from helpers.html_page import Page, as_number

from mmgibbs.cli import main
from mmgibbs.errors import ConfigError
from mmgibbs.report.compare import columns_words, model_facts, parameter_table, polygenic_words, run_names, signed
from mmgibbs.report.finished import Finished, read_finished
from mmgibbs.report.html_tables import numbers
from mmgibbs.report.make import make_report
from mmgibbs.results.markers import TOTAL

pytestmark = pytest.mark.usefixtures("undrawn")


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    first = write_run(folder / "accounted")
    second = write_run(folder / "ignored", mixed=False, seed=7, inbreeding="ignore")
    moved = solutions(seed=5).with_columns(
        mean=pl.when(pl.col("term") == "genetic")
        .then(pl.col("mean") + solutions(seed=7)["mean"] * 0.3)
        .otherwise("mean")
    )
    moved.filter(pl.col("level") != "cow-0010").write_parquet(second / "solutions.parquet")
    return first, second


@pytest.fixture(scope="module")
def page(runs):
    return Page(make_report(runs, runs[0].parent / "comparison.html"))


def test_facts_that_differ_come_first(page):
    facts = page.table("What was run")
    assert facts["head"] == ["Fact", "Differs", "accounted", "ignored"]
    assert facts["rows"][0][:2] == ["Inbreeding", "yes"] and "ignored" in facts["rows"][0][3]
    assert [row[1] for row in facts["rows"]].count("yes") == 1
    same = {row[0]: row[1:] for row in facts["rows"]}
    assert same["Model of weaning"][1] == "herd + genetic.direct (animal) + genetic.maternal (dam) + residual"
    assert same["Term genetic.maternal"][1:] == ["random effect of dam; related by the pedigree"] * 2
    assert same["Term herd"][0] == "" and "Term residual" not in same


def test_parameters_stand_side_by_side(page, runs):
    rows = {row[0]: row for row in page.table("Parameters")["rows"]}
    name = "genetic.var[direct:weaning]"
    tables = [pl.read_parquet(run / "summary.parquet") for run in runs]
    summaries = [table.filter(parameter=name).row(0, named=True) for table in tables]
    assert [as_number(rows[name][i]) for i in (1, 3)] == pytest.approx([s["mean"] for s in summaries], abs=0.51)
    apart = (summaries[1]["mean"] - summaries[0]["mean"]) / np.mean([s["sd"] for s in summaries])
    assert as_number(rows[name][5].removeprefix("+")) == pytest.approx(apart, abs=0.006) and abs(apart) > 0.5
    assert rows[name][5].startswith("+" if apart > 0 else "\u2212")
    assert page.table("Parameters")["head"][5] == "Run 2 \u2212 run 1, SD"
    assert rows["litter.var[birth]"][-1] == ""  # given, not estimated
    plot = next(p for p in page.plots if p["title"] == f"{name} by run")
    assert re.match(r"Run 1: 89\.9 \(7\d.* to 1\d\d.*\); run 2: ", plot["desc"])


def test_correlations_and_ranks_are_those_of_the_solutions(page, runs):
    values = [
        pl.read_parquet(run / "solutions.parquet")
        .filter(term="genetic", effect="direct", trait="birth")
        .select("level", "mean")
        for run in runs
    ]
    both = values[0].join(values[1], on="level", suffix="_2")
    a, b = both["mean"].to_numpy(), both["mean_2"].to_numpy()
    ranks = [np.argsort(np.argsort(-v)) + 1 for v in (a, b)]
    pearson, spearman = (np.corrcoef(x, y)[0, 1] for x, y in ((a, b), ranks))
    kept = np.count_nonzero((ranks[0] <= 20) & (ranks[1] <= 20))
    told = next(p["desc"] for p in page.plots if p["title"].endswith("direct, birth"))
    correlated = f"159 animals in both runs: correlation {pearson:.4f}, of the ranks {spearman:.4f}."
    assert told.startswith(f"{correlated} {kept} of the 20 highest of run 1")
    shown = page.table("direct, birth: animals among the 20 highest")
    assert len(shown["rows"]) == 40 - kept
    for row in shown["rows"]:
        i = both["level"].to_list().index(row[1])
        assert (int(row[0]), int(row[4]), as_number(row[5])) == (ranks[0][i], ranks[1][i], ranks[0][i] - ranks[1][i])


def test_runs_of_one_name_are_told_apart_by_their_folders(runs, tmp_path):
    first, second = (read_finished(run) for run in runs)
    assert run_names([first, second]) == ["accounted", "ignored"]
    assert run_names([first, first]) == ["accounted (1)", "accounted (2)"]
    (runs[1] / "run.json").write_text(json.dumps(second.record | {"name": "other"}))
    assert run_names([first, read_finished(runs[1])]) == ["calves", "other"]
    (runs[1] / "run.json").write_text(json.dumps(second.record))


def test_the_command_compares_in_the_working_directory(runs, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["report", *map(str, runs)]) == 0
    assert capsys.readouterr().out == "written to comparison.html\n" and (tmp_path / "comparison.html").is_file()
    with pytest.raises(ConfigError, match="is not the folder of a finished run"):
        make_report([runs[0], tmp_path])


def test_differences_are_signed_and_explained():
    assert [n.text for n in signed(numbers([0.5, -0.5, 0.001, 0.0], 2))] == ["+0.50", "\u22120.50", "0.00", "0.00"]
    means = [(1.0, 5.0), (2.0, 5.5), (-1.0, 5.2)]
    same = {"parameter": ["a", "b"], "sd": 1.0, "rhat": 1.0}
    summaries = [pl.DataFrame(same | dict.fromkeys(("mean", "hpd_low", "hpd_high"), m)) for m in means]
    runs = [Finished(Path(f"{i}"), {}, summary) for i, summary in enumerate(summaries)]
    table = parameter_table(runs, ["one", "two", "three"])
    assert table.columns[-1].label.startswith("Farthest run \u2212 run 1")
    assert [row[-1].value for row in table.rows] == pytest.approx([-2.0, 0.5])
    runs[0] = replace(runs[0], summary=runs[0].summary.filter(parameter="b"))
    table = parameter_table(runs, ["one", "two", "three"])
    apart = {row[0]: row[-1].value for row in table.rows}  # run 1 has no a to differ from
    assert apart["b"] == pytest.approx(0.5) and apart["a"] is None
    in_sd = "difference of the means in posterior standard deviations (SD)."
    assert columns_words([True, True]) == f"Run 2 \u2212 run 1, SD: {in_sd}"
    mixed = columns_words([True, False])
    assert mixed.startswith("SE: standard error, ") and "posterior standard deviations (SD) and SEs." in mixed
    in_se = "difference of the estimates in standard errors (SE)."
    assert columns_words([False] * 3).endswith(f"Farthest run \u2212 run 1, SE: {in_se}")


def test_polygenic_values_are_not_compared_as_breeding_values(runs, tmp_path):
    """A run with SNP effects has but a part of the breeding values in its pedigree term."""
    run = write_genomic_run(tmp_path / "chip")
    told = make_report([run, run], tmp_path / "comparison.html").read_text(encoding="utf-8")
    assert polygenic_words([1, 2]) in told and polygenic_words([]) == ""
    assert polygenic_words([2]).startswith(" In run 2 these are polygenic values")
    plain = shutil.copytree(run, tmp_path / "plain")
    solutions = pl.read_parquet(plain / "solutions.parquet")
    solutions.filter(pl.col("effect") != TOTAL).write_parquet(plain / "solutions.parquet")
    told = make_report([plain, run], tmp_path / "comparison.html").read_text(encoding="utf-8")
    assert polygenic_words([2]) in told and polygenic_words([1]) not in told


def test_given_variances_have_no_differences_in_errors(runs):
    """Those of BLUP."""
    blank = [pl.lit(None, pl.Float64).alias(c) for c in ("sd", "hpd_low", "hpd_high")]
    given = [replace(run, summary=run.summary.with_columns(blank)) for run in map(read_finished, runs)]
    table = parameter_table(given, ["one", "two"])
    assert [c.label for c in table.columns] == ["Parameter", "one", "two"] and table.note == ""


def test_curves_of_another_degree_differ(runs, tmp_path):
    record = json.loads((runs[0] / "run.json").read_text())
    effects = record["analysis"]["model"]["random"]["genetic"]["effects"]
    found = []
    for degree in (1, 2):
        effects["maternal"]["legendre"] = {"column": "age", "degree": degree}
        found.append(model_facts(replace(read_finished(runs[0]), record=record))["Term genetic.maternal"])
    assert "up to degree 1" in found[0] and "up to degree 2" in found[1]
