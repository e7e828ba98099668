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
from mmgibbs.validation.options import Plan
from mmgibbs.validation.run import validate_analysis, validate_several

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
    phenotypes = pl.DataFrame(
        {
            "animal": ids[:-10] * 2,
            "y": liability[:, recorded].ravel() + 7,
            "alive": (liability[:, recorded].ravel() > 0).astype(int),
            "herd": [f"h{i % 3}" for i in recorded] * 2,
            "part": [i % 4 for i in recorded] * 2,
        }
    )
    sire = [None if i < 40 else f"a{i % 8}" for i in range(ANIMALS)]
    dam = [None if i < 40 else f"a{8 + i % 30}" for i in range(ANIMALS)]
    birth = [2000 + i // 30 for i in range(ANIMALS)]
    return phenotypes, pl.DataFrame({"animal": ids, "sire": sire, "dam": dam, "birth": birth})


def config(path, **more):
    phenotypes, pedigree = tables(path)
    return {
        "name": "genomic",
        "data": {
            "phenotypes": phenotypes,
            "pedigree": pedigree,
            "genotypes": {"file": str(path / "genotypes.csv"), "quality": {"parent_progeny": "ignore"}},
        },
        "traits": ["y"],
        "model": {
            "fixed": {"herd": {}},
            "random": {"genetic": {"level": "animal", "relationship": "pedigree"}},
            "markers": {"snps": {"variance": {"share": 0.4}}},
        },
        "sampler": {"burn_in": 50, "samples": 200, "thin": 1, "seed": 2},
        "output": {"directory": str(path / "run")},
    } | more


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("genomic")


@pytest.fixture(scope="module")
def found(path):
    return validate_analysis(config(path), Plan(folds=3, cutoff=2003, **PLAN), progress=False, output=path / "out")


def statistics(found, method, term):
    return dict(found.table.filter(method=method, term=term).select("statistic", "estimate").iter_rows())


def test_each_kind_of_breeding_value_is_compared(found):
    names = found.table.select("method", "term", "effect").unique(maintain_order=True).rows()
    kinds = [("genetic", ""), ("snps", "gebv"), ("genetic+snps", "total")]
    assert names == [(method, *kind) for method in ("kfold", "lr") for kind in kinds]
    assert statistics(found, "kfold", "genetic+snps")["predictive_ability"] > 0.3
    accuracy = found.table.filter(method="kfold", statistic="accuracy")
    assert accuracy["term"].to_list() == ["genetic+snps"]  # the others lack what training records know


def test_young_animals_keep_their_genotypes(found):
    """No record of theirs is left in the partial data, and their sires have few: the values still differ."""
    p = found.predictions.filter(method="lr", effect="gebv")
    assert p.height == 20 and p["predicted"].n_unique() == 20 and p["predicted"].std() > 0.5
    assert statistics(found, "lr", "snps")["ratio_of_accuracies"] > 0.3


def test_expectations_and_where_errors_are_from(found):
    lr = found.table.filter(method="lr", effect="total")
    expected = dict(lr.select("statistic", "expected").iter_rows())
    assert expected["bias"] == 0 and expected["dispersion"] == 1 and expected["accuracy"] is None
    assert dict(lr.select("statistic", "se_from").iter_rows())["bias"] == "draws"
    kfold = found.table.filter(method="kfold", statistic="dispersion")
    assert kfold["expected"].to_list() == [None, None, 1.0]
    assert any(
        "other records inform on snps" in note and "'total' includes them" in note for note in found.info["notes"]
    )


def test_the_page_and_the_record(found):
    page = (found.directory / "validation.html").read_text(encoding="utf-8")
    assert "by sampling, variances too" in page and "snps gebv" in page
    record = json.loads((found.directory / "validation.json").read_text())
    assert record["variances"] == "sample" and "draws" in record["standard_errors"]


def test_animals_that_are_not_genotyped_have_no_genomic_value(path, tmp_path):
    wanted = config(path)
    genotypes = pl.read_csv(path / "genotypes.csv")
    genotypes.filter(~pl.col("animal").is_in(["a107", "a106"])).write_csv(tmp_path / "genotypes.csv")
    wanted["data"] |= {"genotypes": {"file": str(tmp_path / "genotypes.csv"), "quality": {"parent_progeny": "ignore"}}}
    wanted["model"]["markers"]["snps"]["without_genotypes"] = "keep"
    found = validate_analysis(
        wanted, Plan("lr", cutoff=2003, **PLAN), progress=False, report=False, output=tmp_path / "out"
    )
    heights = {e: found.predictions.filter(effect=e).height for e in ("", "gebv", "total")}
    assert heights == {"": 20, "gebv": 18, "total": 18}
    assert any("2 focal animals are not genotyped" in note for note in found.info["notes"])


def test_records_that_are_dropped_leave_the_folds_in_line(path, tmp_path):
    """The first record of the table goes: every prediction is still that of its own record."""
    wanted = config(path)
    pl.read_csv(path / "genotypes.csv")[1:].write_csv(tmp_path / "genotypes.csv")
    wanted["data"] |= {"genotypes": {"file": str(tmp_path / "genotypes.csv"), "quality": {"parent_progeny": "ignore"}}}
    wanted["model"]["markers"]["snps"]["without_genotypes"] = "drop"
    found = validate_analysis(
        wanted, Plan("kfold", folds=2, **PLAN), progress=False, report=False, output=tmp_path / "out"
    )
    p = found.predictions.filter(effect="total")
    table = tables(tmp_path)[0].with_row_index("row", 1).with_columns(pl.col("row").cast(pl.Int64))
    joined = p.join(table, on="row")
    assert joined.height == p.height == 218 and (joined["animal"] == joined["animal_right"]).all()
    assert np.corrcoef(joined["observed"], joined["y"])[0, 1] > 0.95


def test_a_trait_that_is_not_normal(path, tmp_path):
    wanted = config(path, traits={"alive": {"type": "binary"}})
    del wanted["model"]["random"], wanted["data"]["pedigree"]
    plan = Plan("kfold", by="column", column="part", **PLAN)
    found = validate_analysis(wanted, plan, progress=False, report=False, output=tmp_path / "out")
    auc = found.table.filter(statistic="auc")["estimate"][0]
    assert auc > 0.6
    assert found.predictions["fold"].unique(maintain_order=True).to_list() == [f"part {k}" for k in range(4)]


def test_the_variances_of_a_run_are_held(path, tmp_path):
    run = mmgibbs.run(config(path), progress=False, overwrite=True, directory=tmp_path / "run")
    mean = dict(run.summary.select("parameter", "mean").iter_rows())
    plan = Plan("kfold", folds=2, variances=str(tmp_path / "run"))
    found = validate_analysis(config(path), plan, progress=False, report=False, output=tmp_path / "out")
    assert found.info["variances"]["genetic"] == pytest.approx(mean["genetic.var[y]"])
    from mmgibbs.validation.run import load_with_plan

    section = load_with_plan(config(path), plan, ()).model.markers["snps"].variance
    assert section.fixed and section.start == pytest.approx(mean["snps.effect_var[y]"])


def test_other_snp_effects_than_those_of_the_run_are_refused(path, tmp_path):
    mmgibbs.run(config(path), progress=False, overwrite=True, directory=tmp_path / "run")
    wanted = config(path)
    wanted["model"]["markers"]["snps"]["prior"] = "bayes_a"
    with pytest.raises(ConfigError, match="its terms of SNP effects are not those of this analysis"):
        validate_analysis(
            wanted, Plan("kfold", variances=str(tmp_path / "run")), progress=False, output=tmp_path / "out"
        )


def test_focal_animals_without_genotypes_and_pedigree_are_refused(path, tmp_path):
    wanted = config(path)
    del wanted["model"]["random"], wanted["data"]["pedigree"]
    wanted["model"]["markers"]["snps"]["without_genotypes"] = "keep"
    few = ["a0", "a1", "a2"]
    pl.read_csv(path / "genotypes.csv").filter(~pl.col("animal").is_in(few)).write_csv(tmp_path / "genotypes.csv")
    wanted["data"]["genotypes"] = {"file": str(tmp_path / "genotypes.csv")}
    (tmp_path / "focal.txt").write_text("\n".join(few))
    plan = Plan("lr", focal=str(tmp_path / "focal.txt"), **PLAN)
    with pytest.raises(ConfigError, match="fewer than 3 of the 3 focal animals are genotyped"):
        validate_analysis(wanted, plan, progress=False, output=tmp_path / "out")


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
    pl.read_csv(path / "genotypes.csv")[2:].write_csv(tmp_path / "genotypes.csv")
    genomic, plain = config(path), config(path, name="pedigree")
    genomic["data"] |= {"genotypes": {"file": str(tmp_path / "genotypes.csv"), "quality": {"parent_progeny": "ignore"}}}
    genomic["model"]["markers"]["snps"]["without_genotypes"] = "drop"
    del plain["data"]["genotypes"], plain["model"]["markers"]
    plan = Plan("kfold", folds=3, **PLAN)
    found = validate_several([plain, genomic], plan, progress=False, report=False, output=tmp_path / "out")
    ability = found.table.filter(statistic="predictive_ability")
    assert ability["effect"].to_list() == ["", "total"] and ability["n"].to_list() == [216, 216]
    assert ability["difference"][1] > 3 * ability["se_of_difference"][1] > 0
    assert any("pedigree: not compared: 4 predicted records" in note for note in found.notes)


def test_effects_on_two_traits_with_a_prior_in_common(path, tmp_path):
    """A normal and a binary trait; the first also has what the other says of it."""
    wanted = config(path, traits={"y": {}, "alive": {"type": "binary"}})
    wanted["model"]["markers"]["snps"] = {"across_traits": "joint"}
    plan = Plan(folds=2, cutoff=2003, **PLAN)
    found = validate_analysis(wanted, plan, progress=False, report=False, output=tmp_path / "out")
    lr = found.table.filter(method="lr", effect="total", statistic="ratio_of_accuracies")
    assert lr["trait"].to_list() == ["y", "alive"] and lr["estimate"].is_between(0.2, 1).all()
    kfold = found.table.filter(method="kfold", statistic="predictive_ability", effect="total")
    assert kfold["trait"].to_list() == ["y"] and kfold["estimate"][0] > 0.3
    assert found.table.filter(statistic="auc")["trait"].to_list() == ["alive"]


def test_predicted_genotypes(path, tmp_path):
    """Records of animals without genotypes count, in both methods."""
    wanted = config(path)
    pl.read_csv(path / "genotypes.csv")[20:].write_csv(tmp_path / "genotypes.csv")
    wanted["data"] |= {"genotypes": {"file": str(tmp_path / "genotypes.csv"), "quality": {"parent_progeny": "ignore"}}}
    wanted["model"]["markers"]["snps"]["single_step"] = "epsilon"
    told = dict(progress=False, report=False, output=tmp_path / "out")
    found = validate_analysis(wanted, Plan(folds=2, cutoff=2003, **PLAN), **told)
    assert found.table.filter(method="kfold", effect="total", statistic="predictive_ability")["estimate"][0] > 0.3
    lr = dict(found.table.filter(method="lr", effect="total").select("statistic", "estimate").iter_rows())
    assert 0.3 < lr["ratio_of_accuracies"] <= 1 and np.isfinite(lr["accuracy"])
