"""A good analysis in files that are written otherwise, wrong or damaged: the same result, or one message.

A message has exit code 2 and says what is wrong, where, what was found and what is needed; nothing is written.
The readers of tables and of the analysis have tests of every message beside them (tests/unit/pedigree, data, config).
"""

import gzip
import io
import os
import random
import tempfile

import numpy as np
import polars as pl
import pytest
from helpers.small_analysis import (
    ANALYSIS,
    FILES,
    PEDIGREE,
    PHENOTYPES,
    READ,
    USED,
    altered,
    command,
    contents,
    refused,
    replaced,
    write_files,
)

import mmgibbs.results.folder

GIBBS = replaced(ANALYSIS, "method: blup", "chains: 1, burn_in: 5, samples: 20, thin: 1")
ROWS = PHENOTYPES.splitlines()


@pytest.fixture(autouse=True)
def quick_and_clean(monkeypatch, tmp_path):
    """draws.nc takes longer to write than all the rest, and holds nothing here; temporary files must go."""
    monkeypatch.setattr(mmgibbs.results.folder, "write_draws", lambda path, **_: path.touch())
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    yield
    assert contents(scratch) == {}


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "analysis"


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    folder = tmp_path_factory.mktemp("good")
    write_files(folder)
    outcome = command(folder, "run", "analysis.yaml", "--quiet")
    assert (outcome.code, outcome.out, outcome.err) == (0, "", "")
    assert outcome.solutions["mean"].is_finite().all()
    assert sorted(p.name for p in folder.iterdir()) == sorted([*FILES, "run"])
    return outcome.solutions


def written(method, **changes):
    """The phenotypes as Polars writes them, some columns replaced."""
    out = io.BytesIO()
    frame = pl.read_csv(PHENOTYPES.encode(), null_values=["NA"]).with_columns(**changes)
    getattr(frame, method)(out)
    return out.getvalue()


def fields(change):
    """The phenotypes with `change(list of fields, number of the line)` made to every row."""
    rows = [change(row.split(","), i) for i, row in enumerate(ROWS)]
    return {"phenotypes.csv": "".join(",".join(row) + "\n" for row in rows)}


def every(change):
    return {name: change(text) for name, text in FILES.items()}


def tables(change):
    return {name: change(text) for name, text in FILES.items() if name != "analysis.yaml"}


def records(content):
    return {"phenotypes.csv": content}


HARMLESS = {
    "semicolons and decimal commas": records(PHENOTYPES.replace(",", ";").replace(".", ",")),
    "rows and cells without a value": records("".join(f"{row},,\n{',' * 8}\n" for row in ROWS)),
    "CRLF": every(lambda text: text.replace("\n", "\r\n")),
    "the end-of-file character of DOS": tables(lambda text: text + "\x1a"),
    "white space, nothing empty": {
        "phenotypes.csv": PHENOTYPES.replace("34.0,\n", "34.0,NA\n").replace(",", "   "),
        "pedigree.csv": PEDIGREE.replace(",", "  "),
    },
    "more decimals": altered("phenotypes.csv", "41.0", "41.000000000000000000000000"),
    "swapped columns": fields(lambda row, i: [row[j] for j in (6, 2, 0, 5, 1, 4, 3)]),
    "two gzip files in one": records(gzip.compress(PHENOTYPES[:99].encode()) + gzip.compress(PHENOTYPES[99:].encode())),
    "parquet, numbers as text": records(written("write_parquet", birth_weight=pl.col("birth_weight").cast(pl.String))),
    "parquet, classes as categories": records(written("write_parquet", herd=pl.col("herd").cast(pl.Categorical))),
}


@pytest.mark.parametrize("what", HARMLESS)
def test_the_same_written_otherwise_gives_the_same(what, folder, good):
    write_files(folder, HARMLESS[what])
    outcome = command(folder, "run", "analysis.yaml", "--quiet")
    assert (outcome.code, outcome.err) == (0, ""), outcome.err
    found, keys = outcome.solutions, ["term", "trait", "level"]
    assert sorted(found.select(keys).rows()) == sorted(good.select(keys).rows())
    joined = good.join(found, on=keys, suffix="_found", how="left").fill_null(-9)
    for column in ("mean", "sd", "reliability"):
        np.testing.assert_allclose(joined[f"{column}_found"], joined[column], rtol=1e-7, atol=1e-9)
    counts = outcome.record["data"]
    assert counts["records"] == {"read": READ, "used": USED, "left_out": {"no observed trait": READ - USED}}
    assert counts["observations"] == {"birth_weight": 6, "weaning_weight": 5}


GENETIC = "genetic: [[6, 8], [8, 90]]"
SWAPPED = [f"{s},{i},{d}\n" for i, s, d in (row.split(",") for row in PEDIGREE.splitlines()[1:])]
ARROW = written("write_ipc")
# what is wrong -> files changed, parts of the message in their order
MISTAKES = {
    "missing file, another beside it": (
        {"phenotypes.csv": None, "phenotype.csv": PHENOTYPES},
        ["phenotypes.csv: no such file (beside it: 'phenotype.csv')"],
    ),
    "unknown column of a trait": (
        {"analysis.yaml": ANALYSIS.replace("birth_weight", "birthweight")},
        ["phenotypes.csv: there is no column 'birthweight' (traits.birthweight)", "nearest: 'birth_weight'"],
    ),
    "no header line": (
        records(PHENOTYPES.split("\n", 1)[1]),
        ["there is no column 'birth_weight' (traits.birth_weight)", "is the first line a record?", "data.header"],
    ),
    "a header in the middle of the pedigree": (
        altered("pedigree.csv", "\nc3,", "\nid,sire,dam\nc3,"),
        ["pedigree.csv row 9: found the names of the columns again (id, sire, dam); needed an animal"],
    ),
    "unknown key": (
        altered("analysis.yaml", "sex: {}", "sex: {colunm: sex}"),
        ["model.fixed.sex.colunm: unknown key", "'column'"],
    ),
    "the phenotypes as the pedigree": (
        altered("analysis.yaml", "pedigree: pedigree.csv", "pedigree: phenotypes.csv"),
        ["phenotypes.csv: found no column named as a sire or a dam", "data.pedigree_columns: {id: COLUMN, sire: "],
    ),
    "a number too large to square": (
        altered("phenotypes.csv", "41.0", "1e200"),
        ["phenotypes.csv row 3: found '1e200' in column 'birth_weight'", "at most 1e+18 in size"],
    ),
    "weight too small": (
        altered("phenotypes.csv", "190,2", "190,1e-300"),
        ["row 3: found the weight 1e-300", "needed a positive weight, from 1e-18 to 1e+18"],
    ),
    "animal as its own ancestor": (
        {"pedigree.csv": PEDIGREE.replace("s1,0,0", "s1,x,0") + "x,0,y\ny,c1,0\n"},
        ["pedigree.csv row 2: 's1' is its own ancestor: 's1' -> 'x' -> 'y' -> 'c1' -> 's1'", "needed parents older"],
    ),
    "variance that overflows": (
        altered("analysis.yaml", GENETIC, "genetic: [[1e300, 0], [0, 1]]"),
        ["variances.genetic.start: found the variance 1e+300 for birth_weight", "needed one from 1e-40 to 1e+40"],
    ),
    "no start that could be guessed": (
        {"analysis.yaml": replaced(GIBBS, f"  {GENETIC}\n", "")}
        | fields(lambda row, i: row if i == 0 else [*row[:5], "3", row[6]]),
        ["variances.genetic: found no start", "birth_weight, which does not vary", "needed a start"],
    ),
    "a regression that is not installed": (
        {"analysis.yaml": "data: {phenotypes: phenotypes.csv}\nmodel: {plugin: laso, response: y, predictors: x}\n"},
        ["model.plugin: found 'laso', needed one of the installed regressions"],
    ),
    "a model without effects": (
        {"analysis.yaml": "data: {phenotypes: phenotypes.csv}\ntraits: [age]\nmodel: {intercept: false}\n"},
        ["analysis.yaml: model: found no effect and intercept: false", "needed at least one effect"],
    ),
    "an unknown level to save": (
        altered("analysis.yaml", "directory: run", "directory: run, save_levels: [genetic: [c77]]"),
        ["output.save_levels.genetic: found 'c77', needed names among the 10 levels of genetic"],
    ),
    "power of a covariate that overflows": (
        altered("analysis.yaml", "kind: covariate,", "kind: covariate, degree: 20,")
        | altered("phenotypes.csv", "M,190", "M,1e7"),
        ["phenotypes.csv: found values up to 1e+07", "(model.fixed.age)", "needed another unit: power 20"],
    ),
    "UTF-16 without mark": (records(PHENOTYPES.encode("utf-16-le")), ["phenotypes.csv: is UTF-16 text, needed UTF-8"]),
    "pedigree cut between rows": (
        {"pedigree.csv": PEDIGREE[: PEDIGREE.index("c2,")]},
        ["phenotypes.csv row 3: animal 'c2' (column 'animal') is not in the pedigree"],
    ),
    "white space where values are empty": (
        records(PHENOTYPES.replace(",", " ")),
        ["phenotypes.csv row 8: found 6 fields separated by white space, needed 7"],
    ),
    "digits of another script": (altered("phenotypes.csv", "41.0", "\uff14\uff11"), ["row 3: found '\uff14\uff11'"]),
    "swapped ids and sires": (
        {"pedigree.csv": "id,sire,dam\n" + "".join(SWAPPED)},
        ["pedigree.csv row 2: column 'id' has '0', which means an unknown parent; needed an animal's id"],
    ),
    "a line that names the separator": (
        records("sep=,\n" + PHENOTYPES),
        ["phenotypes.csv row 1: found 'sep=,', and below row 1 fields separated by ',', 7 in each row"],
    ),
    "half an arrow file": (records(ARROW[: len(ARROW) // 2]), ["phenotypes.csv: cannot be read: the arrow file"]),
    "an analysis cut short": ({"analysis.yaml": ANALYSIS[:200]}, ["analysis.yaml line 8, column"]),
    "tabs in the analysis": (altered("analysis.yaml", "    herd", "\therd"), ["analysis.yaml line 6, column"]),
    "a table for the analysis": ({"analysis.yaml": PHENOTYPES}, ["analysis.yaml: found "]),
}


@pytest.mark.parametrize("what", MISTAKES)
def test_a_mistake_gets_one_message_and_nothing_is_written(what, folder):
    files, said = MISTAKES[what]
    write_files(folder, files)
    message = refused(folder)
    at = -1
    for part in said:
        at = message.find(part, at + 1)
        assert at >= 0, f"{part!r} is not in its place: {message}"
    assert refused(folder, run=("check", "analysis.yaml")) == message


PLACES = {
    "a folder": (lambda path: path.mkdir(), "is a folder, needed a"),
    "a pipe": (os.mkfifo, "a pipe"),
    "a link to nothing": (lambda path: path.symlink_to("nowhere.csv"), "no such file"),
    "a link to itself": (lambda path: path.symlink_to(path.name), "is a symbolic link that leads to no file"),
    "a device": (lambda path: path.symlink_to("/dev/zero"), "is not a regular file (a device or a pipe), needed a"),
}


@pytest.mark.parametrize("what", PLACES)
@pytest.mark.parametrize("file", ["phenotypes.csv", "analysis.yaml"])
def test_something_that_is_no_file(what, file, folder):
    write_files(folder, {file: None})
    make, said = PLACES[what]
    make(folder / file)
    message = refused(folder)
    assert ": " in message and "\n" not in message
    if file != "analysis.yaml":
        assert said in message


@pytest.mark.parametrize("rows", [1, 5])
def test_rows_that_are_gone_are_counted(rows, folder):
    write_files(folder, records("\n".join(ROWS[: rows + 1])))
    outcome = command(folder, "run", "analysis.yaml", "--quiet")
    assert outcome.code == 0, outcome.err
    counts = outcome.record["data"]["records"]
    assert counts["read"] == rows == counts["used"] + sum(counts["left_out"].values())
    assert outcome.solutions["mean"].is_finite().all()


def test_bytes_changed_at_random(folder):
    """Any byte of a text table changed: a finite result whose counts add up, or one message; never a traceback."""
    rng, verdicts = random.Random(11), set()
    for trial in range(60):
        name = ("phenotypes.csv", "pedigree.csv", "analysis.yaml")[trial % 3]
        text = bytearray(FILES[name].encode())
        for _ in range(rng.randint(1, 3)):
            text[rng.randrange(len(text))] = rng.choice(b"\x00\xff\n\r\t\",;. -0159eaz'#:[]{}")
        write_files(folder, {name: bytes(text)})
        outcome = command(folder, "run", "analysis.yaml", "--quiet", "--output", f"run{trial}")
        assert outcome.code in (0, 2), (bytes(text), outcome.err)
        verdicts.add(outcome.code)
        if outcome.code == 2:
            assert "Traceback" not in outcome.err and outcome.err.strip(), bytes(text)
            assert not (folder / f"run{trial}").exists()
        else:
            found = pl.read_parquet(folder / f"run{trial}" / "solutions.parquet")
            assert found["mean"].is_finite().all() and found["mean"].null_count() == 0, bytes(text)
    assert verdicts == {0, 2}
