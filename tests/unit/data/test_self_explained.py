"""A trait among what is to explain it: its column is refused, copies and functions of it are warned of."""

import numpy as np
import polars as pl
import pytest
from helpers.analyses import analysis, effect, fixed, random

from mmgibbs.config import load_config
from mmgibbs.data.prepare import prepare
from mmgibbs.data.self_explained import is_linear_function, is_monotone
from mmgibbs.errors import DataError

RNG = np.random.default_rng(8)
Y = RNG.normal(100, 10, 60).round(3)
OTHER = RNG.normal(50, 5, 60).round(2)
FRAME = pl.DataFrame({"y": Y, "z": OTHER, "sex": ["m", "f"] * 30, "id": [f"a{i % 20}" for i in range(60)]})
FORM = {"column": "y", "degree": 1, "range": [50, 150]}


def refused(tree):
    with pytest.raises(DataError) as error:
        prepare(load_config({"data": {"phenotypes": FRAME}, "traits": ["y"], "model": {}} | tree))
    return str(error.value)


def covariate(**keys):
    return {"fixed": {"x": {"kind": "covariate"} | keys}}


def of_covariate(**keys):
    return {"random": {"c": {"effects": {"s": {"level": "id"} | keys}}}}


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (covariate(column="y"), "'y' as a covariate (model.fixed.x)"),
        (covariate(column="y", legendre={"degree": 2}), "'y' as a covariate (model.fixed.x)"),
        ({"fixed": {"y": {}}}, "'y' as a class effect (model.fixed.y)"),
        (covariate(column="z", by="y"), "'y' as the class of a covariate (model.fixed.x.by)"),
        ({"random": {"c": {"level": "y"}}}, "'y' as a random effect (model.random.c.level)"),
        (of_covariate(covariates=["y"]), "'y' as a covariate (model.random.c.effects.s.covariates)"),
        (of_covariate(legendre=FORM), "'y' as a covariate (model.random.c.effects.s.legendre.column)"),
    ],
)
def test_the_column_of_a_trait_is_no_effect_of_it(model, said):
    message = refused({"model": model})
    assert f"phenotypes: found column {said} of traits.y, whose values it has: a trait cannot explain" in message


def test_the_column_of_a_trait_has_no_weights_and_is_no_bound():
    message = refused({"data": {"phenotypes": FRAME, "weights": "y"}})
    assert "'y' as the weights of the records (data.weights) of traits.y" in message
    of_bounds = {"traits": {"y": {"type": "censored", "lower": "y", "upper": "z"}}, "model": {"fixed": {"z": {}}}}
    assert "'z' as a class effect (model.fixed.z) of traits.y" in refused(of_bounds)


def test_the_exposure_of_a_count_is_another_column():
    frame = FRAME.with_columns(n=pl.Series(RNG.poisson(3, 60) + 1))
    tree = {"data": {"phenotypes": frame}, "traits": {"n": {"type": "count", "exposure": "n"}}}
    assert "'n' as the exposure (traits.n.exposure)" in refused(tree)


def test_another_trait_may_be_an_effect():
    """A recursive model: y depends on z, which is a trait too."""
    p = prepare(analysis(FRAME, ["y", "z"], {"z": fixed("z", "covariate", traits=["y"])}))
    assert p.warnings == ()
    with pytest.raises(DataError, match=r"needed another column, or 'traits: \[...\]' with the others alone"):
        prepare(analysis(FRAME, ["y", "z"], {"z": fixed("z", "covariate", traits=["y", "z"])}))


def warned(x, y=Y, **more):
    frame = pl.DataFrame({"y": y, "x": x, "z": OTHER[: len(y)]})
    effects = {"x": fixed("x", "covariate", traits=["y"])} | more
    return prepare(analysis(frame, ["y"], effects)).warnings


@pytest.mark.parametrize(
    ("x", "relation"),
    [
        (Y, "a linear function"),
        (3 - 2 * Y, "a linear function"),
        ((Y / 0.45359).round(1), "a linear function"),  # in pounds
        (np.log(Y), "a function"),
        (Y.argsort().argsort().astype(float), "a function"),  # its rank
    ],
)
def test_copies_and_functions_of_a_trait(x, relation):
    (warning,) = warned(x)
    assert warning == (
        f"phenotypes: model.fixed.x: the values of column 'x' are {relation} of those of traits.y (column 'y'): the "
        "trait explains itself, and nothing is left for other effects; leave out this column"
    )


def test_parts_of_a_trait():
    """A total and all of its parts."""
    (warning,) = warned(Y - OTHER, z=fixed("z", "covariate", traits=["y"]))
    assert "traits.y: its values (column 'y') are a linear function of the columns 'x', 'z', which are" in warning
    assert warned(Y - OTHER) == ()


@pytest.mark.parametrize(
    "x",
    [
        Y + RNG.normal(0, 0.5, 60),  # the weight of the day before
        OTHER,
        np.arange(60.0),
        np.where(np.arange(60) % 2, Y, OTHER),
    ],
)
def test_good_covariates_are_left_alone(x):
    assert warned(x) == ()


def test_few_records_say_nothing():
    assert warned(Y[:8] * 2, Y[:8]) == ()
    assert not is_monotone(np.arange(15.0) ** 2, np.arange(15.0))
    assert not is_linear_function(Y, [np.full(60, 3.0)])


def test_weights_and_a_trait_that_are_another_trait():
    frame = FRAME.with_columns(w=2 * pl.col("y"))
    (warning,) = prepare(analysis(frame, ["y"], weights="w")).warnings
    assert warning.startswith("phenotypes: data.weights: the values of column 'w' are a linear function of those of")
    frame = FRAME.with_columns(pounds=(2.2046 * pl.col("y")).round(2))
    (warning,) = prepare(analysis(frame, ["y", "pounds"])).warnings
    assert (
        "the values of traits.pounds are a linear function of those of traits.y (columns 'pounds' and 'y')" in warning
    )
    assert prepare(analysis(frame, ["y", "z"])).warnings == ()


def test_classes_that_determine_the_trait():
    """A value of the group, as its mean, in the rows of all its animals."""
    of_group = np.repeat(np.arange(12), 5)
    frame = pl.DataFrame({"y": (90 + RNG.normal(0, 9, 12))[of_group], "g": [f"g{i}" for i in of_group], "y2": Y})
    (warning,) = prepare(analysis(frame, ["y"], {"g": fixed("g", traits=["y"])})).warnings
    assert (
        "model.fixed.g: column 'g' has 12 levels, and all records of a level have the same value of traits.y" in warning
    )
    assert prepare(analysis(frame, ["y2"], {"g": fixed("g", traits=["y2"])})).warnings == ()
    numbers = frame.with_columns(row=pl.Series([f"r{i}" for i in range(60)]))
    (warning,) = prepare(analysis(numbers, ["y2"], {"row": fixed("row", traits=["y2"])})).warnings
    assert "column 'row' has a level of its own for each of the 60 records of traits.y2" in warning
    # levels with a variance are no such effect, and neither are those of a random one
    assert prepare(analysis(numbers, ["y2"], {"row": fixed("row", traits=["y2"], prior_variance=3.0)})).warnings == ()
    assert prepare(analysis(numbers, ["y2"], {}, {"row": random(_=effect("row", traits=["y2"]))})).warnings == ()


@pytest.mark.parametrize("keys", [{"type": "count"}, {"type": "ordinal"}])
def test_other_types_of_traits(keys):
    scores = RNG.integers(1, 5, 60)
    frame = pl.DataFrame({"s": scores, "x": 3.0 * scores, "z": OTHER})
    tree = {"data": {"phenotypes": frame}, "traits": {"s": keys}}
    model = {"fixed": {"x": {"kind": "covariate"}}}
    assert any("column 'x' are a linear function" in w for w in prepare(load_config(tree | {"model": model})).warnings)
    model = {"fixed": {"z": {"kind": "covariate"}}}
    assert prepare(load_config(tree | {"model": model})).warnings == ()
