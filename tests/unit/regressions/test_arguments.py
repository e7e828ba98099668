"""Odd inputs of the five estimators: each is used for what it says, or refused by name."""

import inspect
import pickle

import numpy as np
import polars as pl
import pytest
import scipy.sparse

import mmgibbs
from mmgibbs.errors import ConfigError, DataError, MmgibbsError, ModelError
from mmgibbs.regressions import predictors as predictors_file
from mmgibbs.regressions.arguments import read_seed

NAMES = ("BayesianLasso", "HorseshoeProbit", "MultinomialPG", "MultinomialHMC", "HierarchicalSlice")
RANDOM = np.random.default_rng(1)
X = RANDOM.integers(-20, 21, (30, 3)) / 8  # with room for an offset that is exact
NUMBERS = X @ [1, 0, -1] + RANDOM.normal(size=30)
LABELS = (NUMBERS > 0).astype(int)
GROUPS = np.arange(30) % 3
SHORT = dict(chains=2, burn_in=3, samples=5, threads=1)
ODD = (
    None, -1, 0, 1.5, 2**70, "x", True, np.nan, np.inf, [], [1], {}, np.array([1.0, 2.0]), b"x", object(),
    1e-300, 1e300, 1 + 2j,
)  # fmt: skip
LONG = ("burn_in", "samples", "chains")  # of which large numbers only take long


def estimator(name, **options):
    return getattr(mmgibbs, name)(**(SHORT | options))


def response(name):
    return NUMBERS if name == "BayesianLasso" else LABELS


def fitted(name, X=X, y=None, groups=GROUPS, **options):
    of_groups = {"groups": groups} if name == "HierarchicalSlice" else {}
    return estimator(name, **options).fit(X, response(name) if y is None else y, **of_groups)


def cases(name):
    """(what, call) of every odd input of one estimator."""
    for parameter in inspect.signature(getattr(mmgibbs, name).__init__).parameters:
        for value in ODD if parameter != "self" else ():
            if parameter not in LONG or not isinstance(value, int) or value < 10**6:
                yield f"{parameter}={value!r}", lambda p=parameter, v=value: fitted(name, **{p: v}).summary()
    tables = (
        None, 1, "abc", [], [[]], [[1, 2], [3]], X[:, :, None], X.astype(complex), np.full((30, 3), "a"), X + 1e15,
        X * 1e-9, X * 1e200, np.full((30, 3), np.nan), X[:5], X[0], X[:, :2], X[:1], {"a": 1}, object(),
        np.ones((30, 3)), X.astype(object), [[None] * 3] * 30, np.zeros((30, 3), "M8[D]"), X.astype(np.float16),
        X.astype(np.longdouble), scipy.sparse.csr_array(X), pl.DataFrame(X), pl.DataFrame({"a": ["x"] * 30}),
    )  # fmt: skip
    model = fitted(name)
    for table in tables:
        shown = f"{type(table).__name__} {str(table)[:20]!r}"
        yield f"fit X={shown}", lambda t=table: fitted(name, t)
        yield f"fit X={shown} as it is", lambda t=table: fitted(name, t, standardise=False)
        yield f"predict X={shown}", lambda t=table: model.predict(t)
    y = response(name)
    lists = np.empty(30, object)
    lists[:] = [[1.0]] * 30
    responses = (
        1, "abc", [], [[1, 2], [3]], y[:5], np.ones(30), np.full(30, np.nan), np.full(30, np.inf), [None] * 30,
        ["a"] * 15 + ["b"] * 15, [1] * 15 + ["b"] * 15, np.tile(y[:, None], (1, 2)), y.astype(complex),
        np.zeros((30, 2, 2)), [{}] * 30, -y, object(), np.array([1, 2] * 15, "M8[D]"), y * 1e300, y * 1e-300,
        y.astype(bool), [[1]] * 29 + [1], scipy.sparse.csr_array(np.ones((30, 2))), lists, [1] * 29 + [10**400],
    )  # fmt: skip
    for value in responses:
        yield f"fit y={str(value)[:20]!r}", lambda v=value: fitted(name, y=v)
        yield f"score y={str(value)[:20]!r}", lambda v=value: model.score(X, v)


WEIGHTS = (
    1, "a", [], -np.ones(30), np.full(30, np.nan), np.ones((30, 2)), np.full(30, 0.5), np.zeros(30), ["a"] * 30,
    np.r_[np.zeros(29), 1], object(), np.full(30, 1e300), np.full(30, 2**62), [[1]] * 29 + [1],
)  # fmt: skip
OF_GROUPS = (
    1, "a", [], [[1, 2], [3]], GROUPS[:3], [None] * 30, GROUPS * 1.0, np.full(30, np.nan), [{}] * 30,
    [1] * 15 + ["a"] * 15, object(), np.arange(30), np.ones((30, 2)), GROUPS.astype(complex),
)  # fmt: skip
OF_GROUP_PREDICTORS = (
    1, "a", [], [[1, 2], [3]], [1, 2], ["a", "b", "c"], {0: 1}, {0: 1, 1: 2, 2: 3, 3: 4}, {0: [1], 1: [2, 3], 2: 1},
    object(), [np.nan] * 3, {"0": 1}, np.ones((3, 1)), [1e9, 1e9 + 1, 1e9 + 3], np.ones((3, 2, 2)),
)  # fmt: skip


def raw(found):
    """What is neither used nor refused in this program's words: (what, the error)."""
    wrong = []
    for what, call in found:
        try:
            call()
        except MmgibbsError as error:
            assert len(str(error)) > 20, what
        except Exception as error:  # noqa: BLE001  that is the question
            wrong.append((what, repr(error)))
    return wrong


@pytest.mark.parametrize("name", NAMES)
def test_no_odd_input_ends_in_a_raw_error(name):
    """2,000 inputs in all; warnings are errors in these tests."""
    tried = list(cases(name))
    assert len(tried) > 250 and raw(tried) == []


@pytest.mark.parametrize("name", ["BayesianLasso", "MultinomialPG", "MultinomialHMC"])
def test_odd_weights(name):
    fit = lambda w: estimator(name).fit(X, response(name), sample_weight=w)
    assert raw((str(w)[:20], lambda w=w: fit(w)) for w in WEIGHTS) == []


def test_weights_leave_rows_their_numbers_and_columns_their_standardisation():
    """Rows of weight 0 go before the fit, and may hold any response; errors name the rows of the user's table."""
    weights = np.ones(len(X))
    weights[:3] = 0
    fit = lambda y, w=weights, X=X: estimator("BayesianLasso").fit(X, y, sample_weight=w)
    far = X + 1e9
    assert np.isfinite(fit(response("BayesianLasso"), X=far).coef_).all()  # centred, as without weights
    y = response("BayesianLasso").astype(float).copy()
    y[[1, 7]] = np.nan
    with pytest.raises(DataError, match="row 8: found nan, needed a finite number"):
        fit(y)
    y[7] = 1.0
    assert np.isfinite(fit(y).coef_).all()
    texts = y.astype(object)
    texts[9] = "x"
    with pytest.raises(DataError, match="row 10: found 'x', needed a number"):
        fit(texts)
    with pytest.raises(DataError, match="^y row 10: found 'x', needed a number$"):
        estimator("BayesianLasso").fit(X, np.where(np.isnan(y), 0, texts))
    half = np.where(np.arange(len(X)) == 8, 0.5, weights)
    with pytest.raises(DataError, match="sample_weight row 9: found 0.5, needed a whole number"):
        estimator("MultinomialPG").fit(X, response("MultinomialPG"), sample_weight=half)


@pytest.mark.filterwarnings("ignore:HierarchicalSlice. groups")  # of which some were not in the fit
def test_odd_groups():
    fit = lambda groups, z=None: estimator("HierarchicalSlice").fit(X, LABELS, groups, z)
    assert raw((str(g)[:20], lambda g=g: fit(g).predict(X, g)) for g in OF_GROUPS) == []
    assert raw((str(z)[:20], lambda z=z: fit(GROUPS, z)) for z in OF_GROUP_PREDICTORS) == []
    model = fit(GROUPS, [1.0, 2.0, 4.0])
    assert raw((str(z)[:20], lambda z=z: model.predict(X, GROUPS + 1, z)) for z in OF_GROUP_PREDICTORS) == []


@pytest.mark.parametrize(
    "argument, said",
    [
        ({"seed": -1}, "seed: found -1, needed a whole number from 0 to 4,294,967,295, or None for a fresh one"),
        ({"seed": 1.5}, "seed: found 1.5, needed a whole number"),
        ({"seed": 2**70}, "seed: found 1180591620717411303424, needed"),
        ({"seed": "1"}, "seed: found '1', needed"),
        ({"threads": "x"}, "threads: found 'x', needed a whole number from 1"),
        ({"threads": 0}, "threads: found 0, needed"),
        ({"thin": 6}, "thin: found 6 with 5 samples, of which none would be kept; needed at most 5"),
        ({"samples": 0}, "samples: found 0, needed a whole number from 1"),
        ({"chains": True}, "chains: found True, needed"),
        ({"chains": 2**40}, "chains: found 1099511627776, needed a whole number from 1 to 10,000"),
        ({"burn_in": 2**32 - 1}, r"burn_in \+ samples: found 4294967300, needed"),
        ({"device": "abacus"}, "device: found 'abacus', needed 'cpu', 'gpu' or 'auto'"),
        ({"device": np.array(["cpu"])}, "device: found"),
        ({"standardise": "no"}, "standardise: found 'no', needed True or False"),
        ({"progress": 2}, "progress: found 2, needed True or False"),
        ({"precision": "half"}, "precision: found 'half', needed 'double' or 'single'"),
    ],
)
def test_an_argument_is_refused_by_name(argument, said):
    with pytest.raises(ConfigError, match=said):
        estimator("BayesianLasso", **argument).fit(X, NUMBERS)


@pytest.mark.parametrize(
    "X, y, said",
    [
        (scipy.sparse.csr_array(X), NUMBERS, r"predictors: found a sparse matrix, needed a dense one: X.toarray\(\)"),
        ([["a", 1]] * 30, NUMBERS, "predictors: found values of type <U"),
        (np.array([[1, 2], [None, 4]], object), [1, 2], "predictors row 2, column 'x0': found a missing value"),
        (pl.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]}), [1, 2], "predictors row 1, column 'b': found 'x', needed"),
        (pl.DataFrame({"a": ["x", "y"]}), [1, 2], r"'a': found 'x', needed a number \(of classes, .* OneHotEncoder"),
        (np.array([[1.0, "x"], [2.0, "y"]], object), [1, 2], "predictors row 1, column 2: found 'x', needed a number"),
        (X * 1e200, NUMBERS, r"predictors row \d+, column 'x\d': found .*, needed a number below 1e\+70 in size"),
        (X, None, "y: found nothing; fit requires y"),
        (X, [[1], [2, 3]], "y: found rows of different lengths"),
        (X, ["a"] * 30, "y: found values of type <U1, needed numbers"),
        (X[:1], [1.0], "predictors: found one sample"),
    ],
)  # fmt: skip
def test_data_are_refused_by_name(X, y, said):
    with pytest.raises(DataError, match=said):
        estimator("BayesianLasso").fit(X, y)


def test_frames_with_a_name_twice_or_names_that_are_no_text():
    import pandas as pd

    with pytest.raises(DataError, match="predictors: found the column 'a' twice"):
        estimator("BayesianLasso").fit(pd.DataFrame(X, columns=["a", "a", "b"]), NUMBERS)
    frame = pd.DataFrame(X)  # columns 0, 1, 2
    model = estimator("BayesianLasso").fit(frame, NUMBERS)
    assert np.allclose(model.predict(frame[[2, 0, 1]]), model.predict(X))


@pytest.mark.parametrize("name", NAMES)
def test_options_are_keywords(name):
    with pytest.raises(ConfigError, match="expected keywords .*, got 1.0 without one"):
        getattr(mmgibbs, name)(1.0)


def test_no_seed_is_a_fresh_one():
    """What was drawn is told, and gives the same chain again."""
    one, two = (fitted("BayesianLasso", seed=None) for _ in range(2))
    assert one.seed_ != two.seed_ and one.seed is None and not np.array_equal(one.coef_, two.coef_)
    assert np.array_equal(fitted("BayesianLasso", seed=one.seed_).coef_, one.coef_)
    assert 0 <= read_seed(None) < 2**32 and read_seed(np.int64(7)) == 7


@pytest.mark.parametrize("name", NAMES)
def test_one_sample_has_a_summary(name):
    """Warnings are errors here."""
    summary = fitted(name, samples=1, chains=2 if name == "MultinomialPG" else 1).summary()
    assert np.isfinite(summary["mean"]).all() and np.isnan(summary["rhat"]).all()


@pytest.mark.parametrize("name", NAMES)
def test_an_offset_of_the_columns_changes_nothing(name):
    """Exact in these columns: the chain is that of the columns without it, but for rounding."""
    offset = np.array([2.0**30, 0.0, -(2.0**31)])
    model, far = fitted(name, burn_in=10, samples=10), fitted(name, X + offset, burn_in=10, samples=10)
    assert np.allclose(far.posterior["beta"], model.posterior["beta"], rtol=1e-5, atol=1e-7)
    assert np.allclose(far.predict(X + offset), model.predict(X), atol=1e-4)
    moved = far.posterior["beta"].transpose("predictor", ...).values
    expected = model.posterior["intercept"].values - np.tensordot(offset, moved, 1)
    assert np.allclose(far.posterior["intercept"].values, expected, rtol=1e-6)
    assert "as their means are above 100,000 standard deviations" in far._predictors.notes[1]


def test_without_the_centring_an_offset_is_fatal(monkeypatch):
    """The twin of the test above, with the cure taken away."""
    monkeypatch.setattr(predictors_file, "MAX_SDS_FROM_0", np.inf)
    near = fitted("BayesianLasso", burn_in=10, samples=10).coef_
    try:
        far = fitted("BayesianLasso", X + 2.0**30, burn_in=10, samples=10).coef_
    except (ModelError, RuntimeWarning):
        return
    assert not np.allclose(far, near, rtol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_an_offset_that_is_not_to_be_taken_away_is_refused(name):
    with pytest.raises(DataError, match="column 'x0' has mean 1e.09 and standard deviation .*needed standardise=True"):
        fitted(name, X + 1e9, standardise=False)


def test_a_column_of_ones_is_no_offset():
    ones = np.column_stack([np.ones(30), X])
    assert fitted("BayesianLasso", ones, standardise=False).n_features_in_ == 4


def test_a_singular_matrix_is_said(monkeypatch):
    def prepare(*arguments):
        raise np.linalg.LinAlgError("not positive definite")

    monkeypatch.setattr(mmgibbs.BayesianLasso.plugin, "prepare", staticmethod(prepare))
    with pytest.raises(ModelError, match="a matrix of the predictors has no Cholesky factor"):
        fitted("BayesianLasso")


@pytest.mark.parametrize("name", NAMES)
def test_a_fitted_estimator_can_be_pickled(name):
    model = fitted(name)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict(X), model.predict(X)) and repr(again) == repr(model)


def test_options_that_are_arrays_are_shown():
    assert repr(mmgibbs.MultinomialPG(prior_mean=np.zeros(2))) == "MultinomialPG(prior_mean=array([0., 0.]))"
