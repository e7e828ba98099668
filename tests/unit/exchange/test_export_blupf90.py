"""A run as files of the BLUPF90 programs: numbers and names lead back to the run's own tables and draws."""

import csv
import json
from itertools import product

import numpy as np
import polars as pl
import pytest
from helpers.finished_run import describe_random
from helpers.renumf90_cases import CASES, by_hand
from helpers.renumf90_cases import write_files as renumf90_files
from helpers.small_analysis import command, write_files

from mmgibbs.cli import main
from mmgibbs.errors import ConfigError
from mmgibbs.exchange.blupf90_write import covariance_components, export_blupf90, numbered_terms
from mmgibbs.exchange.import_blupf90 import import_blupf90
from mmgibbs.report.finished import Finished, read_finished
from mmgibbs.runs.run import run

SHORT = ["sampler={method: gibbs, chains: 2, burn_in: 3, samples: 8, thin: 2, engine: serial}"]
VARIANCES = {
    "genetic": [[1, 0.2, 0], [0.2, 0.8, 0], [0, 0, 0.5]],
    "permanent_environment": [[0.5, 0], [0, 0.4]],
    "residual": [[2, 0.3], [0.3, 1.5]],
}


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """A short run with classes, a covariate in classes, direct and maternal effects, groups; and its files."""
    hand = by_hand(CASES["two traits with models of their own"])
    hand["data"] |= {"groups": {"column": "group", "effect": "fixed"}}
    maternal = {"level": "dam", "traits": ["y2"], "unknown_level": "omit"}
    genetic = {"relationship": "pedigree", "effects": {"direct": {"level": "animal"}, "maternal": maternal}}
    hand["model"] = {
        "fixed": {"herd": {}, "age": {"kind": "covariate", "degree": 2, "by": "sex", "traits": ["y2"]}},
        "random": {"genetic": genetic, "permanent_environment": {"level": "animal"}},
    }
    diagonal = {"start": VARIANCES["permanent_environment"], "structure": "diagonal"}
    hand["variances"] = {**VARIANCES, "permanent_environment": diagonal}
    folder = tmp_path_factory.mktemp("export") / "run"
    run(hand, SHORT, directory=folder, progress=False)
    return folder, export_blupf90(folder)


def read_levels(folder):
    with (folder / "levels.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_solutions_and_levels_lead_back_to_the_solutions_of_the_run(exported):
    run_folder, files = exported
    lines = (files / "solutions").read_text().splitlines()
    assert lines[0].split() == ["trait/effect", "level", "solution", "s.e."]
    table = np.array([line.split() for line in lines[1:]], float)
    numbers = table[:, :3].astype(int)
    assert np.array_equal(numbers, table[:, :3])
    order = np.lexsort((numbers[:, 0], numbers[:, 2], numbers[:, 1]))  # by effect, level, trait
    assert np.array_equal(order, np.arange(len(table)))
    levels = read_levels(files)
    meaning = {(int(r["effect"]), int(r["level"])): (r["term"], r["name"], r["id"]) for r in levels}
    assert len(meaning) == len(levels)

    of_rows = zip(numbers, table, strict=True)
    found = {(*meaning[effect, level], f"y{trait}"): tuple(row[3:]) for (trait, effect, level), row in of_rows}
    expected = {}
    for row in pl.read_parquet(run_folder / "solutions.parquet").iter_rows(named=True):
        name, level = row["effect"] or "", row["level"]
        if row["term"] == "age":
            level, name = level.split(":")
        if name == "group":  # of two components on y2, which only the order tells apart
            continue
        expected[row["term"], name, level, row["trait"]] = row["mean"], row["sd"]
    for term, name, level, _ in list(expected):  # a trait without the effect
        for trait in ("y1", "y2"):
            expected.setdefault((term, name, level, trait), (0.0, 0.0))
    assert {k: v for k, v in found.items() if not k[2].startswith("-")} == expected
    of_groups = {k for k in found if k[2].startswith("-")}
    assert of_groups == set(product(["genetic"], ["direct", "maternal"], ["-1", "-2"], ["y1", "y2"]))
    assert all(found[k] == (0.0, 0.0) for k in of_groups if k[1] == "maternal" and k[3] == "y1")


def test_effects_are_numbered_and_samples_stand_at_the_positions_of_postind(exported):
    levels = read_levels(exported[1])
    numbered = list(dict.fromkeys((r["effect"], r["term"], r["name"]) for r in levels))
    assert [" ".join(row).strip() for row in numbered] == [
        "1 herd", "2 age x^1", "3 age x^2", "4 genetic direct", "5 genetic maternal", "6 permanent_environment"
    ]  # fmt: skip
    run_folder, files = exported
    samples = np.loadtxt(files / "postgibbs_samples")
    n = 6 + 3 + 3  # genetic, permanent environment, residual
    assert samples.shape == (2 * 4, 3 + n)
    assert np.array_equal(samples[:, 0], np.arange(1, 9)) and (samples[:, 2] == n).all()
    sweeps = samples[:4, 1]
    assert np.array_equal(np.diff(sweeps), [2, 2, 2]) and np.array_equal(samples[4:, 1], sweeps + 11)

    matrices, title = {}, None
    for line in (files / "postind").read_text().splitlines():
        if "matrix" in line:
            title = line.strip()
            matrices[title] = []
        else:
            matrices[title].append([int(word) for word in line.split()])
    assert list(matrices) == ["G matrix for effect = 4 5", "G matrix for effect = 6", "R matrix"]
    draws = read_finished(run_folder).draws
    names = {
        "G matrix for effect = 4 5": ("genetic", ["direct:y1", "direct:y2", "maternal:y2"]),
        "G matrix for effect = 6": ("permanent_environment", ["y1", "y2"]),
        "R matrix": ("residual", ["y1", "y2"]),
    }
    for title, (term, components) in names.items():
        positions = np.array(matrices[title])
        assert not np.tril(positions, -1).any()
        for i, a in enumerate(components):
            for j, b in enumerate(components[i:], i):
                name = f"{term}.var[{a}]" if i == j else f"{term}.cov[{a},{b}]"
                expected = draws[name].ravel() if name in draws else np.zeros(8)  # a covariance that the model has not
                np.testing.assert_allclose(samples[:, 2 + positions[i, j]], expected, rtol=1e-12, err_msg=name)
    assert "permanent_environment.cov[y1,y2]" not in draws


def test_effects_of_an_import_keep_their_numbers_where_columns_differ_by_trait(tmp_path):
    """EFFECT 2 7 cross and a NESTED of its own for each trait: two terms each, one number each, no level twice."""
    case = CASES["nested covariates, columns by trait, weights"]
    analysis = import_blupf90(renumf90_files(tmp_path, case))[0]
    run(analysis, directory=tmp_path / "run", progress=False)
    files = export_blupf90(tmp_path / "run")
    levels = read_levels(files)
    numbered = list(dict.fromkeys((int(r["effect"]), r["term"]) for r in levels))
    expected = ["effect1_col2", "effect1_col7", "effect2_col4_by_col3", "effect2_col4_by_col2", "effect3", "genetic"]
    assert numbered == list(zip([1, 1, 2, 2, 3, 4], expected, strict=True))
    of_first = [(r["level"], r["id"]) for r in levels if r["effect"] == "1"]
    assert of_first == [("1", "H0"), ("2", "H1"), ("3", "H2"), ("4", "2020"), ("5", "2021"), ("6", "2022")]
    table = np.loadtxt(files / "solutions", skiprows=1)
    trait, effect, level = table[:, :3].astype(int).T
    assert np.array_equal(np.lexsort((trait, level, effect)), np.arange(len(table)))
    meaning = {(int(r["effect"]), int(r["level"])): (r["term"], r["id"]) for r in levels}
    assert len(meaning) == len(levels) and len(table) == 2 * len(levels)
    solutions = {
        (r["term"], r["level"].removesuffix(":slope").removesuffix("slope"), r["trait"]): r["mean"]
        for r in pl.read_parquet(tmp_path / "run" / "solutions.parquet").iter_rows(named=True)
    }
    for t, e, i, value in zip(trait, effect, level, table[:, 3], strict=True):
        assert value == solutions.pop((*meaning[e, i], f"trait{t}"), 0.0)
    assert not solutions  # every one was there


def test_terms_of_other_names_and_of_the_same_trait_are_effects_of_their_own():
    def numbers(names, traits):
        rows = [(n, None, t, i, 0.0, 1.0) for n, t in zip(names, traits, strict=True) for i in ("a", "b")]
        schema = {"term": pl.String, "effect": pl.String, "trait": pl.String, "level": pl.String, "mean": pl.Float64}
        solutions = pl.DataFrame(rows, schema=schema | {"sd": pl.Float64}, orient="row")
        analysis = {"traits": {"y1": {}, "y2": {}}, "model": {"fixed": {name: {} for name in names}, "random": {}}}
        finished = Finished(directory=None, record={"analysis": analysis}, summary=None, solutions=solutions)
        return [(term.effects, term.levels_before) for term in numbered_terms(finished)]

    apart = [([1], 0), ([2], 0)]
    assert numbers(["effect1_col2", "effect1_col7"], ["y1", "y2"]) == [([1], 0), ([1], 2)]
    assert numbers(["effect1_col2", "effect1_col7"], ["y1", "y1"]) == apart
    assert numbers(["effect1_col2", "effect2_col7"], ["y1", "y2"]) == apart
    assert numbers(["herd_col2", "herd_col7"], ["y1", "y2"]) == apart
    assert numbers(["effect1", "effect2"], ["y1", "y2"]) == apart


def test_coefficients_of_a_random_regression_go_before_traits():
    """A run's matrix is ordered trait, coefficient; the exported one coefficient, trait."""
    rows = [("genetic", f"rr.{c}", t, i, 0.0, 1.0) for i in ("a", "b") for t in ("y1", "y2") for c in (0, 1)]
    solutions = pl.DataFrame(rows, schema=["term", "effect", "trait", "level", "mean", "sd"], orient="row")
    model = {"fixed": {}, "random": {"genetic": {"relationship": "pedigree"}}}
    analysis = {"traits": {"y1": {}, "y2": {}}, "model": model}
    names = ["rr.0:y1", "rr.1:y1", "rr.0:y2", "rr.1:y2"]
    value = {(a, b): float(10 * i + j) for i, a in enumerate(names) for j, b in enumerate(names) if i <= j}
    named = lambda a, b: f"genetic.var[{a}]" if a == b else f"genetic.cov[{a},{b}]"
    draws = {named(*pair): np.full((1, 1), v) for pair, v in value.items()}
    draws |= {"residual.var[y1]": np.ones((1, 1)), "residual.var[y2]": np.ones((1, 1))}
    record = {"analysis": analysis, "relationships": describe_random(analysis)}
    finished = Finished(directory=None, record=record, summary=None, solutions=solutions, draws=draws)
    (term,) = numbered_terms(finished)
    assert term.effects == [1, 2, 1, 2] and term.traits == [1, 1, 2, 2]
    genetic, _ = covariance_components([term], finished)
    ordered = ["rr.0:y1", "rr.0:y2", "rr.1:y1", "rr.1:y2"]
    of = lambda a, b: value[a, b] if (a, b) in value else value[b, a]
    expected = [of(a, b) for i, a in enumerate(ordered) for b in ordered[i:]]
    assert [d.item() for d in genetic.draws] == expected


def test_a_run_at_fixed_variances_has_solutions_alone_and_files_are_not_replaced_unasked(tmp_path, capsys):
    write_files(tmp_path)
    assert command(tmp_path, "run", "analysis.yaml", "--quiet", "--set", "sampler.pev_limit=1").code == 0
    assert main(["export", "--format", "blupf90", str(tmp_path / "run")]) == 0
    files = tmp_path / "run-blupf90"
    assert sorted(p.name for p in files.iterdir()) == ["blupf90.json", "levels.csv", "solutions"]
    assert (files / "solutions").read_text().splitlines()[0].split() == ["trait/effect", "level", "solution"]
    capsys.readouterr()
    assert main(["export", "--format", "blupf90", str(tmp_path / "run")]) == 2
    said = "holds an export (blupf90.json, levels.csv, solutions); choose another one, or give --overwrite"
    assert said in capsys.readouterr().err
    assert main(["export", "--format", "blupf90", str(tmp_path / "run"), "--overwrite"]) == 0


def test_a_folder_without_a_run_and_a_regression_are_refused(tmp_path):
    with pytest.raises(ConfigError, match="^export: '.*' is not the folder of a finished run"):
        export_blupf90(tmp_path)
    pl.DataFrame({"parameter": ["beta"], "mean": [0.0]}).write_parquet(tmp_path / "summary.parquet")
    (tmp_path / "run.json").write_text(json.dumps({"name": "r"}))
    with pytest.raises(ConfigError, match="holds a regression, needed the run of a mixed model"):
        export_blupf90(tmp_path)


@pytest.mark.parametrize("overwrite", [False, True])
def test_the_folder_of_a_run_is_no_place_for_the_files(exported, tmp_path, overwrite):
    """A new run there would replace its own files and leave these beside them."""
    run_folder, _ = exported
    (tmp_path / "stopped" / "checkpoint").mkdir(parents=True)
    for folder in (run_folder, tmp_path / "stopped"):
        before = sorted(folder.iterdir())
        with pytest.raises(ConfigError, match="^export: '.*' is the folder of a run .*, needed another folder"):
            export_blupf90(run_folder, folder, overwrite=overwrite)
        assert sorted(folder.iterdir()) == before
