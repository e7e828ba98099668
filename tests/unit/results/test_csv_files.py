"""Text that spreadsheets would take for a formula, in csv files."""

import csv
import json
import re

import numpy as np
import polars as pl
import pytest
import yaml
from helpers.small_analysis import PEDIGREE, PHENOTYPES, command, write_files
from helpers.support import ROOT

import mmgibbs
from mmgibbs.cli import main
from mmgibbs.config import load_config
from mmgibbs.results.csv_files import escape_formulas, unescape_formulas, write_csv
from mmgibbs.runs.place import RunFolder
from mmgibbs.runs.problem import Tables
from mmgibbs.runs.progress import Console

HOSTILE = ["=cmd|' /C calc'!A0", "+1", "-1+2", "@SUM(A1)", "\t=1", "\r=1"]
HARMLESS = ["cow-1", "a=b", "'quoted'", "12", "", "1+1", "é@x", " =1"]


def test_only_text_that_begins_like_a_formula_gets_an_apostrophe(tmp_path):
    frame = pl.DataFrame({"id": [*HOSTILE, *HARMLESS, None], "=x": -1.5, "n": -2})
    found = escape_formulas(frame)
    assert found["id"].to_list() == [*(f"'{text}" for text in HOSTILE), *HARMLESS, None]
    assert found.columns == ["id", "'=x", "n"] and found["n"].to_list() == [-2] * frame.height
    assert unescape_formulas(found.select("id")).equals(frame.select("id"))
    write_csv(frame.select("id", "n"), tmp_path / "plain.csv", escaped=False)
    assert pl.read_csv(tmp_path / "plain.csv")["id"].to_list()[:3] == HOSTILE[:3]
    write_csv(frame.select("id", "n"), tmp_path / "escaped.csv", escaped=True)
    assert pl.read_csv(tmp_path / "escaped.csv")["id"].to_list()[:3] == [f"'{text}" for text in HOSTILE[:3]]


ODD = {"c1": "a,b", "c2": 'say "moo"', "c3": "two\nlines", "c4": "x;y\tz", "c5": "=1+1", "s1": "'s"}


@pytest.mark.parametrize("escaped", [False, True])
def test_ids_with_formulas_separators_quotes_and_line_ends_come_back(tmp_path, escaped):
    """Parquet files keep the ids as they are; the key changes no result of a run that is continued."""
    quoted = {old: '"' + new.replace('"', '""') + '"' for old, new in ODD.items()}
    rename = lambda text: re.sub(r"\b(c[1-5]|s1)\b", lambda m: quoted[m[1]], text)
    write_files(tmp_path, {"pedigree.csv": rename(PEDIGREE), "phenotypes.csv": rename(PHENOTYPES)})
    asked = ["--set=output.escape_formulas=true"] if escaped else []
    for arguments in (
        ["run", "analysis.yaml", "--quiet", *asked],
        ["export", "run", "--format", "blupf90"],
        ["compare", "run", "run", "--output", "compared", *["--escape-formulas"] * escaped],
    ):
        outcome = command(tmp_path, *arguments)
        assert outcome.code == 0, outcome.err
    wanted = {ODD.get(i, i) for i in ("c1", "c2", "c3", "c4", "c5", "s1", "s2", "d1", "d2", "d3")}
    wanted = {f"'{i}" if escaped and i.startswith("=") else i for i in wanted}
    columns = {"run/solutions.csv": "level", "run-blupf90/levels.csv": "id", "compared/levels.csv": "level"}
    for name, column in columns.items():
        with (tmp_path / name).open(newline="") as file:
            rows = list(csv.DictReader(file))
        assert wanted <= {row[column] for row in rows}, name
        assert len({len(row) for row in rows}) == 1 and None not in rows[0]
    assert set(ODD.values()) <= set(pl.read_parquet(tmp_path / "run" / "solutions.parquet")["level"])
    again = command(tmp_path, "run", "analysis.yaml", "--quiet", "--resume")
    assert again.code == 0, again.err


INPUTS = {"mmgibbs/simulation", "mmgibbs/exchange/blupf90_write.py"}  # data to be read again, files of other programs


def test_every_table_has_one_writer():
    """Another call of `write_csv` would not know output.escape_formulas."""
    calls = []
    for path in sorted((ROOT / "mmgibbs").rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        if name == "mmgibbs/results/csv_files.py" or any(name.startswith(known) for known in INPUTS):
            continue
        lines = path.read_text(encoding="utf-8").splitlines()
        calls += [f"{name}: {line}" for line in lines if ".write_csv(" in line and ">>>" not in line]
    assert calls == []


@pytest.fixture(scope="module")
def formulas(tmp_path_factory):
    folder = tmp_path_factory.mktemp("formulas")
    rng = np.random.default_rng(3)
    ids = [f"={i}+1" for i in range(40)]
    sires = [""] * 10 + [ids[i % 5] for i in range(30)]
    dams = [""] * 10 + [ids[5 + i % 5] for i in range(30)]
    pl.DataFrame({"id": ids, "sire": sires, "dam": dams, "birth": [2000 + i // 10 for i in range(40)]}).write_csv(
        folder / "ped.csv"
    )
    x = rng.integers(0, 3, (40, 30))
    y = (x[:, 3] * 3 + rng.normal(size=40)).round(3)
    pl.DataFrame({"id": ids, "y": y}).write_csv(folder / "records.csv")
    pl.DataFrame({"id": ids} | {f"@s{j}": x[:, j] for j in range(30)}).write_csv(folder / "g.csv")
    pl.DataFrame({"id": ids[10:30], "sex": ["M", "F"] * 10}).write_csv(folder / "candidates.csv")
    run = {
        "data": {"phenotypes": str(folder / "records.csv"), "pedigree": str(folder / "ped.csv")},
        "traits": ["y"],
        "model": {"random": {"genetic": {"level": "id", "relationship": "pedigree"}}},
        "variances": {"mode": "fixed", "genetic": 0.5, "residual": 1.0},
        "sampler": {"method": "blup"},
        "output": {"escape_formulas": True},
    }
    mmgibbs.run(run, directory=folder / "run", progress=False)
    return folder


def list_formulas(folder):
    """Cells of the csv files of a folder that a spreadsheet would compute."""
    found = []
    for path in sorted(folder.rglob("*.csv")):
        with open(path, newline="", encoding="utf-8") as file:
            for row in csv.reader(file):
                found += [f"{path.name}: {cell}" for cell in row if cell[:1] in tuple("=@\t\r")]
    return found


COMMANDS = {
    "gwas": ["gwas", "run", "g.csv", "--window-snps", "5"],
    "contributions": ["contributions", "run", "candidates.csv", "--matings", "4"],
    "pedigree": ["pedigree", "ped.csv", "--escape-formulas"],
    "export deregressed": ["export", "run", "--format", "deregressed"],
    "export blupf90": ["export", "run", "--format", "blupf90"],
    "compare": ["compare", "run", "run"],
    "figures": ["figures", "run", "--only", "distribution-of-the-*"],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_escapes_formulas_as_the_run_does(name, formulas, monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(formulas)
    assert main([*COMMANDS[name], "--output", str(tmp_path / "out")]) in (0, None), capsys.readouterr().err
    assert list((tmp_path / "out").glob("*.csv")) and list_formulas(tmp_path / "out") == []


def test_unfinished_results_are_escaped_too(formulas, tmp_path):
    """Those of a run that still lacks its standard errors."""
    analysis = yaml.safe_load(json.dumps(mmgibbs.open_run(formulas / "run").info["analysis"]))
    analysis["output"]["directory"] = str(tmp_path / "run")
    with RunFolder(load_config(analysis), Console(False)) as folder:
        folder.start()
        summary = pl.DataFrame({"parameter": ["=h2", "@var"], "mean": [0.5, -1.0]})
        folder.write_unfinished(Tables(summary), {"name": "a"}, "standard errors")
    written = pl.read_csv(tmp_path / "run" / "summary.csv")
    assert written["parameter"].to_list() == ["'=h2", "'@var"] and written["mean"].to_list() == [0.5, -1.0]
