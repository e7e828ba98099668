"""A good analysis in files that are damaged in many ways: the same result as from the good files, or one message."""

import bz2
import gzip
import io
import os
import random
import re
import tempfile

import numpy as np
import polars as pl
import pytest
from helpers.small_analysis import (
    ANALYSIS,
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

import mmgibbs.results.folder

ROWS = PHENOTYPES.splitlines()
HEADER, RECORDS = ROWS[0], ROWS[1:]


@pytest.fixture(autouse=True)
def quick_and_clean(monkeypatch, tmp_path):
    """draws.nc takes longer to write than all the rest, and holds nothing here; temporary files must go."""
    monkeypatch.setattr(mmgibbs.results.folder, "write_draws", lambda path, **_: path.touch())
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    yield
    assert contents(scratch) == {}


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    folder = tmp_path_factory.mktemp("good")
    write_files(folder)
    outcome = command(folder, "run", "analysis.yaml", "--quiet")
    assert outcome.code == 0, outcome.err
    return outcome.solutions


def table(**changes):
    """The phenotypes as Polars reads them, some columns replaced."""
    frame = pl.read_csv(PHENOTYPES.encode(), null_values=["NA"])
    return frame.with_columns(**changes)


def parquet(frame=None):
    out = io.BytesIO()
    (table() if frame is None else frame).write_parquet(out)
    return out.getvalue()


def arrow(frame=None):
    out = io.BytesIO()
    (table() if frame is None else frame).write_ipc(out)
    return out.getvalue()


def fields(change):
    """The phenotypes with `change(list of fields, number of the line)` made to every row."""
    return "".join(",".join(change(row.split(","), i)) + "\n" for i, row in enumerate(ROWS))


def columns(order):
    return fields(lambda row, i: [row[j] for j in order])


def both(change):
    return {"phenotypes.csv": change(PHENOTYPES), "pedigree.csv": change(PEDIGREE)}


def every(change):
    return both(change) | {"analysis.yaml": change(ANALYSIS)}


def phenotypes(old, new):
    return {"phenotypes.csv": replaced(PHENOTYPES, old, new)}


def pedigree(old, new):
    return {"pedigree.csv": replaced(PEDIGREE, old, new)}


def analysis(old, new):
    return {"analysis.yaml": replaced(ANALYSIS, old, new)}


# Other ways to write the same: the result must be the same.
HARMLESS = {
    "semicolons and decimal commas": {"phenotypes.csv": PHENOTYPES.replace(",", ";").replace(".", ",")},
    "byte order mark": every(lambda text: "\ufeff" + text),
    "Latin-1": {
        "phenotypes.csv": fields(lambda row, i: [*row, "f\u00e4rg" if i == 0 else "r\u00f6d"]).encode("latin-1"),
    },
    "rows and cells without a value": {"phenotypes.csv": "".join(f"{row},,\n{',' * 8}\n" for row in ROWS)},
    "CRLF": every(lambda text: text.replace("\n", "\r\n")),
    "CR alone": every(lambda text: text.replace("\n", "\r")),
    "CR CR LF": both(lambda text: text.replace("\n", "\r\r\n")),
    "no last line end": every(lambda text: text.rstrip("\n")),
    "empty lines": both(lambda text: "\n\n" + text.replace("\n", "\n\n")),
    "lines of blanks": both(lambda text: text.replace("\n", "\n   \n")),
    "quoted fields": {"phenotypes.csv": fields(lambda row, i: [f'"{v}"' for v in row])},
    "quoted numbers only": {"phenotypes.csv": fields(lambda row, i: [*row[:5], f'"{row[5]}"', row[6]])},
    "tabs": both(lambda text: text.replace(",", "\t")),
    "semicolons": both(lambda text: text.replace(",", ";")),
    "the end-of-file character of DOS": both(lambda text: text + "\x1a"),
    "the end-of-file character of DOS, no last line end": both(lambda text: text.rstrip("\n") + "\x1a"),
    "bars": both(lambda text: text.replace(",", "|")),
    "blanks around fields": both(lambda text: text.replace(",", " , ")),
    "non-breaking blanks": both(lambda text: text.replace(",", "\u00a0,\u00a0")),
    "white space, nothing empty": {
        "phenotypes.csv": PHENOTYPES.replace("34.0,\n", "34.0,NA\n").replace(",", "   "),
        "pedigree.csv": PEDIGREE.replace(",", "  "),
    },
    "exponents and signs": phenotypes("41.0", "+4.1e1"),
    "more decimals": phenotypes("41.0", "41.000000000000000000000000"),
    "leading zeros of a number": phenotypes("41.0", "0041.0"),
    "swapped columns": {"phenotypes.csv": columns([6, 2, 0, 5, 1, 4, 3])},
    "an unnamed column of row numbers": {"phenotypes.csv": fields(lambda row, i: [str(i) if i else "", *row])},
    "a column nobody asked for": {"phenotypes.csv": fields(lambda row, i: [*row, "colour" if i == 0 else "r\u00f6d"])},
    "trailing separators": {"phenotypes.csv": "".join(f"{row},\n" for row in ROWS)},
    "shuffled pedigree": {"pedigree.csv": "\n".join(["id,sire,dam", *sorted(PEDIGREE.splitlines()[1:], reverse=True)])},
    "sires and dams exchanged, named": pedigree("id,sire,dam", "id,dam,sire"),
    "founders without rows": {"pedigree.csv": "id,sire,dam\n" + PEDIGREE[PEDIGREE.index("c1,") :]},
    "a pedigree without header": {"pedigree.csv": PEDIGREE.split("\n", 1)[1]},
    "gzip": {"phenotypes.csv": gzip.compress(PHENOTYPES.encode())},
    "two gzip files in one": {
        "phenotypes.csv": gzip.compress(PHENOTYPES[:100].encode()) + gzip.compress(PHENOTYPES[100:].encode())
    },
    "parquet": {"phenotypes.csv": parquet()},
    "arrow": {"phenotypes.csv": arrow()},
    "parquet, numbers as text": {"phenotypes.csv": parquet(table(birth_weight=pl.col("birth_weight").cast(pl.String)))},
    "parquet, classes as categories": {"phenotypes.csv": parquet(table(herd=pl.col("herd").cast(pl.Categorical)))},
}


@pytest.mark.parametrize("what", HARMLESS)
def test_the_same_written_otherwise_gives_the_same(what, tmp_path, good):
    folder = tmp_path / "analysis"
    write_files(folder, HARMLESS[what])
    outcome = command(folder, "run", "analysis.yaml", "--quiet")
    assert (outcome.code, outcome.err) == (0, ""), outcome.err
    found, keys = outcome.solutions, ["term", "trait", "level"]
    assert sorted(found.select(keys).rows()) == sorted(good.select(keys).rows())
    joined = good.join(found, on=keys, suffix="_found", how="left")
    for column in ("mean", "sd", "reliability"):
        np.testing.assert_allclose(
            joined[f"{column}_found"].fill_null(-9), joined[column].fill_null(-9), rtol=1e-7, atol=1e-9
        )
    counts = outcome.record["data"]
    assert counts["records"] == {"read": READ, "used": USED, "left_out": {"no observed trait": READ - USED}}
    assert counts["observations"] == {"birth_weight": 6, "weaning_weight": 5}


NUMBER = "needed a finite number"
PARQUET, ARROW = parquet(), arrow()
# What cannot be meant, or not be known: one message that begins with the file (and row) and says this.
HARMFUL = {
    "NUL byte": (phenotypes("41.0", "41\x000"), "phenotypes.csv row 3: found a zero byte"),
    "NUL byte in the pedigree": (pedigree("c3,s2", "c\x003,s2"), "pedigree.csv row 9: found a zero byte"),
    "NUL byte in the analysis": (
        analysis("calves", "cal\x00ves"),
        "analysis.yaml line 1: is not readable text: found the character '\\x00'",
    ),
    "UTF-16": (both(lambda text: text.encode("utf-16")), "phenotypes.csv: is UTF-16 text, needed UTF-8"),
    "UTF-16 without mark": (
        both(lambda text: text.encode("utf-16-le")),
        "phenotypes.csv: is UTF-16 text, needed UTF-8",
    ),
    "UTF-16 without mark, the high byte first": (
        both(lambda text: text.encode("utf-16-be")),
        "phenotypes.csv: is UTF-16 text, needed UTF-8",
    ),
    "UTF-16 pedigree": ({"pedigree.csv": PEDIGREE.encode("utf-16")}, "pedigree.csv: is UTF-16 text, needed UTF-8"),
    "UTF-16 analysis": ({"analysis.yaml": ANALYSIS.encode("utf-16")}, "analysis.yaml line 1: byte 0xff is not UTF-8"),
    "a byte of no letter": (
        {"phenotypes.csv": PHENOTYPES.encode().replace(b"north", b"n\x81rth")},
        "phenotypes.csv row 2: found byte 0x81, which is not text in Windows-1252",
    ),
    "random bytes": (
        {"phenotypes.csv": bytes(random.Random(5).choices(range(256), k=700))},
        "phenotypes.csv row 1: found a zero byte",
    ),
    "a quote never closed": (
        phenotypes("c3,south", '"c3,south'),
        "phenotypes.csv row 4: a quotation mark is opened here",
    ),
    "a quote inside a field": (
        phenotypes("c3,south", 'c"3,south'),
        "phenotypes.csv row 4: found a quotation mark inside",
    ),
    "text after a quote": (phenotypes("c3,south", '"c"3,south'), "phenotypes.csv row 4: found text behind a closing"),
    "single quotes": (
        {"phenotypes.csv": fields(lambda row, i: [f"'{v}'" for v in row])},
        "phenotypes.csv: there is no column 'birth_weight' (traits.birth_weight); nearest",
    ),
    "truncated within a row": (
        {"phenotypes.csv": PHENOTYPES[:180]},
        "phenotypes.csv row 6: found 5 fields separated by ','",
    ),
    "truncated pedigree": (
        {"pedigree.csv": PEDIGREE[:-6]},
        "pedigree.csv row 11: found 2 fields separated by ',', needed 3",
    ),
    "pedigree cut between rows": (
        {"pedigree.csv": PEDIGREE[: PEDIGREE.index("c2,")]},
        "phenotypes.csv row 3: animal 'c2' (column 'animal') is not in the pedigree",
    ),
    "merged rows": (
        phenotypes("201.5\nc2", "201.5c2"),
        "phenotypes.csv row 2: found 13 fields separated by ',', needed 7",
    ),
    "a row in two": (phenotypes("35.5,", "35.5\n,"), "phenotypes.csv row 2: found 6 fields"),
    "a carriage return within a row": (
        phenotypes("c3,south", "c3\rx,south"),
        "phenotypes.csv row 4: found a carriage return",
    ),
    "a row with a comma too many": (phenotypes("39.0,", "39.0,,"), "phenotypes.csv row 5: found 8 fields"),
    "another separator in one row": (
        phenotypes(RECORDS[2], RECORDS[2].replace(",", ";")),
        "phenotypes.csv row 4: found 1 field separated by ',', needed 7",
    ),
    "the wrong separator": (
        analysis("weights:", "separator: ';', weights:"),
        "phenotypes.csv: there is no column 'birth_weight' (traits.birth_weight); found: 'animal,herd,",
    ),
    "white space where values are empty": (
        {"phenotypes.csv": PHENOTYPES.replace(",", " ")},
        "phenotypes.csv row 8: found 6 fields separated by white space, needed 7",
    ),
    "the header twice": (
        phenotypes("\nc3,", f"\n{HEADER}\nc3,"),
        "phenotypes.csv row 4: found 'birth_weight' in column",
    ),
    "a column name twice": (
        phenotypes("birth_weight,weaning_weight", "birth_weight,birth_weight"),
        "phenotypes.csv: columns 6 and 7 are both named 'birth_weight'",
    ),
    "a header in the middle of the pedigree": (
        pedigree("\nc3,", "\nid,sire,dam\nc3,"),
        "pedigree.csv row 9: found the names of the columns again (id, sire, dam); needed an animal",
    ),
    "decimal commas and points": (
        {"phenotypes.csv": PHENOTYPES.replace(",", ";").replace("35.5", "35,5")},
        f"phenotypes.csv row 2: found '35,5' in column 'birth_weight' (traits.birth_weight); {NUMBER}",
    ),
    "a decimal comma in quotes": (phenotypes("41.0", '"41,0"'), "row 3: found '41,0' in column 'birth_weight' (traits"),
    "thousands separator": (phenotypes("240.0", '"1,240.0"'), "row 3: found '1,240.0' in column 'weaning_weight'"),
    "thousands by a blank": (phenotypes("240.0", "1 240.0"), "row 3: found '1 240.0' in column 'weaning_weight'"),
    "a unit": (phenotypes("240.0", "240.0 kg"), "row 3: found '240.0 kg' in column 'weaning_weight'"),
    "a date as a trait": (phenotypes("240.0", "2011-03-04"), "row 3: found '2011-03-04' in column 'weaning_weight'"),
    "a date as a covariate": (phenotypes("M,190", "M,04/03/2011"), "row 3: found '04/03/2011' in column 'age'"),
    "digits of another script": (phenotypes("41.0", "\uff14\uff11"), "row 3: found '\uff14\uff11'"),
    "a minus that is a dash": (phenotypes("41.0", "\u221241.0"), "row 3: found '\u221241.0'"),
    "an invisible character": (
        phenotypes("c3,south", "c3\u200b,south"),
        "row 4: animal 'c3\\u200b' (column 'animal') is not in the pedigree",
    ),
    "a very long value": (
        phenotypes("c3,south", "c3" * 100_000 + ",south"),
        f"row 4: animal '{'c3' * 30}...' (column 'animal') is not in the pedigree",
    ),
    "a very long header": (
        {"phenotypes.csv": PHENOTYPES.replace("sex", "s" * 200_000, 1)},
        "phenotypes.csv row 1: cannot be read",
    ),
    "mixed types": (
        phenotypes("F,180", "F,young"),
        f"row 2: found 'young' in column 'age' (model.fixed.age); {NUMBER}",
    ),
    "text in a parquet column of numbers": (
        {"phenotypes.csv": parquet(table(birth_weight=pl.Series(["a", "b"] * 4)))},
        "phenotypes.csv row 1: found 'a' in column 'birth_weight'",
    ),
    "lists in a parquet column": (
        {"phenotypes.csv": parquet(table(birth_weight=pl.concat_list("age", "age")))},
        "phenotypes.csv: found values of type List(Int64) in column 'birth_weight' (traits.birth_weight); needed",
    ),
    "infinity in parquet": (
        {"phenotypes.csv": parquet(table(birth_weight=pl.lit(np.inf)))},
        "phenotypes.csv row 1: found inf in column 'birth_weight'",
    ),
    "swapped values": (
        {"phenotypes.csv": HEADER + "\n" + columns([1, 0, 2, 3, 4, 5, 6]).split("\n", 1)[1]},
        "phenotypes.csv row 2: animal 'north' (column 'animal') is not in the pedigree",
    ),
    "swapped ids and sires": (
        {
            "pedigree.csv": "id,sire,dam\n"
            + "".join(f"{s},{i},{d}\n" for i, s, d in (r.split(",") for r in PEDIGREE.splitlines()[1:]))
        },
        "pedigree.csv row 2: column 'id' has '0', which means an unknown parent; needed an animal's id",
    ),
    "tables exchanged": (
        {"phenotypes.csv": PEDIGREE, "pedigree.csv": PHENOTYPES},
        "phenotypes.csv: there is no column 'birth_weight' (traits.birth_weight); found: 'id', 'sire', 'dam'",
    ),
    "a row of totals": (
        {"phenotypes.csv": PHENOTYPES + "TOTAL,,,,,258.75,1078\n"},
        "phenotypes.csv row 10: found no weight",
    ),
    "a line that names the separator": (
        {"phenotypes.csv": "sep=,\n" + PHENOTYPES},
        "phenotypes.csv row 1: found 'sep=,', and below row 1 fields separated by ',', 7 in each row",
    ),
    "a comment": (
        {"phenotypes.csv": "# made by hand\n" + PHENOTYPES},
        "phenotypes.csv row 1: found '# made by hand', and below row 1 fields",
    ),
    "an end-of-file character within a row": (phenotypes("c3,south", "c3\x1a,south"), "phenotypes.csv row 4: "),
    "a web page": (
        {"phenotypes.csv": "<!DOCTYPE html>\n<html><body>404</body></html>\n"},
        "phenotypes.csv row 2: found 1 field",
    ),
    "gzip cut short": (
        {"phenotypes.csv": gzip.compress(PHENOTYPES.encode())[:-20]},
        "phenotypes.csv: the gzip file is damaged",
    ),
    "gzip with a wrong sum": (
        {"phenotypes.csv": gzip.compress(PHENOTYPES.encode())[:-8] + b"\0" * 8},
        "phenotypes.csv: the gzip file is damaged",
    ),
    "gzip twice": (
        {"phenotypes.csv": gzip.compress(gzip.compress(PHENOTYPES.encode()))},
        "phenotypes.csv: is gzipped twice, needed a text table",
    ),
    "bzip2": (
        {"phenotypes.csv": bz2.compress(PHENOTYPES.encode())},
        "phenotypes.csv: is a bzip2 file, needed a text table",
    ),
    "parquet cut short": (
        {"phenotypes.csv": PARQUET[:-10]},
        "phenotypes.csv: cannot be read: the parquet file is damaged",
    ),
    "half a parquet file": (
        {"phenotypes.csv": PARQUET[: len(PARQUET) // 2]},
        "phenotypes.csv: cannot be read: the parquet",
    ),
    "half an arrow file": (
        {"phenotypes.csv": ARROW[: len(ARROW) // 2]},
        "phenotypes.csv: cannot be read: the arrow file",
    ),
    "a spreadsheet": ({"phenotypes.csv": b"PK\x03\x04" + bytes(40)}, "phenotypes.csv: is a spreadsheet or zip file"),
    "an analysis cut short": ({"analysis.yaml": ANALYSIS[:200]}, "analysis.yaml line 8, column"),
    "an analysis without its end": (
        {"analysis.yaml": ANALYSIS[: ANALYSIS.index("variances:")] + ANALYSIS[ANALYSIS.index("sampler:") :]},
        "analysis.yaml: variances.genetic.start: missing, needed a 2 x 2 matrix",
    ),
    "an analysis twice": (
        {"analysis.yaml": ANALYSIS + ANALYSIS},
        "analysis.yaml line 16: the key 'name' is written twice",
    ),
    "tabs in the analysis": (analysis("    herd", "\therd"), "analysis.yaml line 6, column"),
    "a table for the analysis": ({"analysis.yaml": PHENOTYPES}, "analysis.yaml: found "),
    "an empty file": ({"phenotypes.csv": b""}, "phenotypes.csv: is empty"),
    "blanks only": ({"pedigree.csv": b" \n\n \r\n"}, "pedigree.csv: is empty"),
}


@pytest.mark.parametrize("what", HARMFUL)
def test_damage_gets_one_message(what, tmp_path):
    folder = tmp_path / "analysis"
    changed, said = HARMFUL[what]
    write_files(folder, changed)
    message = re.sub(r"^found \d things that must be changed:\n1\. ", "", refused(folder))  # what else it has led to
    assert message.startswith(f"phenotypes.csv {said}" if said.startswith("row ") else said), message
    assert message.count("must be changed") == 0


PLACES = {
    "a folder": (lambda path: path.mkdir(), "is a folder, needed a"),
    "a pipe": (os.mkfifo, "a pipe"),
    "a link to nothing": (lambda path: path.symlink_to("nowhere.csv"), "no such file"),
    "a link to itself": (lambda path: path.symlink_to(path.name), "is a symbolic link that leads to no file"),
    "a device": (
        lambda path: path.symlink_to("/dev/zero"),
        "is not a regular file (a device or a pipe), needed a file",
    ),
}


@pytest.mark.parametrize("what", PLACES)
@pytest.mark.parametrize("file", ["phenotypes.csv", "pedigree.csv", "analysis.yaml"])
def test_something_that_is_no_file(what, file, tmp_path):
    folder = tmp_path / "analysis"
    write_files(folder, {file: None})
    make, said = PLACES[what]
    make(folder / file)
    message = refused(folder)
    assert ": " in message and "\n" not in message
    if file != "analysis.yaml":
        assert said in message


@pytest.mark.parametrize("rows", [1, 3, 5])
def test_rows_that_are_gone_are_counted(rows, tmp_path):
    """A file cut between two rows is a smaller file: nothing can tell, but the counts do."""
    folder = tmp_path / "analysis"
    write_files(folder, {"phenotypes.csv": "\n".join(ROWS[: rows + 1])})
    outcome = command(folder, "run", "analysis.yaml", "--quiet")
    assert outcome.code == 0, outcome.err
    records = outcome.record["data"]["records"]
    assert records["read"] == rows == records["used"] + sum(records["left_out"].values())
    assert outcome.solutions["mean"].is_finite().all()


def test_bytes_changed_at_random(tmp_path, good):
    """Any byte of a text table changed: a finite result whose counts add up, or one message; never a traceback."""
    rng, folder = random.Random(11), tmp_path / "analysis"
    verdicts = set()
    for trial in range(60):
        name = ("phenotypes.csv", "pedigree.csv", "analysis.yaml")[trial % 3]
        text = bytearray(
            {"phenotypes.csv": PHENOTYPES, "pedigree.csv": PEDIGREE, "analysis.yaml": ANALYSIS}[name].encode()
        )
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
