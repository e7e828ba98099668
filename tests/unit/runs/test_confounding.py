"""Independent levels with one record each are confounded with the residual, and said to be."""

import numpy as np
import polars as pl
import pytest

import mmgibbs

N = 40
RECORDS = pl.DataFrame(
    {
        "animal": [f"a{i}" for i in range(N)],
        "tag": [f"t{i}" for i in range(N)],
        "pen": [f"p{i % 10}" for i in range(N)],
        "y": np.random.default_rng(2).normal(size=N).round(3),
        "z": np.random.default_rng(3).normal(size=N).round(3),
        "w": [1.0 + i % 2 for i in range(N)],
        "ill": [str(i % 2) for i in range(N)],
    }
)
PEDIGREE = pl.DataFrame({"id": [f"a{i}" for i in range(N)], "sire": ["0"] * 2 + ["a0"] * (N - 2), "dam": ["0"] * N})


def said(random="animal", traits="y", records=RECORDS, pedigree=None, method="gibbs", **more):
    model = mmgibbs.MixedModel(traits=traits, random=random, method=method, **more)
    return [text for text in model.check(records, pedigree)["warnings"] if "level of its own" in text]


@pytest.mark.parametrize("method", ["gibbs", "reml"])
def test_a_level_for_each_record_is_said(method):
    (warning,) = said(method=method)
    assert warning.startswith("variances.animal: each record of y has a level of its own")
    assert warning.endswith("(model.random.animal.relationship: pedigree)")
    (of_both,) = said(traits=["y", "z"], method=method)
    assert "each record of y and z" in of_both and "Leave the effect out for y and z, or" in of_both


def test_no_second_effect_is_advised_to_have_the_pedigree():
    (warning,) = said(random={"animal": "pedigree", "tag": {}}, pedigree=PEDIGREE)
    assert warning.startswith("variances.tag: ") and warning.endswith("Leave the effect out for y")


def test_where_the_records_can_tell():
    held = {"animal": 1.0, "residual": {"start": 1.0, "fixed": True}}
    assert said(random="pen") == []
    assert said(random={"animal": "pedigree"}, pedigree=PEDIGREE) == []
    assert said(weights="w") == []
    assert said(records=pl.concat([RECORDS, RECORDS])) == []
    assert said(traits={"ill": {"type": "binary"}}) == []
    assert said(variances=held) == []
    assert said(method="blup", variances={"animal": 1.0, "residual": 1.0}) == []


def of_two(records=RECORDS, traits="y", variances=None, **random):
    model = mmgibbs.MixedModel(traits=traits, random=random, variances=variances or {})
    return [text for text in model.check(records)["warnings"] if "in the same way" in text]


def test_effects_of_the_same_groups_are_said():
    litters = RECORDS.with_columns(litter=pl.col("pen").str.replace("p", "litter "))
    (warning,) = of_two(litters, pen={}, litter={})
    assert warning == (
        "variances.litter: model.random.pen and model.random.litter group the records of y in the same way, and their "
        "levels are independent: the records tell the sum of their variances, not the two. Leave one of them out for y"
    )
    assert "records of ill in the same way" in of_two(litters, {"ill": {"type": "binary"}}, pen={}, litter={})[0]
    # of the records of one trait alone: the others tell the two apart
    mixed = litters.with_columns(litter=pl.when(pl.arange(0, N) < N - 1).then("litter").otherwise(pl.lit("litter 3")))
    assert of_two(mixed, pen={}, litter={}) == []
    (warning,) = of_two(mixed.with_columns(z=pl.when(pl.arange(0, N) < N - 1).then("z")), ["y", "z"], pen={}, litter={})
    assert "group the records of z in the same way" in warning


def test_other_groups_are_told_apart():
    other = RECORDS.with_columns(litter=pl.col("pen"), half=pl.Series([f"h{i % 5}" for i in range(N)]))
    assert of_two(other, pen={}, half={}) == []  # within each other, not the same
    held = {"pen": {"start": 1.0, "fixed": True}}
    assert of_two(other, variances=held, pen={}, litter={}) == []
    gaps = other.with_columns(litter=pl.when(pl.col("pen") != "p3").then("litter"))
    assert of_two(gaps, pen={}, litter={"unknown_level": "omit"}) == []
