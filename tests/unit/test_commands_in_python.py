"""`validate`, `compare`, `simulate` and `init` from Python: as their commands, with what Python can use."""

import argparse
import doctest
import inspect
import json
import re
import subprocess
import sys
from importlib import import_module

import numpy as np
import polars as pl
import pytest
from helpers.validation_data import analysis_of, beef_frames, small_beef

import mmgibbs
from mmgibbs.cli import main
from mmgibbs.errors import ConfigError

PACKAGES = {"compare": "report.comparison", "init": "draft", "simulate": "simulation", "validate": "validation"}
# What an option is called in Python, where that is not its name: the files; a list of overrides; no instead of yes.
CALLED = {"file": "config", "set": "overrides", "quiet": "progress", "no_report": "report", "no_check": "check"}
KEYS = {"init": ["widths", "pedigree_widths", "encoding", "pedigree_encoding", "unknown", "groups", "group_column"]}
SECTIONS = {"simulate": {"snps": mmgibbs.Genome}, "validate": {"plan": mmgibbs.ValidationPlan}}
NOT_OPTIONS = {"morgans", "generations", "largest", "smallest", "mutation", "maf"}  # of a genome


@pytest.mark.parametrize("name", PACKAGES)
def test_the_arguments_are_the_options_of_the_command(name):
    parser = argparse.ArgumentParser()
    import_module(f"mmgibbs.{PACKAGES[name]}.command").COMMANDS[name][0](parser)
    options = {a.dest: a for a in parser._actions if a.dest != "help"}
    arguments, in_sections = dict(inspect.signature(getattr(mmgibbs, name)).parameters), {}
    for parameter, kind in SECTIONS.get(name, {}).items():
        arguments.pop(parameter)
        in_sections |= {key: p for key, p in inspect.signature(kind).parameters.items() if key not in NOT_OPTIONS}
    arguments |= in_sections
    if name in KEYS:  # of the mapping `data`, with the words that options have
        arguments.pop("data")
        options = {option: action for option, action in options.items() if option not in KEYS[name]}
    assert {CALLED.get(option, option) for option in options} == set(arguments)
    for option, action in options.items():
        default = arguments[CALLED.get(option, option)].default
        if option in ("quiet", "no_report", "no_check"):
            assert default is True and action.default is False
        elif action.option_strings and not (option in in_sections and not action.default):  # that of the section
            assert (list(default) if isinstance(default, tuple) else default) == (
                [] if isinstance(default, tuple) and action.default is None else action.default
            )


@pytest.mark.parametrize("name", PACKAGES)
def test_the_docstring_names_every_argument_and_its_examples_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    function = getattr(mmgibbs, name)
    text = inspect.getdoc(function)
    section = text[text.index("Parameters\n---") : text.index("Returns\n---")]
    named = [n for line in re.findall(r"(?m)^([\w, ]+) : ", section) for n in line.split(", ")]
    assert named == list(inspect.signature(function).parameters)
    examples = doctest.DocTestFinder(recurse=False).find(function, name)
    outcome = [doctest.DocTestRunner().run(test) for test in examples]
    assert sum(o.attempted for o in outcome) > 1 and sum(o.failed for o in outcome) == 0


def test_importing_the_package_imports_none_of_them():
    code = "import sys, mmgibbs; print(*[m for m in sys.modules if m.split('.')[0] in ('mmgibbs', 'polars', 'numpy')])"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.split() == ["mmgibbs"]


def test_simulate(tmp_path, capsys):
    made = mmgibbs.simulate(tmp_path / "py", animals=400, years=5, seed=4)
    assert capsys.readouterr().out == ""
    assert main(["simulate", str(tmp_path / "sh"), "--animals", "400", "--years", "5", "--seed", "4"]) == 0
    for path in made.files:
        if path.name == "simulation.json":  # with the checksum of an analysis that has the name of its folder
            continue
        assert re.sub(rb"\bpy\b", b"sh", path.read_bytes()) == (tmp_path / "sh" / path.name).read_bytes()
    assert sorted(p.name for p in made.files) == sorted(p.name for p in (tmp_path / "py").iterdir())
    assert made.pedigree.height == 400 and made.true_values.height == 400
    assert made.pedigree.schema["sire"] == made.phenotypes.schema["animal"] == pl.String
    assert mmgibbs.check(made.analysis)["equations"] > 400


def test_simulate_other_traits_and_genotypes(tmp_path):
    given = {"animals": 600, "categories": ["a", "b"], "shares": np.array([0.7, 0.3])}
    made = mmgibbs.simulate(tmp_path / "ease", traits="calving_ease", **given)
    assert set(made.phenotypes["calving_ease"].drop_nulls()) == {"a", "b"}
    assert "--shares 0.7,0.3" in made.files[6].read_text()
    made = mmgibbs.simulate(tmp_path / "chips", animals=400, snps=mmgibbs.Genome(100, 10, hide_qtl=True, genotyped=50))
    assert "genotypes.bed" in {path.name for path in made.files}
    assert len((tmp_path / "chips" / "genotypes.fam").read_text().splitlines()) == 50


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"directory": 3}, "directory: found 3, needed the path of a folder"),
        ({"traits": "weight"}, "traits: found 'weight', needed one of weights, .*; did you mean 'weights'"),
        ({"traits": None}, "traits: found None, needed one of weights"),
        ({"traits": "trials"}, "did you mean 'trial'?"),
        ({"animals": 0}, "animals: found 0, needed a whole number of at least 1"),
        ({"animals": 100, "years": 50}, "at least 10 a year"),
        ({"traits": "disease", "incidence": 1}, "incidence: found 1, needed a share between 0 and 1"),
        ({"shares": [0.5, 0.5]}, "shares cannot be combined with traits='weights'; needed traits='calving_ease'"),
        ({"traits": "disease", "selection": "true"}, "selection cannot be combined with traits='disease'; needed"),
        ({"traits": "disease", "snps": 9}, "snps cannot be combined with traits='disease'; needed traits='weights'"),
        ({"traits": "trial"}, "animals cannot be combined with traits='trial'"),
        ({"lines": 50}, "lines cannot be combined with traits='weights'; needed traits='trial'"),
        ({"traits": "trial", "animals": None, "lines": 2}, "lines: found 2, needed a whole number of at least 4"),
        ({"traits": "trial", "animals": None, "sites": 0}, "sites: found 0, needed a whole number of at least 1"),
        ({"snps": mmgibbs.Genome(50, qtl=0)}, "qtl: found 0, needed a whole number"),
        ({"snps": mmgibbs.Genome(50, hide_qtl="no")}, "hide_qtl='no' is neither True nor False"),
    ],
)
def test_what_simulate_refuses(arguments, message, tmp_path):
    arguments = {"directory": tmp_path / "new", "animals": 400} | arguments
    with pytest.raises(ConfigError, match=message):
        mmgibbs.simulate(**{name: value for name, value in arguments.items() if value is not None or name == "traits"})
    assert not (tmp_path / "new").exists()


def solutions(path, name, values, ids):
    pl.DataFrame({"id": ids, "ebv": values}).write_csv(path / name)
    return path / name


def test_compare(tmp_path, capsys):
    ids, values = [f"a{i}" for i in range(40)], np.random.default_rng(1).normal(size=40)
    a, b = solutions(tmp_path, "a.csv", values, ids), solutions(tmp_path, "b.csv", 2 * values, ids)
    made = mmgibbs.compare(a, b, tmp_path / "py", top=3)
    assert main(["compare", str(a), str(b), "--top", "3", "--output", str(tmp_path / "sh")]) == 0
    assert capsys.readouterr().out == f"{made.text}\n\nwritten to {tmp_path / 'sh'}\n"
    names = sorted(p.name for p in (tmp_path / "py").iterdir())
    assert names == ["comparison.csv", "comparison.json", "comparison.txt", "levels.csv"]
    assert made.directory == tmp_path / "py"
    assert all((tmp_path / "py" / n).read_bytes() == (tmp_path / "sh" / n).read_bytes() for n in names)
    assert made.components["regression_of_b_on_a"].item() == pytest.approx(2)
    assert made.levels.height == 40 and made.parameters is None and made.page is None and str(made) == made.text


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"top": 0}, "compare: top: found 0, needed at least 1"),
        ({"top": 2.5}, "compare: top: found 2.5, needed at least 1"),
        ({"b": None}, "compare: b: found None, needed a path"),
        ({"output": 3}, "compare: output: found 3, needed a path"),
    ],
)
def test_what_compare_refuses(change, message, tmp_path):
    a = solutions(tmp_path, "a.csv", [1.0, 2.0], ["x", "y"])
    with pytest.raises(ConfigError, match=message):
        mmgibbs.compare(**{"a": a, "b": a} | change)


def test_init(tmp_path):
    data = mmgibbs.simulate(tmp_path / "data", animals=400)
    files = {"phenotypes": data.directory / "phenotypes.csv", "pedigree": data.directory / "pedigree.csv"}
    made = mmgibbs.init(**files, traits="weaning_weight", output=tmp_path / "py.yaml")
    assert made.refused is None and made.path == tmp_path / "py.yaml" and any("weaning_weight" in t for t in made.said)
    arguments = [str(files["phenotypes"]), "--pedigree", str(files["pedigree"]), "--traits", "weaning_weight"]
    assert main(["init", *arguments, "--output", str(tmp_path / "sh.yaml")]) == 0
    written = re.sub(r"py(?=\.yaml)|(?<=name: )py|(?<=runs/)py", "sh", made.path.read_text())
    assert written == (tmp_path / "sh.yaml").read_text()
    with pytest.raises(ConfigError, match="exists; choose another output, or give overwrite=True"):
        mmgibbs.init(**files, output=tmp_path / "py.yaml")
    for wrong, message in (
        ({"traits": 3}, "init: traits: found 3, needed a list of columns"),
        ({"data": {"widths": "8,8"}}, "init: data.widths: found .8,8., needed a whole number"),
        ({"data": {"pedigree_widths": [8, 0]}}, "init: data.pedigree_widths: value 2 of the list: found 0, needed"),
        ({"data": {"width": [8]}}, "init: data.width: no key of init; did you mean 'widths'"),
        ({"phenotypes": None}, "init: phenotypes: found None, needed the path of a file"),
    ):
        with pytest.raises(ConfigError, match=message):
            mmgibbs.init(**files | wrong, output=tmp_path / "new.yaml")


@pytest.fixture(scope="module")
def analysis():
    return analysis_of(*beef_frames(small_beef(160, 3, 4)), group="herd")


def test_validate(analysis, tmp_path):
    plan = mmgibbs.ValidationPlan(folds=3, by="family", cutoff=2003, replicates=0)
    more = {"plan": plan, "progress": False, "report": False}
    one = mmgibbs.validate(analysis, ["name=one"], output=tmp_path / "one", **more)
    assert set(one.table["method"]) == {"kfold", "lr"} and one.directory == tmp_path / "one"
    recorded = json.loads((one.directory / "validation.json").read_text())["plan"]
    assert [recorded[key] for key in ("folds", "by", "cutoff", "replicates")] == [3, "family", 2003, 0]
    two = {**analysis, "name": "two", "variances": {"animal": 0.1, "residual": 10}}
    both = mmgibbs.validate([analysis, two], output=tmp_path / "both", **more)
    assert both.names == ["birth", "two"] and both.validations[0].table.equals(one.table)
    assert both.table["difference"].count() > 0 and (tmp_path / "both" / "two" / "validation.csv").is_file()


def test_validate_with_the_variances_of_more_analyses_than_there_are(analysis, tmp_path, capsys):
    with pytest.raises(ConfigError, match="validate: variances: found 2 for 1 analysis; needed one"):
        mmgibbs.validate(analysis, plan=mmgibbs.ValidationPlan(variances=["sample", "runs/x"]), output=tmp_path / "out")
    with pytest.raises(ConfigError, match="validate: found no analysis, needed one or more"):
        mmgibbs.validate([], output=tmp_path / "out")
    with pytest.raises(ConfigError, match="override 'samples=9'"):
        mmgibbs.validate(analysis, "samples=9", output=tmp_path / "out")
    assert main(["validate", "none.yaml", "--variances", "a", "--variances", "b"]) == 2
    assert capsys.readouterr().err == "validate: --variances: found 2 for 1 analysis; needed one\n"
