"""BLUP without some records, of models and tables of every kind, here and on another machine."""

import pickle

import numpy as np
import polars as pl
import pytest
import yaml
from helpers.support import ROOT
from helpers.validation_data import G, R, analysis_of, beef_frames, small_beef
from polars.testing import assert_frame_equal

import mmgibbs
from mmgibbs.config import load_config
from mmgibbs.data import phenotypes as phenotypes_module
from mmgibbs.data.phenotypes import read_phenotypes
from mmgibbs.data.prepare import prepare
from mmgibbs.engines.pcg.solver import PcgSolver
from mmgibbs.errors import ConfigError, ModelError
from mmgibbs.validation.evaluation import Portable, evaluate, evaluate_masked, random_solutions, read_recorded
from mmgibbs.validation.kfold import predictors
from mmgibbs.validation.lr import simulated_records
from mmgibbs.validation.options import ValidationPlan, starts_text
from mmgibbs.validation.run import validate_analysis


def records_of(preconditioner):
    """(records, those of the last year): a small population solved by this preconditioner."""
    analysis = analysis_of(*beef_frames(small_beef(120, 3, 4)), group="herd")
    sampler = {"method": "blup", "preconditioner": preconditioner}
    records = read_recorded(load_config(analysis | {"sampler": sampler}))
    year = records.phenotypes.frame["year"].to_numpy()
    return records, year == year.max()


def test_iterations_that_stop_name_what_was_left_out(monkeypatch):
    records, last = records_of("blocks")
    monkeypatch.setattr(PcgSolver, "iteration_limit", 1)
    with pytest.raises(ModelError, match=r"^validate: without the records of fold 2: PCG stopped after 1 iteration"):
        evaluate_masked(records, last, "fold 2")


def test_a_fold_with_too_few_records_to_be_absorbed_has_blocks(monkeypatch):
    """The whole data have just enough."""
    records, last = records_of("absorption")
    monkeypatch.setattr("mmgibbs.engines.coloured.unrolled.UNROLL_FROM", last.size)
    evaluate(records.analysis)
    found = evaluate_masked(records, last, "the last year")
    expected = evaluate_masked(records_of("blocks")[0], last, "the last year")
    assert found.solver.solve(1e-12).preconditioner == "blocks"
    for ours, other in zip(found.theta, expected.theta, strict=True):
        np.testing.assert_array_equal(ours, other)


def test_folds_are_solved_as_the_file_asks(monkeypatch):
    monkeypatch.setattr("mmgibbs.engines.coloured.unrolled.UNROLL_FROM", 0)
    for name in ("absorption", "blocks"):
        records, last = records_of(name)
        assert evaluate_masked(records, last, "the last year").solver.solve(1e-12).preconditioner == name


def test_the_lines_of_starts_are_given():
    analysis = analysis_of(*beef_frames(small_beef(60, 3, 4)), group="herd")
    with pytest.raises(ConfigError) as refused:
        read_recorded(load_config(analysis | {"variances": {"residual": R}}))
    said, *lines = str(refused.value).splitlines()
    assert said.startswith("variances.animal: found no start, needed one, ") and "C (covariance):" in said
    assert lines == ["variances:", "  animal:", "    start: V"]
    read = yaml.safe_load("\n".join(lines).replace("V", str(G)))
    read_recorded(load_config(analysis | {"variances": read["variances"] | {"residual": R}}))
    phenotypes, pedigree = beef_frames(small_beef(60, 3, 4))
    analysis = analysis_of(phenotypes.with_columns(heavy=pl.col("birth_weight") > 40), pedigree)
    analysis["traits"] = {"birth_weight": {}, "heavy": {"type": "binary"}}
    both = {"relationship": "pedigree", "effects": {"a": {"level": "animal"}, "m": {"level": "dam"}}}
    analysis["model"]["random"] = {"animal": both, "dam herd": {"level": "herd"}}
    analysis["variances"] = {"dam herd": {"structure": "diagonal"}}
    lines = starts_text(load_config(analysis), ["dam herd", "residual"]).splitlines()
    assert lines == [
        "variances:",
        "  dam herd:  # rows and columns: birth_weight, heavy",
        "    start: [[V1, 0], [0, V2]]",
        "  residual:  # rows and columns: birth_weight, heavy",
        "    start: [[V1, C12], [C12, 1]]",
    ]
    of_four = starts_text(load_config(analysis), ["animal"])
    assert "a:birth_weight, a:heavy, m:birth_weight, m:heavy" in of_four and "[C14, C24, C34, V4]]" in of_four


@pytest.fixture(scope="module")
def curve_records():
    rng = np.random.default_rng(5)
    day = np.cumsum(rng.uniform(0.5, 2.0, 30)).round(2)
    y = np.sin(day / 5) + rng.normal(size=30) / 4
    return pl.DataFrame({"line": [f"L{i % 6}" for i in range(30)], "day": day, "y": y})


def evaluated(curve_records, relationship):
    """(evaluation of all curve_records, of those that are not masked, (n,) masked)."""
    analysis = {
        "data": {"phenotypes": curve_records},
        "traits": ["y"],
        "model": {"fixed": {}, "random": {"line": {}, "curve": {"relationship": relationship}}},
        "variances": {"line": 0.01, "curve": 2.0, "residual": 0.1},
        "sampler": {"method": "blup"},
        "output": {"directory": "run"},
    }
    recorded = read_recorded(load_config(analysis))
    masked = np.isin(np.arange(30), [4, 5, 11, 20, 29])
    return evaluate(recorded.analysis), evaluate_masked(recorded, masked, "a fold"), masked


WALK = {"kind": "random_walk", "of": "day", "order": 1}
SERIES = {"kind": "ar1", "time": "day", "step": 1, "rho": 0.8, "fixed": True}


def of_series(t):
    return 0.8 ** np.abs(np.subtract.outer(t, t))


@pytest.mark.parametrize(("relationship", "covariance"), [(WALK, np.minimum.outer), (SERIES, of_series)])
def test_points_without_a_record_have_their_expectation_given_the_others(curve_records, relationship, covariance):
    whole, partial, masked = evaluated(curve_records, relationship)
    found = random_solutions(partial, whole)[-1][:, 0]
    level = whole.design.terms[-1].effects[0].level
    day, y, line = (curve_records[c].to_numpy() for c in ("day", "y", "line"))
    t = day - day[0]
    K = covariance(t, t) if relationship is WALK else covariance(t)
    scale = getattr(partial.design.terms[-1].relationship, "scale", None)  # per unit of the gaps of the partial data
    if scale is not None:
        K = K / (scale * partial.design.terms[-1].relationship.unit)
    s = ~masked
    V = 2.0 * K[np.ix_(s, s)] + 0.01 * (line[s, None] == line[s]) + 0.1 * np.eye(s.sum())
    W, ones = np.linalg.inv(V), np.ones(s.sum())
    e = W @ (y[s] - (ones @ W @ y[s]) / (ones @ W @ ones))
    known = 2.0 * K[masked][:, s] @ e
    np.testing.assert_allclose(found[level[masked]], known, atol=1e-6)
    assert np.abs(known).min() > 1e-3


@pytest.fixture
def folder(tmp_path):
    phenotypes, pedigree = beef_frames(small_beef(60, 3, 3))
    phenotypes.write_csv(tmp_path / "phenotypes.csv")
    pedigree.write_csv(tmp_path / "pedigree.csv", separator=";")
    herds = phenotypes["herd"].unique().sort()
    inverse = pl.DataFrame({"a": herds, "b": herds, "value": 1.0 + np.arange(herds.len()) / 10})
    inverse.write_csv(tmp_path / "herds.txt", separator=" ")
    return tmp_path


def test_it_needs_no_file_where_it_arrives(folder):
    analysis = analysis_of(*beef_frames(small_beef(60, 3, 3)))
    analysis["data"] = {"phenotypes": "phenotypes.csv", "pedigree": "pedigree.csv"}
    analysis["model"]["random"]["herds"] = {"level": "herd", "relationship": "herds.txt"}
    analysis["variances"]["herds"] = 1.0
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        records = read_recorded(load_config(analysis))
    masked = np.arange(len(records.animal)) % 3 == 0
    here = evaluate_masked(records, masked, "a third")
    packed = pickle.dumps((Portable(records), evaluate(records.analysis)))
    for name in ("phenotypes.csv", "pedigree.csv", "herds.txt"):
        (folder / name).unlink()
    there, whole = pickle.loads(packed)
    with there.records() as arrived:
        found = evaluate_masked(arrived, masked, "a third").theta
    assert all(np.array_equal(one, two) for one, two in zip(here.theta, found, strict=True))
    b = np.ones((whole.engine.bounds[-1], 1))
    assert np.isfinite(whole.engine.solve_columns(b, 0 * b, 1e-4).x).all()  # an evaluation goes with its equations
    with pytest.raises(Exception, match="pedigree.csv"):
        evaluate_masked(records, masked, "a third")


@pytest.fixture
def analysis_of_file(tmp_path):
    """With fractions, and rows that are the same as earlier ones in the columns that are used."""
    phenotypes, pedigree = beef_frames(small_beef(160, 3, 4))
    phenotypes = pl.concat([phenotypes, phenotypes.head(5)]).with_row_index("barn")
    phenotypes.write_csv(tmp_path / "phenotypes.csv")
    wanted = analysis_of(phenotypes, pedigree, group="herd")
    wanted["data"]["phenotypes"] = str(tmp_path / "phenotypes.csv")
    return wanted


def test_a_validation_parses_the_records_once(analysis_of_file, tmp_path, monkeypatch):
    opened, open_table = [], phenotypes_module.open_table
    counted = lambda source, *more: opened.append(source) or open_table(source, *more)
    monkeypatch.setattr(phenotypes_module, "open_table", counted)
    plan = mmgibbs.ValidationPlan(folds=3, replicates=0, cutoff=2003)
    mmgibbs.validate(analysis_of_file, plan=plan, progress=False, report=False, output=tmp_path / "o")
    assert [str(s) for s in opened if not isinstance(s, pl.DataFrame)] == [str(tmp_path / "phenotypes.csv")]


def test_the_design_is_that_of_the_file(analysis_of_file):
    loaded = load_config(analysis_of_file)
    read, given = prepare(loaded), prepare(loaded, table=read_phenotypes(loaded.data))
    assert given.counts == read.counts and given.warnings == read.warnings
    assert (given.design.y == read.design.y).all() and given.design.notes == read.design.notes
    for one, other in zip(given.levels, read.levels, strict=True):
        assert one.ids.equals(other.ids)


SHOWS = 7  # the one record whose commas can be nothing but decimal


def analysis_with(comma):
    """Weights, and ages of the animal, with three decimals from 1 to 999: as 1,106 that may be thousands."""
    phenotypes, pedigree = beef_frames(small_beef(120, 3, 4))
    rng = np.random.default_rng(4)
    weight, age = phenotypes["birth_weight"].to_numpy() + 0.0004, rng.uniform(1.1, 9.9, phenotypes.height)
    values = {"birth_weight": weight, "age": age}
    text = {name: [f"{max(v, 1.0):.3f}" for v in found] for name, found in values.items()}
    text["birth_weight"][SHOWS], text["age"][SHOWS] = "0.5", "0.25"
    columns = [pl.Series(name, [v.replace(".", comma) for v in found]) for name, found in text.items()]
    out = analysis_of(phenotypes.with_columns(columns), pedigree, group="herd")
    out["model"]["fixed"]["age"] = {"kind": "covariate"}
    return out


def test_folds_keep_what_commas_are(tmp_path):
    tables = []
    for name, comma in (("commas", ","), ("points", ".")):
        plan = ValidationPlan(method="kfold", folds=3)
        tables.append(validate_analysis(analysis_with(comma), plan, progress=False, output=tmp_path / name).table)
    assert_frame_equal(*tables)


@pytest.mark.parametrize("left_out", [[SHOWS], [0, 1]])
def test_records_without_some(left_out):
    """Whichever are left: a covariate too, which is read of records with a trait alone."""
    theta = []
    for comma in ",.":
        records = read_recorded(load_config(analysis_with(comma)))
        masked = np.zeros(len(records.phenotypes), bool)
        masked[left_out] = True
        theta.append(evaluate_masked(records, masked, "these").theta)
    assert all(np.array_equal(a, b) for a, b in zip(*theta, strict=True))


def test_what_is_no_number_stays_as_it_is_written():
    config = analysis_with(",")
    config["model"]["random"]["of_age"] = {"level": "age"}
    config["variances"]["of_age"] = 1.0
    records = read_recorded(load_config(config))
    frame = records.without(np.zeros(len(records.phenotypes), bool)).data.phenotypes
    assert frame["age"][SHOWS] == "0,25" and frame["birth_weight"][SHOWS] == "0.5"
    config = analysis_with(",")
    config["traits"] = {"birth_weight": {"missing": ["-9,9"]}}
    phenotypes = config["data"]["phenotypes"]
    weights = ["-9,9", *phenotypes["birth_weight"][1:]]
    config["data"]["phenotypes"] = phenotypes.with_columns(pl.Series("birth_weight", weights))
    records = read_recorded(load_config(config))
    assert len(records.phenotypes) == phenotypes.height - 1
    written = lambda absent: records.phenotypes.with_points(["birth_weight"], [absent])["birth_weight"][0]
    assert written(weights[1]) == weights[1] and written(weights[2]) == weights[1].replace(",", ".")


INDOOR, OUTDOOR = 3000.0, 6000.0  # residual variances of daily gain; that of the breeding values is 1500


@pytest.fixture(scope="module")
def pigs():
    records = read_recorded(load_config(ROOT / "configs" / "residual_classes.yaml"))
    return records, evaluate(records.analysis)


def outdoor(whole):
    return whole.design.class_of_pattern[whole.design.pattern] == 1


def test_residual_variances_are_those_of_the_class_of_a_record(pigs):
    _, whole = pigs
    y = simulated_records(whole, 100, np.random.default_rng(4))[:, 0]
    for own, residual in ((outdoor(whole), OUTDOOR), (~outdoor(whole), INDOOR)):
        assert np.mean(y[own] ** 2) == pytest.approx(1500 + residual, rel=0.05)
    _, whole = pigs
    share = outdoor(whole).mean()
    found = predictors(whole)[0].heritability
    assert found == pytest.approx(1500 / (1500 + share * OUTDOOR + (1 - share) * INDOOR))


def test_a_fold_may_hold_all_records_of_a_class(pigs):
    records, whole = pigs
    masked = outdoor(whole)
    partial = evaluate_masked(records, masked, "outdoor")
    assert partial.assembled.model.residual.classes == ("indoor",)
    assert partial.assembled.model.residual.start[0, 0, 0] == INDOOR
    assert partial.design.n_records == np.count_nonzero(~masked)
    other = evaluate_masked(records, ~masked, "indoor")
    assert other.assembled.model.residual.start[0, 0, 0] == OUTDOOR
