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


RANDOM_REGRESSION = {"level": "animal", "covariates": ["a"], "legendre": {"column": "a", "degree": 1}}
SAME_NAMES = {"rr": {"level": "a", "legendre": {"column": "t", "degree": 1}}, "rr.0": {"level": "a"}}
REGRESSION = {"plugin": "lasso", "response": "y", "predictors": "x"}


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        (
            {"data": {"pedigree": "q", "pedigree_header": False, "pedigree_columns": {"id": "a"}}},
            "data.pedigree_columns: names of columns cannot be combined with pedigree_header: false; needed positions "
            "(1, 2, 3)",
        ),
        ({"data": {"widths": [4, 2], "separator": ","}}, "data.widths: cannot be combined with separator"),
        (
            {"data": {"pedigree": "q", "groups": {"column": "g"}}},
            "data.groups: found groups, but no random effect has relationship: pedigree",
        ),
        (
            {"model": {"random": {"g": {"effects": {"rr": RANDOM_REGRESSION}}}}},
            "model.random.g.effects.rr: covariates cannot be combined with legendre; needed one of them",
        ),
        (
            {"model": {"fixed": {"a": {"kind": "covariate", "degree": 2, "legendre": {"degree": 2}}}}},
            "model.fixed.a.degree: cannot be combined with legendre, which has a degree of its own; needed one of them",
        ),
        (
            {"model": {"random": {"g": {"effects": SAME_NAMES}}}},
            "model.random.g.effects: two components would both be called 'rr.0:y', needed different names for the "
            "effects",
        ),
        (
            {"sampler": {"engine": "structured", "partition": "effect", "update": "site"}},
            "sampler.partition: found effect, which cannot be combined with engine: structured; needed colour or auto, "
            "or engine: serial or hybrid",
        ),
        ({"model": REGRESSION}, "traits: cannot be combined with model.plugin; needed model.response alone"),
    ],
)
def test_keys_that_do_not_go_together(sections, message):
    tree = {"traits": "y"} | sections
    tree["data"] = {"phenotypes": "p"} | tree.get("data", {})
    assert message_of(tree).startswith(f"analysis: {message}")


@pytest.mark.parametrize(
    "model, messages",
    [
        (
            {"plugin": "lasso"},
            ["model.response: missing, needed for a regression", "model.predictors: missing, needed for a regression"],
        ),
        (
            REGRESSION | {"fixed": {"a": {}}},
            ["model.fixed: cannot be combined with plugin; it belongs to a mixed model"],
        ),
        (REGRESSION | {"options": 3}, ["model.options: found 3, needed a mapping of options"]),
        (
            REGRESSION | {"plugin": 3.5},
            ["model.plugin: found 3.5, needed the name of a regression, such as horseshoe_probit"],
        ),
    ],
)
def test_regressions(model, messages):
    assert message_of({"data": {"phenotypes": "p"}, "model": model}).split("\n") == [f"analysis: {m}" for m in messages]


def test_a_regression_takes_no_variances():
    tree = {"data": {"phenotypes": "p"}, "model": REGRESSION, "variances": {"residual": 3}}
    assert message_of(tree).startswith("analysis: variances.residual: cannot be combined with model.plugin")


@pytest.mark.parametrize("source", [None, 3, ["a"], object()])
def test_a_source_that_is_neither_path_nor_dict(source):
    assert "needed the path of a YAML file or a dict" in message_of(source)
