"""Residual classes in a validation: simulated records, folds that lose a class, the heritability behind an accuracy."""

import numpy as np
import pytest
from helpers.support import ROOT

from mmgibbs.config import load_config
from mmgibbs.validation.evaluation import evaluate, evaluate_masked, read_recorded
from mmgibbs.validation.kfold import predictors
from mmgibbs.validation.lr import simulated_records

INDOOR, OUTDOOR = 3000.0, 6000.0  # residual variances of daily gain; that of the breeding values is 1500


@pytest.fixture(scope="module")
def pigs():
    records = read_recorded(load_config(ROOT / "configs" / "residual_classes.yaml"))
    return records, evaluate(records.analysis)


def outdoor(whole):
    return whole.design.class_of_pattern[whole.design.pattern] == 1


def test_simulated_records_scatter_as_their_class(pigs):
    _, whole = pigs
    y = simulated_records(whole, 100, np.random.default_rng(4))[:, 0]
    for own, residual in ((outdoor(whole), OUTDOOR), (~outdoor(whole), INDOOR)):
        assert np.mean(y[own] ** 2) == pytest.approx(1500 + residual, rel=0.05)


def test_a_fold_may_hold_all_records_of_a_class(pigs):
    records, whole = pigs
    masked = outdoor(whole)
    partial = evaluate_masked(records, masked, "outdoor")
    assert partial.assembled.model.residual.classes == ("indoor",)
    assert partial.assembled.model.residual.start[0, 0, 0] == INDOOR
    assert partial.design.n_records == np.count_nonzero(~masked)
    other = evaluate_masked(records, ~masked, "indoor")
    assert other.assembled.model.residual.start[0, 0, 0] == OUTDOOR


def test_the_heritability_is_that_of_the_records(pigs):
    _, whole = pigs
    share = outdoor(whole).mean()
    found = predictors(whole)[0].heritability
    assert found == pytest.approx(1500 / (1500 + share * OUTDOOR + (1 - share) * INDOOR))
