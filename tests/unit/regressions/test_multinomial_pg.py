"""The Polya-Gamma multinomial logit: one category's update against dense algebra, its contract, its prior, its
input.
"""

import numpy as np
import pytest
from helpers.regression_contract import assert_chains_are_their_own, states
from scipy.special import logsumexp

from mmgibbs import MultinomialPG
from mmgibbs.draws.purpose import REGRESSION_LATENT, stream
from mmgibbs.errors import ConfigError, DataError, ModelError
from mmgibbs.regressions.arrays.base import Host
from mmgibbs.regressions.multinomial import polya_gamma as multinomial_pg
from mmgibbs.regressions.multinomial.polya_gamma import DeviceRows, MultinomialPGModel, MultinomialPGOptions, read_prior
from mmgibbs.regressions.predictors import read_predictors
from mmgibbs.regressions.protocol import Keys, RegressionData

RNG = np.random.default_rng(12)
N, P, K = 40, 3, 4
X = RNG.normal(2, 3, (N, P))
LABELS = np.arange(N) % K
COUNTS = RNG.integers(0, 4, (N, K))
COUNTS[7] = 0
KEYS = Keys(5, (0, 3))


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Several blocks and strips of these few rows."""
    monkeypatch.setattr(multinomial_pg, "MOST_ROWS", 7)
    monkeypatch.setattr(multinomial_pg, "STRIPS", 3)


def sampler(y=LABELS, table=X, threads=1, standardise=False, **options):
    data = RegressionData(read_predictors(table, standardise=standardise), y)
    return MultinomialPGModel.prepare(data, MultinomialPGOptions(**options), Host(threads))


@pytest.mark.parametrize("y", [LABELS, COUNTS], ids=["labels", "counts"])
@pytest.mark.parametrize("intercept, standardise", [(True, True), (True, False), (False, False)])
def test_moments_of_a_category(y, intercept, standardise):
    """omega from its own counters at its own tilt; Z' diag(omega) Z and Z'(kappa + omega c) from the whole Z;
    stale logits are renewed.
    """
    model = sampler(y, standardise=standardise, intercept=intercept, prior_precision=1.0, intercept_precision=1.0)
    Z = (X - X.mean(0)) / X.std(0) if standardise else X
    Z = np.column_stack([Z, np.ones(N)]) if intercept else Z
    n, Y = (COUNTS.sum(1), COUNTS) if y is COUNTS else (np.ones(N, int), np.eye(K, dtype=int)[LABELS])
    beta, logits = RNG.normal(size=(2, K - 1, Z.shape[1])), np.full((2, K - 1, N), np.nan)
    E = np.concatenate([beta @ Z.T, np.zeros((2, 1, N))], axis=1)
    for j, stale in ((0, slice(0, K - 1)), (2, slice(1, 2))):
        logits[:, stale] = np.nan
        curvature, right = model.rows.moments(j, stale, beta, logits, KEYS, 9)
        np.testing.assert_allclose(logits, E[:, :-1], rtol=1e-12, atol=1e-12)
        c = logsumexp(np.delete(E, j, axis=1), axis=1)
        omega = Host(1).polya_gammas(KEYS, 9, stream(REGRESSION_LATENT, j), n, E[:, j] - c)
        np.testing.assert_allclose(curvature, np.einsum("na,cn,nb->cab", Z, omega, Z), rtol=1e-10)
        np.testing.assert_allclose(right, (Y[:, j] - n / 2 + omega * c) @ Z, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("y", [LABELS, COUNTS, LABELS > 1], ids=["labels", "counts", "binary"])
def test_device_form_gives_the_same_chain(y):
    """Array operations over all rows, here with NumPy's arrays, against the fused blocks."""
    fused, arrayed = (sampler(y, standardise=True) for _ in range(2))
    arrayed.rows = DeviceRows(arrayed.X, arrayed.rows.response, True, arrayed.arrays, np.float64)
    a, b = states(fused, KEYS, 4)[-1]["beta"], states(arrayed, KEYS, 4)[-1]["beta"]
    np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("y", [LABELS, COUNTS, LABELS > 1], ids=["labels", "counts", "binary"])
def test_contract(y):
    assert_chains_are_their_own(lambda threads: sampler(y, threads=threads, standardise=True))


@pytest.mark.parametrize("type_", [np.float32, np.uint8])
def test_single_precision_and_narrow_types(type_):
    table = np.abs(np.round(X)).astype(type_)
    a, b, c = (
        states(sampler(table=t, precision=p, standardise=True), KEYS, 1)[-1]["beta"]
        for t, p in ((table, "double"), (table, "single"), (table.astype(float), "double"))
    )
    np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(a, c)


def test_extreme_logits_stay_finite():
    """c by its largest term: logits of +-1000 neither overflow nor lose the reference."""
    logits = np.array([[[1000.0, -1000, 0, 700], [-1000.0, -1000, 900, 710]]])
    omega, right = np.empty((1, 4)), np.empty((1, 4))
    one = np.ones(4, np.int64)
    multinomial_pg.category_weights(logits, 0, one, one, 1, 0, 1 << 24, 1, np.zeros(1, np.uint64), omega, right)
    c = logsumexp(np.array([[-1000, -1000, 900, 710], [0, 0, 0, 0]]), axis=0)
    np.testing.assert_allclose(right[0], 0.5 + omega[0] * c, rtol=1e-12)
    assert np.all(omega > 0)


# Prior


def test_priors_by_number_table_and_matrix():
    o = MultinomialPGOptions
    mean, precision = read_prior(
        o(prior_mean=[[1, 2], [3, 4]], prior_precision=2.0, intercept_mean=[5, 6], intercept_precision=0.5), 2, 2
    )
    assert mean.tolist() == [[1, 2, 5], [3, 4, 6]] and np.array_equal(precision, [np.diag([2, 2, 0.5])] * 2)
    mean, precision = read_prior(o(prior_precision=[[1, 0], [3, 4]], intercept=False), 2, 2)
    assert mean.shape == (2, 2) and np.array_equal(precision, [np.diag([1, 0]), np.diag([3, 4])])
    full = np.array([[[2, 1], [1, 3]], [[1, 0], [0, 1.0]]])
    assert np.array_equal(read_prior(o(prior_precision=full), 2, 2)[1][:, :2, :2], full)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"prior_mean": [[1.0, 2.0]]}, "found an array of shape (1, 2), needed a number or an array of shape (2, 2)"),
        ({"prior_precision": [[1.0, 2.0], [3.0]]}, "prior_precision: found"),
        ({"prior_precision": -1.0}, "prior_precision: found a negative precision"),
        ({"intercept_precision": [1.0, -1.0]}, "negative"),
        ({"prior_precision": np.array([[[1, 2], [2, 1.0]]] * 2)}, "not symmetric and positive definite"),
        ({"prior_mean": ["a"]}, "needed numbers"),
        ({"prior_mean": float("nan")}, "not finite"),
    ],
)
def test_priors_refused(options, message):
    with pytest.raises(ConfigError) as error:
        read_prior(MultinomialPGOptions(**options), 2, 2)
    assert message in str(error.value)


# Output and input


def test_log_is_on_the_scale_of_the_columns_as_given():
    model = sampler(standardise=True)
    state = states(model, KEYS, 2)[-1]
    log, Z = model.log(state), np.column_stack([(X - X.mean(0)) / X.std(0), np.ones(N)])
    np.testing.assert_allclose(
        np.einsum("cpk,np->cnk", log["beta"], X) + log["intercept"][:, None], np.einsum("ckd,nd->cnk", state["beta"], Z)
    )


def test_estimator():
    """Labels of any type come back; probabilities follow the frequencies."""
    y = np.array(["bull", "cow", "steer"])[RNG.choice(3, 300, p=[0.2, 0.5, 0.3])]
    table = RNG.normal(size=(300, 1))
    model = MultinomialPG(chains=2, burn_in=50, samples=200, threads=1).fit(table, y)
    assert model.classes_.tolist() == ["bull", "cow", "steer"] and set(model.predict(table)) <= {"cow", "steer"}
    np.testing.assert_allclose(model.predict_proba(table).mean(0), [np.mean(y == c) for c in model.classes_], atol=0.02)
    assert list(model.summary()["parameter"]) == ["beta[x0,bull]", "beta[x0,cow]", "intercept[bull]", "intercept[cow]"]
    without = MultinomialPG(chains=1, burn_in=5, samples=5, threads=1, intercept=False, standardise=False).fit(table, y)
    assert list(without.posterior.data_vars) == ["beta"] and np.allclose(without.predict_proba(table).sum(1), 1)


@pytest.mark.parametrize(
    "y, options, error, message",
    [
        (LABELS[:-1], {}, DataError, "y: found 39 rows, needed 40, one for each row of the predictors"),
        (LABELS, {"intercept": False}, ConfigError, "intercept: found false with centred predictors"),
        (X[:, 0] > 2, {"prior_precision": 0.0}, ModelError, "the classes are separated, above all by 'x0'"),
        (LABELS, {"precision": "half"}, ConfigError, "precision"),
    ],
)
def test_refused(y, options, error, message):
    with pytest.raises(error) as found:
        MultinomialPG(threads=1, **options).fit(X, y)
    assert message in str(found.value)
