"""Results on stdout; progress, notes and warnings on stderr: so `mmgibbs ... > results.txt` keeps what was found."""

import pytest
from helpers.small_analysis import command, write_files

WORDS = {
    "run": ["run", "analysis.yaml", "--output", "new"],
    "check": ["check", "analysis.yaml"],
    "report": ["report", "run"],
    "compare": ["compare", "run", "run"],
    "pedigree": ["pedigree", "pedigree.csv", "--output", "described", "--no-report"],
    "export": ["export", "run", "--format", "blupf90"],
    "init": ["init", "phenotypes.csv", "--pedigree", "pedigree.csv", "--output", "drafted.yaml", "--no-check",
             "--formula", "birth_weight ~ sex + (1 | pedigree(animal))"],
    "simulate": ["simulate", "data", "--animals", "300"],
    "schema": ["schema", "--output", "s.json"],
}  # fmt: skip
RESULTS = {
    "run": "genetic.var[birth_weight]", "check": "equations", "compare": "correlation",
    "pedigree": "animals", "simulate": "animals in", "init": "written to drafted.yaml",
}  # fmt: skip
SAID_ALOUD = ("warning: ", "note: ")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("streams")
    write_files(folder)
    assert command(folder, "run", "analysis.yaml").code == 0
    return folder


@pytest.mark.parametrize("name", WORDS)
def test_results_are_on_stdout_and_the_rest_is_on_stderr(name, folder):
    outcome = command(folder, *WORDS[name])
    assert outcome.code == 0, outcome.err
    assert RESULTS.get(name, "written to") in outcome.out
    assert not [line for line in outcome.out.splitlines() if line.startswith(SAID_ALOUD)]
    assert "written to" not in outcome.err and RESULTS.get(name, "written to") not in outcome.err.splitlines()


def test_a_run_says_its_progress_on_stderr(folder):
    outcome = command(folder, "run", "analysis.yaml", "--output", "again")
    assert outcome.err and "written to" in outcome.out and "records" not in outcome.out
    quiet = command(folder, "run", "analysis.yaml", "--quiet", "--output", "quiet")
    assert quiet.code == 0 and quiet.out == ""


def test_a_message_about_bad_input_is_on_stderr(folder):
    outcome = command(folder, "run", "none.yaml")
    assert outcome.code == 2 and outcome.out == "" and "none.yaml" in outcome.err
