"""Every command and every option that names a place of output: nothing of the user's is deleted or written over."""

import argparse
import json
import os
import re
import shutil
from importlib import import_module

import numpy as np
import polars as pl
import pytest
import yaml
from helpers.renumf90_cases import head
from helpers.selection import first

from mmgibbs.cli import _COMMANDS, main
from mmgibbs.errors import ConfigError
from mmgibbs.machine.output_places import name_results_folder
from mmgibbs.results.folder import check_run_directory

PARAMETERS = (
    head("3", residual="1.0").replace("data.txt", "records.txt")
    + "EFFECT\n1 cross alpha\nRANDOM\nanimal\nFILE\nped.txt\nFILE_POS\n1 2 3\n(CO)VARIANCES\n0.5\n"
)
SYSTEM_FILES = {".DS_Store": b"\0\0\0\1Bud1", "Thumbs.db": b"\xd0\xcf", "desktop.ini": b"[.ShellClassInfo]"}
# Command -> words before the option, and the option; {run} is a finished run. What each writes there is below.
FILES_TO_WRITE = {
    ("predict", "--output"): ["predict", "run", "young.csv"],
    ("report", "--output"): ["report", "run"],
    ("compare", "--page"): ["compare", "run", "run2"],
    ("schema", "--output"): ["schema"],
    ("bench", "--json"): ["bench", "evaluation", "a.yaml", "--sweeps", "2"],
    ("init", "--output"): ["init", "records.csv", "--pedigree", "ped.csv", "--overwrite"],
    ("import-blupf90", "--output"): ["import-blupf90", "renum.par", "--overwrite"],
}
FOLDERS_TO_WRITE = {
    ("run", "--output"): ["run", "a.yaml", "--no-report", "--overwrite"],
    ("gwas", "--output"): ["gwas", "run", "g.csv", "--no-report", "--overwrite"],
    ("finemap", "--output"): ["finemap", "gwas", "--overwrite"],
    ("contributions", "--output"): [
        "contributions", "run", "candidates.csv", "--matings", "4", "--no-report", "--overwrite"
    ],
    ("pedigree", "--output"): ["pedigree", "ped.csv", "--no-report", "--overwrite"],
    ("validate", "--output"): [
        "validate", "a.yaml", "--method", "kfold", "--folds", "2", "--no-report", "--overwrite"
    ],
    ("export", "--output"): ["export", "run", "--format", "blupf90", "--overwrite"],
    ("compare", "--output"): ["compare", "run", "run2"],
    ("figures", "--output"): ["figures", "run", "--only", "distribution-of-the-*"],
    ("simulate", "directory"): ["simulate", "--animals", "300", "--overwrite"],
}  # fmt: skip
# Names that commands give their files, and that a user may have given to files of another kind
GENERIC = [
    "summary.csv", "run.json", "solutions.csv", "markers.csv", "gwas.json", "candidates.csv", "contributions.json",
    "animals.parquet", "pedigree.json", "years.csv", "validation.csv", "solutions", "levels.csv", "comparison.csv",
    "figures.csv", "pedigree.csv", "analysis.yaml", "snps.csv", "report.html", "run.log",
]  # fmt: skip


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Tables of 40 animals, two runs of theirs, and an association; tests get a copy."""
    folder = tmp_path_factory.mktemp("places")
    rng = np.random.default_rng(1)
    ids = [f"a{i}" for i in range(40)]
    sires = [""] * 10 + [ids[i % 5] for i in range(30)]
    dams = [""] * 10 + [ids[5 + i % 5] for i in range(30)]
    pl.DataFrame({"id": ids, "sire": sires, "dam": dams}).write_csv(folder / "ped.csv")
    pl.DataFrame({"id": ids, "y": rng.normal(size=40).round(3)}).write_csv(folder / "records.csv")
    snps = {f"s{j}": rng.integers(0, 3, 40) for j in range(30)}
    pl.DataFrame({"id": ids} | snps).write_csv(folder / "g.csv")
    young = {name: values[:4] for name, values in snps.items()}
    pl.DataFrame({"id": [f"n{i}" for i in range(4)]} | young).write_csv(folder / "young.csv")
    pl.DataFrame({"id": ids[10:30], "sex": ["M", "F"] * 10}).write_csv(folder / "candidates.csv")
    analysis = {
        "data": {"phenotypes": "records.csv", "pedigree": "ped.csv", "genotypes": "g.csv"},
        "traits": ["y"],
        "model": {"random": {"genetic": {"level": "id", "relationship": "single_step"}}},
        "variances": {"mode": "fixed", "genetic": 0.5, "residual": 0.5},
        "sampler": {"method": "blup"},
        "output": {"directory": "run"},
    }
    (folder / "a.yaml").write_text(yaml.safe_dump(analysis))
    (folder / "renum.par").write_text(PARAMETERS)
    (folder / "records.txt").write_text("a1 1 3.5\na2 1 4.5\n")
    (folder / "ped.txt").write_text("a1 0 0\na2 a1 0\n")
    here = os.getcwd()
    os.chdir(folder)
    try:
        assert main(["run", "a.yaml", "--no-report", "--quiet"]) == 0
        assert main(["run", "a.yaml", "--no-report", "--quiet", "--output", "run2"]) == 0
        assert main(["gwas", "run", "g.csv", "--no-report", "--quiet", "--output", "gwas"]) == 0
    finally:
        os.chdir(here)
    return folder


@pytest.fixture
def place(data, tmp_path, monkeypatch):
    """A copy of the tables and runs, as the current folder; the runs name the files of the copy."""
    folder = tmp_path / "work"
    shutil.copytree(data, folder)
    from mmgibbs.results.checksums import record_with_checksum

    for run in ("run", "run2"):
        record = json.loads((folder / run / "run.json").read_text().replace(str(data), str(folder)))
        (folder / run / "run.json").write_text(json.dumps(record_with_checksum(record)))
    monkeypatch.chdir(folder)
    return folder


def contents(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def words_to(case, table, target):
    words = table[case]
    return [*words, str(target)] if case[1] == "directory" else [*words, case[1], str(target)]


def find_output_options():
    """(command, option) of every parser that names a place to write to."""
    found = set()
    for name, command in _COMMANDS.items():
        parser = argparse.ArgumentParser()
        import_module(f"mmgibbs.{command.module}").COMMANDS[name][0](parser)
        actions = list(parser._actions)
        for action in parser._actions:
            for sub in getattr(action, "choices", None) or ():
                if isinstance(action.choices, dict) and hasattr(action.choices[sub], "_actions"):
                    actions += action.choices[sub]._actions
        for action in actions:
            if action.dest in ("output", "page", "json", "directory"):
                found.add((name, action.option_strings[0] if action.option_strings else action.dest))
    return found


def test_every_option_of_a_place_is_walked():
    assert find_output_options() == set(FILES_TO_WRITE) | set(FOLDERS_TO_WRITE)


INPUTS = ["records.csv", "ped.csv", "g.csv", "young.csv", "a.yaml", "run/run.json", "run/summary.csv", "renum.par"]


@pytest.mark.parametrize("case", FILES_TO_WRITE, ids=" ".join)
def test_a_file_of_the_user_is_never_written_over(case, place, capsys):
    (place / "thesis.tex").write_text("mine")
    (place / "link.csv").symlink_to(place / "thesis.tex")
    before = contents(place)
    for target in (*INPUTS, "thesis.tex", "link.csv", "run"):
        code = main(words_to(case, FILES_TO_WRITE, target))
        said = capsys.readouterr().err
        assert code == 2 and target.split("/")[-1] in said and "Traceback" not in said, (target, said)
        assert contents(place) == before and (place / "link.csv").is_symlink(), target


@pytest.mark.parametrize("case", FOLDERS_TO_WRITE, ids=" ".join)
def test_a_folder_of_the_user_is_never_touched(case, place, capsys):
    """Files of the names that commands use, in a folder that never held a result; or a file in its place."""
    mine = place / "mine"
    (mine / "checkpoint").mkdir(parents=True)
    for name in (*GENERIC, "checkpoint/chain-1.npz", "checkpoint/notes.txt"):
        (mine / name).write_text('{"mine": 1}\n')
    (place / "file").write_text("mine")
    before = contents(place)
    for target in (mine, place / "file"):
        code = main(words_to(case, FOLDERS_TO_WRITE, target))
        said = capsys.readouterr().err
        assert code == 2 and said and "Traceback" not in said, said
        assert contents(place) == before


# finemap needs regions, and a chain: tests/unit/association/test_fine_map.py
@pytest.mark.parametrize(
    ("case",), first(3, [(case,) for case in FOLDERS_TO_WRITE if case[0] != "finemap"]), ids=" ".join
)
def test_what_a_file_manager_leaves_does_no_harm_and_stays(case, place, capsys):
    """And of a later file of the user's beside the results, or in their place, nothing is lost."""
    folder = place / "new"
    folder.mkdir()
    for name, content in SYSTEM_FILES.items():
        (folder / name).write_bytes(content)
    words = words_to(case, FOLDERS_TO_WRITE, folder)
    if case[0] == "simulate":
        words.remove("--overwrite")
    assert main(words) in (0, None), capsys.readouterr().err
    out, _ = capsys.readouterr()  # results on stdout, notes and warnings on stderr
    assert ("written to" in out or "wrote" in out) and not re.search("^(warning|note): ", out, re.MULTILINE)
    written = set(contents(folder)) - set(SYSTEM_FILES)
    assert written and main(words_to(case, FOLDERS_TO_WRITE, folder)) in (0, None), capsys.readouterr().err
    assert {name: (folder / name).read_bytes() for name in SYSTEM_FILES} == SYSTEM_FILES
    (folder / "notes.txt").write_text("mine")
    main(words_to(case, FOLDERS_TO_WRITE, folder))
    assert (folder / "notes.txt").read_text() == "mine"
    (folder / "notes.txt").unlink()
    outside = place / "outside.csv"
    outside.write_text("mine")
    for name in sorted(written - {"run.log"})[:2]:
        (folder / name).unlink()
        (folder / name).symlink_to(outside)
        capsys.readouterr()
        assert main(words_to(case, FOLDERS_TO_WRITE, folder)) == 2, name
        assert "link" in capsys.readouterr().err and outside.read_text() == "mine"
        (folder / name).unlink()


@pytest.mark.parametrize("case", [("pedigree", "--output"), ("run", "--output"), ("export", "--output")], ids=" ".join)
def test_results_are_not_written_over_what_is_read(case, place, capsys):
    """The second call reads a file that the first has written into the same folder."""
    assert main(words_to(case, FOLDERS_TO_WRITE, "out")) in (0, None)
    before = contents(place)
    analysis = yaml.safe_load((place / "a.yaml").read_text())
    analysis["data"]["phenotypes"] = "out/solutions.csv"
    (place / "b.yaml").write_text(yaml.safe_dump(analysis))
    words = {
        "pedigree": ["pedigree", "out/ancestors.csv", "--output", "out", "--overwrite"],
        "run": ["run", "b.yaml", "--output", "out", "--overwrite"],
        "export": ["export", "run", "--format", "blupf90", "--overwrite", "--output", "run"],
    }[case[0]]
    assert main(words) == 2 and capsys.readouterr().err
    assert {name: content for name, content in contents(place).items() if name != "b.yaml"} == before


def test_a_record_from_someone_else_deletes_nothing(place, capsys):
    """It lists names that no run writes, and names outside the folder."""
    folder = place / "planted"
    folder.mkdir()
    (folder / "precious.csv").write_text("mine")
    listed = ["run.json", "precious.csv", "../records.csv", "summary.csv"]
    (folder / "run.json").write_text(json.dumps({"files": listed}))
    before = {name: content for name, content in contents(place).items() if not name.startswith("planted")}
    main(["run", "a.yaml", "--no-report", "--overwrite", "--quiet", "--output", str(folder)])
    after = contents(place)
    assert after["planted/precious.csv"] == b"mine"
    assert {name: content for name, content in after.items() if not name.startswith("planted")} == before


def test_predict_replaces_its_table_and_no_other(place, capsys):
    words = ["predict", "run", "young.csv", "--output", "gebv.csv"]
    assert main(words) in (0, None) and main(words) in (0, None), capsys.readouterr().err
    table = pl.read_csv("gebv.csv").with_columns(note=pl.lit("mine"))
    table.write_csv("gebv.csv")
    assert main(words) == 2 and "exists and is not a table of mmgibbs predict" in capsys.readouterr().err
    assert pl.read_csv("gebv.csv").equals(table)
    (place / "gebv.csv").write_text("")  # as mktemp makes it
    assert main(words) in (0, None)


def test_a_result_that_no_run_has_written_is_refused(place, capsys):
    """A table of the user's beside a run, under a name that another run would give to a result."""
    (place / "run" / "decisions.csv").write_text("mine")
    before = contents(place)
    for flag in ("--overwrite", "--resume"):
        assert main(["run", "a.yaml", "--no-report", "--quiet", flag]) == 2
        assert "holds decisions.csv, which no run.json lists as a run" in capsys.readouterr().err
    assert contents(place) == before


def test_a_run_whose_record_is_damaged_can_be_replaced(place, capsys):
    """The log says what the record listed."""
    (place / "run" / "run.json").write_text('{"files": [')
    (place / "run" / "notes.txt").write_text("mine")
    assert main(["run", "a.yaml", "--no-report", "--quiet", "--overwrite"]) in (0, None), capsys.readouterr().err
    assert json.loads((place / "run" / "run.json").read_text())["files"]
    assert (place / "run" / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize("name", [".writing/replaced/mine.csv", ".writing/checkpoint/mine.csv", ".writing"])
def test_files_of_the_user_where_results_are_prepared_are_refused(name, tmp_path):
    """All in .writing is removed when results take their places."""
    file = tmp_path / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("mine")
    shown = ".writing, which no command wrote" if name == ".writing" else "its folder .writing holds other files"
    with pytest.raises(ConfigError, match=shown):
        check_run_directory(tmp_path, overwrite=True)
    assert file.read_text() == "mine"


def test_a_folder_of_results_is_beside_its_run_also_for_the_current_folder(tmp_path, monkeypatch):
    run = tmp_path / "run"
    (run / "sub").mkdir(parents=True)
    assert name_results_folder("run/", "gwas") == "run-gwas"
    monkeypatch.chdir(run)
    assert name_results_folder(".", "gwas") == f"{run}-gwas"
    monkeypatch.chdir(run / "sub")
    assert name_results_folder("..", "gwas") == f"{run}-gwas"


def test_what_no_run_has_written_stays(tmp_path):
    (tmp_path / "checkpoint").mkdir()
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(ConfigError, match="holds files that are not of a run"):
        check_run_directory(tmp_path, overwrite=True)
    (tmp_path / "run.log").write_text("2026-03-01 10:00:00  begun by process 7\n")  # of a run killed at once
    assert check_run_directory(tmp_path, overwrite=True) == tmp_path
    other = tmp_path / "other"
    other.mkdir()
    lock = other / ".lock"
    lock.write_text("mine")
    with pytest.raises(ConfigError, match="holds .lock, which no run wrote"):
        check_run_directory(other)
    for text in ("", "7 on farm since 2026-03-01 10:00:00\n"):  # of a run that was killed
        lock.write_text(text)
        assert check_run_directory(other) == other
