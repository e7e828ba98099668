"""`mmgibbs validate` with SNP effects: young genotyped animals, animals without genotypes, variances of a run, and what
is refused."""

import json

import numpy as np
import polars as pl
import pytest

import mmgibbs
from mmgibbs.config import load_config
from mmgibbs.data.prepare import prepare
from mmgibbs.errors import ConfigError
from mmgibbs.validation.focal_values import spread_of_genotypes
from mmgibbs.validation.options import ValidationPlan
from mmgibbs.validation.run import load_with_plan, validate_analysis, validate_several

ANIMALS, SNPS = 120, 60
PLAN = {"variances": "sample"}


def tables(path):
    """Two records of each animal but the last ten, which are genotyped alone; effects of a fifth of the SNPs."""
    rng = np.random.default_rng(5)
    X = rng.binomial(2, 0.4, (ANIMALS, SNPS))
    effect = np.where(np.arange(SNPS) % 5 == 0, rng.normal(0, 1, SNPS), 0)
    ids = [f"a{i}" for i in range(ANIMALS)]
    pl.DataFrame({"animal": ids} | {f"s{j}": X[:, j] for j in range(SNPS)}).write_csv(path / "genotypes.csv")
    g = X @ effect
    liability = g - g.mean() + rng.normal(0, 2, (2, ANIMALS))
    recorded = np.arange(ANIMALS - 10)
    of_records = liability[:, recorded].ravel()
    columns = {"animal": ids[:-10] * 2, "y": of_records + 7, "alive": (of_records > 0).astype(int)}
    phenotypes = pl.DataFrame(columns | {"herd": [f"h{i % 3}" for i in recorded] * 2})
    sire = [None if i < 40 else f"a{i % 8}" for i in range(ANIMALS)]
    dam = [None if i < 40 else f"a{8 + i % 30}" for i in range(ANIMALS)]
    birth = [2000 + i // 30 for i in range(ANIMALS)]
    return phenotypes, pl.DataFrame({"animal": ids, "sire": sire, "dam": dam, "birth": birth})


def config(path, **more):
    phenotypes, pedigree = tables(path)
    genotypes = {"file": str(path / "genotypes.csv"), "quality": {"parent_progeny": "ignore"}}
    random = {"genetic": {"level": "animal", "relationship": "pedigree"}}
    return {
        "name": "genomic",
        "data": {"phenotypes": phenotypes, "pedigree": pedigree, "genotypes": genotypes},
        "traits": ["y"],
        "model": {"fixed": {"herd": {}}, "random": random, "markers": {"snps": {"variance": {"share": 0.4}}}},
        "sampler": {"burn_in": 50, "samples": 200, "thin": 1, "seed": 2},
        "output": {"directory": str(path / "run")},
    } | more


def with_fewer(path, tmp_path, keep, **of_snps):
    """The analysis with some of the genotyped animals."""
    wanted = config(path)
    pl.read_csv(path / "genotypes.csv").filter(keep).write_csv(tmp_path / "genotypes.csv")
    wanted["data"]["genotypes"]["file"] = str(tmp_path / "genotypes.csv")
    wanted["model"]["markers"]["snps"] |= of_snps
    return wanted


def validated(wanted, plan, tmp_path):
    return validate_analysis(wanted, plan, progress=False, report=False, output=tmp_path / "out")


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("genomic")


@pytest.fixture(scope="module")
def found(path):
    return validate_analysis(
        config(path), ValidationPlan(folds=3, cutoff=2003, **PLAN), progress=False, output=path / "out"
    )


def statistics(found, method, term):
    return dict(found.table.filter(method=method, term=term).select("statistic", "estimate").iter_rows())


def test_each_kind_of_breeding_value_is_compared(found):
    names = found.table.select("method", "term", "effect").unique(maintain_order=True).rows()
    kinds = [("genetic", ""), ("snps", "gebv"), ("genetic+snps", "total")]
    assert names == [(method, *kind) for method in ("kfold", "lr") for kind in kinds]
    assert statistics(found, "kfold", "genetic+snps")["predictive_ability"] > 0.3
    accuracy = found.table.filter(method="kfold", statistic="accuracy")
    assert accuracy["term"].to_list() == ["genetic+snps"]  # the others lack what training records know
    p = found.predictions.filter(method="lr", effect="gebv")
    assert p.height == 20 and p["predicted"].n_unique() == 20 and p["predicted"].std() > 0.5
    assert statistics(found, "lr", "snps")["ratio_of_accuracies"] > 0.3


def test_expectations_the_page_and_the_record(found):
    lr = found.table.filter(method="lr", effect="total")
    expected = dict(lr.select("statistic", "expected").iter_rows())
    assert expected["bias"] == 0 and expected["dispersion"] == 1 and expected["accuracy"] is None
    assert dict(lr.select("statistic", "se_from").iter_rows())["bias"] == "draws"
    kfold = found.table.filter(method="kfold", statistic="dispersion")
    assert kfold["expected"].to_list() == [None, None, 1.0]
    said = [note for note in found.info["notes"] if "other records inform on snps" in note]
    assert said and "'total' includes them" in said[0]
    page = (found.directory / "validation.html").read_text(encoding="utf-8")
    assert "by sampling, variances too" in page and "snps gebv" in page
    record = json.loads((found.directory / "validation.json").read_text())
    assert record["variances"] == "sample" and "draws" in record["standard_errors"]


def test_animals_that_are_not_genotyped_have_no_genomic_value(path, tmp_path):
    wanted = with_fewer(path, tmp_path, ~pl.col("animal").is_in(["a107", "a106"]), without_genotypes="keep")
    found = validated(wanted, ValidationPlan("lr", cutoff=2003, **PLAN), tmp_path)
    heights = {e: found.predictions.filter(effect=e).height for e in ("", "gebv", "total")}
    assert heights == {"": 20, "gebv": 18, "total": 18}
    assert any("2 focal animals are not genotyped" in note for note in found.info["notes"])


def test_records_that_are_dropped_leave_the_folds_in_line(path, tmp_path):
    """The first record of the table goes: every prediction is still that of its own record."""
    wanted = with_fewer(path, tmp_path, pl.col("animal") != "a0", without_genotypes="drop")
    found = validated(wanted, ValidationPlan("kfold", folds=2, **PLAN), tmp_path)
    p = found.predictions.filter(effect="total")
    table = tables(tmp_path)[0].with_row_index("row", 1).with_columns(pl.col("row").cast(pl.Int64))
    joined = p.join(table, on="row")
    assert joined.height == p.height == 218 and (joined["animal"] == joined["animal_right"]).all()
    assert np.corrcoef(joined["observed"], joined["y"])[0, 1] > 0.95


def test_the_variances_of_a_run_are_held(path, tmp_path):
    """And those of a run with other SNP effects are refused."""
    run = mmgibbs.run(config(path), progress=False, overwrite=True, directory=tmp_path / "run")
    mean = dict(run.summary.select("parameter", "mean").iter_rows())
    plan = ValidationPlan("kfold", folds=2, variances=str(tmp_path / "run"))
    found = validated(config(path), plan, tmp_path)
    assert found.info["variances"]["genetic"] == pytest.approx(mean["genetic.var[y]"])
    section = load_with_plan(config(path), plan, ()).model.markers["snps"].variance
    assert section.fixed and section.start == pytest.approx(mean["snps.effect_var[y]"])
    other = config(path)
    other["model"]["markers"]["snps"]["prior"] = "bayes_a"
    with pytest.raises(ConfigError, match="its terms of SNP effects are not those of this analysis"):
        validated(other, plan, tmp_path)


def test_focal_animals_without_genotypes_and_pedigree_are_refused(path, tmp_path):
    few = ["a0", "a1", "a2"]
    wanted = with_fewer(path, tmp_path, ~pl.col("animal").is_in(few), without_genotypes="keep")
    del wanted["model"]["random"], wanted["data"]["pedigree"], wanted["data"]["genotypes"]["quality"]
    (tmp_path / "focal.txt").write_text("\n".join(few))
    plan = ValidationPlan("lr", focal=str(tmp_path / "focal.txt"), **PLAN)
    with pytest.raises(ConfigError, match="fewer than 3 of the 3 focal animals are genotyped"):
        validated(wanted, plan, tmp_path)


def test_the_spread_of_genotypes_is_that_of_the_expected_variance(path):
    """The mean over draws of effects of variance 1 of the variance of g among some animals."""
    markers = prepare(load_config(config(path))).design.markers[0]
    store, places = markers.genotypes, np.arange(30, 60)
    x = store.decode(store.every, store.values(markers.centre, markers.scale, markers.mean))[:, places]
    a = np.random.default_rng(2).standard_normal((4000, SNPS))
    variances = (a @ x).var(axis=1)
    error = variances.std() / np.sqrt(4000)
    assert abs(variances.mean() - spread_of_genotypes(markers, places)) < 4 * error


def test_with_snp_effects_against_without(path, tmp_path):
    """SNPs of a fifth of which trait and pedigree know little: the difference is paired over the same records, also
    where SNP effects drop some of them."""
    genomic = with_fewer(path, tmp_path, ~pl.col("animal").is_in(["a0", "a1"]), without_genotypes="drop")
    plain = config(path, name="pedigree")
    del plain["data"]["genotypes"], plain["model"]["markers"]
    plan = ValidationPlan("kfold", folds=3, **PLAN)
    found = validate_several([plain, genomic], plan, progress=False, report=False, output=tmp_path / "out")
    ability = found.table.filter(statistic="predictive_ability")
    assert ability["effect"].to_list() == ["", "total"] and ability["n"].to_list() == [216, 216]
    assert ability["difference"][1] > 3 * ability["se_of_difference"][1] > 0
    assert any("pedigree: not compared: 4 predicted records" in note for note in found.notes)


def test_effects_on_two_traits_with_a_prior_in_common(path, tmp_path):
    """A normal and a binary trait; the first also has what the other says of it."""
    wanted = config(path, traits={"y": {}, "alive": {"type": "binary"}})
    wanted["model"]["markers"]["snps"] = {"across_traits": "joint"}
    found = validated(wanted, ValidationPlan(folds=2, cutoff=2003, **PLAN), tmp_path)
    lr = found.table.filter(method="lr", effect="total", statistic="ratio_of_accuracies")
    assert lr["trait"].to_list() == ["y", "alive"] and lr["estimate"].is_between(0.2, 1).all()
    kfold = found.table.filter(method="kfold", statistic="predictive_ability", effect="total")
    assert kfold["trait"].to_list() == ["y"] and kfold["estimate"][0] > 0.3
    assert found.table.filter(statistic="auc")["trait"].to_list() == ["alive"]


def test_predicted_genotypes(path, tmp_path):
    """Records of animals without genotypes count, in both methods."""
    wanted = with_fewer(path, tmp_path, pl.int_range(pl.len()) >= 20, single_step="epsilon")
    found = validated(wanted, ValidationPlan(folds=2, cutoff=2003, **PLAN), tmp_path)
    assert found.table.filter(method="kfold", effect="total", statistic="predictive_ability")["estimate"][0] > 0.3
    lr = dict(found.table.filter(method="lr", effect="total").select("statistic", "estimate").iter_rows())
    assert 0.3 < lr["ratio_of_accuracies"] <= 1 and np.isfinite(lr["accuracy"])
