"""Docstrings of the public names are numpydoc: every parameter has its type, and the examples run."""

import doctest
import inspect
import re

import pytest
from helpers.shared_runs import copy_of_run
from helpers.support import ROOT

import mmgibbs
from mmgibbs import pedigree
from mmgibbs.pedigree.simulate import SimulatedPedigree
from mmgibbs.runs.predict import Predicted
from mmgibbs.runs.several import Scenario

PUBLIC = {f"{of.__name__}.{name}": getattr(of, name) for of in (mmgibbs, pedigree) for name in of.__all__}
RETURNED = {"Predicted": Predicted, "Scenario": Scenario, "SimulatedPedigree": SimulatedPedigree}


ESTIMATORS = "BayesianLasso HierarchicalSlice HorseshoeProbit MixedModel MultinomialHMC MultinomialPG".split()
SLOW = {f"mmgibbs.{name}" for name in ("run_scenarios", *ESTIMATORS)}  # examples that compile and sample


def sections(text):
    """{title: lines} of a numpydoc docstring; the summary is ''."""
    out, title = {"": []}, ""
    lines = text.splitlines()
    for line, below in zip(lines, [*lines[1:], ""], strict=True):
        if re.fullmatch("-{3,}", below) and len(below) == len(line):
            title = line
            out[title] = []
        elif not re.fullmatch("-{3,}", line):
            out[title].append(line)
    return out


def entries(lines):
    """{name: type} of a section of parameters or attributes."""
    heads = [line.partition(" : ") for line in lines if line and not line.startswith(" ")]
    return {name: kind for names, _, kind in heads for name in names.split(", ")}


def members(cls):
    """Its public methods, those of the bases of this project included, by name."""
    for name, value in inspect.getmembers(cls, inspect.isfunction):
        if not name.startswith("_") and value.__module__.split(".")[0] == "mmgibbs":
            yield name, value


def functions():
    for path, thing in PUBLIC.items():
        if inspect.isclass(thing):
            for name, method in members(thing):
                yield pytest.param(method, id=f"{path}.{name}")
        else:
            yield pytest.param(thing, id=path)


def faults(function):
    """What the docstring of a function lacks."""
    found = sections(inspect.getdoc(function) or "")
    signature = inspect.signature(function)
    names = [p.name for p in signature.parameters.values() if p.name != "self"]
    names = [f"**{n}" if signature.parameters[n].kind is inspect.Parameter.VAR_KEYWORD else n for n in names]
    documented = entries(found.get("Parameters", []))
    out = [f"parameters {names}, documented {list(documented)}"] if names != list(documented) else []
    out += [f"{name} without a type" for name, kind in documented.items() if not kind]
    if signature.return_annotation not in (None, "None") and "Returns" not in found:
        out.append("no Returns")
    return out


@pytest.mark.parametrize("function", list(functions()))
def test_every_parameter_and_result_is_documented(function):
    assert faults(function) == []


@pytest.mark.parametrize("path", list(PUBLIC))
def test_every_section_has_a_line_of_its_own(path):
    titles = re.findall(r"(?m)^(.*)-{5,}.*$", inspect.getdoc(PUBLIC[path]))
    assert not any(title.strip("- ") for title in titles)


@pytest.mark.parametrize("cls", [*(v for v in PUBLIC.values() if inspect.isclass(v)), *RETURNED.values()])
def test_every_field_or_keyword_of_a_class_is_documented(cls):
    found = sections(inspect.getdoc(cls))
    if issubclass(cls, Exception):
        return
    names = [name for name in inspect.signature(cls).parameters if not name.startswith("_")]
    documented = entries(found.get("Parameters", found.get("Attributes", [])))
    assert names == list(documented) and all(documented.values())


@pytest.mark.parametrize(
    "path", [path for path, v in PUBLIC.items() if not (inspect.isclass(v) and issubclass(v, Exception))]
)
def test_every_public_name_has_an_example(path):
    thing = PUBLIC[path]
    if thing in (pedigree.Pedigree, pedigree.Relatives, mmgibbs.Result):
        pytest.skip("returned by a function, whose example makes one")
    assert ">>> " in "\n".join(sections(inspect.getdoc(thing))["Examples"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder that sees the analyses and their data, with the runs that examples open."""
    path = tmp_path_factory.mktemp("examples")
    for name in ("configs", "data_samples"):
        (path / name).symlink_to(ROOT / name)
    for name in ("first", "genomic"):
        copy_of_run(tmp_path_factory, name, path / "runs" / name)
    return path


def examples():
    finder = doctest.DocTestFinder(recurse=False)
    things = dict(PUBLIC)
    for path, thing in PUBLIC.items():
        if inspect.isclass(thing):
            things |= {f"{path}.{name}": method for name, method in members(thing)}
    for path, thing in things.items():
        for test in finder.find(thing, path, globs={}):
            if test.examples:
                yield pytest.param(test, id=path, marks=pytest.mark.slow if path in SLOW else ())


@pytest.mark.filterwarnings("ignore:.*R-hat", "ignore:.*effective")  # chains of examples are short
@pytest.mark.parametrize("test", list(examples()))
def test_examples_run(test, folder, monkeypatch):
    monkeypatch.chdir(folder)
    said = []
    doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test, out=said.append)
    assert said == []
