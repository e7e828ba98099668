"""Text that spreadsheets would take for a formula, in csv files."""

import csv
import re

import polars as pl
import pytest
from helpers.small_analysis import PEDIGREE, PHENOTYPES, command, write_files

from mmgibbs.results.csv_files import escape_formulas, unescape_formulas, write_csv

HOSTILE = ["=cmd|' /C calc'!A0", "+1", "-1+2", "@SUM(A1)", "\t=1", "\r=1"]
HARMLESS = ["cow-1", "a=b", "'quoted'", "12", "", "1+1", "é@x", " =1"]


def test_only_text_that_begins_like_a_formula_gets_an_apostrophe(tmp_path):
    frame = pl.DataFrame({"id": [*HOSTILE, *HARMLESS, None], "=x": -1.5, "n": -2})
    found = escape_formulas(frame)
    assert found["id"].to_list() == [*(f"'{text}" for text in HOSTILE), *HARMLESS, None]
    assert found.columns == ["id", "'=x", "n"] and found["n"].to_list() == [-2] * frame.height
    assert unescape_formulas(found.select("id")).equals(frame.select("id"))
    write_csv(frame.select("id", "n"), tmp_path / "plain.csv")
    assert pl.read_csv(tmp_path / "plain.csv")["id"].to_list()[:3] == HOSTILE[:3]
    write_csv(frame.select("id", "n"), tmp_path / "escaped.csv", escaped=True)
    assert pl.read_csv(tmp_path / "escaped.csv")["id"].to_list()[:3] == [f"'{text}" for text in HOSTILE[:3]]


@pytest.mark.parametrize("escaped", [False, True])
def test_on_request_the_csv_files_of_a_run_have_no_formulas(tmp_path, escaped):
    """Parquet files keep the ids as they are, and so do pages, comparisons and runs that are continued."""
    rename = lambda text: text.replace("c4,", "=2+5,")
    write_files(tmp_path, {"pedigree.csv": rename(PEDIGREE), "phenotypes.csv": rename(PHENOTYPES)})
    asked = ["--set=output.escape_formulas=true"] if escaped else []
    assert command(tmp_path, "run", "analysis.yaml", "--quiet", *asked).code == 0
    ids = lambda table: set(table.filter(pl.col("term") == "genetic")["level"])
    read = pl.read_csv(tmp_path / "run" / "solutions.csv", infer_schema=False)
    assert {"'=2+5", "c5"} <= ids(read) if escaped else {"=2+5", "c5"} <= ids(read)
    assert "=2+5" in ids(pl.read_parquet(tmp_path / "run" / "solutions.parquet"))
    assert pl.read_csv(tmp_path / "run" / "solutions.csv")["mean"].dtype == pl.Float64
    again = command(tmp_path, "run", "analysis.yaml", "--quiet", "--resume", *([] if escaped else asked))
    assert again.code == 0, again.err  # the key changes no result
    options = ["--escape-formulas"] if escaped else []
    assert command(tmp_path, "compare", "run", "run", "--output", "compared", *options).code == 0
    levels = pl.read_csv(tmp_path / "compared" / "levels.csv", infer_schema=False)["level"]
    assert ("'=2+5" if escaped else "=2+5") in set(levels)


ODD = {"c1": "a,b", "c2": 'say "moo"', "c3": "two\nlines", "c4": "x;y\tz", "c5": "=1+1", "s1": "'s"}


@pytest.mark.parametrize("escaped", [False, True])
def test_ids_with_separators_quotes_and_line_ends_come_back(tmp_path, escaped):
    """From the csv files of a run, of its export and of a comparison."""
    quoted = {old: '"' + new.replace('"', '""') + '"' for old, new in ODD.items()}
    rename = lambda text: re.sub(r"\b(c[1-5]|s1)\b", lambda m: quoted[m[1]], text)
    write_files(tmp_path, {"pedigree.csv": rename(PEDIGREE), "phenotypes.csv": rename(PHENOTYPES)})
    asked = ["--set=output.escape_formulas=true"] if escaped else []
    for arguments in (
        ["run", "analysis.yaml", "--quiet"],
        ["export", "run", "--format", "blupf90"],
        ["compare", "run", "run", "--output", "compared"],
    ):
        options = {"run": asked, "compare": ["--escape-formulas"] * escaped}.get(arguments[0], [])
        outcome = command(tmp_path, *arguments, *options)
        assert outcome.code == 0, outcome.err
    wanted = {ODD.get(i, i) for i in ("c1", "c2", "c3", "c4", "c5", "s1", "s2", "d1", "d2", "d3")}
    wanted = {f"'{i}" if escaped and i.startswith("=") else i for i in wanted}
    for name, column in (
        ("run/solutions.csv", "level"),
        ("run-blupf90/levels.csv", "id"),
        ("compared/levels.csv", "level"),
    ):
        with (tmp_path / name).open(newline="") as file:
            rows = list(csv.DictReader(file))
        assert wanted <= {row[column] for row in rows}, name
        assert len({len(row) for row in rows}) == 1 and None not in rows[0]
