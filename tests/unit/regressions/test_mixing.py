"""A fit whose draws are not enough warns, and names the parameters."""

import tracemalloc
import warnings

import numpy as np
import pytest

import mmgibbs
from mmgibbs.regressions.mixing import MAX_RHAT, MIN_ESS, describe_doubtful_draws
from mmgibbs.regressions.protocol import Parameter
from mmgibbs.report import findings

RANDOM = np.random.default_rng(5)
GOOD = RANDOM.normal(size=(2, 500, 3))
PARAMETERS = {"beta": Parameter(("predictor",), "")}
COORDS = {"predictor": ["a", "b", "c"]}


def said(beta, parameters=PARAMETERS, coords=COORDS):
    return describe_doubtful_draws({"beta": beta}, parameters, coords, 500, 100)


def slow(chains=2, draws=500):
    """A random walk that forgets slowly, about a common mean."""
    out = RANDOM.normal(size=(chains, draws))
    for t in range(1, draws):
        out[:, t] += 0.95 * out[:, t - 1]
    return out


def test_good_draws_are_not_spoken_of():
    assert said(GOOD) == "" and said(GOOD[:1]) == ""


def test_the_parameter_that_does_not_mix_is_named():
    apart, few = GOOD.copy(), GOOD.copy()
    apart[1, :, 1] += 2
    few[:, :, 2] = slow()
    text = said(apart)
    assert text.startswith("chains have not mixed, or few effective draws, worst of beta[b] (R-hat ")
    assert "needed R-hat of at most 1.05 and 100 effective draws: set samples above 500 and burn_in above 100" in text
    assert "beta[a]" not in text and "beta[c]" not in text
    assert "beta[c] (" in said(few) and "beta[a]" not in said(few)


def test_one_chain_has_no_r_hat():
    few = GOOD[:1].copy()
    few[0, :, 0] = slow(1)[0]
    assert "R-hat" not in said(few) and "beta[a] (" in said(few) and said(few).startswith("few effective draws")


def test_what_never_changes_and_what_is_there_twice():
    """A fixed penalty is no parameter that mixes badly; covariances [a,b] and [b,a] are one."""
    beta = GOOD.copy()
    beta[..., 0] = 1e8
    assert said(beta) == ""
    beta[..., 1] = beta[..., 2] = slow()
    assert "beta[b] (" in said(beta) and "beta[c]" not in said(beta)


def test_the_worst_of_many_is_found():
    many = RANDOM.normal(size=(2, 200, 10_000))
    many[:, :, 7_777] = slow(2, 200)
    assert "worst of beta[7777] (" in said(many, coords={"predictor": range(10_000)})


def test_draws_that_are_not_contiguous_are_not_copied_whole():
    """Those of classes: a copy for each of the candidates took minutes where there are many groups."""
    classes = np.moveaxis(RANDOM.normal(size=(2, 200, 2, 5_000)), 2, 3)
    classes[:, :, 4_321, 1] = slow(2, 200)
    parameters, coords = (
        {"beta": Parameter(("predictor", "contrast"), "")},
        {"predictor": range(5_000), "contrast": "ab"},
    )
    tracemalloc.start()
    try:
        text = said(classes, parameters, coords)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert "worst of beta[4321,b] (" in text and most < classes.nbytes / 2


def test_very_few_draws_are_said_as_such():
    assert said(GOOD[:, :2]).startswith("few effective draws: 2 kept of each chain, needed 4 ")


@pytest.mark.parametrize("name", ["BayesianLasso", "HorseshoeProbit", "HierarchicalSlice"])
def test_a_short_fit_warns_where_it_is_called_and_a_long_one_does_not(name):
    X = RANDOM.normal(size=(60, 2))
    y = X[:, 0] + RANDOM.normal(size=60)
    y = y if name == "BayesianLasso" else (y > 0).astype(int)
    groups = {"groups": np.arange(60) % 2} if name == "HierarchicalSlice" else {}
    estimator = getattr(mmgibbs, name)(chains=2, burn_in=5, samples=20, thin=2)
    with pytest.warns(UserWarning, match=rf"{name}: .*few effective draws.* set samples above 20") as heard:
        estimator.fit(X, y, **groups)
    assert len(heard) == 1 and heard[0].filename == __file__
    if name == "BayesianLasso":
        with warnings.catch_warnings(action="error"):
            estimator.set_params(burn_in=100, samples=2000, thin=1).fit(X, y)


def test_limits_are_those_of_the_report():
    assert (MAX_RHAT, MIN_ESS) == (findings.RHAT, findings.ESS)


def test_scikit_learn_hears_its_own_warning():
    exceptions = pytest.importorskip("sklearn.exceptions")
    X = RANDOM.normal(size=(60, 2))
    with pytest.warns(exceptions.ConvergenceWarning, match="few effective draws"):
        mmgibbs.BayesianLasso(chains=2, burn_in=5, samples=20).fit(X, X[:, 0] + RANDOM.normal(size=60))
