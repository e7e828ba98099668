"""`mmgibbs import-blupf90`: what it writes, what it says, and the files that it leaves alone."""

import errno
from pathlib import Path

import polars as pl
import pytest
from helpers.renumf90_cases import ANIMAL, CASES, Case, head, write_files

from mmgibbs.cli import main
from mmgibbs.config import load_config
from mmgibbs.errors import ConfigError
from mmgibbs.exchange.import_blupf90 import import_blupf90

GOOD = CASES["two traits with models of their own"].parameters


def test_the_command_writes_an_analysis_that_says_where_it_comes_from(tmp_path, capsys):
    case = CASES["two traits with models of their own"]
    path, target = write_files(tmp_path, case), tmp_path / "elsewhere" / "analysis.yaml"
    assert main(["import-blupf90", str(path), "--output", str(target)]) == 0
    out = capsys.readouterr().out
    assert "renum.par line 24: PED_DEPTH 3: the pedigree is not cut back" in out
    text = target.read_text()
    assert "# renum.par line 24: PED_DEPTH 3" in text and "*" not in text.split("name:")[1]
    assert load_config(target).data.phenotypes == (tmp_path / "data.txt").resolve()
    assert main(["import-blupf90", str(path), "--output", str(target)]) == 2
    assert "exists; choose another --output, or give --overwrite" in capsys.readouterr().err
    assert main(["import-blupf90", str(path), "--output", str(target), "--overwrite"]) == 0


COMBINED = CASES["joined columns, a header line"].parameters
WITH_GROUPS = head() + ANIMAL.replace("INBREEDING", "UPG_TYPE\nin_pedigrees\nINBREEDING") + "(CO)VARIANCES\n1.0\n"
SOURCES = {  # parameters, what is there under which name, --output, and what the message calls it
    "new data over the data": (
        COMBINED.replace("data_with_header.txt", "f_data.csv"),
        {"f_data.csv": "data_with_header.txt"},
        "f.yaml",
        "'{folder}/f_data.csv', the file to write, is DATAFILE of renum.par line 5",
    ),
    "the analysis over the data": (GOOD, {}, "data.txt", "data.txt', the file to write, is DATAFILE of"),
    "the analysis over the parameter file": (
        GOOD,
        {},
        "renum.par",
        "renum.par', the file to write, is the parameter file",
    ),
    "a new pedigree over the pedigree": (
        WITH_GROUPS.replace("ped.txt", "f_pedigree.csv"),
        {"f_pedigree.csv": "ped.txt"},
        "f.yaml",
        "f_pedigree.csv', the file to write, is FILE of renum.par line 15",
    ),
    "genotypes": (
        GOOD.replace("PED_DEPTH", "SNP_FILE\nsnp.yaml\nPED_DEPTH"),
        {"snp.yaml": "ped.txt"},
        "snp.yaml",
        "snp.yaml', the file to write, is SNP_FILE of renum.par line 24",
    ),
    "genotypes of an option": (
        GOOD + "OPTION SNP_file snp.yaml\n",
        {"snp.yaml": "ped.txt"},
        "snp.yaml",
        "the file to write, is OPTION SNP_file of renum.par line 31",
    ),
    "coefficients of inbreeding": (
        GOOD.replace("PED_DEPTH", "INBREEDING\nfile inb.yaml\nPED_DEPTH"),
        {"inb.yaml": "ped.txt"},
        "inb.yaml",
        "the file to write, is INBREEDING of renum.par line 24",
    ),
    "by a link": (GOOD, {"link.yaml": "-> data.txt"}, "link.yaml", "the file to write, is DATAFILE of"),
    "by a hard link": (GOOD, {"link.yaml": "= data.txt"}, "link.yaml", "the file to write, is DATAFILE of"),
}


@pytest.mark.parametrize("name", SOURCES)
def test_no_file_that_is_read_is_written_over(name, tmp_path, capsys):
    parameters, files, output, message = SOURCES[name]
    path = write_files(tmp_path, Case(parameters, {}, pedigree="in_pedigrees" if "UPG_TYPE" in parameters else "plain"))
    for new, source in files.items():
        if source.startswith("-> "):
            (tmp_path / new).symlink_to(tmp_path / source[3:])
        elif source.startswith("= "):
            (tmp_path / new).hardlink_to(tmp_path / source[2:])
        else:
            (tmp_path / new).write_bytes((tmp_path / source).read_bytes())
    before = {p: p.read_bytes() for p in tmp_path.iterdir()}
    assert main(["import-blupf90", str(path), "--output", str(tmp_path / output), "--overwrite"]) == 2
    told = capsys.readouterr().err
    assert message.format(folder=tmp_path) in told and "needed another --output" in told
    assert {p: p.read_bytes() for p in tmp_path.iterdir()} == before


def test_a_folder_is_no_analysis_file_and_nothing_is_written(tmp_path):
    path = write_files(tmp_path, CASES["joined columns, a header line"])
    (tmp_path / "f.yaml").mkdir()
    with pytest.raises(ConfigError, match="is a folder, needed the name of a file for output"):
        import_blupf90(path, tmp_path / "f.yaml", overwrite=True)
    assert not (tmp_path / "f_data.csv").exists()


def test_where_a_file_cannot_be_written_none_is(tmp_path, monkeypatch):
    path = write_files(tmp_path, CASES["joined columns, a header line"])
    before = sorted(tmp_path.iterdir())

    def full(self, *args, **keys):
        raise OSError(errno.ENOSPC, "No space left on device")

    for kind, name in ((pl.DataFrame, "write_csv"), (Path, "write_text")):
        with (
            monkeypatch.context() as patched,
            pytest.raises(ConfigError, match="cannot write .*: No space left on device"),
        ):
            patched.setattr(kind, name, full)
            import_blupf90(path)
        assert sorted(tmp_path.iterdir()) == before
