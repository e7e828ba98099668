"""Several analyses in one go on this machine; test_cluster.py has them on workers."""

import pydoc

import polars as pl
import pytest
from helpers.small_analysis import ANALYSIS, command, contents, refused, replaced, write_files

import mmgibbs
from mmgibbs.errors import ConfigError

OTHER = replaced(ANALYSIS, "directory: run", "directory: other").replace("[10, 160]", "[10, 100]")
BAD = replaced(ANALYSIS, "directory: run", "directory: bad").replace("level: animal", "level: nobody")


@pytest.fixture
def folder(tmp_path):
    write_files(tmp_path, {"other.yaml": OTHER, "bad.yaml": BAD})
    return tmp_path


def test_each_is_the_run_of_its_own(folder):
    told = command(folder, "run", "analysis.yaml", "other.yaml")
    assert told.code == 0, told.err
    at = [told.err.index(w) for w in ("--- analysis (1 of 2)", "--- other (2 of 2)", "2 of 2 analyses done")]
    assert at == sorted(at)
    assert f"compare them with: mmgibbs report {folder / 'run'} {folder / 'other'}" in told.err
    assert command(folder, "run", "other.yaml", "--output", "alone", "--quiet").code == 0
    alone, found = (pl.read_parquet(folder / run / "solutions.parquet") for run in ("alone", "other"))
    assert alone.equals(found) and not alone.equals(pl.read_parquet(folder / "run/solutions.parquet"))


def test_one_that_fails_does_not_end_the_others(folder):
    told = command(folder, "run", "analysis.yaml", "bad.yaml", "other.yaml", "--output", "all", "--quiet")
    assert told.code == 2
    assert told.err.startswith("bad: phenotypes.csv: there is no column 'nobody'") and len(told.err.splitlines()) == 1
    assert sorted(p.name for p in (folder / "all").iterdir()) == ["analysis", "other"]


def test_a_lone_text_is_no_list(folder):
    text, file = "sampler.sampels=1", folder / "analysis.yaml"
    for run in (lambda: mmgibbs.run(file, text), lambda: mmgibbs.run_scenarios([file], text)):
        with pytest.raises(ConfigError, match="override 'sampler.sampels=1': sampler.sampels: unknown key"):
            run()
    with pytest.raises(ConfigError, match=r"files: found 'analysis.yaml', needed a list of analysis files"):
        mmgibbs.run_scenarios("analysis.yaml")


def test_what_is_no_list_of_files_is_refused(folder):
    file, analysis = folder / "analysis.yaml", {"name": "a", "data": {}}
    for wrong, found in (
        (analysis, "found a dict, needed a list of paths"),
        ([file, analysis], "found a dict as number 2 of the list, needed a list of paths"),
        (None, "found None, needed"),
        ([file, 7], "found 7 as number 2 of the list"),
    ):
        with pytest.raises(ConfigError, match=f"^files: {found}") as refused:
            mmgibbs.run_scenarios(wrong)
        assert ("mmgibbs.run(analysis)" in str(refused.value)) == ("dict" in found)


def test_what_is_finished_is_not_done_again(folder):
    assert command(folder, "run", "analysis.yaml", "--quiet").code == 0
    before = contents(folder / "run")
    told = command(folder, "run", "analysis.yaml", "other.yaml", "--resume")
    assert told.code == 0 and "finished: nothing is left to do" in told.err
    assert {k: v for k, v in contents(folder / "run").items() if k != "run.log"} == {
        k: v for k, v in before.items() if k != "run.log"
    }


@pytest.mark.parametrize(
    ("files", "words"),
    [
        (("analysis.yaml", "same.yaml"), ["analysis.yaml and same.yaml would both write", "needed a folder for each"]),
        (("analysis.yaml", "odd.yaml", "absent.yaml"), ["odd.yaml: model.fixed.age.traits: ", "absent.yaml: no such"]),
    ],
)
def test_refused_before_anything_is_run(folder, files, words):
    odd = ANALYSIS.replace("[birth_weight, weaning_weight]", "3")
    write_files(folder, {"same.yaml": ANALYSIS, "odd.yaml": odd})
    message = refused(folder, run=("run", *files, "--quiet"))
    assert all(word in message for word in words), message


def test_from_python(folder):
    ended = []
    files, options = [folder / "analysis.yaml", folder / "bad.yaml"], {"output": folder / "all", "progress": False}
    found = mmgibbs.run_scenarios(files, ["sampler.tolerance=1e-6"], done=ended.append, **options)
    assert ended == found and [s.name for s in found] == ["analysis", "bad"]
    result = found[0].result
    assert found[0].error is None and result.directory == folder / "all/analysis" and result.solutions.height
    assert isinstance(found[1].error, mmgibbs.DataError) and found[1].result is None


@pytest.mark.parametrize("name", mmgibbs.__all__)
def test_help_shows_no_address_in_memory(name):
    assert " at 0x" not in pydoc.render_doc(getattr(mmgibbs, name), renderer=pydoc.plaintext)
