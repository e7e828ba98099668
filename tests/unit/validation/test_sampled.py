"""`mmgibbs validate` of traits that are not normal: files, what is predicted and what is refused."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from helpers.other_traits import tables
from scipy import sparse

from mmgibbs.config import load_config
from mmgibbs.data import rank
from mmgibbs.data.prepare import prepare
from mmgibbs.errors import ConfigError, DataError, DeviceError
from mmgibbs.machine import memory
from mmgibbs.models.families import Categories
from mmgibbs.posterior.fitted import fitted
from mmgibbs.runs.local import LocalExecutor
from mmgibbs.validation import estimability, gibbs
from mmgibbs.validation.chains import drop_records, refuse_training, subset_records
from mmgibbs.validation.estimability import records_alone, unpredictable
from mmgibbs.validation.evaluation import evaluate, read_recorded
from mmgibbs.validation.kfold import concordance
from mmgibbs.validation.options import ValidationPlan
from mmgibbs.validation.predicted_records import FoldPredictions, note_missing_statistics, score_folds
from mmgibbs.validation.results import scored_rows
from mmgibbs.validation.run import validate_analysis
from mmgibbs.validation.splits import Fold

TRAITS = {
    "alive": {"type": "binary"},
    "score": {"type": "ordinal"},
    "cases": {"type": "count", "exposure": "months"},
    "age": {"type": "censored", "lower": "age", "upper": "oldest"},
}
HELD = {"mode": "fixed", "genetic": np.diag([0.5] * 4).tolist(), "residual": np.diag([1.0, 1.0, 0.3, 1.0]).tolist()}


GENETIC = {"level": "animal", "relationship": "pedigree"}


def config(path, herd=None, **more):
    phenotypes, pedigree = tables()
    oldest = pl.when(pl.int_range(pl.len()) % 5 == 0).then(None).otherwise(pl.col("age"))
    return {
        "name": "left out",
        "data": {"phenotypes": phenotypes.with_columns(oldest.alias("oldest")), "pedigree": pedigree},
        "traits": TRAITS,
        "model": {"fixed": {"herd": herd or {}}, "random": {"genetic": GENETIC}},
        "variances": HELD,
        "sampler": {"burn_in": 20, "samples": 40, "thin": 1, "seed": 2},
        "output": {"directory": str(path / "run")},
    } | more


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    return validate_analysis(
        config(tmp_path_factory.mktemp("sampled")), ValidationPlan(method="kfold", folds=3), progress=False
    )


def test_statistics_and_predictions(found):
    table = found.table
    of = lambda trait: table.filter(trait=trait)["statistic"].to_list()
    assert of("alive") == ["auc", "brier", "log_score", "dispersion", "bias"]
    assert of("score") == ["concordance", "brier", "ranked_probability", "log_score", "dispersion", "bias"]
    assert of("cases") == ["predictive_ability", "log_score", "dispersion", "bias"]
    assert of("age") == ["concordance"]
    assert table["se"].is_not_null().all() and set(table["se_from"]) == {"folds"}
    assert table.filter(statistic="brier")["expected"].is_not_null().all()
    p = found.predictions
    score = p.filter(trait="score")
    sums = score.group_by("row").agg(pl.col("predicted").sum(), pl.col("observed").sum(), pl.len())
    np.testing.assert_allclose(sums["predicted"], 1.0)
    assert sums.height == 90 and (sums["observed"] == 1).all() and (sums["len"] == 3).all()
    alive = p.filter(trait="alive")
    assert set(alive["effect"]) == {"P(1)"} and alive.height == tables()[0]["alive"].count()
    table = tables()[0].with_row_index("row", 1)
    seen = alive.join(table.with_columns(pl.col("row").cast(pl.Int64)), on="row", how="left")
    assert (seen["observed"] == seen["alive"]).all()


def test_the_page_and_the_notes(found):
    page = (found.directory / "validation.html").read_text(encoding="utf-8")
    assert "Share observed against predicted probability" in page and "area under the ROC curve" in page
    assert "by sampling at given variances" in page
    assert "liability of alive</strong> = " in page and "Variances and covariances, as given" in page


def test_starts_are_needed(tmp_path):
    with pytest.raises(ConfigError, match="found no start"):
        validate_analysis(config(tmp_path, variances={}), ValidationPlan(method="kfold"), progress=False)


def test_a_fold_with_all_records_of_a_category_is_refused(tmp_path):
    rare = pl.when(pl.col("animal") == "a5").then(pl.lit(9)).otherwise(pl.col("score")).alias("score")
    wanted = with_columns(config(tmp_path), rare)
    with pytest.raises(DataError, match="has every record of '9' of trait 'score'"):
        validate_analysis(wanted, ValidationPlan(method="kfold", folds=3), progress=False)


@pytest.mark.parametrize("late", ["cases", "weight"])
def test_a_fold_with_all_records_of_a_trait_is_refused(tmp_path, late):
    """Of either kind, before the first chain."""
    wanted, number = config(tmp_path), pl.int_range(pl.len())
    wanted["traits"] = {"cases": TRAITS["cases"], "weight": {"column": "age"}}
    wanted["variances"] = {"mode": "fixed", "genetic": np.diag([0.5, 0.5]).tolist(), "residual": [[0.3, 0], [0, 1.0]]}
    column = wanted["traits"][late].get("column", late)
    last = pl.when(number >= 30).then(pl.col(column)).alias(column)
    prepared = prepare(load_config(with_columns(wanted, last, (2001 + number // 30).alias("year"))))
    refuse_training(prepared, np.arange(90) >= 60, "2003")
    with pytest.raises(DataError, match=f"2002 has every record of trait '{late}'; needed records of every trait"):
        validate_analysis(wanted, ValidationPlan(method="kfold", by="time", time="year", folds=2), progress=False)


def test_a_flat_level_with_records_of_one_kind_left_is_refused(tmp_path):
    """Of three animals of a herd one is alive: without it the effect of the herd has no posterior."""
    wanted = config(tmp_path, herd={"prior": "flat"})
    wanted["traits"] = {"alive": TRAITS["alive"]}
    wanted["variances"] = {"mode": "fixed", "genetic": 0.5, "residual": 1}
    few = pl.col("animal").is_in(["a0", "a1", "a2"])
    herd = pl.when(few).then(pl.lit("few")).otherwise(pl.col("herd")).alias("herd")
    alive = pl.when(few).then((pl.col("animal") == "a1").cast(pl.Int64)).otherwise(pl.col("alive")).alias("alive")
    said = r"fold \d+: .* records of 'alive' in 'few' of herd are on one side, so that flat"
    with pytest.raises(DataError, match=said):
        validate_analysis(with_columns(wanted, herd, alive), ValidationPlan(method="kfold", folds=20), progress=False)


def of_cases(tmp_path, **fixed):
    wanted = config(tmp_path)
    wanted["traits"] = {"cases": TRAITS["cases"]}
    wanted["variances"] = {"mode": "fixed", "genetic": 0.5, "residual": 0.3}
    wanted["model"] = wanted["model"] | {"fixed": {name: {"prior": "flat"} | more for name, more in fixed.items()}}
    return wanted


def with_columns(wanted, *columns):
    wanted["data"]["phenotypes"] = wanted["data"]["phenotypes"].with_columns(*columns)
    return wanted


def group_of_one():
    """Groups x and y, each in both herds, and the group z of record 5 alone; z, the last one, is set to 0."""
    number = pl.int_range(pl.len())
    group = pl.when(number % 3 == 0).then(pl.lit("x")).otherwise(pl.lit("y"))
    return pl.when(number == 5).then(pl.lit("z")).otherwise(group).alias("group")


def test_a_fold_without_the_level_that_was_set_to_0(tmp_path):
    """Without its one record the other levels of both effects have the same sum: one more level is set to 0, and the
    record is not predicted, as x_D = x_I M does not hold of it.
    """
    wanted = with_columns(of_cases(tmp_path, herd={}, group={}), group_of_one())
    found = validate_analysis(wanted, ValidationPlan(method="kfold", folds=3), progress=False)
    assert found.predictions.height == 89 and 6 not in found.predictions["row"]
    lost = [fold["name"] for fold in found.info["folds"] if fold.get("not_predicted") == {"cases": 1}]
    (note,) = (note for note in found.info["notes"] if "not predicted" in note)
    assert len(lost) == 1 and note == (
        f"cross-validation, cases: 1 record not predicted, of {lost[0]}: the records outside the fold do not determine "
        "their flat fixed effects (no other record of group 'z')"
    )
    assert note in (found.directory / "validation.html").read_text(encoding="utf-8").replace("&#39;", "'")


def test_what_is_set_to_0_alters_no_prediction(tmp_path):
    """Columns of full rank with the same span as before; predictions of records that they determine are x'b, which is
    the same by any generalised inverse.
    """
    design = prepare(load_config(with_columns(of_cases(tmp_path, herd={}, group={}), group_of_one()))).design
    masked = np.isin(np.arange(90), [5, 11, 12])
    training, _ = drop_records(design, masked, "fold 1")
    X = [dense_columns(design, of) for of in (design, training)]
    assert np.linalg.matrix_rank(X[0][~masked]) == np.linalg.matrix_rank(X[1][~masked]) == X[1].any(axis=0).sum()
    assert X[0].any(axis=0).sum() == X[1].any(axis=0).sum() + 1
    lost = unpredictable(training, subset_records(design, np.flatnonzero(masked)), 0)
    assert lost.tolist() == [True, False, False]
    projector = np.linalg.pinv(X[0][~masked]) @ X[0][~masked]
    expected = np.abs(X[0][masked] @ projector - X[0][masked]).max(axis=1) > 1e-6
    np.testing.assert_array_equal(lost, expected)
    y = np.random.default_rng(1).standard_normal((~masked).sum())
    fits = [x[masked] @ np.linalg.lstsq(x[~masked], y, rcond=None)[0] for x in X]
    np.testing.assert_allclose(fits[0][~lost], fits[1][~lost])


def test_levels_without_a_record_left_make_no_dense_columns(tmp_path, monkeypatch):
    """Of 30 as of 3: a column of all records for each lost level would be gigabytes in large data."""
    number = pl.int_range(pl.len())
    group = pl.when(number < 30).then(number).otherwise(30 + number % 2).cast(pl.String).alias("group")
    wanted = with_columns(of_cases(tmp_path, herd={}, group={}), group)
    wanted["traits"], wanted["variances"] = ["age"], {"genetic": 0.5, "residual": 1.0}
    design = prepare(load_config(wanted)).design
    plain, made = sparse.csc_array.toarray, []
    for n in (3, 30):
        rows = np.flatnonzero(np.arange(90) < n + 5)
        training, _ = drop_records(design, np.arange(90) < n, "fold 1")
        made.append(0)
        with monkeypatch.context() as patch:
            patch.setattr(sparse.csc_array, "toarray", lambda *of: made.append(made.pop() + 1) or plain(*of))
            lost = unpredictable(training, subset_records(design, rows), 0)
        np.testing.assert_array_equal(lost[:30], rows[:30] < n)
    assert made[1] <= made[0] + 2  # one more level is set to 0


def test_classes_too_large_for_the_full_check_keep_what_the_records_left_determine(tmp_path, monkeypatch):
    """The whole data set a level of each class to 0 already; a fold loses no other one, but where it must."""
    monkeypatch.setattr(rank, "DENSE_COLUMNS", 1)
    design = prepare(load_config(with_columns(of_cases(tmp_path, herd={}, group={}), group_of_one()))).design
    for masked, fewer in ((np.zeros(90, bool), 0), (np.arange(90) == 11, 0), (np.arange(90) == 5, 1)):
        training, _ = drop_records(design, masked, "fold 1")
        X = [dense_columns(design, of) for of in (design, training)]
        kept = [x.any(axis=0).sum() for x in X]
        assert kept[0] - kept[1] == fewer
        assert np.linalg.matrix_rank(X[1][~masked]) == np.linalg.matrix_rank(X[0][~masked]) == kept[1]


@pytest.mark.parametrize("most", [1, 6000])
def test_large_classes_are_checked_against_each_other(tmp_path, monkeypatch, most):
    """Without the fold the first group and the first pen are the same animals, so that this pen in another group cannot
    be predicted; the largest class, cohorts, knows nothing of it. A full check finds the same."""
    monkeypatch.setattr(rank, "DENSE_COLUMNS", most)
    number = pl.int_range(pl.len())
    of_group = number.is_in([3, 7, 20, 41])
    group = pl.when(of_group).then(pl.lit("-")).otherwise(number % 2).alias("group")
    pen = pl.when(of_group | (number == 50)).then(pl.lit("-")).otherwise(number // 2 % 3).alias("pen")
    fixed = {"cohort": {}, "group": {}, "pen": {}}
    wanted = with_columns(of_cases(tmp_path, **fixed), group, pen, (number * number % 11).alias("cohort"))
    design = prepare(load_config(wanted)).design
    masked = np.isin(np.arange(90), [11, 50])
    training, _ = drop_records(design, masked, "fold 1")
    X = dense_columns(design, training)[~masked]
    assert np.linalg.matrix_rank(X) == X.any(axis=0).sum()
    every = replace(design, terms=tuple(replace(t, active=None) for t in design.terms))
    assert np.linalg.matrix_rank(X) == np.linalg.matrix_rank(dense_columns(design, every)[~masked])
    lost = unpredictable(training, subset_records(design, np.flatnonzero(masked)), 0)
    assert lost.tolist() == [False, True]


def test_a_search_for_dependent_columns_that_did_not_end_is_said(tmp_path, monkeypatch):
    number, note = pl.int_range(pl.len()), "the search for flat fixed effects that depend on others ended after"
    wanted = with_columns(of_cases(tmp_path, herd={}, group={}), (number % 7).cast(pl.String).alias("group"))
    plan = ValidationPlan(method="kfold", folds=3)
    found = lambda: validate_analysis(wanted, plan, progress=False, report=False, overwrite=True)
    said = lambda: [n for n in found().info["notes"] if note in n]
    monkeypatch.setattr(rank, "DENSE_COLUMNS", 1)
    assert said() == []
    monkeypatch.setattr(estimability, "ROUNDS", 0)
    (of_folds,) = said()
    assert of_folds.startswith(f"cross-validation, cases: without fold 1, fold 2 and fold 3 {note}")


def dense_columns(design, of):
    """(n, p) of all fixed equations in force in `of`."""
    columns = []
    for term, other in zip(design.terms, of.terms, strict=True):
        if term.kind == "fixed":
            (effect,) = term.effects
            active = np.ones(term.n_levels, bool) if other.active is None else other.active[:, 0]
            z = np.ones(design.n_records) if effect.covariates is None else effect.covariates[:, 0]
            columns += [np.where((effect.level == q) & active[q], z, 0.0) for q in range(term.n_levels)]
    return np.stack(columns, axis=1)


def test_a_covariate_that_is_0_in_every_record_left(tmp_path):
    masked = np.arange(90) < 3
    dose = pl.Series("dose", np.where(masked, np.arange(90) * 2.0 - 2.0, 0.0))
    wanted = with_columns(of_cases(tmp_path, herd={}, dose={"kind": "covariate"}), dose)
    design = prepare(load_config(wanted)).design
    training, _ = drop_records(design, masked, "fold 1")
    (i,) = (i for i, t in enumerate(design.terms) if t.name == "dose")
    lost = unpredictable(training, subset_records(design, np.flatnonzero(masked)), 0)
    assert not np.any(training.terms[i].effects[0].covariates), "its mean over all records is 0"
    assert design.terms[i].active is None or design.terms[i].active.all()
    assert not training.terms[i].active.any()
    assert lost.tolist() == [True, False, True]  # the second one has the dose of those that are left


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("predicted", [2, 1, 0])
def test_a_fold_without_any_predicted_record_has_no_part_in_the_statistics(tmp_path, predicted):
    """A flat year of its own for each of the other folds; of one fold that is left there is no standard error."""
    number = pl.int_range(pl.len())
    other = number >= 81  # in no fold
    of_2000 = other if predicted else pl.lit(False)
    year = pl.when(of_2000 | (number % 3 < predicted)).then(2000).when(other).then(2009).otherwise(2001 + number % 3)
    year, part = year.alias("year"), pl.when(~other).then(number % 3).alias("part")
    wanted = with_columns(of_cases(tmp_path, year={}), year, part)
    found = validate_analysis(wanted, ValidationPlan(method="kfold", by="column", column="part"), progress=False)
    assert found.predictions["fold"].unique().sort().to_list() == [f"part {k}" for k in range(predicted)]
    assert found.table.height == (4 if predicted else 0)
    assert found.table["estimate"].is_finite().all() and found.table["se"].is_finite().sum() == 4 * (predicted == 2)
    (note,) = (note for note in found.info["notes"] if "not predicted" in note)
    names = {2: "part 2", 1: "part 1 and part 2", 0: "part 0, part 1 and part 2"}[predicted]
    assert note.endswith(f"; statistics are without {names}, of which no record is predicted")
    assert found.as_text() and (found.directory / "validation.html").exists()


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_a_fold_with_one_category_alone_has_no_area_under_the_curve(tmp_path):
    """It is the mean over the other folds, and a note says how many these are."""
    number = pl.int_range(pl.len())
    alive = pl.when((number % 4).is_in([1, 2])).then(1).otherwise(number // 4 % 2).alias("alive")
    wanted = with_columns(config(tmp_path), (number % 4).alias("part"), alive)
    wanted["traits"] = {"alive": TRAITS["alive"]}
    wanted["variances"] = {"mode": "fixed", "genetic": 0.5, "residual": 1.0}
    found = validate_analysis(wanted, ValidationPlan(method="kfold", by="column", column="part"), progress=False)
    p = found.predictions.filter(pl.col("fold").is_in(["part 0", "part 3"]))
    columns = ("predicted", "observed", "observed")
    of_folds = [concordance(*(of[c].to_numpy() for c in columns)) for _, of in p.group_by("fold")]
    row = found.table.row(by_predicate=pl.col("statistic") == "auc", named=True)
    assert row["estimate"] == pytest.approx(np.mean(of_folds))
    assert row["se"] == pytest.approx(np.std(of_folds, ddof=1) / np.sqrt(len(of_folds)))
    assert row["n"] == p.height < found.predictions.height
    assert found.table.filter(statistic="brier")["n"].to_list() == [found.predictions.height]
    assert found.table.filter(pl.col("statistic") != "auc")["estimate"].is_finite().all()
    (note,) = (note for note in found.info["notes"] if "auc" in note)
    said = "auc is the mean over 2 of 4 folds: all tested records are of one category in part 1 and part 2"
    assert note == f"cross-validation, alive: {said}"


def test_what_no_fold_has_is_empty_and_what_is_infinite_is_named():
    design = prepare(load_config(config(Path()))).design
    response = next(r for r in design.responses if isinstance(r, Categories) and len(r.labels) == 2)
    records = np.flatnonzero(response.category == 1)[:6]
    of_fold = lambda own, p: FoldPredictions(own, np.tile([1 - p, p], (3, 1)), np.full(3, p), 0)
    folds = [Fold(f"fold {k}", np.zeros(90, bool), np.zeros(90, bool)) for k in (1, 2)]
    found = score_folds(design, response, [of_fold(records[:3], 0.5), of_fold(records[3:], 0.0)])
    auc, score, dispersion = note_missing_statistics(design, folds, found)
    both = replace(found, by_fold=[{"log_score": (np.nan, None)}, {"log_score": (np.inf, None)}])
    (note,) = note_missing_statistics(design, folds, both)
    assert "log_score is infinite, and left empty: what was observed in fold 2 has a probability of 0" in note
    assert "mean" not in note and note.endswith("; all tested records are of one category in fold 1")
    assert auc.endswith("auc is empty: all tested records are of one category in fold 1 and fold 2")
    assert "log_score is infinite, and left empty: what was observed in fold 2 has a probability of 0" in score
    assert dispersion.endswith("dispersion is empty: the predictions do not vary in fold 1 and fold 2")
    estimates = {row[4]: row[5] for row in scored_rows(found, design)}
    assert estimates["auc"] is None and estimates["log_score"] is None and estimates["brier"] == pytest.approx(0.625)


def test_flat_effects_that_separate_what_is_left_are_named(tmp_path):
    """Without its first records the covariate, alone, tells all that are alive from the others."""
    wanted = of_cases(tmp_path, dose={"kind": "covariate"})
    wanted["traits"], wanted["variances"]["residual"] = {"alive": TRAITS["alive"]}, 1
    alive = wanted["data"]["phenotypes"]["alive"].to_numpy().astype(float)
    first = np.flatnonzero(np.isfinite(alive))[:4]
    dose = 2 * np.nan_to_num(alive) - 1 + 0.01 * np.arange(90) / 90
    dose[first] = -dose[first]
    design = prepare(load_config(with_columns(wanted, pl.Series("dose", dose)))).design
    masked = np.isin(np.arange(design.n_records), np.searchsorted(np.flatnonzero(np.isfinite(alive)), first))
    said = "without it, the flat effect dose separates the records of 'alive', so that it has no posterior; needed few"
    both = said.replace("effect dose separates", "effects (dose and intercept|intercept and dose) separate")
    both = both.replace("it has no", "these effects have no")
    with pytest.raises(DataError, match=f"{said}|{both}") as raised:
        drop_records(design, masked, "fold 1")
    assert "model.fixed.dose.prior: {variance: 10}" in str(raised.value)


def test_normal_records_alone_in_a_level_are_counted(tmp_path):
    wanted = with_columns(of_cases(tmp_path, herd={}, group={}), group_of_one())
    wanted["traits"], wanted["variances"] = ["age"], {"genetic": 0.5, "residual": 1.0}
    found = validate_analysis(wanted, ValidationPlan(method="kfold", folds=3), progress=False)
    note = "cross-validation, age: 1 record is the only one of a level of a fixed effect: corrected for it, such a rec"
    assert any(said.startswith(note) for said in found.info["notes"])
    whole = evaluate(read_recorded(load_config(wanted)).analysis)
    y = whole.design.y - fitted(whole.design, whole.theta, lambda term, effect: term.kind == "fixed")
    u = fitted(whole.design, whole.theta, lambda term, effect: term.kind == "random")
    np.testing.assert_allclose(y[5], u[5], atol=1e-6)
    assert np.abs(y - u).max() > 0.1
    cases = prepare(load_config(of_cases(tmp_path, herd={}))).design
    every = [Fold("fold 1", np.ones(90, bool), np.ones(90, bool))]
    assert records_alone(cases, every) == []  # cases have no y*
    wanted = with_columns(of_cases(tmp_path, herd={}, group={}), group_of_one())
    wanted["traits"], wanted["variances"] = ["age"], {"genetic": 0.5, "residual": 1.0}
    design, number = prepare(load_config(wanted)).design, np.arange(90)
    folds = [Fold(f"fold {k}", number % 3 == k, number % 3 == k) for k in range(3)]
    assert len(records_alone(design, folds)) == 1
    of_others = [Fold(f.name, f.masked, f.tested & (number != 5)) for f in folds]
    assert records_alone(design, of_others) == [] and records_alone(design, []) == []


def test_rows_of_a_design_keep_their_levels(tmp_path):
    design = prepare(load_config(config(tmp_path))).design
    masked = np.arange(90) % 4 == 0
    training, _ = drop_records(design, masked, "fold 1")
    assert training.n_records == 67 and [t.n_levels for t in training.terms] == [t.n_levels for t in design.terms]
    np.testing.assert_array_equal(training.responses[0].category, design.responses[0].category[~masked])


def test_folds_side_by_side_need_memory_for_each(tmp_path, monkeypatch):
    """One chain would fit, three do not; workers of other machines are not counted here."""
    asked = []
    monkeypatch.setattr(memory, "free_bytes", lambda: 10**12)
    refuse = gibbs.refuse_folds_beyond_memory
    monkeypatch.setattr(gibbs, "refuse_folds_beyond_memory", lambda *of: asked.append(of) or refuse(*of))
    plan = ValidationPlan(method="kfold", folds=3)
    validate_analysis(config(tmp_path), plan, progress=False, report=False)
    ((model, schedule, of_engine, at_once),) = asked
    assert at_once == 1
    least = next(2**k for k in range(10, 60) if not _refused(refuse, monkeypatch, 2**k, asked[0]))
    for at_once, fits in ((0, True), (1, True), (3, False)):
        assert _refused(refuse, monkeypatch, least, (model, schedule, of_engine, at_once)) != fits
    monkeypatch.setattr(LocalExecutor, "max_local_calls", 8)
    with pytest.raises(DeviceError, match=r"validation with 3 chains at once, each of [\d,]+ equations needs about"):
        validate_analysis(config(tmp_path), plan, progress=False, report=False, output=tmp_path / "o")


def _refused(refuse, monkeypatch, free, call):
    monkeypatch.setattr(memory, "free_bytes", lambda: free)
    try:
        refuse(*call)
    except DeviceError:
        return True
    return False
