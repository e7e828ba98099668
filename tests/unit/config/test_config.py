"""The analysis file: what is accepted, and what it becomes."""

import copy
import json
import pickle
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import yaml
from helpers.analysis_files import SMALL, load_text, small
from helpers.support import ROOT
from pydantic import ValidationError

from mmgibbs.config import Interval, component_names, load_config
from mmgibbs.config.relationships import File, Identity, Pedigree
from mmgibbs.errors import ConfigError
from mmgibbs.models.marker_priors import MARKER_PRIORS


def test_the_example_of_the_design_note(beef, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    a = load_config(beef)
    assert a.name == "beef-maternal" and a.path == beef
    assert a.data.phenotypes == tmp_path.resolve() / "data_samples/beef/phenotypes.csv"
    assert a.data.pedigree == tmp_path.resolve() / "data_samples/beef/pedigree.csv"
    assert a.output.directory == tmp_path / "runs" / "beef-maternal"
    assert [t.name for t in a.traits] == ["birth_weight", "weaning_weight"] == [t.column for t in a.traits]
    fixed = a.model.fixed
    assert list(fixed) == ["contemporary_group", "sex", "dam_age"]
    assert [f.column for f in fixed.values()] == ["cg", "sex", "dam_age"]
    assert [f.kind for f in fixed.values()] == ["class", "class", "covariate"]
    assert fixed["sex"].traits == ("birth_weight", "weaning_weight") and fixed["dam_age"].traits == ("weaning_weight",)
    age = fixed["dam_age"]
    assert age.degree == 2 and age.legendre is None and age.prior_variance is None
    genetic, environment = a.model.random["genetic"], a.model.random["maternal_environment"]
    assert genetic.relationship == Pedigree() and environment.relationship == Identity()
    assert list(genetic.effects) == ["direct", "maternal"] and list(environment.effects) == [""]
    assert genetic.effects["direct"].level == "animal"
    assert genetic.effects["direct"].traits == ("birth_weight", "weaning_weight")
    assert environment.effects[""].level == "dam" and environment.effects[""].traits == ("weaning_weight",)
    assert environment.effects[""].unknown_level == "error"
    v = a.variances
    assert v.mode == "sample" and set(v.terms) == {"genetic", "maternal_environment"}
    np.testing.assert_array_equal(v.terms["genetic"].start, [[9, 6, 0], [6, 90, -10], [0, -10, 40]])
    assert v.terms["genetic"].prior.df == 5 and v.terms["genetic"].prior.scale == v.terms["genetic"].start
    assert v.terms["maternal_environment"].start == ((30.0,),) and v.terms["maternal_environment"].prior is None
    assert v.residual.start == ((12.0, 10.0), (10.0, 160.0))
    s = a.sampler
    assert (s.chains, s.burn_in, s.samples, s.thin, s.seed) == (4, 5000, 20000, 10, 42)


DEFAULTS = """
name: analysis
data: {phenotypes: PHENOTYPES, pedigree: null, separator: null, pedigree_separator: null, encoding: null,
  pedigree_encoding: null, widths: null, pedigree_widths: null, header: null, missing: ['', NA], decimal: null,
  order: {}, weights: null, pedigree_columns: null, pedigree_header: null, unknown_parent: ['', NA, '0'],
  add_missing_animals: false, inbreeding: account, groups: null, genotypes: null}
traits: {'y': {column: 'y', missing: [], type: normal}}
model: {intercept: auto, fixed: {}, random: {}, markers: {}}
variances: {mode: sample, residual: {start: null, fixed: false, prior: flat, structure: full}}
sampler: {method: gibbs, chains: 4, burn_in: 2000, samples: 10000, thin: 10, seed: 42, engine: auto, partition: auto,
  update: level, device: auto, threads: null, precision: double, interweave: auto, refresh_every: 1000,
  checkpoint_every: 10m, stop: null, tolerance: null, preconditioner: auto, pev_limit: null, pev_samples: null,
  reml_samples: 100, max_iterations: 100}
output: {directory: DIRECTORY, save_levels: [], probabilities: [], moments: [], means: [], save_marker_draws: null,
  snp_effects: false, fitted: false, csv: auto, escape_formulas: false}
"""


def test_every_default(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    a = load_config({"data": {"phenotypes": "p.csv"}, "traits": "y"})
    assert a.path is None
    expected = yaml.safe_load(DEFAULTS)
    expected["data"]["phenotypes"] = str(tmp_path.resolve() / "p.csv")
    expected["output"]["directory"] = str(tmp_path / "runs" / "analysis")
    assert a.resolved() == expected


FULL = small(
    name="everything",
    data={
        "phenotypes": "p.txt",
        "pedigree": "ped.txt",
        "separator": "whitespace",
        "pedigree_separator": "tab",
        "header": ["animal", "herd", "age", "y", "z", "w"],
        "missing": ["-9", "."],
        "weights": "w",
        "pedigree_columns": {"id": 1, "sire": 2, "dam": 3, "birth": 4},
        "pedigree_header": False,
        "unknown_parent": ["0"],
        "add_missing_animals": True,
        "inbreeding": "ignore",
        "groups": {"column": "5", "effect": "fixed"},
    },
    traits={"y": {"column": "Y (kg)", "missing": [-9, "x"]}, "z": {}},
    model={
        "intercept": False,
        "fixed": {
            "herd": {"prior": {"variance": 100}},
            "age": {"kind": "covariate", "legendre": {"degree": 2, "range": [0, 10]}, "by": "herd"},
            "age2": {"column": "age", "kind": "covariate", "degree": 3, "traits": "z"},
        },
        "random": {
            "genetic": {
                "relationship": "pedigree",
                "effects": {
                    "rr": {"level": "animal", "legendre": {"column": "age", "degree": 1, "range": [0, 10]}},
                    "m": {"level": "dam", "traits": ["z"], "unknown_level": "omit"},
                    "slope": {"level": "sire", "traits": "y", "covariates": ["one", "age"]},
                },
            },
            "herd_year": {"relationship": "./inverse.txt", "traits": ["z"]},
        },
    },
    variances={
        "residual": {"start": np.eye(2), "structure": "diagonal"},
        "herd_year": {"prior": {"df": -1, "scale": 0}},
    },
    sampler={"checkpoint_every": "10m", "threads": 2, "interweave": True}
    | {"update": "site", "partition": "effect", "engine": "hybrid"},
    output={"directory": "out", "save_levels": ["herd_year", {"genetic": [7, "A1"]}], "csv": "always"},
)


def test_every_key():
    a = load_config(FULL)
    assert a.data.separator == " " and a.data.pedigree_separator == "\t"
    assert a.data.pedigree_columns.given == {"id": 1, "sire": 2, "dam": 3, "birth": 4}
    assert (a.data.groups.column, a.data.groups.effect) == ("5", "fixed")
    assert a.traits[0].column == "Y (kg)" and a.traits[0].missing == ("-9", "x") and a.traits[1].column == "z"
    assert a.model.intercept is False
    assert a.model.fixed["herd"].prior_variance == 100.0
    age = a.model.fixed["age"]
    assert (age.legendre.degree, age.legendre.range, age.by) == (2, (0.0, 10.0), "herd")
    assert a.model.fixed["age2"].degree == 3 and a.model.fixed["age2"].traits == ("z",)
    rr = a.model.random["genetic"].effects["rr"]
    assert (rr.legendre.column, rr.legendre.degree, rr.legendre.range) == ("age", 1, (0.0, 10.0))
    assert a.model.random["genetic"].effects["slope"].covariates == ("one", "age")
    assert a.model.random["herd_year"].relationship == File(file=str(Path.cwd().resolve() / "inverse.txt"))
    assert a.model.random["herd_year"].effects[""].level == "herd_year"
    assert a.variances.residual.structure.kind == "diagonal" and a.variances.terms["herd_year"].prior.scale == ((0.0,),)
    assert a.sampler.checkpoint_every == Interval(10.0, "minutes")
    assert a.sampler.threads == 2 and a.sampler.interweave is True
    assert a.output.save_levels == {"herd_year": None, "genetic": ("7", "A1")}
    assert a.output.csv == "always"


def test_components_run_effect_then_trait_then_coefficient():
    a = load_config(FULL)
    of_genetic = "rr.0:y rr.1:y rr.0:z rr.1:z m:z slope.0:y slope.1:y"
    assert component_names(a.model.random["genetic"]) == tuple(of_genetic.split())
    assert component_names(a.model.random["herd_year"]) == ("z",)
    assert component_names(a.traits) == ("y", "z")


SNPS = {  # sections of SNP effects that fill in different keys
    **{prior: {"prior": prior} for prior in MARKER_PRIORS},
    "fixed_shares": {"prior": "bayes_c", "pi": {"start": [0.9, 0.1], "fixed": True}},
    "own_classes": {"prior": "bayes_r", "classes": [0, 0.001, 0.1], "pi": [0.5, 0.3, 0.2]},
    "own_scale": {"prior": "horseshoe", "global_scale": 0.1},
    "windows": {"windows": {"snps": 20}},
    "chromosomes": {"snps": {"chromosomes": [1, "X"]}},
    "of_a_file": {"snps": {"file": "groups.csv"}},
    "epsilon": {"prior": "bayes_c", "pi": {"fixed": True}, "single_step": "epsilon", "variance_left": "implied"},
}


def with_snps(section):
    tree = small()
    return tree | {
        "data": tree["data"] | {"genotypes": "snps.bed"},
        "model": tree["model"] | {"markers": {"snps": section}},
    }


FIELD = {"kind": "ar1", "row": "row", "column": "column", "within": "trial", "rho": {"row": 0.3}}
CURVE = {"kind": "random_walk", "of": "day", "within": "animal"}
INTERACTIONS = {"sex:site": {"reference": "F:east"}, "sex:age": {"covariates": ["age"], "degree": 2}}
EFFECTS = {
    "interactions": {"fixed": INTERACTIONS, "random": {"line:site": {}}},
    "field": {"random": {"field": {"relationship": FIELD}}},
    "curve": {"random": {"curve": {"relationship": CURVE}}},
    "several levels": {"random": {"mates": {"level": ["m1", "m2"], "weights": ["w1", "w2"]}}},
    "mates": {"random": {"mates": {"level": {"group": "pen", "of": "animal", "dilution": 0.5}}}},
}
SOURCES = {"small": SMALL, "full": FULL} | {path.stem: path for path in sorted(ROOT.glob("configs/*.yaml"))}
SOURCES |= {name: with_snps(section) for name, section in SNPS.items()}
SOURCES |= {name: small(model=model) for name, model in EFFECTS.items()}


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_what_is_written_is_read_back(source, tmp_path):
    """As a dict, and as the file that run.json holds."""
    resolved = load_config(source).resolved()
    path = tmp_path / "again.yaml"
    path.write_text(json.dumps(resolved))
    assert load_config(path).resolved() == resolved == load_config(resolved).resolved()
    assert load_config(path).model == load_config(source).model


def test_an_analysis_is_frozen_pickles_and_leaves_its_source_alone():
    before = copy.deepcopy(SMALL)
    a = load_config(SMALL, ["sampler.samples=100", "model.fixed.sex.column=s"])
    assert before == SMALL
    with pytest.raises(ValidationError):
        a.sampler.samples = 5
    assert pickle.loads(pickle.dumps(a)) == a


def test_data_frames_in_place_of_paths():
    phenotypes, pedigree = pl.DataFrame({"animal": ["a"], "y": [1.0]}), pl.DataFrame({"id": ["a"]})
    a = load_config(small(data={"phenotypes": phenotypes, "pedigree": pedigree}))
    assert a.data.phenotypes is phenotypes and a.data.pedigree is pedigree
    assert a.resolved()["data"]["phenotypes"] == "data frame of 1 rows and 2 columns"


@pytest.mark.parametrize(
    "written, value", [("1e-3", 1e-3), ("0.5", 0.5), (".5", 0.5), ("'1e-3'", 1e-3), ("+1.5e-2", 0.015)]
)
def test_numbers_however_they_are_written(tmp_path, written, value):
    text = "data: {phenotypes: p.csv}\ntraits: [y]\nsampler: {engine: pcg, tolerance: %s}\n"
    assert load_text(tmp_path, text % written).sampler.tolerance == value


def test_the_tolerance_of_pcg_depends_on_the_method(tmp_path):
    """Relative residual of a solution; error of a draw in posterior standard deviations."""
    text = "data: {phenotypes: p.csv}\ntraits: [y]\n"
    assert load_text(tmp_path, text, "sampler.method=blup", "variances.residual=1").sampler.tolerance == 1e-12
    assert load_text(tmp_path, text, "sampler.engine=pcg").sampler.tolerance == 1e-8
    assert load_text(tmp_path, text, "sampler.engine=serial").sampler.tolerance is None


@pytest.mark.parametrize("written", ["1e4", "10000", "10000.0", "0010000"])
def test_whole_numbers_however_they_are_written(tmp_path, written):
    text = f"data: {{phenotypes: p.csv}}\ntraits: [y]\nsampler: {{samples: {written}}}\n"
    samples = load_text(tmp_path, text).sampler.samples
    assert samples == 10_000 and isinstance(samples, int)


def test_text_stays_text(tmp_path):
    """YAML 1.1 would read false, 83, a date, 630 and null."""
    a = load_text(
        tmp_path,
        "data: {phenotypes: p.csv, missing: [NULL, -9, '', -9.0, no]}\n"
        "traits: [no, 0123, 2009-01-01, null]\n"
        "model: {random: {herd: {level: 2019}}}\noutput: {save_levels: {herd: [0123, 1.10, yes, 10:30]}}\n",
    )
    assert a.data.missing == ("NULL", "-9", "", "-9.0", "no")
    assert [t.name for t in a.traits] == ["no", "0123", "2009-01-01", "null"]
    assert a.model.random["herd"].effects[""].level == "2019"
    assert a.output.save_levels == {"herd": ("0123", "1.10", "yes", "10:30")}


@pytest.mark.parametrize(
    "given, saved",
    [
        ("{herd: all}", ("herd",)),
        ("[{herd: all}, animal]", ("herd", "animal")),
        ("{herd: all, animal: [a1]}", {"herd": None, "animal": ("a1",)}),
        ("{herd: [all]}", {"herd": ("all",)}),
        ("{herd: h1}", {"herd": ("h1",)}),
    ],
)
def test_all_levels_of_a_term_are_saved(tmp_path, given, saved):
    text = "data: {phenotypes: p.csv, pedigree: q.csv}\ntraits: [y]\n"
    model = "model: {random: {herd: {}, animal: {relationship: pedigree}}}\n"
    (tmp_path / "a.yaml").write_text(f"{text}{model}output: {{save_levels: {given}}}\n")
    assert load_config(tmp_path / "a.yaml").output.save_levels == saved


def test_positions_are_numbers_without_quotation_marks(tmp_path):
    text = "data: {phenotypes: p.csv, pedigree: q.csv, pedigree_columns: {id: %s}}\ntraits: [y]\n"
    assert load_text(tmp_path, text % "'1'").data.pedigree_columns.id == "1"
    with pytest.raises(ConfigError, match="positions for some columns only"):
        load_text(tmp_path, text % "1")


@pytest.mark.parametrize(
    "written, value",
    [
        (500, Interval(500, "sweeps")),
        ("500", Interval(500, "sweeps")),
        ("10m", Interval(10, "minutes")),
        ("0.5 min", Interval(0.5, "minutes")),
        ("never", "never"),
        (None, Interval(10, "minutes")),
    ],
)
def test_checkpoint_every(written, value):
    assert load_config(small(sampler={"checkpoint_every": written})).sampler.checkpoint_every == value


def test_options_of_a_regression_mean_what_they_look_like(tmp_path):
    a = load_text(
        tmp_path,
        "data: {phenotypes: p.csv}\n"
        "model: {plugin: horseshoe_probit, response: y, predictors: 'snp_*', options: {a: 1, b: 1e-3, c: true, d: "
        "null, e: ['2', x, no]}}\n",
    )
    assert a.model.plugin == "horseshoe_probit" and a.model.response == ("y",) and a.model.predictors == ("snp_*",)
    assert a.model.options == {"a": 1, "b": 1e-3, "c": True, "d": None, "e": ["2", "x", "no"]}
    assert a.traits == () and a.model.fixed == {} and a.model.random == {}
    assert load_config(a.resolved()).resolved() == a.resolved()


def test_a_key_without_a_value_means_its_default(tmp_path):
    a = load_text(
        tmp_path,
        "data: {phenotypes: p.csv, pedigree: , weights: ~, groups: }\ntraits: {y: }\n"
        "model:\n  fixed:\n    sex:\n  random:\nvariances:\nsampler:\noutput:\n",
    )
    assert a.data.pedigree is None and a.data.weights is None
    assert a.model.fixed["sex"].column == "sex" and a.model.random == {}


def test_variances_that_are_accepted():
    a = load_config(small(variances={"genetic": 3, "residual": [[2]]}))
    assert a.variances.terms["genetic"].start == ((3.0,),) and a.variances.residual.start == ((2.0,),)
    a = load_config(small(traits=["y", "z"], variances={"residual": [[1, 0.5 + 1e-10], [0.5, 1]]}))
    assert a.variances.residual.start[0][1] == a.variances.residual.start[1][0] == pytest.approx(0.5, abs=1e-9)
    a = load_config(small(traits=["y", "z"], variances={"residual": {"prior": {"df": 4, "scale": [[1, 1], [1, 1]]}}}))
    assert a.variances.residual.prior.scale == ((1.0, 1.0), (1.0, 1.0))
    a = load_config(small(traits=["y", "z"], variances={"residual": [[1e-40, 0], [0, 1e40]]}))
    assert a.variances.residual.start[0][0] == 1e-40


@pytest.mark.parametrize(
    "sections",
    [
        {"variances": {"mode": "fixed", "genetic": 3, "residual": 2}},
        {"variances": {"genetic": {"start": 3, "fixed": True}, "residual": {"start": 2, "fixed": True}}},
        {"variances": {"genetic": 3, "residual": 2}, "sampler": {"method": "blup"}},
    ],
)
def test_ways_to_hold_every_variance(sections):
    variances = load_config(small(**sections)).variances
    assert variances.mode == "fixed" and variances.terms["genetic"].fixed and variances.residual.fixed


def test_coefficients_of_an_unnamed_effect():
    effects = {"": {"level": "a", "covariates": ["one", "t"]}}
    a = load_config(small(model={"random": {"g": {"effects": effects}}}))
    assert component_names(a.model.random["g"]) == (".0:y", ".1:y")
    assert load_config(a.resolved()).resolved() == a.resolved()


@pytest.mark.parametrize(
    "written, resolved",
    [
        ("identity", "identity"),
        ({"kind": "identity"}, "identity"),
        ("pedigree", "pedigree"),
        ({"kind": "pedigree"}, "pedigree"),
        ("inverse.txt", str(Path("inverse.txt").resolve())),
        ({"kind": "file", "file": "inverse.txt"}, str(Path("inverse.txt").resolve())),
    ],
)
def test_a_relationship_is_a_word_a_path_or_a_mapping(written, resolved):
    """The short and the long way mean the same, and the resolved analysis writes the short one."""
    tree = {
        "data": {"phenotypes": "p.csv", "pedigree": "ped.csv"},
        "traits": ["y"],
        "model": {"random": {"line": {"relationship": written}}},
    }
    assert load_config(tree).resolved()["model"]["random"]["line"]["relationship"] == resolved
