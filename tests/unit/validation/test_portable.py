"""Records that go to another machine with the files of their analysis."""

import pickle

import numpy as np
import polars as pl
import pytest
from helpers.validation_data import analysis_of, beef_frames, small_beef

from mmgibbs.config import load_config
from mmgibbs.validation.evaluation import Portable, evaluate, evaluate_masked, read_recorded


@pytest.fixture
def folder(tmp_path):
    phenotypes, pedigree = beef_frames(small_beef(60, 3, 3))
    phenotypes.write_csv(tmp_path / "phenotypes.csv")
    pedigree.write_csv(tmp_path / "pedigree.csv", separator=";")
    herds = phenotypes["herd"].unique().sort()
    pl.DataFrame({"a": herds, "b": herds, "value": 1.0 + np.arange(herds.len()) / 10}).write_csv(
        tmp_path / "herds.txt", separator=" "
    )
    return tmp_path


def test_it_needs_no_file_where_it_arrives(folder):
    analysis = analysis_of(*beef_frames(small_beef(60, 3, 3))) | {
        "data": {"phenotypes": "phenotypes.csv", "pedigree": "pedigree.csv"}
    }
    analysis["model"]["random"]["herds"] = {"level": "herd", "relationship": "herds.txt"}
    analysis["variances"]["herds"] = 1.0
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        records = read_recorded(load_config(analysis))
    masked = np.arange(len(records.animal)) % 3 == 0
    here = evaluate_masked(records, masked, "a third")
    packed = pickle.dumps((Portable(records), evaluate(records.analysis)))
    for name in ("phenotypes.csv", "pedigree.csv", "herds.txt"):
        (folder / name).unlink()
    there, whole = pickle.loads(packed)
    with there.records() as arrived:
        found = evaluate_masked(arrived, masked, "a third").theta
    assert all(np.array_equal(one, two) for one, two in zip(here.theta, found, strict=True))
    b = np.ones((whole.engine.bounds[-1], 1))
    assert np.isfinite(whole.engine.solve_columns(b, 0 * b, 1e-4).x).all()  # an evaluation goes with its equations
    with pytest.raises(Exception, match="pedigree.csv"):
        evaluate_masked(records, masked, "a third")
