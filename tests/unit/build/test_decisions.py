"""Decisions of a run against the draws of the same run, resumed runs, and what a user may get wrong."""

from __future__ import annotations

import json
import os
import signal
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from helpers.mixed_models import equations_of
from helpers.small_analysis import ANALYSIS, PEDIGREE, command, refused, replaced, write_files
from helpers.support import ROOT, mixed_model
from reference import models
from reference.decisions import from_draws
from unit.sampler.test_recording import FarEngine

import mmgibbs
from mmgibbs.build.decisions import _selected
from mmgibbs.config import criteria, load_config
from mmgibbs.engines.serial import SerialEngine
from mmgibbs.errors import ConfigError
from mmgibbs.posterior.decisions import Decisions, decide
from mmgibbs.posterior.moments import batch_length, batches_per_chain
from mmgibbs.report.page import write_report
from mmgibbs.runs.fingerprint import fingerprint
from mmgibbs.sampler.chain import sample_chain
from mmgibbs.sampler.schedule import Schedule

SAMPLER = {"chains": 2, "burn_in": 10, "samples": 120, "thin": 2, "seed": 3}
BEEF = {
    "name": "beef",
    "data": {key: str(ROOT / f"data_samples/beef/{key}.csv") for key in ("phenotypes", "pedigree")},
    "traits": ["weaning_weight", "yearling_weight"],
    "model": {
        "fixed": {"contemporary_group": {}},
        "random": {
            "genetic": {
                "relationship": "pedigree",
                "effects": {"direct": {"level": "animal"}, "maternal": {"level": "dam", "traits": ["weaning_weight"]}},
            }
        },
    },
    "decisions": {
        "candidates": {"born_after": 2009},
        "top": [1, 7.5],
        "index": {"calf_and_cow": {"yearling_weight": 1.2, "maternal:weaning_weight": 0.5}},
        "rank_interval": 0.8,
    },
    "sampler": SAMPLER,
    "output": {"save_levels": ["genetic"]},
}


@pytest.fixture(autouse=True)
def one_core(monkeypatch):
    """Chains one after another in this process."""
    monkeypatch.setattr("mmgibbs.runs.local.cores", lambda: 1)


def assert_equal_to_stored_draws(run, weights: dict[str, dict[str, float]]) -> None:
    """The tables of a run are what its stored draws say; ranks and probabilities exactly."""
    asked, sampler = run.info["analysis"]["decisions"], run.info["analysis"]["sampler"]
    table, response = (pl.read_parquet(run.directory / f"{name}.parquet") for name in ("decisions", "response"))
    genetic = run.draws["/posterior"]["genetic"]
    planned = sampler["samples"] // sampler["thin"]
    length = batch_length(planned, batches_per_chain(planned, sampler["chains"]))
    for criterion, of in weights.items():
        rows = table.filter(criterion=criterion)
        theta = genetic.sel(genetic_level=rows["level"].to_list())
        scores = sum(w * theta.sel(genetic_component=component).to_numpy() for component, w in of.items())
        gains = response.filter(criterion=criterion)
        stored = from_draws(scores, gains["selected"].to_list(), str(asked["rank_interval"]), length)
        for name in ("rank_low", "rank_median", "rank_high"):
            np.testing.assert_array_equal(rows[name], stored[name])
        for name in ("mean", "sd"):
            np.testing.assert_allclose(rows[name], stored[name], rtol=1e-9)
        for gain in gains.iter_rows(named=True):
            x, truth = f"{gain['top']:g}", stored[gain["selected"]]
            np.testing.assert_array_equal(rows[f"p_top_{x}"], truth["p"])
            np.testing.assert_allclose(rows[f"mcse_top_{x}"], truth["mcse"], rtol=1e-9)
            found = [gain[name] for name in ("by_mean", "by_p_top", "perfect", "perfect_sd")]
            np.testing.assert_allclose(found, [truth[name] for name in ("by_mean", "by_p", "perfect", "perfect_sd")])


WEIGHTS = {
    "weaning_weight": {"direct:weaning_weight": 1.0},
    "yearling_weight": {"direct:yearling_weight": 1.0},
    "calf_and_cow": {"direct:yearling_weight": 1.2, "maternal:weaning_weight": 0.5},
}


# errors by batch means also of these short runs, to compare them
SHORT = ("mmgibbs.posterior.decisions.LONG_ENOUGH", 1)


@pytest.fixture(scope="module")
def beef(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mmgibbs.runs.local.cores", lambda: 1)
        patch.setattr(*SHORT)
        return mmgibbs.run(BEEF, directory=tmp_path_factory.mktemp("beef") / "run", progress=False)


def test_equal_to_stored_draws(beef):
    assert_equal_to_stored_draws(beef, WEIGHTS)
    facts = beef.info["decisions"]
    births = pl.read_parquet(beef.directory / "animals.parquet")["birth"]
    assert facts["candidates"] == (births > 2009).sum() and facts["ranks"] == "exact"
    assert facts["criteria"] == WEIGHTS and facts["selected"] == {
        "1": int(facts["candidates"] * 0.01 + 0.5),
        "7.5": int(facts["candidates"] * 0.075 + 0.5),
    }
    assert {"decisions.csv", "decisions.parquet", "response.csv", "response.parquet"} <= set(beef.info["files"])


def test_only_candidates_are_read_from_an_engine_that_keeps_its_own_moments():
    example = models.example("bivariate_missing")
    model = mixed_model(example.design, example.G, example.R, saved=("genetic",))
    asked = Decisions("genetic", np.array([4, 0, 2]), np.array([[1.0, -0.5]]), (1, 2))
    engine = FarEngine(equations_of(example, "term"))
    result = sample_chain(replace(model, decisions=asked), engine, Schedule(4, 40), (5, 0))
    assert engine.fetched == 0 and engine.own.reads == 2 * 40  # the levels that are saved, the candidates
    stored = from_draws(
        result.tracked["levels.genetic"].draws[None, :, asked.codes] @ asked.weights[0], asked.selected, "0.9", 1
    )
    decided = decide([result.tracked["decisions"]])
    assert np.array_equal(decided.top[0], [stored[1]["p"], stored[2]["p"]])
    assert np.array_equal(decided.rank[:, 0], [stored[f"rank_{name}"] for name in ("low", "median", "high")])


def test_the_page_is_written(beef, tmp_path, monkeypatch):
    """Without its figures, which have tests of their own."""
    monkeypatch.setattr("mmgibbs.report.page.diagnostics", lambda *_: {"items": [], "total": 0, "legend": []})
    monkeypatch.setattr("mmgibbs.report.page.breeding_values", lambda *_: [])
    text = write_report(beef.directory, tmp_path / "page.html").read_text(encoding="utf-8")
    assert 'id="decisions"' in text and "P(best 7.5\u00a0%)" in text and "contain 80\u00a0% of the draws" in text
    assert "calf_and_cow: expected response to selection" in text.replace("<wbr>", "")
    assert "would need the draws of every candidate" in text and "Attained %" in text


DECISIONS = "{top: [10, 40], index: {both: {birth_weight: 2, weaning_weight: 1}}}"
SAMPLED = replaced(ANALYSIS, "method: blup", "chains: 2, burn_in: 4, samples: 30, thin: 2, checkpoint_every: 5")
SAMPLED = replaced(SAMPLED, "variances:\n", f"decisions: {DECISIONS}\nvariances:\n  mode: fixed\n")

BIRTHS = dict(
    zip(
        ["s1", "s2", "d1", "d2", "d3", "c1", "c2", "c3", "c4", "c5"],
        ["2001", "2002", "2001", "0", "2002", "2005", "2006", "2006", "0", "2007"],
    )
)


def notes_of_check(folder, decisions, births=BIRTHS) -> list[str]:
    pedigree = "".join(f"{line},{births.get(line.split(',')[0], 'birth')}\n" for line in PEDIGREE.splitlines())
    write_files(folder, {"analysis.yaml": replaced(SAMPLED, DECISIONS, decisions), "pedigree.csv": pedigree})
    found = mmgibbs.check(folder / "analysis.yaml")
    return [text for text in (*found["notes"], *found["warnings"]) if text.startswith("decisions")]


@pytest.mark.parametrize(
    "births", [BIRTHS, {name: b if b == "0" else f"{b}0630" for name, b in BIRTHS.items()}], ids=["years", "dates"]
)
def test_candidates_by_birth(tmp_path, births):
    """Years after the one that is given; unknown births are told."""
    assert notes_of_check(tmp_path, "{candidates: {born_after: 2005}, top: [10, 50]}", births) == [
        "decisions: 3 candidates of genetic by birth_weight, weaning_weight; ranks are exact",
        "decisions.candidates.born_after: not candidates, without a birth: 2 animals",
    ]


@pytest.mark.parametrize(
    ("candidates", "per_cent", "selected"),
    [(50, 5, 3), (50, 1, 1), (50, 7, 4), (500, 0.7, 4), (1000, 0.149, 1), (3, 50, 2)],
)
def test_a_half_is_rounded_up(candidates, per_cent, selected):
    assert _selected(candidates, per_cent) == selected


def test_equal_numbers_are_told(tmp_path):
    """Ten candidates: 1, 5 and 10 % are the best one."""
    assert notes_of_check(tmp_path, "{}")[1:] == [
        "decisions.top: 1, 5 and 10 % of 10 candidates are all the best one: their columns and rows are the same"
    ]
    assert notes_of_check(tmp_path, "{top: [10, 20, 22, 30]}")[1:] == [
        "decisions.top: 20 and 22 % of 10 candidates are all the best 2: their columns and rows are the same"
    ]
    assert notes_of_check(tmp_path, "{top: [10, 30]}")[1:] == []


def test_a_group_is_no_candidate(tmp_path):
    pedigree = "".join(f"{line},{'origin' if line[:2] == 'id' else 'hill'}\n" for line in PEDIGREE.splitlines())
    grouped = replaced(SAMPLED, "weights: weight}", "weights: weight, groups: {column: origin}}")
    changed = {"analysis.yaml": replaced(grouped, DECISIONS, "{candidates: [c1, hill, c2]}"), "pedigree.csv": pedigree}
    write_files(tmp_path / "analysis", changed)
    assert refused(tmp_path / "analysis").endswith(
        "decisions.candidates: found 'hill', needed ids among the 10 levels of genetic; 'hill' is an "
        "unknown-parent group, "
        "and groups are not candidates"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "c1\n\nx9\nc2\ny8\n",
            "chosen.txt': found 'x9' (row 3), 'y8' (row 5), needed ids among the 10 levels of genetic",
        ),
        (
            "c1\nC2\n c\u20111\n",
            "found 'C2' (row 2), 'c\u20111' (row 3), needed ids among the 10 levels of genetic; genetic has 1 of 2 "
            "such ids in another spelling: 'c2' for 'C2'; write ids in one way in both tables",
        ),
        ("c1\n\nc2\nc1\n", "chosen.txt': found 'c1' twice, in rows 1 and 4, needed every candidate once"),
    ],
)
def test_rows_of_the_file_of_candidates(tmp_path, text, message):
    changed = {"analysis.yaml": replaced(SAMPLED, DECISIONS, "{candidates: {file: chosen.txt}}"), "chosen.txt": text}
    write_files(tmp_path / "analysis", changed)
    assert message in refused(tmp_path / "analysis")


OF_FILE = "{candidates: {file: chosen.txt}, top: [40]}"
SAME = {
    "Windows": b"c1\r\nc2\r\nc3\r\n",
    "byte order mark": "\ufeffc1\nc2\nc3\n".encode(),
    "end of text of DOS": b"c1\nc2\nc3\n\x1a",
    "header": b"Animal_ID\nc1\nc2\nc3\n",
    "blanks and quotes": 'c1 \n\n  "c2"\u00a0\nc3'.encode(),
}
REFUSED = {
    "UTF-16": "c1\nc2\nc3\n".encode("utf-16"),
    "one line": b"c1, c2, c3\n",
    "births": b"c1,2011\nc2,2011\n",
    "a comment": b"# bulls\nc1\nc2\n",
    "a code": b"c1\nc2\nNA\n",
    "nothing": b" \n\n",
    "binary": b"PAR1\x00\x01",
}


@pytest.mark.parametrize("content", SAME.values(), ids=SAME)
def test_spellings_of_a_file_of_candidates(tmp_path, content):
    (tmp_path / "chosen.txt").write_bytes(content)
    assert notes_of_check(tmp_path, OF_FILE)[0].startswith("decisions: 3 candidates of genetic")


@pytest.mark.parametrize("content", REFUSED.values(), ids=REFUSED)
def test_files_that_are_no_candidates(tmp_path, content):
    changed = {"analysis.yaml": replaced(SAMPLED, DECISIONS, OF_FILE), "chosen.txt": content}
    write_files(tmp_path / "analysis", changed)
    assert "candidates" in refused(tmp_path / "analysis")


@pytest.mark.parametrize("candidates", ["all", ["c1", "c2"], {"born_after": 2005.0}, {"file": "chosen.txt"}])
def test_the_resolved_section_is_read_again(candidates):
    resolved = load_config(BEEF | {"decisions": {"candidates": candidates}}).resolved()
    assert resolved["decisions"]["candidates"] == candidates or resolved["decisions"]["candidates"]["file"].endswith(
        "chosen.txt"
    )
    assert resolved["decisions"]["traits"] == BEEF["traits"] and load_config(resolved).resolved() == resolved
    assert "decisions" not in load_config({key: v for key, v in BEEF.items() if key != "decisions"}).resolved()


def test_a_curve_has_no_single_component():
    """Of a random regression an index weighs the coefficients, and stands alone."""
    curve = {"level": "animal", "legendre": {"column": "age", "degree": 1}}
    random = {"genetic": {"relationship": "pedigree", "effects": {"rr": curve}}}
    analysis = BEEF | {"traits": ["weight"], "model": {"random": random}}
    with pytest.raises(
        ConfigError, match="decisions.traits: 'weight' is neither .*; needed one of rr.0:weight, rr.1:weight"
    ):
        load_config(analysis | {"decisions": {}})
    at_birth = {"rr.0:weight": 0.7, "rr.1:weight": -1.2}
    loaded = load_config(analysis | {"decisions": {"index": {"at_birth": at_birth}}})
    assert criteria(loaded.decisions, loaded.model.random["genetic"]) == {"at_birth": at_birth}


def test_a_run_is_told_by_what_the_file_of_candidates_holds(tmp_path):
    what = []
    for name, text in (("a.txt", "c1\nc2\n"), ("b.txt", "c1\nc2\n"), ("c.txt", "c1\nc3\n")):
        (tmp_path / name).write_text(text)
        what.append(fingerprint(load_config(BEEF | {"decisions": {"candidates": {"file": str(tmp_path / name)}}})))
    assert what[0] == what[1] != what[2]


RUN = ("run", "analysis.yaml", "--quiet")


def test_a_resumed_run_counts_every_draw_once(tmp_path, monkeypatch):
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    for folder in (whole, parts):
        write_files(folder, {"analysis.yaml": SAMPLED})
    assert command(whole, *RUN).code == 0
    sweep, seen = SerialEngine.sweep, [0]

    def stopped(engine, *arguments):
        seen[0] += 1
        if seen[0] == 51:  # in the second chain
            os.kill(os.getpid(), signal.SIGTERM)
        return sweep(engine, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(SerialEngine, "sweep", stopped)
        assert command(parts, *RUN).code == 128 + signal.SIGTERM
    assert command(parts, *RUN, "--resume").code == 0
    for name in ("decisions", "response"):
        one, other = (pl.read_parquet(folder / "run" / f"{name}.parquet") for folder in (whole, parts))
        assert one.equals(other, null_equal=True) and one.height
    assert one["selected"].unique().to_list() == [1, 4]
    table = pl.read_parquet(parts / "run" / "decisions.parquet")
    blank = ["mcse", "ess", "mcse_top_10", "mcse_top_40"]
    assert all(table[name].null_count() == table.height for name in blank) and table["sd"].null_count() == 0
    notes = json.loads((parts / "run" / "run.json").read_text())["notes"]
    assert "decisions: MCSE and ESS are left empty: 30 kept draws make batches of 1, needed 8" in " ".join(notes)
    write_files(parts, {"analysis.yaml": replaced(SAMPLED, "top: [10, 40]", "top: [10, 50]")})
    assert "decisions.top" in refused(parts, "--resume")


@pytest.mark.parametrize(
    ("decisions", "message"),
    [
        ("{candidates: [c1, x9, c2, y8]}", "decisions.candidates: found 'x9', 'y8', needed ids among the 10 "
            "levels of genetic"),
        ("{candidates: [c1]}", "decisions.candidates: found 1 of them, needed at least two"),
        ("{candidates: []}", "decisions.candidates: found an empty list, needed all, a list of ids"),
        ("{candidates: some}", "decisions.candidates: found 'some', needed all, a list of ids"),
        ("{candidates: {born_after: 2015}}", "decisions.candidates.born_after: found no births, needed a pedigree "
            "with them"),
        ("{candidates: {file: gone.txt}}", "gone.txt': cannot be read: No such file"),
        ("{candidates: {file: pedigree.csv}}", "pedigree.csv': found 'id,sire,dam'"),
        ("{candidates: {file: x.txt, born_after: 2015}}", "decisions.candidates: born_after cannot be combined "
            "with file; needed one:"),
        ("{top: [0]}", "decisions.top: value 1 of the list: found 0, needed per cent of the candidates, above 0 "
            "and below 100"),
        ("{top: [5, 100]}", "decisions.top: value 2 of the list: found 100"),
        ("{candidates: [c1, c2, c3], top: [99.9]}", "decisions.top: 99.9 % of 3 candidates are all of them, "
            "needed fewer"),
        ("{traits: [milk]}", "decisions.traits: 'milk' is neither a trait with a direct effect nor a component of "
            "genetic"),
        ("{index: {total: {milk: 2}}}", "decisions.index.total.milk: 'milk' is neither a trait"),
        ("{index: {total: {birth_weight: much}}}", "decisions.index.total.birth_weight: found 'much', needed a number"),
        ("{index: {birth_weight: {birth_weight: 1}}}", "decisions.index.birth_weight: this name is already a trait"),
        ("{term: herd}", "decisions.term: 'herd' is not a random effect; the random effects are genetic"),
    ],
)  # fmt: skip
def test_mistakes_are_named(tmp_path, decisions, message):
    write_files(tmp_path / "analysis", {"analysis.yaml": replaced(SAMPLED, DECISIONS, decisions)})
    assert message in refused(tmp_path / "analysis")


def test_blup_has_no_draws_to_rank(tmp_path):
    write_files(tmp_path / "analysis", {"analysis.yaml": ANALYSIS + "decisions: {}\n"})
    assert "decisions: cannot be combined with sampler.method: blup" in refused(tmp_path / "analysis")
