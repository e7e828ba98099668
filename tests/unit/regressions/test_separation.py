"""Separated classes and dependent columns under a flat prior, against cases whose answer is known."""

import numpy as np
import pytest

from mmgibbs.errors import ModelError
from mmgibbs.posterior import separation
from mmgibbs.regressions.multinomial.separation import refuse_improper
from mmgibbs.regressions.predictors import read_predictors


def refused(X, response, flat=None, intercept=True, standardise=False):
    """The message, or None."""
    response = np.asarray(response)
    K = response.shape[1] if response.ndim == 2 else response.max() + 1
    X = read_predictors(np.asarray(X, float), standardise=standardise)
    flat = np.ones((K - 1, X.p + intercept), bool) if flat is None else np.asarray(flat, bool)
    try:
        refuse_improper(X, response, flat, "y")
    except ModelError as error:
        return str(error)


LINE = np.arange(10.0)[:, None]


@pytest.mark.parametrize(
    "y, separated",
    [
        ([0, 0, 0, 0, 0, 1, 1, 1, 1, 1], True),  # completely
        ([0, 0, 0, 0, 1, 0, 1, 1, 1, 1], False),
        ([0, 0, 0, 1, 1, 1, 2, 2, 2, 2], True),
        ([0, 1, 2, 0, 1, 2, 0, 1, 2, 0], False),
        ([0, 0, 0, 1, 0, 1, 2, 2, 2, 2], True),  # classes 0 and 1 overlap, 2 lies apart
    ],
)
def test_on_a_line(y, separated):
    found = refused(LINE, y)
    assert (found is not None) == separated and (not separated or "'x0'" in found or "'intercept'" in found)


def test_separated_in_part():
    """A tie on the border does not help, a record beyond it does."""
    X = np.array([0.0, 1, 2, 2, 3, 4])[:, None]
    assert refused(X, [0, 0, 0, 1, 1, 1]) is not None
    assert refused(np.vstack([X, [[2.5]]]), [0, 0, 0, 1, 1, 1, 0]) is None


def test_a_level_whose_records_are_of_one_class():
    """Three of 20,000 records carry the level, all of class 0: a handful of rows, found among many."""
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.normal(size=20_000), np.zeros(20_000)])
    y = rng.integers(0, 3, 20_000)
    X[[5, 700, 9000], 1], y[[5, 700, 9000]] = 1, 0
    assert "'x1'" in refused(X, y)
    y[5] = 1
    assert "'x1'" in refused(X, y)  # class 2 is never seen there
    y[700] = 2
    assert refused(X, y) is None


def test_counts():
    X = np.array([[0.0], [1.0]])
    assert refused(X, [[3, 1], [1, 2]]) is None
    assert refused(X, [[3, 0], [1, 2]]) is not None
    assert refused(X, [[3, 0], [0, 2]]) is not None
    assert refused(X, [[3, 2, 0], [1, 2, 0]]) is not None  # a class without trials
    assert refused(np.vstack([X, [[9.0]]]), [[3, 1], [1, 2], [0, 0]]) is None


def test_proper_priors_need_no_check_and_flat_intercepts_hardly():
    y = (LINE[:, 0] > 4).astype(int)
    assert refused(LINE, y, flat=[[False, False]]) is None
    assert refused(LINE, y, flat=[[False, True]]) is None
    assert refused(LINE, np.column_stack([y, 1 - y, 0 * y]), flat=[[False, True], [False, True]]) is not None
    assert "'x0'" in refused(LINE, y, flat=[[True, False]], standardise=True)


@pytest.mark.parametrize("standardise", [False, True])
def test_dependent_columns(standardise):
    rng = np.random.default_rng(3)
    X = rng.normal(5, 2, (60, 3))
    y = rng.integers(0, 2, 60)
    assert refused(X, y, standardise=standardise) is None
    X[:, 2] = X[:, 0] - 2 * X[:, 1] + 1
    assert "is a linear combination of others" in refused(X, y, standardise=standardise)
    assert refused(X, y, flat=[[True, True, False, True]], standardise=standardise) is None
    assert "linear combination" in refused(rng.normal(size=(4, 6)), [0, 1, 0, 1])


def test_against_random_cases(monkeypatch):
    """With few records some cases are separated and some are not: a handful of first rows gives what all rows give."""
    rng = np.random.default_rng(4)
    found = []
    for _ in range(40):
        X, y = rng.normal(size=(11, 2)), np.r_[0, 1, 2, rng.integers(0, 3, 8)]
        with monkeypatch.context() as m:
            m.setattr(separation, "FIRST_ROWS", -25)
            m.setattr(separation, "MORE_ROWS", 2)
            few = refused(X, y) is not None
        found.append((few, refused(X, y) is not None))
    assert all(a == b for a, b in found) and 5 < sum(a for a, _ in found) < 35


def test_a_class_without_a_flat_prior_beside_one_that_has_some():
    y = [0, 1, 2, 0, 1, 2, 0, 1, 2, 0]
    assert refused(LINE, y, [[True, True], [False, False]]) is None
