"""The README and the pages do what they say: commands, Python, files, numbers of the program."""

import contextlib
import io
import os
import re
import shlex
import subprocess

import pytest
from helpers.support import ROOT

from mmgibbs import cli
from mmgibbs.association.scan import ANIMALS_PER_SNP, MAX_ANIMALS_OF_CORRELATIONS
from mmgibbs.config import load_config
from mmgibbs.models.marker_priors import MARKER_PRIORS

README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMAND = re.compile(r"^<!-- command: (\w+) -->\n```sh\n(.*?)\n```$", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^```(\w*)\n(.*?)\n```$", re.MULTILINE | re.DOTALL)


def blocks(language):
    return [text for name, text in BLOCK.findall(README) if name == language]


def test_two_commands_set_up_run_and_test():
    commands = dict(COMMAND.findall(README))
    assert list(commands) == ["run", "test"] and README.count("<!-- command:") == 2
    assert commands["run"].count("\n") == commands["test"].count("\n") == 0
    start = "python3 -m venv .venv && .venv/bin/pip install . && .venv/bin/mmgibbs run configs/"
    assert re.fullmatch(re.escape(start) + r"\w+\.yaml", commands["run"])
    assert commands["test"] == '.venv/bin/pip install ".[test]" && .venv/bin/python -m pytest'


@pytest.mark.skipif(os.name != "posix", reason="needs bash")
def test_ci_tries_these_commands():
    shown = subprocess.run([ROOT / ".ci" / "run", "--show"], capture_output=True, text=True, check=True).stdout
    assert shown.splitlines() == [text for _, text in COMMAND.findall(README)]


def test_analysis_file_is_the_one_that_the_command_runs(tmp_path):
    (file,) = blocks("yaml")
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "beef.yaml").write_text(file)
    shown, shipped = (load_config(of / "configs" / "beef.yaml").resolved() for of in (tmp_path, ROOT))
    for key in ("name", "traits", "model", "variances", "sampler", "output"):
        assert shown[key] == shipped[key]
    assert shown["data"]["phenotypes"] == str(tmp_path / "data_samples/beef/phenotypes.csv")
    assert shipped["data"]["phenotypes"] == str(ROOT / "data_samples/beef/phenotypes.csv")


def test_python_runs(tmp_path, monkeypatch):
    """All Python blocks in order, as one session, in a folder that sees the analysis files and the data."""
    for name in ("configs", "data_samples"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)
    names, spoken = {}, io.StringIO()
    with contextlib.redirect_stdout(spoken), contextlib.redirect_stderr(io.StringIO()):
        for text in blocks("python"):
            exec(compile(text, "README.md", "exec"), names)
    assert (tmp_path / "runs" / "first" / "summary.csv").exists()
    assert "h2[yearling_weight]" in names["result"].summary["parameter"]
    assert names["best"].height == 10 and names["best"]["reliability"].is_between(0, 1).all()
    assert "reliability" in spoken.getvalue()


@pytest.mark.parametrize(
    "line", [line for text in blocks("sh") for line in text.splitlines() if line.startswith("mmgibbs ")]
)
def test_commands_are_accepted(line):
    words = shlex.split(line, comments=True)[1:]
    assert cli._parser(words).parse_args(words)
    if words[0] in ("run", "check") and words[1] != "analysis.yaml":  # which init writes
        load_config(ROOT / words[1], [v for flag, v in zip(words, words[1:]) if flag == "--set"])


def test_files_that_pages_name_exist():
    links = [link for link in re.findall(r"\]\(([^)]+)\)", README) if "://" not in link]
    assert links and all((ROOT / link).exists() for link in links)
    page = (ROOT / "docs" / "reference" / "analyses.md").read_text(encoding="utf-8")
    named = set(re.findall(r"\]\(\.\./\.\./configs/([^)]+)\)", page))
    assert named == {p.name for p in ROOT.glob("configs/*.yaml")}


COUNTS = {7: "seven", 8: "eight"}
NUMBERS = {
    "how-to/association.md": f"at most {MAX_ANIMALS_OF_CORRELATIONS // ANIMALS_PER_SNP}.",
    "releases/0.1.0.md": f"{COUNTS[len(MARKER_PRIORS)]} priors",
}


@pytest.mark.parametrize("page", NUMBERS)
def test_pages_have_the_numbers_of_the_program(page):
    assert NUMBERS[page] in (ROOT / "docs" / page).read_text(encoding="utf-8")
