"""The answers of "How do I ...?": every fragment of an analysis file is understood, and every example runs."""

import re
import shlex

import polars as pl
import pytest
import yaml
from helpers.shared_runs import copy_of_run
from helpers.support import ROOT

import mmgibbs
from mmgibbs.cli import main
from mmgibbs.data.traits import load_analysis

PAGE = next(ROOT.glob("docs/**/how-do-i.md")).read_text(encoding="utf-8")
FRAGMENT = re.compile(r"^### (.*?)$|^<!-- base: (\w+) -->\n```yaml\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def fragments():
    question = ""
    for heading, base, text in FRAGMENT.findall(PAGE):
        question = heading or question
        if base:
            yield pytest.param(base, text, id=question)


def merge(base, changes):
    """`base` with the keys of `changes`; effects of a fragment take the place of those of the same section."""
    if not isinstance(base, dict) or not isinstance(changes, dict):
        return changes
    replaced = {"fixed", "random", "traits", "decisions", "groups"}
    return base | {k: v if k in replaced else merge(base.get(k), v) for k, v in changes.items()}


@pytest.mark.parametrize(("base", "text"), list(fragments()))
def test_a_fragment_is_understood(base, text, monkeypatch):
    monkeypatch.chdir(ROOT / "configs")
    analysis = yaml.safe_load((ROOT / "configs" / f"{base}.yaml").read_text(encoding="utf-8"))
    load_analysis(merge(analysis, yaml.safe_load(text)))


def test_every_marked_fragment_is_read():
    assert PAGE.count("<!-- base: ") == len(list(fragments()))


BLOCK = re.compile(r"^### (.*?)$|^```(sh|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FEW_SWEEPS = ("chains=2", "burn_in=4", "samples=20", "thin=2", "threads=1")
SHORT = [word for setting in FEW_SWEEPS for word in ("--set", f"sampler.{setting}")]
ADDED = {  # to the words of a command, so that it is short, or leaves what the next ones need
    "run": [*SHORT, "--no-report"],
    "validate": [*SHORT, "--method", "kfold"],
    "init": ["--output", "drafted.yaml"],
    "figures": ["--only", "trace-of-h2-*"],
}


def examples():
    question = ""
    for heading, language, code in BLOCK.findall(PAGE):
        question = heading or question
        if language:
            yield pytest.param(language, code, id=question)


@pytest.fixture(scope="module")
def workplace(tmp_path_factory):
    """A folder with what the answers name: tables, analyses, runs."""
    folder = tmp_path_factory.mktemp("answers")
    for name in ("configs", "data_samples"):
        (folder / name).symlink_to(ROOT / name)
    beef = ROOT / "data_samples" / "beef"
    (folder / "records.csv").write_bytes((beef / "phenotypes.csv").read_bytes())
    (folder / "pedigree.csv").write_bytes((beef / "pedigree.csv").read_bytes())
    first = (ROOT / "configs" / "first.yaml").read_text(encoding="utf-8")
    first = first.replace("../data_samples/beef/phenotypes.csv", "records.csv")
    first = first.replace("../data_samples/beef/pedigree.csv", "pedigree.csv")
    for name in ("analysis", "a", "b"):
        (folder / f"{name}.yaml").write_text(re.sub("(?m)^name: .*", f"name: {name}", first), encoding="utf-8")
    few = [f"sampler.{setting}" for setting in FEW_SWEEPS]
    for name, run in {"beef": "beef", "genomic": "genomic", "sheep": "repeated_records"}.items():
        copy_of_run(tmp_path_factory, run, folder / "runs" / name)
    mmgibbs.run(folder / "analysis.yaml", few, directory=folder / "runs" / "analysis", progress=False)
    without_snps = ["sampler={method: reml}", "model.markers={}"]
    mmgibbs.run(ROOT / "configs" / "genomic.yaml", without_snps, directory=folder / "runs" / "growth", progress=False)
    genotypes = load_analysis(ROOT / "configs" / "genomic.yaml").data.genotypes.file
    for suffix in (".bed", ".bim", ".fam"):
        (folder / f"young{suffix}").write_bytes(genotypes.with_suffix(suffix).read_bytes())
    main(["export", "--format", "blupf90", str(folder / "runs" / "beef"), "--output", str(folder / "other")])
    return folder


def run_command(line):
    words = shlex.split(line, comments=True)
    assert words[0] == "mmgibbs"
    words = ["20" if before == "--extend" else word for before, word in zip(["", *words], words)]
    assert main([*words[1:], *ADDED.get(words[1], [])]) == 0


@pytest.mark.slow
@pytest.mark.parametrize(("language", "code"), list(examples()))
def test_an_example_runs(language, code, workplace, monkeypatch):
    monkeypatch.chdir(workplace)
    if language == "sh":
        for line in code.splitlines():
            run_command(line)
        return
    tables = {name: pl.read_csv(f"{name}.csv", infer_schema_length=None) for name in ("records", "pedigree")}
    result = mmgibbs.open_run("runs/sheep" if "fleece_weight" in code else "runs/beef")
    names = tables | {"result": result, "mmgibbs": mmgibbs, "pl": pl}
    code = code.replace(".fit()", ".fit(chains=1, burn_in=2, samples=6, thin=2, threads=1, progress=False)")
    exec(compile(code, "answer", "exec"), names)
