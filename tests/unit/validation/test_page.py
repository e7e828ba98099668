"""validation.html of a made-up validation: figures, marks, notes."""

import re
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from helpers.finished_run import describe_random

from mmgibbs.validation.kfold import fold_statistics, score_categories, score_counts, score_intervals
from mmgibbs.validation.lr import family_sums, lr_statistics
from mmgibbs.validation.page import lines_explained, page, write_page
from mmgibbs.validation.results import FROM_FAMILIES, FROM_MODEL, FROM_SIMULATION, OVER_FOLDS, Validation
from mmgibbs.validation.words import MEANINGS

NAMES = {"term": "animal", "effect": "", "trait": "weight <b>"}


def made_up(**changed) -> Validation:
    rows = [
        ("kfold", "predictive_ability", 0.4, None, OVER_FOLDS),
        ("kfold", "dispersion", 1.05, 1.0, OVER_FOLDS),
        ("lr", "bias", -0.5, 0.0, FROM_MODEL),
        ("lr", "accuracy", None, None, FROM_FAMILIES),
    ]
    table = pl.DataFrame(rows, schema=["method", "statistic", "estimate", "expected", "se_from"], orient="row")
    named = [pl.lit(value).alias(name) for name, value in NAMES.items()]
    table = table.with_columns(*named, se=pl.lit(0.1), n=pl.lit(50))
    x = np.linspace(-1, 1, 50)
    points = pl.DataFrame({"predicted": x, "observed": 0.8 * x}).with_columns(named)
    predictions = pl.concat([points.with_columns(method=pl.lit(m)) for m in ("kfold", "lr")])
    info = {
        "analysis": "calves", "plan": {"by": "family", "seed": 1}, "records": 100, "units": "animals",
        "folds": [{"predicted": 49}, {"predicted": 51}], "notes": ["few families"],
        "lr": {"cutoff": 2012.0, "left_out": 60, "focal_animals": 50, "families": 7},
        "standard_errors": {OVER_FOLDS: "a", FROM_MODEL: "b", FROM_FAMILIES: "c"},
    }  # fmt: skip
    return Validation(table, predictions, info | changed)


def test_the_page_shows_both_methods(tmp_path):
    text = write_page(made_up(), tmp_path / "validation.html").read_text(encoding="utf-8")
    assert text.count("<svg") == 2 and "weight <b>" not in text and "weight &lt;b&gt;" in text
    assert not re.search(r'(?:src|href)="(?!#|data:)', text)  # needs no network
    assert "half-sib families by sire; 49 to 51 records" in text and "few families" in text
    assert "60 records of animals born from 2012 on left out" in text and "Regression 0.800" in text


def test_it_says_what_the_statistics_and_their_signs_mean(tmp_path):
    kfold, lr = (dict(section["explained"]) for section in page(made_up())["sections"])
    assert list(kfold) == ["predictive ability", "dispersion", "expected", "z", "n"]
    assert list(lr) == ["bias", "accuracy", "expected", "z", "n"]
    assert lr["bias"].startswith("mean breeding value from partial data minus that from whole data. Above 0, these")
    assert lr["bias"] in write_page(made_up(), tmp_path / "validation.html").read_text(encoding="utf-8")


def test_what_is_expected_by_simulation_is_said_only_of_a_simulation():
    """The comparison of several validations shares the words on standard errors, and has no column of expectations."""
    made = made_up()
    source = pl.when(method="lr").then(pl.lit(FROM_SIMULATION)).otherwise("se_from")
    of = lambda validation: [dict(section["explained"])["expected"] for section in page(validation)["sections"]]
    assert not any("simulated" in text for text in of(made))
    kfold, lr = of(replace(made, table=made.table.with_columns(se_from=source)))
    assert "simulated" not in kfold and "from simulation, the mean over the sets of simulated records" in lr


def test_statistics_mean_what_is_said():
    w, p = np.array([0.0, 1.0, 2.0]), np.array([1.0, 2.0, 3.5])
    assert lr_statistics(family_sums(w, p, np.zeros(3)).sum(axis=0), np.nan)["bias"] > 0
    assert fold_statistics(w, p, None)["bias"] > 0
    assert score_counts(np.full(3, 0.5), p, w)["bias"][0] > 0
    wide = 2 * w  # predictions that differ twice as much as what they predict
    assert lr_statistics(family_sums(w, wide, np.zeros(3)).sum(axis=0), np.nan)["dispersion"] < 1
    assert fold_statistics(w, wide, None)["dispersion"] < 1
    assert score_counts(np.full(3, 0.5), wide, w)["dispersion"][0] < 1
    for texts in MEANINGS.values():
        assert "Above 0, " in texts["bias"] and "; below 0, " in texts["bias"]
        assert "Below 1, predictions differ too much" in texts["dispersion"]
        assert texts["dispersion"].endswith("Above 1, they differ too little")
    y, p = np.array([0, 1, 1, 0]), np.array([[0.7, 0.3], [0.2, 0.8], [0.4, 0.6], [0.6, 0.4]])
    three = np.hstack([p, np.zeros((4, 1))])
    w = p[:, 0]
    lr = lr_statistics(family_sums(w, p[:, 1], y).sum(axis=0), 1.0)
    of_records = score_categories(p, y).keys() | score_categories(three, y).keys() | score_counts(w, p[:, 1], y).keys()
    of_records |= fold_statistics(w, p[:, 1], 0.5).keys() | score_intervals(w, w, w).keys() | {"error"}
    assert set(MEANINGS["lr"]) == set(lr) and set(MEANINGS["kfold"]) == of_records


HEAD = {
    "finished": "2026-05-01T14:30:12+00:00",
    "versions": {"mmgibbs": "0.1.0"},
    "analysis": {
        "traits": {"weight": {}}, "model": {"fixed": {"herd": {}}, "random": {"animal": {"relationship": "pedigree"}}},
    },
    "levels": {"intercept": 1, "herd": 4, "animal": 80},
    "intercept": ["weight"],
    "components": {"animal": ["weight", "height"], "residual": ["weight", "height"]},
}  # fmt: skip
HEAD["relationships"] = describe_random(HEAD["analysis"])


def test_it_begins_with_the_date_the_version_the_model_and_the_variances(tmp_path):
    matrices = {"animal": [[20.0, 3.5], [3.5, 2.0]], "residual": {"in": [[40.0, 0], [0, 6.0]]}}
    validation = replace(made_up(variances=matrices), head=HEAD)
    text = write_page(validation, tmp_path / "validation.html").read_text(encoding="utf-8")
    assert "Finished 2026-05-01 14:30 UTC, mmgibbs\u00a00.1.0" in text
    assert "<strong>weight</strong> = intercept + herd + animal + residual" in text
    assert "Each record of a trait is the sum of these effects:" in text and "animal: related by the pedigree." in text
    rows = {row[0]: row[1].value for row in page(validation)["variances"].rows}
    assert rows == {
        "animal.var[weight]": 20, "animal.var[height]": 2, "animal.cov[weight,height]": 3.5,
        "residual.var[weight|in]": 40, "residual.var[height|in]": 6,
    }  # fmt: skip
    sampled = page(replace(made_up(variances="sample"), head=HEAD))
    assert sampled["variances"] is None and "variances too" in sampled["subtitle"]


def test_notes_have_a_section_of_their_own(tmp_path):
    text = write_page(made_up(), tmp_path / "validation.html").read_text(encoding="utf-8")
    assert text.index('id="errors"') < text.index('id="notes"') < text.index("few families") and '"#notes"' in text
    without = write_page(made_up(notes=[]), tmp_path / "validation.html").read_text(encoding="utf-8")
    assert "notes" not in without[without.index("<body>") : without.index("<script>")]


def test_it_says_what_the_folds_are_of():
    validation = made_up(units="levels of 'bull'", plan={"by": "random", "seed": 1})
    kfold, lr = (s["summary"] for s in page(validation)["sections"])
    assert kfold.startswith("2 folds, levels of 'bull' at random; ") and "50 focal levels of 'bull'" in lr


@pytest.mark.parametrize(("statistic", "told"), [("dispersion", True), ("predictive_ability", False)])
def test_notes_are_referred_to_where_an_expectation_lacks(statistic, told):
    """Of predictive ability nothing is ever expected."""
    made = made_up(notes=["cross-validation, animal: other records know more"])
    gone = pl.when(statistic=statistic, method="kfold").then(None).otherwise("expected")
    kfold = page(replace(made, table=made.table.with_columns(expected=gone)))["sections"][0]["summary"]
    assert ("the notes at the end say" in kfold) == told


def test_captions_of_figures():
    captions = [section["figures"][0][2] for section in page(made_up())["sections"]]
    assert captions[0].endswith("over all 50 points; the table has means over folds.")
    assert captions[1].endswith("over all 50 points.")
    assert captions[0].startswith("Record corrected for fixed effects against prediction without the fold. ")
    made = made_up()
    many = pl.concat([made.predictions] * 31)  # 1,550 of each method: every second one is drawn
    captions = [section["figures"][0][2] for section in page(replace(made, predictions=many))["sections"]]
    assert captions[0].endswith("over all 1,550 points, of which 775 are drawn; the table has means over folds.")
    assert captions[1].endswith("over all 1,550 points, of which 775 are drawn.")


@pytest.mark.parametrize(
    ("effects", "told"),
    [
        ([""], " Solid line: regression; dashed: equality."),
        (["P(ill)"], " Solid line: the observed shares; dashed: equality."),
        (["", "P(ill)"], " Solid line: regression, or of probabilities the observed shares; dashed: equality."),
        ([], ""),
    ],
)
def test_the_lines_of_every_kind_of_figure_are_explained(effects, told):
    """Those of a normal trait too where another trait has probabilities."""
    assert lines_explained(pl.Series("effect", effects, pl.String)) == told
    if effects:
        made = made_up()
        kfold = made.predictions.filter(method="kfold")
        predictions = [kfold.with_columns(effect=pl.lit(e), predicted=0.5 + pl.col("observed") / 2) for e in effects]
        summary = page(replace(made, predictions=pl.concat(predictions)))["sections"][0]["summary"]
        assert summary.endswith(told)


@pytest.mark.parametrize("effect", ["expected count", "liability"])
def test_counts_and_known_times_are_drawn_as_recorded(effect):
    made = made_up()
    predictions = made.predictions.with_columns(term=pl.lit("all effects"), effect=pl.lit(effect))
    kfold, lr = page(replace(made, predictions=predictions))["sections"]
    assert kfold["figures"][0][2].startswith("Record against prediction without the fold. ")
    assert lr["figures"][0][2].startswith("Breeding value from whole data against ")


def test_what_has_no_standard_error_is_shown():
    validation = made_up()
    unknown = {name: pl.lit(None, kind) for name, kind in (("se", float), ("expected", float), ("se_from", str))}
    sections = page(replace(validation, table=validation.table.with_columns(**unknown)))["sections"]
    rows = [row for section in sections for row in section["table"].rows]
    assert all(row[5].value is None and row[6] is None for row in rows)


def test_what_lies_far_from_expected_is_marked():
    tables = {s["id"]: s["table"] for s in page(made_up())["sections"]}
    z = {row[1]: row[5] for table in tables.values() for row in table.rows}
    assert z["bias"].alert and z["bias"].value == pytest.approx(-5)
    assert not z["dispersion"].alert and z["accuracy"].value is None
    notes = [any(row[5].alert for row in table.rows) == table.note.startswith("Marked: ") for table in tables.values()]
    assert all(notes) and sum(table.note != "" for table in tables.values()) == 1


@pytest.mark.parametrize(
    ("time", "units", "told"),
    [
        (None, "animals", "one for each of the last birth years of animals with records, pre"),
        (None, "levels of 'bull'", "one for each of the last birth years of levels of 'bull' with records, pre"),
        ("season", "animals", "the last values of column 'season', pre"),
    ],
)
def test_it_says_what_times_are(time, units, told):
    of_folds, of_lr = page(made_up(plan={"by": "time", "time": time, "seed": 1}, units=units))["sections"]
    assert told in of_folds["summary"]
    assert "from partial data, without the records that are left out, against those from whole" in of_lr["summary"]
