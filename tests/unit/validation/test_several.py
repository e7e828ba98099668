"""Several analyses of the same records: the same folds, paired differences, files, and what is refused."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
import yaml
from helpers.small_analysis import command
from helpers.validation_data import analysis_of, beef_frames, small_beef

from mmgibbs.errors import ConfigError
from mmgibbs.validation.comparison_page import comparison_table, page
from mmgibbs.validation.files import COMPARISON
from mmgibbs.validation.options import ValidationPlan
from mmgibbs.validation.results import SCHEMA, Validation, compare_validations, complete
from mmgibbs.validation.run import validate_several


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """With the pedigree, without it, and from the records of the first herds alone."""
    path = tmp_path_factory.mktemp("several")
    phenotypes, pedigree = beef_frames(small_beef(160, 3, 4))
    phenotypes.write_csv(path / "phenotypes.csv")
    phenotypes[5:].write_csv(path / "other.csv")
    pedigree.write_csv(path / "pedigree.csv")
    base = analysis_of(phenotypes, pedigree, group="herd")
    base["data"] = {"phenotypes": "phenotypes.csv", "pedigree": "pedigree.csv"}
    weak = base | {"name": "weak", "variances": {"animal": 0.01, "residual": base["variances"]["residual"]}}
    other = base | {"name": "other", "data": base["data"] | {"phenotypes": "other.csv"}}
    for name, analysis in (("birth", base), ("weak", weak), ("other", other)):
        (path / f"{name}.yaml").write_text(yaml.safe_dump(analysis))
    options = "--folds", "4", "--cutoff", "2003", "--replicates", "0", "--output", "out"
    outcome = command(path, "validate", "birth.yaml", "weak.yaml", *options)
    assert outcome.code == 0, outcome.err
    assert "se_of_difference" in outcome.out
    return path


@pytest.fixture(scope="module")
def table(folder):
    return pl.read_parquet(folder / "out" / "comparison.parquet")


def test_each_has_a_folder_and_the_same_folds(folder):
    out = folder / "out"
    assert sorted(p.name for p in out.iterdir()) == sorted(["birth", "weak", *COMPARISON])
    page = (out / "comparison.html").read_text(encoding="utf-8")
    assert "Validation of 2 analyses" in page and "predictive ability" in page and "</svg>" in page
    assert page.count("<strong>birth_weight</strong> = ") == 1 and "in all analyses:" in page
    assert "In what the analyses differ" in page and "animal.var[<wbr>birth_weight]" in page
    assert page.count("4 folds, animals at random; ") == page.count("records of animals born from 2003 on left") == 1
    assert "What was validated" in page and "Finished 20" in page and " UTC, mmgibbs\u00a0" in page
    one, two = (pl.read_parquet(folder / "out" / name / "predictions.parquet") for name in ("birth", "weak"))
    of = lambda frame: frame.filter(method="kfold").select("row", "fold").sort("row")
    assert of(one).equals(of(two))


def test_differences_are_paired_by_fold(folder, table):
    values = {}
    for name in ("birth", "weak"):
        p = pl.read_parquet(folder / "out" / name / "predictions.parquet").filter(method="kfold")
        parts = p.partition_by("fold", maintain_order=True)
        values[name] = np.array([np.corrcoef(q["predicted"], q["observed"])[0, 1] for q in parts])
    difference = values["weak"] - values["birth"]
    row = table.filter(statistic="predictive_ability", analysis="weak").row(0, named=True)
    assert row["estimate"] == pytest.approx(values["weak"].mean())
    assert row["difference"] == pytest.approx(difference.mean())
    assert row["se_of_difference"] == pytest.approx(difference.std(ddof=1) / 2)
    first = table.filter(analysis="birth", method="kfold")
    assert first["difference"].null_count() == first.height
    dispersion = table.filter(method="kfold", statistic="dispersion")["estimate"]
    assert dispersion[1] > 10 * abs(dispersion[0])
    assert table.filter(method="lr")["analysis"].unique(maintain_order=True).to_list() == ["birth", "weak"]


def test_statistics_of_the_lr_method_stand_together_and_have_no_empty_columns():
    of = lambda effect, statistic: ("lr", "genetic", effect, "weight", statistic, 1.0, 0.1, None, None, 9)
    table = pl.DataFrame([of(e, s) for e in "am" for s in ("bias", "dispersion")], schema=SCHEMA, orient="row")
    none = validation("", [], []).predictions
    found = compare_validations([Validation(table, none, {"analysis": name}) for name in ("one", "two")])
    order = found.table.select("statistic", "effect", "analysis").rows()
    assert order == [(s, e, n) for s in ("bias", "dispersion") for e in "am" for n in ("one", "two")]
    shown = comparison_table(found.table)
    heads = ["Trait", "Statistic", "Analysis", "Prediction", "Estimate", "Standard error"]
    assert [c.label for c in shown.columns] == [*heads, "n"]
    assert all(len(row) == 7 for row in shown.rows) and shown.note == ""
    (section,) = page(found)["sections"]
    assert [name for name, _ in section["explained"]] == ["bias", "dispersion", "n"]  # there is no z
    assert "difference" not in found.as_text() and "estimate" in found.as_text()
    shown = comparison_table(found.table.with_columns(difference=pl.lit(0.5), se_of_difference=pl.lit(0.1)))
    assert [c.label for c in shown.columns] == [*heads, "Difference", "Its standard error", "z", "n"] and shown.note
    near = comparison_table(found.table.with_columns(difference=pl.lit(0.1), se_of_difference=pl.lit(0.1)))
    assert near.note == ""  # nothing is marked


def test_standard_errors_say_where_they_come_from():
    """Of the LR method for the statistics that have the same; analyses are named where not all are meant."""
    none, said = validation("", [], []).predictions, {"model": "by the equations", "draws": "by the draws", "x": "sets"}

    def of(name, source):
        rows = [("bias", source), ("dispersion", source), ("accuracy", "x"), ("reliability_ratio", None)]
        rows = [("lr", "genetic", "", "weight", s, 1.0, 0.1 if of else None, None, of, 9) for s, of in rows]
        table = pl.DataFrame(rows, schema=SCHEMA, orient="row")
        return Validation(table, none, {"analysis": name, "standard_errors": said})

    both = dict(page(compare_validations([of("one", "model"), of("two", "model")]))["errors"])
    expected = {"bias and dispersion of the LR method": "by the equations", "accuracy of the LR method": "sets"}
    assert both == expected
    apart = dict(page(compare_validations([of("one", "model"), of("two", "draws")]))["errors"])
    assert apart["bias and dispersion of the LR method, one"] == "by the equations"
    assert apart["bias and dispersion of the LR method, two"] == "by the draws"
    assert apart["accuracy of the LR method"] == "sets"
    folds = page(compare_validations([validation("one", [1, 2, 3], [0.9, 0.1, 0.8])] * 2))["errors"]
    assert [name for name, _ in folds] == ["differences between analyses", "estimates of cross-validation"]


def test_the_most_complete_prediction_is_compared():
    rows = [("a", "genetic", ""), ("a", "snps", "gebv"), ("a", "genetic+snps", "total"), ("b", "genetic", "")]
    frame = pl.DataFrame(rows, schema=["trait", "term", "effect"], orient="row")
    assert complete(frame)["term"].to_list() == ["genetic+snps", "genetic"]
    more = pl.concat([frame, pl.DataFrame({"trait": "a", "term": "all random effects", "effect": ""})])
    assert complete(more)["term"].to_list() == ["genetic", "all random effects"]


def validation(name, rows, predicted):
    own = {"method": "kfold", "term": "alive", "effect": "P(yes)", "trait": "alive", "fold": "1", "animal": "a"}
    frame = pl.DataFrame({"row": rows, "predicted": predicted, "observed": [float(r % 2) for r in rows]})
    predictions = frame.with_columns(pl.lit(v).alias(k) for k, v in own.items())
    return Validation(pl.DataFrame(schema=SCHEMA), predictions, {"analysis": name})


def test_records_that_one_alone_predicts_are_left_out_and_counted():
    every = validation("all", [1, 2, 3, 4], [0.9, 0.1, 0.8, 0.7])
    found = compare_validations([every, validation("some", [1, 2, 3], [0.9] * 3)])
    n = dict(found.table.select("statistic", "n").rows())
    assert n == {"auc": 3, "brier": 3, "dispersion": 0, "bias": 3}
    z = dict(page(found)["sections"][0]["explained"])["z"]
    assert z == "difference from the first analysis, in standard errors of the difference"
    brier = found.table.filter(statistic="brier")["estimate"].to_list()
    assert brier == pytest.approx([np.mean([0.01, 0.01, 0.04]), np.mean([0.01, 0.81, 0.01])])
    assert found.table.filter(statistic="auc")["estimate"].to_list() == [1.0, 0.5]
    assert found.notes == [
        "all: not compared: 1 predicted record that another analysis does not predict or does not know",
        "alive P(yes): dispersion is empty: records or predictions do not vary in 1",  # by 0.9 throughout
    ]


def of_life(name, observed):
    """A trait in numbers, six records in each of three folds; observed: fold -> (6,), 0 to 5 where it is left out."""
    parts = []
    for fold in (1, 2, 3):
        values = {"predicted": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], "observed": observed.get(fold, range(6))}
        frame = pl.DataFrame({"row": [10 * fold + i for i in range(6)]} | values, strict=False)
        own = {"method": "kfold", "term": "all effects", "effect": "", "trait": "life", "fold": str(fold)}
        frame = frame.with_columns(pl.lit(v).alias(k) for k, v in own.items())
        parts.append(frame.cast({"observed": pl.Float64}))
    return Validation(pl.DataFrame(schema=SCHEMA), pl.concat(parts), {"analysis": name})


def test_records_that_one_analysis_has_as_censored_are_compared_in_none():
    censored = {1: [0.0] + [np.nan] * 5, 2: [0.0, 3.0, 1.0] + [np.nan] * 3}
    found = compare_validations([of_life("normal", {}), of_life("censored", censored)])
    assert found.notes == [
        "normal: not compared: 8 predicted records that another analysis does not predict or does not know",
        "life: statistics are without 1: of a fold, fewer than 2 known records are predicted by all analyses",
    ]
    assert found.table["n"].unique().to_list() == [9]
    assert found.by_fold.group_by("fold").agg(pl.col("n").unique()).sort("fold").rows() == [("2", [3]), ("3", [6])]
    error = found.table.filter(statistic="error")
    of_fold_2 = np.mean([1, 1, 4])  # p - y = 1, -1, 2 of the second; 1 of each of the first
    assert error["estimate"].to_list() == pytest.approx([1.0, (of_fold_2 + 1.0) / 2])
    assert error["difference"].to_list() == [None, pytest.approx((of_fold_2 - 1.0) / 2)]
    (section,) = page(found)["sections"]
    assert [heading for heading, _, _ in section["figures"]] == ["life"]
    known = {1: [0.0, 2.0, 1.0] + [np.nan] * 3}
    found = compare_validations([of_life("one", known), of_life("two", known)])
    assert found.notes == [] and found.table["n"].unique().to_list() == [15]


def fold_2_all_alive():
    both = []
    for name, predicted in (("one", [0.9, 0.1, 0.8, 0.4]), ("two", [0.4, 0.9, 0.3, 0.1])):
        parts = []
        for fold in (1, 2, 3):
            own = validation(name, [1, 2, 3, 4], predicted).predictions
            own = own.with_columns(pl.lit(str(fold)).alias("fold"), pl.col("row") + 10 * fold)
            parts.append(own.with_columns(observed=pl.lit(1.0)) if fold == 2 else own)
        both.append(Validation(pl.DataFrame(schema=SCHEMA), pl.concat(parts), {"analysis": name}))
    return both


def test_folds_without_a_statistic_are_left_out_of_its_means():
    found = compare_validations(fold_2_all_alive())
    assert found.notes == ["alive P(yes): auc is the mean over 2 of 3 folds: records or predictions do not vary in 2"]
    auc = found.table.filter(statistic="auc")
    assert auc["estimate"].to_list() == [1.0, 0.5] and auc["difference"].to_list() == [None, -0.5]
    assert auc["se"].to_list() == [0.0, 0.0]
    assert auc["n"].to_list() == [8, 8] and found.table.filter(statistic="brier")["n"].to_list() == [12, 12]
    assert found.table.filter(pl.col("statistic") != "auc")["estimate"].is_finite().all()
    (section,) = page(compare_validations(fold_2_all_alive()))["sections"]
    ((heading, svg, caption),) = section["figures"]
    assert heading == "alive, P(yes)" and caption.endswith("and their mean: one 1.00, two 0.500.")
    assert "</svg>" in svg


def test_folds_with_too_few_shared_records_are_counted_and_named():
    """Of fold 4 both predict one record, of fold 5 the first analysis alone predicts any."""
    one, two = fold_2_all_alive()
    more = lambda fold, rows: validation("", rows, [0.5] * len(rows)).predictions.with_columns(fold=pl.lit(fold))
    added = ([more("4", [41, 42]), more("5", [51, 52])], [more("4", [41])])
    both = zip((one, two), added, strict=True)
    found = compare_validations([replace(v, predictions=pl.concat([v.predictions, *frames])) for v, frames in both])
    assert found.notes[1:] == [
        "alive: statistics are without 4 and 5: of a fold, fewer than 2 known records are predicted by all analyses",
        "alive P(yes): auc is the mean over 2 of 5 folds: records or predictions do not vary in 2; 4 and 5 have fewer "
        "than 2 records",
    ]
    assert found.table.filter(statistic="auc")["n"].to_list() == [8, 8]


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_a_statistic_that_no_fold_has_is_not_drawn():
    of_fold = validation("one", [1, 3, 5], [0.9, 0.8, 0.7])  # all alive
    found = compare_validations([of_fold, Validation(of_fold.table, of_fold.predictions, {"analysis": "two"})])
    (section,) = page(found)["sections"]
    assert section["figures"] == [] and any("auc is empty" in note for note in found.notes)


def test_data_frames_are_compared_by_what_they_hold(folder):
    read = lambda name: pl.read_csv(folder / name, infer_schema_length=None)
    base = yaml.safe_load((folder / "birth.yaml").read_text()) | {"output": {"directory": str(folder / "frames")}}
    of = lambda name, frame: base | {"name": name, "data": {"phenotypes": frame, "pedigree": read("pedigree.csv")}}
    records = read("phenotypes.csv")
    plan = ValidationPlan("kfold", folds=2)
    found = validate_several([of("one", records), of("two", records.clone())], plan, progress=False, report=False)
    assert found.table["analysis"].unique(maintain_order=True).to_list() == ["one", "two"]
    for other, called in ((records.reverse(), "another data frame"), (str(folder / "other.csv"), "'.*other.csv'")):
        with pytest.raises(ConfigError, match=f"'three' has the records of {called}, 'one' those of another data fra"):
            validate_several([of("one", records), of("three", other)], plan, progress=False, output=folder / "no")


def test_what_is_refused(folder):
    plan = ValidationPlan("kfold", folds=2)
    files = [folder / f"{name}.yaml" for name in ("birth", "other")]
    with pytest.raises(ConfigError, match="needed the same data.phenotypes"):
        validate_several(files, plan, progress=False, output=folder / "no")
    with pytest.raises(ConfigError, match="found 2 analyses called 'birth', needed a name for each"):
        validate_several(files[:1] * 2, plan, progress=False, output=folder / "no")
    with pytest.raises(ConfigError, match="variances: found 3 for 2 analyses"):
        validate_several(files, replace(plan, variances=["sample"] * 3), progress=False, output=folder / "no")
    with pytest.raises(ConfigError, match="validate: found variances=3, needed the folder of a finished run"):
        validate_several(files, replace(plan, variances=3), progress=False, output=folder / "no")
    for one in (folder / "no run", [folder / "no run"]):
        with pytest.raises(ConfigError, match="variances: .*no run"):
            validate_several(files, replace(plan, variances=one), progress=False, output=folder / "no")
    with pytest.raises(ConfigError, match="holds a comparison"):
        both = [folder / "birth.yaml", folder / "weak.yaml"]
        validate_several(both, plan, progress=False, output=folder / "out")
