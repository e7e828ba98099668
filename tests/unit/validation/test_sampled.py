"""`mmgibbs validate` of traits that are not normal: files, what is predicted and what is refused."""

import numpy as np
import polars as pl
import pytest
from helpers.other_traits import tables

from mmgibbs.config import load_config
from mmgibbs.data.prepare import prepare
from mmgibbs.errors import ConfigError, DataError, DeviceError
from mmgibbs.machine import memory
from mmgibbs.runs.local import LocalExecutor
from mmgibbs.validation import by_sampling
from mmgibbs.validation.make import validate
from mmgibbs.validation.plan import Plan
from mmgibbs.validation.training import without

TRAITS = {
    "alive": {"type": "binary"},
    "score": {"type": "ordinal"},
    "cases": {"type": "count", "exposure": "months"},
    "age": {"type": "censored", "lower": "age", "upper": "oldest"},
}
HELD = {"mode": "fixed", "genetic": np.diag([0.5] * 4).tolist(), "residual": np.diag([1.0, 1.0, 0.3, 1.0]).tolist()}


def config(path, herd=None, **more):
    phenotypes, pedigree = tables()
    oldest = pl.when(pl.int_range(pl.len()) % 5 == 0).then(None).otherwise(pl.col("age"))
    return {
        "name": "left out",
        "data": {"phenotypes": phenotypes.with_columns(oldest.alias("oldest")), "pedigree": pedigree},
        "traits": TRAITS,
        "model": {
            "fixed": {"herd": herd or {}},
            "random": {"genetic": {"level": "animal", "relationship": "pedigree"}},
        },
        "variances": HELD,
        "sampler": {"burn_in": 20, "samples": 40, "thin": 1, "seed": 2},
        "output": {"directory": str(path / "run")},
    } | more


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    return validate(config(tmp_path_factory.mktemp("sampled")), Plan(method="kfold", folds=3), progress=False)


def test_statistics(found):
    table = found.table
    of = lambda trait: table.filter(trait=trait)["statistic"].to_list()
    assert of("alive") == ["auc", "brier", "log_score", "dispersion", "bias"]
    assert of("score") == ["concordance", "brier", "ranked_probability", "log_score", "dispersion", "bias"]
    assert of("cases") == ["predictive_ability", "log_score", "dispersion", "bias"]
    assert of("age") == ["concordance"]
    assert table["se"].is_not_null().all() and set(table["se_from"]) == {"folds"}
    assert table.filter(statistic="brier")["expected"].is_not_null().all()


def test_predictions(found):
    """Every record once; probabilities of categories sum to 1; observed are 1 and 0."""
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
    assert "sampled at given variances" in page


def test_starts_are_needed(tmp_path):
    with pytest.raises(ConfigError, match="found no start"):
        validate(config(tmp_path, variances={}), Plan(method="kfold"), progress=False)


def test_a_fold_with_all_records_of_a_category_is_refused(tmp_path):
    wanted = config(tmp_path)
    rare = pl.when(pl.col("animal") == "a5").then(pl.lit(9)).otherwise(pl.col("score")).alias("score")
    wanted["data"]["phenotypes"] = wanted["data"]["phenotypes"].with_columns(rare)
    with pytest.raises(DataError, match="has every record of '9' of trait 'score'"):
        validate(wanted, Plan(method="kfold", folds=3), progress=False)


def test_a_flat_level_with_records_of_one_kind_left_is_refused(tmp_path):
    """Of three animals of a herd one is alive: without it the effect of the herd has no posterior."""
    wanted = config(tmp_path, herd={"prior": "flat"})
    wanted["traits"] = {"alive": TRAITS["alive"]}
    wanted["variances"] = {"mode": "fixed", "genetic": 0.5, "residual": 1}
    few = pl.col("animal").is_in(["a0", "a1", "a2"])
    frame = wanted["data"]["phenotypes"].with_columns(
        pl.when(few).then(pl.lit("few")).otherwise(pl.col("herd")).alias("herd"),
        pl.when(few).then((pl.col("animal") == "a1").cast(pl.Int64)).otherwise(pl.col("alive")).alias("alive"),
    )
    wanted["data"]["phenotypes"] = frame
    with pytest.raises(DataError, match="some levels of herd are on one side"):
        validate(wanted, Plan(method="kfold", folds=20), progress=False)


def test_flat_effects_that_a_fold_joins_are_named(tmp_path):
    """The level that was set to 0 has one record: without it the other levels of both effects have the same sum."""
    wanted = config(tmp_path, herd={"prior": "flat"})
    wanted["traits"] = {"cases": TRAITS["cases"]}
    wanted["variances"] = {"mode": "fixed", "genetic": 0.5, "residual": 0.3}
    wanted["model"]["fixed"]["group"] = {"prior": "flat"}
    number = pl.int_range(pl.len())
    group = (
        pl.when(number == 5)
        .then(pl.lit("z"))
        .otherwise(pl.when(number % 3 == 0).then(pl.lit("x")).otherwise(pl.lit("y")))
    )
    wanted["data"]["phenotypes"] = wanted["data"]["phenotypes"].with_columns(group.alias("group"))
    with pytest.raises(DataError, match=r"effects herd and group on .* or model.fixed.group.prior: \{variance: 10\}"):
        validate(wanted, Plan(method="kfold", folds=3), progress=False)


def test_one_flat_effect_that_a_fold_leaves_without_differences_is_named(tmp_path):
    """A covariate that is 0 in every record that is left."""
    wanted = config(tmp_path)
    wanted["traits"] = {"cases": TRAITS["cases"]}
    wanted["variances"] = {"mode": "fixed", "genetic": 0.5, "residual": 0.3}
    wanted["model"]["fixed"]["dose"] = {"kind": "covariate", "prior": "flat"}
    masked = np.arange(90) < 2
    dose = pl.Series("dose", np.where(masked, np.arange(90) * 2.0 - 1.0, 0.0))
    wanted["data"]["phenotypes"] = wanted["data"]["phenotypes"].with_columns(dose)
    design = prepare(load_config(wanted)).design
    said = "without the records of fold 1 the fixed effect dose on trait 'cases' cannot be estimated"
    with pytest.raises(DataError, match=f"{said}; needed fewer folds, or model.fixed.dose.prior"):
        without(design, masked, "fold 1")


def test_records_of_a_flat_level_without_others_are_counted(tmp_path):
    wanted = config(tmp_path, herd={"prior": "flat"})
    wanted["traits"] = {"cases": TRAITS["cases"]}
    wanted["variances"] = {"mode": "fixed", "genetic": 0.5, "residual": 0.3}
    alone = pl.when(pl.col("animal") == "a5").then(pl.lit("alone")).otherwise(pl.col("herd")).alias("herd")
    wanted["data"]["phenotypes"] = wanted["data"]["phenotypes"].with_columns(alone)
    found = validate(wanted, Plan(method="kfold", folds=3), progress=False)
    assert found.predictions.height == 89
    assert any("1 record not predicted: in a level of a flat fixed effect" in note for note in found.info["notes"])


def test_rows_of_a_design_keep_their_levels(tmp_path):
    design = prepare(load_config(config(tmp_path))).design
    masked = np.arange(90) % 4 == 0
    training = without(design, masked, "fold 1")
    assert training.n_records == 67 and [t.n_levels for t in training.terms] == [t.n_levels for t in design.terms]
    np.testing.assert_array_equal(training.responses[0].category, design.responses[0].category[~masked])


def test_folds_side_by_side_need_memory_for_each(tmp_path, monkeypatch):
    """One chain would fit, three do not; workers of other machines are not counted here."""
    asked = []
    monkeypatch.setattr(memory, "free_bytes", lambda: 10**12)
    refuse = by_sampling.refuse_folds_beyond_memory
    monkeypatch.setattr(by_sampling, "refuse_folds_beyond_memory", lambda *of: asked.append(of) or refuse(*of))
    validate(config(tmp_path), Plan(method="kfold", folds=3), progress=False, report=False)
    ((model, schedule, of_engine, at_once),) = asked
    assert at_once == 1
    least = next(2**k for k in range(10, 60) if not _refused(refuse, monkeypatch, 2**k, asked[0]))
    for at_once, fits in ((0, True), (1, True), (3, False)):
        assert _refused(refuse, monkeypatch, least, (model, schedule, of_engine, at_once)) != fits
    monkeypatch.setattr(LocalExecutor, "calls_here", 8)
    with pytest.raises(DeviceError, match=r"validation with 3 chains at once, each of [\d,]+ equations needs about"):
        validate(config(tmp_path), Plan(method="kfold", folds=3), progress=False, report=False, output=tmp_path / "o")


def _refused(refuse, monkeypatch, free, call):
    monkeypatch.setattr(memory, "free_bytes", lambda: free)
    try:
        refuse(*call)
    except DeviceError:
        return True
    return False
