"""Validation of records with decimal commas: what they are is decided by all records, not by those of a fold."""

import numpy as np
import polars as pl
import pytest
from helpers.validation_data import analysis_of, beef_frames, small_beef
from polars.testing import assert_frame_equal

from mmgibbs.config import load_config
from mmgibbs.validation.evaluation import evaluate_masked, read_recorded
from mmgibbs.validation.options import Plan
from mmgibbs.validation.run import validate_analysis

SHOWS = 7  # the one record whose commas can be nothing but decimal


def analysis(comma):
    """Weights, and ages of the animal, with three decimals from 1 to 999: as 1,106 that may be thousands."""
    phenotypes, pedigree = beef_frames(small_beef(120, 3, 4))
    rng = np.random.default_rng(4)
    values = {
        "birth_weight": phenotypes["birth_weight"].to_numpy() + 0.0004,
        "age": rng.uniform(1.1, 9.9, phenotypes.height),
    }
    text = {name: [f"{max(v, 1.0):.3f}" for v in found] for name, found in values.items()}
    text["birth_weight"][SHOWS], text["age"][SHOWS] = "0.5", "0.25"
    columns = [pl.Series(name, [v.replace(".", comma) for v in found]) for name, found in text.items()]
    out = analysis_of(phenotypes.with_columns(columns), pedigree, group="herd")
    out["model"]["fixed"]["age"] = {"kind": "covariate"}
    return out


def test_folds_keep_what_commas_are(tmp_path):
    tables = []
    for name, comma in (("commas", ","), ("points", ".")):
        plan = Plan(method="kfold", folds=3)
        tables.append(validate_analysis(analysis(comma), plan, progress=False, output=tmp_path / name).table)
    assert_frame_equal(*tables)


@pytest.mark.parametrize("left_out", [[SHOWS], [0, 1]])
def test_records_without_some(left_out):
    """Whichever are left: a covariate too, which is read of records with a trait alone."""
    theta = []
    for comma in ",.":
        records = read_recorded(load_config(analysis(comma)))
        masked = np.zeros(len(records.phenotypes), bool)
        masked[left_out] = True
        theta.append(evaluate_masked(records, masked, "these").theta)
    assert all(np.array_equal(a, b) for a, b in zip(*theta, strict=True))


def test_levels_keep_their_names():
    """A column that is a level as well stays as it is written."""
    config = analysis(",")
    config["model"]["random"]["of_age"] = {"level": "age"}
    config["variances"]["of_age"] = 1.0
    records = read_recorded(load_config(config))
    frame = records.without(np.zeros(len(records.phenotypes), bool)).data.phenotypes
    assert frame["age"][SHOWS] == "0,25" and frame["birth_weight"][SHOWS] == "0.5"


def test_what_means_missing_stays_as_it_is():
    config = analysis(",")
    config["traits"] = {"birth_weight": {"missing": ["-9,9"]}}
    phenotypes = config["data"]["phenotypes"]
    weights = ["-9,9", *phenotypes["birth_weight"][1:]]
    config["data"]["phenotypes"] = phenotypes.with_columns(pl.Series("birth_weight", weights))
    records = read_recorded(load_config(config))
    assert len(records.phenotypes) == phenotypes.height - 1
    written = lambda absent: records.phenotypes.with_points(["birth_weight"], [absent])["birth_weight"][0]
    assert written(weights[1]) == weights[1] and written(weights[2]) == weights[1].replace(",", ".")
