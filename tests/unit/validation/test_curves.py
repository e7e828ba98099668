"""Records left out of a curve are predicted from the points on both sides, not as levels that nothing is known of."""

import numpy as np
import polars as pl
import pytest

from mmgibbs.config import load_config
from mmgibbs.validation.evaluation import evaluate, evaluate_masked, random_solutions, read_recorded


@pytest.fixture(scope="module")
def records():
    rng = np.random.default_rng(5)
    day = np.cumsum(rng.uniform(0.5, 2.0, 30)).round(2)
    return pl.DataFrame(
        {"line": [f"L{i % 6}" for i in range(30)], "day": day, "y": np.sin(day / 5) + rng.normal(size=30) / 4}
    )


def evaluated(records, relationship):
    """(evaluation of all records, of those that are not masked, (n,) masked)."""
    analysis = {
        "data": {"phenotypes": records},
        "traits": ["y"],
        "model": {"fixed": {}, "random": {"line": {}, "curve": {"relationship": relationship}}},
        "variances": {"line": 0.01, "curve": 2.0, "residual": 0.1},
        "sampler": {"method": "blup"},
        "output": {"directory": "run"},
    }
    recorded = read_recorded(load_config(analysis))
    masked = np.isin(np.arange(30), [4, 5, 11, 20, 29])
    return evaluate(recorded.analysis), evaluate_masked(recorded, masked, "a fold"), masked


WALK = {"kind": "random_walk", "of": "day", "order": 1}
SERIES = {"kind": "ar1", "time": "day", "step": 1, "rho": 0.8, "fixed": True}


def of_series(t):
    return 0.8 ** np.abs(np.subtract.outer(t, t))


@pytest.mark.parametrize(("relationship", "covariance"), [(WALK, np.minimum.outer), (SERIES, of_series)])
def test_points_without_a_record_have_their_expectation_given_the_others(records, relationship, covariance):
    whole, partial, masked = evaluated(records, relationship)
    found = random_solutions(partial, whole)[-1][:, 0]
    level = whole.design.terms[-1].effects[0].level
    day, y, line = (records[c].to_numpy() for c in ("day", "y", "line"))
    t = day - day[0]
    K = covariance(t, t) if relationship is WALK else covariance(t)
    scale = getattr(partial.design.terms[-1].relationship, "scale", None)  # per unit of the gaps of the partial data
    if scale is not None:
        K = K / (scale * partial.design.terms[-1].relationship.unit)
    s = ~masked
    V = 2.0 * K[np.ix_(s, s)] + 0.01 * (line[s, None] == line[s]) + 0.1 * np.eye(s.sum())
    W, ones = np.linalg.inv(V), np.ones(s.sum())
    e = W @ (y[s] - (ones @ W @ y[s]) / (ones @ W @ ones))
    known = 2.0 * K[masked][:, s] @ e
    np.testing.assert_allclose(found[level[masked]], known, atol=1e-6)
    assert np.abs(known).min() > 1e-3
