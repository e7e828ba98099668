"""Which statistics have an expectation and a standard error, and the notes that say why others have none."""

import numpy as np
import polars as pl
import pytest
from helpers.validation_data import G, R, analysis_of, beef_frames, small_beef

from mmgibbs.config import load_config
from mmgibbs.errors import ConfigError
from mmgibbs.validation.evaluation import read_recorded
from mmgibbs.validation.kfold import Predicted, Predictor, missing_statistics_notes
from mmgibbs.validation.options import ValidationPlan
from mmgibbs.validation.run import examine


def found(analysis: dict, **plan):
    """(statistics by (method, term, effect, trait, statistic), notes, info, what was said)."""
    said: list[str] = []
    validation = examine(read_recorded(load_config(analysis)), ValidationPlan(**plan), said.append)
    keys = ("method", "term", "effect", "trait", "statistic")
    rows = {tuple(row[k] for k in keys): row for row in validation.table.to_dicts()}
    return rows, validation.info["notes"], validation.info, said


def frames():
    return beef_frames(small_beef(160, 3, 4))


def test_a_direct_effect_alone_where_other_records_know_the_dam():
    analysis = analysis_of(*frames())
    effects = {"direct": {"level": "animal"}, "maternal": {"level": "dam"}}
    analysis["model"]["random"] = {"genetic": {"relationship": "pedigree", "effects": effects}}
    analysis["variances"] = {"genetic": [[G, 0.0], [0.0, 2.0]], "residual": R}
    rows, notes, *_ = found(analysis, method="kfold", folds=3)
    of = lambda effect, statistic: rows["kfold", *effect, "birth_weight", statistic]
    direct, every = ("genetic", "direct"), ("all random effects", "")
    assert [of(direct, s)["expected"] for s in ("predictive_ability", "dispersion", "bias")] == [None] * 3
    assert of(direct, "accuracy")["estimate"] is None and of(direct, "accuracy")["se"] is None
    assert of(direct, "dispersion")["estimate"] is not None
    assert [of(every, s)["expected"] for s in ("dispersion", "bias")] == [1.0, 0.0]
    assert len(notes) == 1 and "genetic direct, birth_weight: other records inform on genetic maternal of" in notes[0]


@pytest.mark.parametrize(("by", "known"), [("random", False), ("time", True)])
def test_a_permanent_environment_is_known_where_the_animal_keeps_records(by, known):
    phenotypes, pedigree = frames()
    again = phenotypes.with_columns(pl.col("year") + 1)
    analysis = analysis_of(pl.concat([phenotypes, again]), pedigree)
    analysis["model"]["random"]["environment"] = {"level": "animal"}
    analysis["variances"]["environment"] = 1.0
    rows, notes, *_ = found(analysis, method="kfold", folds=2, by=by, time="year" if known else None)
    of = lambda statistic: rows["kfold", "animal", "", "birth_weight", statistic]
    expected = [None, None] if known else [1.0, 0.0]
    assert [of(statistic)["expected"] for statistic in ("dispersion", "bias")] == expected
    assert (of("accuracy")["estimate"] is None) == known and bool(notes) == known


def test_a_trait_that_is_missing_beside_another_one():
    phenotypes, pedigree = frames()
    is_heavy = pl.col("birth_weight") > pl.col("birth_weight").median()
    later = pl.when(is_heavy).then(pl.col("birth_weight") * 5 + pl.col("year") % 3)
    analysis = analysis_of(phenotypes.with_columns(later=later), pedigree)
    analysis["traits"] = ["birth_weight", "later"]
    analysis["variances"] = {"animal": [[G, 5 * G], [5 * G, 30 * G]], "residual": [[R, 4 * R], [4 * R, 30 * R]]}
    rows, notes, *_ = found(analysis, method="kfold", folds=3)
    expected = {trait: rows["kfold", "animal", "", trait, "bias"]["expected"] for trait in analysis["traits"]}
    assert expected == {"birth_weight": 0.0, "later": None}
    assert rows["kfold", "animal", "", "later", "dispersion"]["expected"] is None
    assert rows["kfold", "animal", "", "later", "accuracy"]["estimate"] is not None
    assert len(notes) == 1 and "animal, later: some records lack this trait" in notes[0]


GROUP = pl.when(pl.int_range(pl.len()) % 2 == 0).then(pl.lit("north")).otherwise(pl.lit("south"))


def grouped(effect, tables=None, group=GROUP) -> dict:
    """Founders of two groups, or of those that an expression says."""
    phenotypes, pedigree = tables or frames()
    analysis = analysis_of(phenotypes, pedigree.with_columns(origin=group), group="herd")
    analysis["data"]["groups"] = {"column": "origin", "effect": effect}
    return analysis


def lr_of(rows: dict) -> dict:
    return {key[-1]: row for key, row in rows.items() if key[0] == "lr"}


def test_fixed_groups_have_their_expectations_from_the_simulation():
    every, _, info, _ = found(grouped("fixed"), method="lr", replicates=40)
    rows, told = lr_of(every), info["standard_errors"]["simulation"]
    assert told.endswith("simulated from the model, with its relationships, at the given variances")
    assert {rows[s]["se_from"] for s in rows} == {"simulation"}
    assert rows["accuracy"]["estimate"] is None and all(rows[s]["se"] > 0 for s in rows if s != "accuracy")
    assert abs(rows["bias"]["expected"]) < 4 * rows["bias"]["se"] / np.sqrt(40)
    assert rows["dispersion"]["expected"] != 1
    random = lr_of(found(grouped("random"), method="lr", replicates=2)[0])
    assert random["bias"]["se_from"] == random["dispersion"]["se_from"] == "model"
    assert random["dispersion"]["expected"] == 1


def test_fixed_groups_without_a_simulation():
    rows, notes, *_ = found(grouped("fixed"), method="lr", replicates=0)
    of = lr_of(rows)
    assert all(of[s]["se"] is of[s]["expected"] is of[s]["se_from"] is None for s in ("bias", "dispersion"))
    assert of["ratio_of_accuracies"]["se"] is not None and any("without a simulation" in note for note in notes)


def test_groups_that_only_the_records_left_out_tell_apart():
    """A group whose only descendant is recorded in the last year is set to 0 without it."""
    phenotypes, pedigree = frames()
    last = phenotypes.filter(pl.col("year") == pl.col("year").max())["animal"][0]
    founder = pl.DataFrame({"animal": ["x"], "sire": [None], "dam": [None], "birth": [1999]}, schema=pedigree.schema)
    sire = pl.when(pl.col("animal") == last).then(pl.lit("x")).otherwise("sire").alias("sire")
    pedigree = pl.concat([founder, pedigree.with_columns(sire)])
    origin = pl.when(pl.col("animal") == "x").then(pl.lit("new")).otherwise(GROUP)
    analysis = grouped("fixed", (phenotypes, pedigree), origin)
    rows, notes, *_ = found(analysis, folds=2, by="time", replicates=3)
    of = lr_of(rows)
    assert of["bias"]["se"] is of["bias"]["expected"] is of["bias"]["se_from"] is None
    assert of["dispersion"]["se"] > 0 and of["dispersion"]["expected"] is not None
    assert any(note.startswith("animal, birth_weight: different unknown-parent groups are set to 0") for note in notes)
    fold = {s: rows["kfold", "animal", "", "birth_weight", s] for s in ("bias", "dispersion", "accuracy")}
    assert fold["bias"]["expected"] is fold["dispersion"]["expected"] is None and fold["accuracy"]["estimate"] is None
    said = "no expectation of dispersion; different groups are set to 0 with and without a fold"
    assert any(said in note for note in notes)


def test_simulated_records_without_an_accuracy_are_counted():
    """Of hardly heritable records left out, whole and partial breeding values often have a negative covariance."""
    rows, notes, *_ = found(analysis_of(*frames(), G=0.02 * R), method="lr", replicates=40)
    said = "without accuracy: expectation and standard error are those of the others"
    (told,) = [note for note in notes if said in note]
    assert 0 < int(told.split(": ")[1].split()[0]) < 40
    if lr_of(rows)["accuracy"]["estimate"] is None:
        assert any(": no accuracy: " in note for note in notes)


def test_levels_of_a_sire_model_are_not_called_animals():
    phenotypes, pedigree = frames()
    bulls = pedigree.filter(pl.col("animal").is_in(pedigree["sire"].drop_nulls().implode()))
    phenotypes = phenotypes.join(pedigree.select("animal", bull="sire"), on="animal").drop_nulls("bull").drop("year")
    analysis = analysis_of(phenotypes, bulls, group="herd")
    analysis["model"]["random"] = {"bull": {"relationship": "pedigree"}}
    analysis["variances"] = {"bull": G / 4, "residual": R}
    _, _, info, said = found(analysis, method="kfold", folds=2)
    assert info["units"] == "levels of 'bull'" and info["animal_column"] == "bull"
    assert f"{phenotypes.height} records of levels of 'bull' (column 'bull')" in said[0]


def test_a_fold_whose_predictions_are_all_the_same_is_named():
    """Animals without a relative: the records of the others say nothing of them."""
    phenotypes, pedigree = frames()
    phenotypes = phenotypes.with_columns(part=GROUP)
    strangers = phenotypes.head(5).with_columns(animal=pl.format("stranger {}", pl.int_range(5)), part=pl.lit("new"))
    alone = strangers.select("animal", sire=pl.lit(None, pl.String), dam=pl.lit(None, pl.String), birth=pl.lit(2001))
    pedigree = pl.concat([pedigree, alone.cast(dict(pedigree.schema))])
    analysis = analysis_of(pl.concat([phenotypes, strangers]), pedigree)
    rows, notes, *_ = found(analysis, method="kfold", by="column", column="part")
    of = lambda statistic: rows["kfold", "animal", "", "birth_weight", statistic]["estimate"]
    assert of("dispersion") is None and of("bias") is not None
    (note,) = [note for note in notes if "all the same" in note]
    assert note.startswith("cross-validation, animal, birth_weight: in part new (5 records) the predictions are all")
    assert note.endswith("needed folds that leave some in")


def test_records_or_predictions_that_say_nothing_are_told_apart():
    predictor = Predictor(0, "animal", "", None)
    three, other = np.arange(3.0), np.array([1.0, 0.0, 2.0])
    fold = np.repeat([0, 1], 3)
    of = lambda p, y, noise: Predicted(
        predictor, np.arange(6), fold, np.r_[three, y], np.r_[other, p], noise=np.array([0.0, noise])
    )
    said = lambda *values: missing_statistics_notes(of(*values), ["one", "two"])
    assert said(other, three, 0.0) == []
    rounded = np.full(3, 0.1)  # whose mean is not 0.1
    assert said(rounded, three, 0.0) == said(np.ones(3), three, 0.0) and rounded.var() > 0
    assert said(other, rounded, 0.0) == said(other, np.ones(3), 0.0)
    ((same,), (flat,), (noisy,)) = said(np.ones(3), three, 0.0), said(other, np.ones(3), 0.0), said(other, three, 9.0)
    assert same.startswith("in two (3 records) the predictions are all the same")
    assert flat.startswith("in two (3 records) the corrected records are all the same")
    assert noisy.startswith("in two (3 records) the predictions differ by no more than Monte Carlo error")


def test_births_that_leave_too_few_animals():
    phenotypes, pedigree = frames()
    last = pedigree["birth"].max()
    two = phenotypes.head(2).with_columns(animal=pl.format("late {}", pl.int_range(2)))
    born = two.select("animal", sire=pl.lit(None), dam=pl.lit(None), birth=pl.lit(last + 1))
    late = pl.concat([pedigree, born.cast(dict(pedigree.schema))])
    n = phenotypes.join(pedigree.filter(birth=last), on="animal", how="semi")["animal"].n_unique()
    told = (
        f"validate: found 2 focal animals, needed at least 3: animals born from {last + 1} on are too few; needed "
        rf"cutoff={last} \({n + 2} animals with records\), or focal=FILE"
    )
    with pytest.raises(ConfigError, match=told):
        found(analysis_of(pl.concat([phenotypes, two]), late), method="lr")
    same = pedigree.with_columns(birth=pl.lit(last, pedigree.schema["birth"]))
    with pytest.raises(ConfigError, match="have all of the .* leaves out some; needed focal=FILE"):
        found(analysis_of(phenotypes, same), method="lr")
    phenotypes, pedigree = frames()
    recorded_ones = pl.col("animal").is_in(phenotypes["animal"].implode())
    pedigree = pedigree.with_columns(birth=pl.when(~recorded_ones).then("birth"))
    assert pedigree["birth"].count()
    with pytest.raises(ConfigError, match="found no birth year of animals with records, which the LR .*, or focal="):
        found(analysis_of(phenotypes, pedigree), method="lr")
