"""Mistakes of several keys together, of whole sections and of what is no analysis: a line for each."""

import pytest
from helpers.good_analysis import GOOD, IN_ORDER, changed, message_of

from mmgibbs.config import load_config
from mmgibbs.errors import ConfigError


def test_draws_of_levels_that_one_file_cannot_hold_together():
    """Levels are a variable of draws.nc, as draws are."""
    for one, other, both in (
        ("herd", "herd_level", "the levels of 'herd' and 'herd_level' would both be called 'herd_level'"),
        ("herd_component", "herd", "'herd_component' and the components of 'herd' would both be called"),
        ("draw", "draw_", "'draw' and 'draw_' would both be called 'draw_'"),
    ):
        tree = changed("output.save_levels", [one, other])
        tree["model"]["fixed"] |= {name: {} for name in (one, other) if name != "herd"}
        with pytest.raises(ConfigError, match=f"output.save_levels: {both}"):
            load_config(tree)
        tree["output"]["save_levels"] = [one]
        load_config(tree)


def test_all_mistakes_are_listed_each_on_its_line(tmp_path):
    path = tmp_path / "analysis.yaml"
    path.write_text(
        "data: {phenotypes: p.csv}\ntraits: [y]\nmodel: {fixed: {sex: {kindd: class}, age: {degree: "
        "x}}}\nsampler: {thin: -3}\n"
    )
    assert message_of(path).split("\n") == [
        f"{path}: model.fixed.sex.kindd: unknown key; did you mean 'kind'?",
        f"{path}: model.fixed.age.degree: found 'x', needed a whole number from 1 to 20",
        f"{path}: sampler.thin: found -3, needed a whole number of at least 1",
    ]


def test_mode_fixed_names_every_start_that_is_missing():
    tree = changed("variances", {"mode": "fixed", "herd": 3})
    assert message_of(tree).split("\n") == [
        f"analysis: variances.genetic.start: missing, needed a 3 x 3 matrix {IN_ORDER} for variances.mode: fixed",
        "analysis: variances.residual.start: missing, needed a 2 x 2 matrix in the order bw, ww for "
        "variances.mode: fixed",
    ]


def test_blup_needs_starts_and_fixed_variances():
    tree = changed("variances", {"mode": "sample", "genetic": GOOD["variances"]["genetic"], "herd": 3})
    assert message_of(tree, ["sampler.method=blup"]).split("\n") == [
        "analysis: variances.mode: found sample, which cannot be combined with sampler.method: blup, which "
        "solves at given variances; needed fixed",
        "analysis: variances.residual.start: missing, needed a 2 x 2 matrix in the order bw, ww for "
        "sampler.method: blup",
    ]


def test_keys_of_a_pedigree_need_one():
    data = {
        "phenotypes": "p",
        "pedigree_separator": ",",
        "pedigree_columns": {"birth": "b"},
        "pedigree_header": True,
        "groups": {"column": "g"},
    }
    keys = ("pedigree_separator", "pedigree_columns", "pedigree_header", "groups")
    assert message_of({"data": data, "traits": "y"}).split("\n") == [
        f"analysis: data.{k}: found without a pedigree, needed data.pedigree" for k in keys
    ]


def test_a_pedigree_without_header_has_positions():
    data = {"phenotypes": "p", "pedigree": "q", "pedigree_header": False, "pedigree_columns": {"id": "a"}}
    assert (
        message_of({"data": data, "traits": "y"})
        == "analysis: data.pedigree_columns: names of columns cannot be combined with pedigree_header: false; "
        "needed positions (1, 2, 3)"
    )


def test_groups_need_a_genetic_effect():
    data = {"phenotypes": "p", "pedigree": "q", "groups": {"column": "g"}}
    assert (
        message_of({"data": data, "traits": "y"})
        == "analysis: data.groups: found groups, but no random effect has relationship: pedigree"
    )


def test_covariates_or_legendre():
    effect = {"level": "animal", "covariates": ["a"], "legendre": {"column": "a", "degree": 1}}
    tree = {"data": {"phenotypes": "p"}, "traits": "y", "model": {"random": {"g": {"effects": {"rr": effect}}}}}
    assert (
        message_of(tree)
        == "analysis: model.random.g.effects.rr: covariates cannot be combined with legendre; needed one of them"
    )


def test_degree_or_legendre():
    tree = {
        "data": {"phenotypes": "p"},
        "traits": "y",
        "model": {"fixed": {"a": {"kind": "covariate", "degree": 2, "legendre": {"degree": 2}}}},
    }
    assert (
        message_of(tree)
        == "analysis: model.fixed.a.degree: cannot be combined with legendre, which has a degree of its own; "
        "needed one of them"
    )


def test_two_components_of_the_same_name():
    effects = {"rr": {"level": "a", "legendre": {"column": "t", "degree": 1}}, "rr.0": {"level": "a"}}
    tree = {"data": {"phenotypes": "p"}, "traits": "y", "model": {"random": {"g": {"effects": effects}}}}
    assert (
        message_of(tree)
        == "analysis: model.random.g.effects: two components would both be called 'rr.0:y', needed different names "
        "for the effects"
    )


def test_a_structured_engine_has_no_effect_partition():
    tree = changed("sampler", {"engine": "structured", "partition": "effect", "update": "site"})
    assert (
        message_of(tree)
        == "analysis: sampler.partition: found effect, which cannot be combined with engine: structured; needed "
        "colour or auto, or engine: serial or hybrid"
    )


@pytest.mark.parametrize(
    "model, messages",
    [
        (
            {"plugin": "lasso"},
            ["model.response: missing, needed for a regression", "model.predictors: missing, needed for a regression"],
        ),
        (
            {"plugin": "lasso", "response": "y", "predictors": "x", "fixed": {"a": {}}},
            ["model.fixed: cannot be combined with plugin; it belongs to a mixed model"],
        ),
        (
            {"plugin": "lasso", "response": "y", "predictors": "x", "options": 3},
            ["model.options: found 3, needed a mapping of options"],
        ),
        (
            {"plugin": 3.5, "response": "y", "predictors": "x"},
            ["model.plugin: found 3.5, needed the name of a regression, such as horseshoe_probit"],
        ),
    ],
)
def test_regressions(model, messages):
    assert message_of({"data": {"phenotypes": "p"}, "model": model}).split("\n") == [f"analysis: {m}" for m in messages]


def test_a_regression_takes_no_traits_and_no_variances():
    model = {"plugin": "lasso", "response": "y", "predictors": "x"}
    assert (
        message_of({"data": {"phenotypes": "p"}, "model": model, "traits": "y"})
        == "analysis: traits: cannot be combined with model.plugin; needed model.response alone"
    )
    assert message_of({"data": {"phenotypes": "p"}, "model": model, "variances": {"residual": 3}}).startswith(
        "analysis: variances.residual: cannot be combined with model.plugin"
    )


@pytest.mark.parametrize("source", [None, 3, ["a"], object()])
def test_a_source_that_is_neither_path_nor_dict(source):
    assert "needed the path of a YAML file or a dict" in message_of(source)
