"""`mmgibbs validate` from files to files: what it writes, that it is what runs without the records give, and what it
refuses.
"""

import json

import numpy as np
import polars as pl
import pytest
import yaml
from helpers.small_analysis import command, refused
from helpers.validation_data import G, R, analysis_of, beef_frames, small_beef

import mmgibbs


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A small population in files, validated into out/."""
    path = tmp_path_factory.mktemp("validate")
    phenotypes, pedigree = beef_frames(small_beef(160, 3, 4))
    phenotypes.write_csv(path / "phenotypes.csv")
    pedigree.write_csv(path / "pedigree.csv")
    pedigree.drop("birth").write_csv(path / "no_births.csv")
    files = {"phenotypes": "phenotypes.csv", "pedigree": "pedigree.csv"}
    analysis = analysis_of(phenotypes, pedigree) | {"data": files}
    (path / "analysis.yaml").write_text(yaml.safe_dump(analysis))
    (path / "focal.txt").write_text("\n".join(phenotypes["animal"][-8:]) + "\n\n")
    (path / "two.txt").write_text("\n".join(phenotypes["animal"][-2:]))
    (path / "strangers.txt").write_text("\n".join([*phenotypes["animal"][-2:], "", "nobody", "noone", ""]))
    outcome = command(path, "validate", "analysis.yaml", "--folds", "3", "--output", "out", "--no-report")
    assert outcome.code == 0, outcome.err
    assert "predictive_ability" in outcome.out and "fold 3: " in outcome.err
    return path


@pytest.fixture(scope="module")
def table(folder):
    return pl.read_parquet(folder / "out" / "validation.parquet")


@pytest.fixture(scope="module")
def predictions(folder):
    return pl.read_parquet(folder / "out" / "predictions.parquet")


def solutions(folder, left_out: set[int]) -> pl.DataFrame:
    """Of a run that never sees these rows of the table (from 0)."""
    phenotypes = pl.read_csv(folder / "phenotypes.csv", infer_schema=False)
    kept = [i for i in range(phenotypes.height) if i not in left_out]
    analysis = analysis_of(phenotypes[kept], pl.read_csv(folder / "pedigree.csv", infer_schema=False))
    analysis |= {"sampler": {"method": "blup", "pev_limit": 0}}
    return mmgibbs.run(analysis, progress=False, directory=folder / f"run-{len(left_out)}", overwrite=True).solutions


def values(frame: pl.DataFrame, term: str) -> dict:
    return dict(frame.filter(term=term).select("level", "mean").iter_rows())


def test_it_leaves_tables_and_a_record(folder, table, predictions):
    out = folder / "out"
    names = ["predictions.parquet", "validation.csv", "validation.json", "validation.parquet"]
    assert sorted(p.name for p in out.iterdir()) == names
    record = json.loads((out / "validation.json").read_text())
    assert record["statistics"] == table.to_dicts()
    assert pl.read_csv(out / "validation.csv")["estimate"].to_list() == pytest.approx(table["estimate"].to_list())
    statistics = {"kfold": "predictive_ability accuracy dispersion bias"}
    statistics["lr"] = "bias dispersion ratio_of_accuracies reliability_ratio accuracy"
    for method, names in statistics.items():
        assert table.filter(method=method)["statistic"].to_list() == names.split()
    assert table["se"].is_between(0, 1).all() and table.height == 9
    assert sum(f["predicted"] for f in record["folds"]) == record["records"] == table.filter(method="kfold")["n"][0]
    assert record["variances"] == {"animal": [[G]], "residual": [[R]]}
    assert predictions.filter(method="kfold")["row"].n_unique() == record["records"]


def test_lr_is_what_two_runs_give(folder, table, predictions):
    year = pl.read_csv(folder / "phenotypes.csv")["year"]
    left_out = set(np.flatnonzero((year == year.max()).to_numpy()).tolist())
    whole, partial = (values(solutions(folder, rows), "animal") for rows in (set(), left_out))
    focal = predictions.filter(method="lr")
    assert len(left_out) == focal.height
    w, p = (np.array([of[a] for a in focal["animal"]]) for of in (whole, partial))
    assert focal["observed"].to_numpy() == pytest.approx(w, abs=1e-8)
    assert focal["predicted"].to_numpy() == pytest.approx(p, abs=1e-8)
    found = dict(table.filter(method="lr").select("statistic", "estimate").iter_rows())
    assert found["bias"] == pytest.approx(p.mean() - w.mean(), abs=1e-8)
    assert found["dispersion"] == pytest.approx(np.polyfit(p, w, 1)[0], rel=1e-6)


def test_folds_on_threads_give_the_same_bytes(folder, monkeypatch):
    """Also the simulated records, in blocks side by side, by both factors and by iterations."""
    monkeypatch.setattr("mmgibbs.validation.run.cores", lambda: 2)
    monkeypatch.setattr("mmgibbs.validation.lr.VALUES", 2000)  # two replicates at once
    asked = ("validate", "analysis.yaml", "--folds", "3", "--replicates", "6", "--no-report", "--output")
    for worth in (1.0, -1e9):
        monkeypatch.setattr("mmgibbs.engines.direct.solver.WORTH", worth)
        for output, where in (("one", []), ("two", ["--cluster", "local:2"])):
            outcome = command(folder, *asked, f"{output}{worth}", *where)
            assert outcome.code == 0, outcome.err
            assert ("2 threads of this process" in outcome.err) == (output == "two")
        for name in ("validation.csv", "predictions.parquet", "validation.json"):
            one, two = ((folder / f"{output}{worth}" / name).read_bytes() for output in ("one", "two"))
            assert one == two, name


@pytest.mark.slow
def test_single_step_gives_the_same_bytes_for_any_number_of_threads(folder, monkeypatch):
    """BLAS sums the matrices of relationships in another order for every number of its threads."""
    monkeypatch.setattr("mmgibbs.validation.run.cores", lambda: 2)
    ids, rng = pl.read_csv(folder / "pedigree.csv")["animal"], np.random.default_rng(5)
    codes = rng.binomial(2, rng.uniform(0.2, 0.5, 300), (len(ids), 300))
    genotypes = pl.DataFrame({"animal": ids} | {f"s{j}": codes[:, j] for j in range(300)})
    genotypes.sample(120, seed=1).write_csv(folder / "genotypes.csv")
    analysis = yaml.safe_load((folder / "analysis.yaml").read_text())
    quality = {"maf": 0, "call_rate": 0, "animal_call_rate": 0, "parent_progeny": "ignore"}
    analysis["data"]["genotypes"] = {"file": "genotypes.csv", "quality": quality}
    analysis["model"]["random"]["animal"]["relationship"] = "single_step"
    (folder / "single.yaml").write_text(yaml.safe_dump(analysis))
    asked = ("validate", "single.yaml", "--folds", "3", "--replicates", "12", "--no-report", "--output")
    where = {"one": (), "two": ("--set", "sampler.threads=2"), "cluster": ("--cluster", "local:2")}
    for output, how in where.items():
        outcome = command(folder, *asked, f"single-{output}", *how)
        assert outcome.code == 0, outcome.err
        assert ("birth: one fold at a time" in outcome.err) == (output != "one")
    for name in ("validation.csv", "predictions.parquet", "validation.json"):
        one, *others = ((folder / f"single-{output}" / name).read_bytes() for output in where)
        assert all(one == other for other in others), name


def test_a_fold_is_what_a_run_without_it_gives(folder, table, predictions):
    fold = predictions.filter(method="kfold", fold="fold 2")
    rows = [row - 2 for row in fold["row"]]  # the table's first line holds the names
    u = values(solutions(folder, set(rows)), "animal")
    assert fold["predicted"].to_numpy() == pytest.approx([u[a] for a in fold["animal"]], abs=1e-8)
    b, phenotypes = solutions(folder, set()), pl.read_csv(folder / "phenotypes.csv", infer_schema=False)[rows]
    fixed = sum(np.array([values(b, c)[v] for v in phenotypes[c]]) for c in ("group", "sex", "dam_age"))
    corrected = phenotypes["birth_weight"].cast(pl.Float64).to_numpy() - fixed
    assert fold["observed"].to_numpy() == pytest.approx(corrected, abs=1e-7)
    folds = predictions.filter(method="kfold").partition_by("fold")
    means = [f["predicted"].mean() - f["observed"].mean() for f in folds]
    of = {row["statistic"]: row for row in table.filter(method="kfold").iter_rows(named=True)}
    assert of["bias"]["estimate"] == pytest.approx(np.mean(means))
    assert of["bias"]["se"] == pytest.approx(np.std(means, ddof=1) / np.sqrt(3))
    accuracy = of["predictive_ability"]["estimate"] / np.sqrt(G / (G + R))
    assert of["accuracy"]["estimate"] == pytest.approx(accuracy)


def test_variances_of_a_finished_run(folder, table):
    solutions(folder, set())  # a run at the variances of the file
    line = "validate analysis.yaml --method lr --set variances={} --output of-run --no-report --quiet"
    arguments = line.split()
    assert "variances.animal.start: missing" in command(folder, *arguments, "--set", "sampler.method=blup").err
    outcome = command(folder, *arguments, "--set", "sampler.method=blup", "--variances", "run-0")
    assert outcome.code == 0, outcome.err
    found = pl.read_parquet(folder / "of-run" / "validation.parquet")
    assert found["estimate"].to_list() == pytest.approx(table.filter(method="lr")["estimate"].to_list(), rel=1e-9)


def test_chosen_animals_and_families(folder):
    arguments = "--focal focal.txt --by family --folds 2 --output chosen --no-report --quiet"
    outcome = command(folder, "validate", "analysis.yaml", *arguments.split())
    assert outcome.code == 0, outcome.err
    found = pl.read_parquet(folder / "chosen" / "predictions.parquet")
    assert found.filter(method="lr")["animal"].to_list() == (folder / "focal.txt").read_text().split()
    sire = dict(pl.read_csv(folder / "pedigree.csv", infer_schema=False).select("animal", "sire").iter_rows())
    folds = found.filter(method="kfold").with_columns(sire=pl.col("animal").replace_strict(sire)).drop_nulls("sire")
    assert folds.group_by("sire").agg(pl.col("fold").n_unique())["fold"].max() == 1


def test_forward_in_time_never_sees_the_future(folder):
    arguments = ("--method", "kfold", "--by", "time", "--folds", "2", "--output", "time", "--no-report", "--quiet")
    assert command(folder, "validate", "analysis.yaml", *arguments).code == 0
    found = pl.read_parquet(folder / "time" / "predictions.parquet")
    phenotypes = pl.read_csv(folder / "phenotypes.csv")
    *_, before, last = sorted(set(phenotypes["year"]))
    assert set(found["fold"]) == {str(before), str(last)}
    fold = found.filter(fold=str(before))
    u = values(solutions(folder, set(np.flatnonzero((phenotypes["year"] >= before).to_numpy()).tolist())), "animal")
    assert fold["predicted"].to_numpy() == pytest.approx([u[a] for a in fold["animal"]], abs=1e-8)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--folds", "100"), "has 1 record of trait 'birth_weight', needed at least 3: fewer --folds"),
        (("--by", "column", "--column", "animal", "--method", "kfold"), "of trait 'birth_weight', needed at least 3: a "
            "column with more records of each value"),
        (("--by", "time", "--folds", "9"), "forward in time; needed at least 10"),
        (("--by", "time", "--time", "yeer"), "there is no column 'yeer' (--time); nearest: 'year'"),
        (("--time", "year"), "--time cannot be combined with --by random; needed --by time"),
        (("--method", "lr", "--set", "data.pedigree=no_births.csv"), "found no birth years, which the LR method needs"),
        (("--by", "time", "--set", "data.pedigree=no_births.csv"), "found no birth years, which --by time needs"),
        (("--set", "data.pedigree=no_births.csv"), "or --focal FILE (ids, one per line), or --method kfold, which "
            "needs no young animals"),
        (("--method", "lr", "--cutoff", "1900"), "animals born from 1900 on have all of the"),
        (("--method", "lr", "--cutoff", "2900"), "animals born from 2900 on have none of the"),
        (("--cutoff", "2900"), " animals with records), or --focal FILE (ids, one per line), or --method kfold, which"),
        (("--method", "lr", "--focal", "none.txt"), "--focal none.txt: cannot be read"),
        (("--method", "lr", "--cutoff", "2002", "--focal", "strangers.txt"), "--focal strangers.txt line 4: focal "
            "animal 'nobody' is not a level of 'animal'"),
        (("--focal", "two.txt"), "found 2 focal animals, needed at least 3 in two.txt"),
        (("--set", "variances={}"), "variances.animal: found no start, needed one, --variances RUN"),
        (("--variances", "elsewhere"), "--variances: 'elsewhere' is not the folder of a finished run"),
        (("--method", "kfold", "--focal", "focal.txt"), "--focal cannot be combined with --method kfold; "
            "needed --method lr, or both"),
        (("--method", "lr", "--folds", "5"), "--folds cannot be combined with --method lr; needed "
            "--method kfold, or both"),
        (("--by", "column"), "found --by column with no --column, needed --column NAME"),
        (("--by", "column", "--column", "herd", "--folds", "3"), "found --by column with --folds"),
        (("--column", "herd"), "--column cannot be combined with --by random; needed --by column"),
        (("--by", "column", "--column", "hred"), "there is no column 'hred' (--column)"),
        (("--variances", "sample", "--replicates", "5"), "found --replicates 5 for an analysis that is sampled"),
        (("--output", "out"), "'out' holds a validation (predictions.parquet, validation.csv"),
        (("--output", ".", "--overwrite"), "'.' holds other files (analysis.yaml, "),
        (
            ("--set", "model.random.animal={relationship: pedigree, effects: {c: {level: animal, legendre: "
                "{column: year, degree: 1}}}}", "--set", "variances={}"),
            "model.random.animal has Legendre polynomials without a range",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_validated_is_told_before_anything_is_solved(folder, monkeypatch, arguments, said):
    def solve(*_):
        raise AssertionError("solved, and could not be used")

    monkeypatch.setattr("mmgibbs.engines.pcg.solver.PcgSolver.solve", solve)
    message = refused(folder, *arguments, run=("validate", "analysis.yaml", "--quiet", "--no-report"))
    assert said in message, message
