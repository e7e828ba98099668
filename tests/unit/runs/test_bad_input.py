"""What bad input gets: exit code 2, one message that says what, where, found and needed; nothing is written."""

import tempfile

import polars as pl
import pytest
from helpers.small_analysis import (
    ANALYSIS,
    FILES,
    PEDIGREE,
    PHENOTYPES,
    READ,
    USED,
    command,
    contents,
    refused,
    replaced,
    write_files,
)  # fmt: skip

import mmgibbs
import mmgibbs.machine.memory
import mmgibbs.runs.run
from mmgibbs.errors import DataError

GIBBS = replaced(ANALYSIS, "method: blup", "chains: 1, burn_in: 5, samples: 20, thin: 1")


@pytest.fixture(autouse=True)
def scratch(tmp_path, monkeypatch):
    """Temporary files go to a folder of their own, which must be empty at the end."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    assert contents(folder) == {}


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "analysis"


def analysis(old, new, text=ANALYSIS):
    return {"analysis.yaml": replaced(text, old, new)}


def phenotypes(old, new):
    return {"phenotypes.csv": replaced(PHENOTYPES, old, new)}


def pedigree(old, new):
    return {"pedigree.csv": replaced(PEDIGREE, old, new)}


def without(column):
    """The phenotypes with every value of one column missing."""
    frame = pl.read_csv(PHENOTYPES.encode(), infer_schema=False).with_columns(pl.lit("NA").alias(column))
    return {"phenotypes.csv": frame.write_csv()}


GENETIC = "genetic: [[6, 8], [8, 90]]"
NUMBER = ["needed a finite number", "missing value (NA, empty; data.missing may list others)"]
# what is wrong -> (files changed, the parts of the message in their order)
MISTAKES = {
    "missing phenotype file": ({"phenotypes.csv": None}, ["phenotypes.csv: no such file"]),
    "missing pedigree file": ({"pedigree.csv": None}, ["pedigree.csv: no such file"]),
    "missing file, another beside it": (
        {"phenotypes.csv": None, "phenotype.csv": PHENOTYPES},
        ["phenotypes.csv: no such file (beside it: 'phenotype.csv')"],
    ),
    "missing analysis file": ({"analysis.yaml": None}, ["analysis.yaml: no such file"]),
    "unknown column of a trait": (
        analysis("[birth_weight, ", "[birthweight, ")
        | {"analysis.yaml": ANALYSIS.replace("birth_weight", "birthweight")},
        ["phenotypes.csv: there is no column 'birthweight' (traits.birthweight)", "nearest: 'birth_weight'"],
    ),
    "unknown column of a fixed effect": (
        analysis("herd: {}", "herd: {column: heard}"),
        ["phenotypes.csv: there is no column 'heard' (model.fixed.herd.column)", "nearest: 'herd'"],
    ),
    "unknown column of a random effect": (
        analysis("level: animal", "level: animel"),
        ["phenotypes.csv: there is no column 'animel' (model.random.genetic.level)", "nearest: 'animal'"],
    ),
    "unknown column of weights": (
        analysis("weights: weight", "weights: wieght"),
        ["phenotypes.csv: there is no column 'wieght' (data.weights)", "nearest: 'weight'"],
    ),
    "unknown column of the pedigree": (
        analysis("weights:", "pedigree_columns: {id: id, sire: sire, dam: mother}, weights:"),
        ["pedigree.csv: there is no column 'mother'", "found: 'id', 'sire', 'dam'"],
    ),
    "the phenotypes as the pedigree": (
        analysis("pedigree: pedigree.csv", "pedigree: phenotypes.csv"),
        [
            "phenotypes.csv: found no column named as a sire or a dam",
            "'animal', 'herd', 'sex'",
            "recognised as the sire: sire,",
            "recognised as the dam: dam,",
            "needed such names (case and punctuation do not count), or data.pedigree_columns: {id: COLUMN, sire: "
            "COLUMN, dam: COLUMN}",
        ],
    ),
    "no header line": (
        {"phenotypes.csv": PHENOTYPES.split("\n", 1)[1]},
        ["there is no column 'birth_weight' (traits.birth_weight)", "is the first line a record?", "data.header"],
    ),
    "unknown key": (analysis("sex: {}", "sex: {colunm: sex}"), ["model.fixed.sex.colunm: unknown key", "'column'"]),
    "unknown section": (analysis("sampler:", "sampling:"), ["analysis.yaml: sampling: unknown key", "'sampler'"]),
    "wrong type, number": (
        analysis("method: blup", "chains: four"),
        ["analysis.yaml: sampler.chains: found 'four', needed a whole number"],
    ),
    "wrong type, mapping": (
        analysis("sex: {}", "sex: [1, 2]"),
        ["analysis.yaml: model.fixed.sex: found a list of 2 values, needed a mapping"],
    ),
    "wrong type, override": (
        {},
        ["override 'sampler.thin=often': sampler.thin: found 'often', needed a whole number"],
        "--set",
        "sampler.thin=often",
    ),
    "non-numeric trait value": (
        phenotypes("41.0", "heavy"),
        ["phenotypes.csv row 3: found 'heavy' in column 'birth_weight' (traits.birth_weight)", *NUMBER],
    ),
    "non-numeric covariate": (
        phenotypes("M,190", "M,old"),
        ["phenotypes.csv row 3: found 'old' in column 'age' (model.fixed.age)", *NUMBER],
    ),
    "infinite trait value": (phenotypes("41.0", "inf"), ["phenotypes.csv row 3: found 'inf'", *NUMBER]),
    "minus infinity": (phenotypes("41.0", "-Infinity"), ["phenotypes.csv row 3: found '-Infinity'", *NUMBER]),
    "NaN trait value": (phenotypes("41.0", "NaN"), ["phenotypes.csv row 3: found 'NaN'", *NUMBER]),
    "a number that overflows": (phenotypes("41.0", "1e400"), ["phenotypes.csv row 3: found '1e400'", *NUMBER]),
    "a number too large to square": (
        phenotypes("41.0", "1e200"),
        ["phenotypes.csv row 3: found '1e200' in column 'birth_weight'", "at most 1e+18 in size"],
    ),
    "negative weight": (
        phenotypes("190,2", "190,-2"),
        ["phenotypes.csv row 3: found the weight -2 in column 'weight' (data.weights)", "needed a positive weight"],
    ),
    "zero weight": (phenotypes("190,2", "190,0"), ["row 3: found the weight 0", "needed a positive weight"]),
    "missing weight": (phenotypes("190,2", "190,"), ["row 3: found no weight", "needed a positive weight"]),
    "weight too small": (
        phenotypes("190,2", "190,1e-300"),
        ["row 3: found the weight 1e-300", "needed a positive weight, from 1e-18 to 1e+18"],
    ),
    "duplicate animal": (
        {"pedigree.csv": PEDIGREE + "c1,s2,d2\n"},
        ["pedigree.csv row 12: animal 'c1' has a row already, row 7", "needed one row for each animal"],
    ),
    "animal as its own sire": (
        pedigree("c1,s1,d1", "c1,c1,d1"),
        ["pedigree.csv row 7: animal 'c1' is its own sire", "needed another animal"],
    ),
    "animal as its own dam": (pedigree("c1,s1,d1", "c1,s1,c1"), ["pedigree.csv row 7: animal 'c1' is its own dam"]),
    "animal as its own ancestor": (
        {"pedigree.csv": PEDIGREE.replace("s1,0,0", "s1,x,0") + "x,0,y\ny,c1,0\n"},
        ["pedigree.csv row 2: 's1' is its own ancestor: 's1' -> 'x' -> 'y' -> 'c1' -> 's1'", "needed parents older"],
    ),
    "an id that is both sire and dam": (
        pedigree("c3,s2,d3", "c3,d1,d3"),
        ["pedigree.csv row 9: 'd1' is a sire in row 9 and a dam in row 7", "needed one or the other"],
    ),
    "one parent as sire and dam": (pedigree("c3,s2,d3", "c3,d3,d3"), ["row 9: 'd3' is both sire and dam of 'c3'"]),
    "animal absent from the pedigree": (
        phenotypes("c3,south", "c33,south"),
        [
            "phenotypes.csv row 4: animal 'c33' (column 'animal') is not in the pedigree",
            "needed",
            "add_missing_animals",
        ],
    ),
    "a record without an animal": (
        phenotypes("c3,south", "0,south"),
        ["phenotypes.csv row 4: found no known level in column 'animal' (model.random.genetic.level)", "needed"],
    ),
    "empty phenotypes": ({"phenotypes.csv": ""}, ["phenotypes.csv: is empty"]),
    "a header and no records": (
        {"phenotypes.csv": PHENOTYPES.split("\n")[0] + "\n"},
        ["phenotypes.csv: has a header line but no rows"],
    ),
    "empty pedigree": ({"pedigree.csv": ""}, ["pedigree.csv: is empty"]),
    "a pedigree of a header": ({"pedigree.csv": "id,sire,dam\n"}, ["pedigree.csv: has a header line but no rows"]),
    "empty analysis": ({"analysis.yaml": ""}, ["analysis.yaml: is empty, needed an analysis"]),
    "a trait without records": (
        without("weaning_weight"),
        ["phenotypes.csv: found no record of trait 'weaning_weight' (column 'weaning_weight')", "needed at least one"],
    ),
    "covariance matrix that is not square": (
        analysis(GENETIC, "genetic: [[6, 8], [8]]"),
        [
            "analysis.yaml: variances.genetic.start: found a matrix with rows of 1 and 2 numbers",
            "needed a 2 x 2 matrix",
        ],
    ),
    "covariance matrix of the wrong size": (
        analysis(GENETIC, "genetic: 6"),
        ["variances.genetic.start: found the number 6", "needed a 2 x 2 matrix in the order birth_weight"],
    ),
    "covariance matrix that is too large": (
        analysis(GENETIC, "genetic: [[1, 0, 0], [0, 1, 0], [0, 0, 1]]"),
        ["variances.genetic.start: found a 3 x 3 matrix", "needed a 2 x 2 matrix"],
    ),
    "covariance matrix that is not symmetric": (
        analysis(GENETIC, "genetic: [[6, 8], [7, 90]]"),
        ["variances.genetic.start: found 8 for (birth_weight, weaning_weight) and 7", "needed a symmetric matrix"],
    ),
    "covariance matrix that is not positive definite": (
        analysis(GENETIC, "genetic: [[6, 80], [80, 90]]"),
        ["variances.genetic.start: found the correlation 3.443", "needed", "positive definite"],
    ),
    "negative variance": (
        analysis("[10, 160]]", "[10, -160]]"),
        ["variances.residual.start: found the variance -160 for weaning_weight", "needed one above 0"],
    ),
    "variance that overflows": (
        analysis(GENETIC, "genetic: [[1e300, 0], [0, 1]]"),
        ["variances.genetic.start: found the variance 1e+300 for birth_weight", "needed one from 1e-40 to 1e+40"],
    ),
    "prior df for which no draw exists": (
        analysis(GENETIC, "genetic: {start: [[6, 8], [8, 90]], prior: {df: -9, scale: [[1, 0], [0, 1]]}}", GIBBS),
        ["variances.genetic: the posterior does not exist: prior df -9 plus 10 levels gives 1", "needed more than 1"],
    ),
    "no start that could be guessed": (
        {
            "analysis.yaml": replaced(GIBBS, f"  {GENETIC}\n", ""),
            "phenotypes.csv": without("birth_weight")["phenotypes.csv"].replace("NA,", "3,"),
        },
        ["variances.genetic: found no start", "birth_weight, which does not vary", "needed a start"],
    ),
    "a missing class on an observed record": (
        phenotypes("c2,north,M", "c2,,M"),
        ["phenotypes.csv row 3: found no value in column 'herd' (model.fixed.herd)", "needed a level"],
    ),
    "a missing covariate on an observed record": (
        phenotypes("M,190", "M,NA"),
        ["phenotypes.csv row 3: found no value in column 'age' (model.fixed.age)", "needed a covariate"],
    ),
    "a type of traits that is none": (
        analysis("[birth_weight, weaning_weight]\nmodel", "{birth_weight: {type: gamma}, weaning_weight: {}}\nmodel"),
        ["analysis.yaml: traits.birth_weight.type: found 'gamma'", "needed normal, binary, ordinal, censored or count"],
    ),
    "a regression that is not installed": (
        {
            "analysis.yaml": "data: {phenotypes: phenotypes.csv}\n"
            "model: {plugin: lassso, response: age, predictors: sex}\n"
        },
        ["model.plugin: found 'lassso', needed one of the installed regressions"],
    ),
    "a model without effects": (
        {"analysis.yaml": "data: {phenotypes: phenotypes.csv}\ntraits: [age]\nmodel: {intercept: false}\n"},
        ["analysis.yaml: model: found no effect and intercept: false", "needed at least one effect"],
    ),
    "groups without a column": (
        analysis("weights:", "groups: {column: breed}, weights:"),
        ["pedigree.csv: there is no column 'breed'", "found: 'id', 'sire', 'dam'"],
    ),
    "an unknown level to save": (
        analysis("directory: run", "directory: run, save_levels: [genetic: [c77]]"),
        ["output.save_levels.genetic: found 'c77', needed names among the 10 levels of genetic"],
    ),
    "power of a covariate that overflows": (
        {
            "analysis.yaml": replaced(ANALYSIS, "kind: covariate,", "kind: covariate, degree: 20,"),
            "phenotypes.csv": replaced(PHENOTYPES, "M,190", "M,1e7"),
        },
        ["phenotypes.csv: found values up to 1e+07", "(model.fixed.age)", "needed another unit: power 20"],
    ),
    "a missing relationship file": (
        analysis("relationship: pedigree", "relationship: kinv.txt"),
        ["kinv.txt: no such file"],
    ),
    "a relationship file that is not symmetric": (
        analysis("relationship: pedigree", "relationship: kinv.txt")
        | {"kinv.txt": "c1 c1 1\nc2 c2 1\nc1 c2 .1\nc2 c1 .2\n"},
        ["kinv.txt row 4: found 0.2 for the pair c2, c1, but 0.1 in row 3", "needed a symmetric matrix"],
    ),
}


@pytest.mark.parametrize("what", MISTAKES)
def test_a_mistake_gets_one_message_and_nothing_is_written(what, folder):
    changed, said, *arguments = MISTAKES[what]
    write_files(folder, changed)
    message = refused(folder, *arguments)
    at = -1
    for part in said:
        at = message.find(part, at + 1)
        assert at >= 0, f"{part!r} is not in its place: {message}"
    assert refused(folder, *arguments, run=("check", "analysis.yaml")) == message


def test_the_good_analysis_is_good(folder):
    """Otherwise the tests above would show nothing."""
    write_files(folder)
    outcome = command(folder, "run", "analysis.yaml", "--quiet")
    assert (outcome.code, outcome.out, outcome.err) == (0, "", "")
    assert outcome.record["data"]["records"] == {
        "read": READ,
        "used": USED,
        "left_out": {"no observed trait": READ - USED},
    }
    assert outcome.solutions["mean"].is_finite().all() and outcome.solutions["mean"].null_count() == 0
    assert sorted(p.name for p in folder.iterdir()) == sorted([*FILES, "run"])


def test_ids_that_are_written_otherwise_are_a_warning(folder):
    """Every animal was added as a founder: the pedigree says nothing. run.json, the screen and `check` say so."""
    renamed = "\n".join(line if i == 0 else f"DE{line}" for i, line in enumerate(PHENOTYPES.strip().splitlines()))
    write_files(
        folder,
        {"phenotypes.csv": renamed + "\n"} | analysis("weights: weight", "weights: weight, add_missing_animals: true"),
    )
    outcome = command(folder, "run", "analysis.yaml", "--quiet")
    (warning,) = outcome.record["warnings"]
    assert outcome.code == 0 and outcome.err == f"warning: {warning}\n"
    assert (
        warning.startswith(f"data.add_missing_animals: {USED} of the {USED} animals")
        and "'DEc1', the pedigree 's1'" in warning
    )
    assert f"warning: {warning}" in command(folder, "check", "analysis.yaml").err


def test_python_gets_the_same_message_as_an_exception(folder):
    """A table that is handed over is named by its place, its rows from 1."""
    frame = pl.read_csv(PHENOTYPES.encode(), infer_schema=False, null_values=["NA", ""])
    frame = frame.with_columns(pl.col("birth_weight", "age").cast(pl.Float64))
    broken = frame.with_columns(
        pl.when(pl.col("animal") == "c4").then(float("inf")).otherwise("birth_weight").alias("birth_weight")
    )
    config = {
        "data": {"phenotypes": broken},
        "traits": ["birth_weight"],
        "model": {"fixed": {"herd": {}}},
        "variances": {"residual": 9},
        "sampler": {"method": "blup"},
        "output": {"directory": str(folder / "run")},
    }
    with pytest.raises(DataError, match=r"^phenotypes row 4: found inf in column 'birth_weight'"):
        mmgibbs.runs.run.run(config, progress=False)
    assert not folder.exists()
