"""Containers and types of values that estimators are given: each understood as what it means, or refused by name."""

import datetime
from decimal import Decimal

import numpy as np
import polars as pl
import pytest

import mmgibbs
from mmgibbs.errors import DataError
from mmgibbs.regressions.containers import comparable_labels, label_array, read_array

NAMES = ("BayesianLasso", "HorseshoeProbit", "MultinomialPG", "MultinomialHMC", "HierarchicalSlice")
CLASSIFIERS = NAMES[1:]
N = 40
RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(N, 2))
MEASURED = 2 * X[:, 0] + RANDOM.normal(size=N)
HIT = (MEASURED > 0).astype(int)
GROUPS = np.array(list("uvwx"))[np.arange(N) % 4]
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*few effective draws"),
    pytest.mark.filterwarnings("ignore:.*chains have not mixed"),
    pytest.mark.filterwarnings("ignore:HierarchicalSlice. fit without groups"),
]


def estimator(name, **options):
    return getattr(mmgibbs, name)(**dict(chains=1, burn_in=10, samples=20, threads=1) | options)


def response(name):
    return MEASURED if name == "BayesianLasso" else HIT


# ------------------------------------------------------------------------------------------------ labels that are kept

DATES = [datetime.date(2020, 1, 1), datetime.date(2021, 1, 1)]
TIMES = [datetime.datetime(2020, 1, 1, 3), datetime.datetime(2020, 1, 1, 4)]
SPANS = [datetime.timedelta(days=1), datetime.timedelta(days=3)]


def labels_of(*values):
    return [values[k] for k in HIT]


def of_pandas(dtype, *values):
    return lambda: pytest.importorskip("pandas").Series(np.array(values, object)[HIT], dtype=dtype)


LABELS = {  # containers of two labels
    "dates of NumPy": lambda: np.array(DATES, "M8[D]")[HIT],
    "times of NumPy": lambda: np.array(TIMES, "M8[ns]")[HIT],
    "durations of NumPy": lambda: np.array([5, 7], "m8[us]")[HIT],
    "dates": lambda: labels_of(*DATES),
    "decimals": lambda: labels_of(Decimal("1.5"), Decimal("2.5")),
    "truth values": lambda: labels_of(False, True),
    "pairs": lambda: np.array([(1, 2), (3, 4), None], object)[:2][HIT],
    "times of Polars": lambda: pl.Series(labels_of(*TIMES)),
    "categories of Polars": lambda: pl.Series(labels_of("a", "b"), dtype=pl.Categorical),
    "categories": of_pandas("category", 3, 7),
    "texts of pandas": of_pandas("string", "a", "b"),
    "whole numbers of pandas": of_pandas("Int64", 3, 7),
    "truth values of pandas": of_pandas("boolean", False, True),
    "times of pandas": of_pandas("datetime64[ns]", *DATES),
    "times with a zone": lambda: pytest.importorskip("pandas").Series(
        pytest.importorskip("pandas").to_datetime(DATES).tz_localize("UTC")[HIT]
    ),
}


@pytest.mark.parametrize("name", LABELS)
def test_labels_are_kept_and_change_no_draw(name):
    y = LABELS[name]()
    fit = lambda y: estimator("MultinomialPG").fit(X, y)
    model, again = fit(y), fit(HIT)
    assert np.array_equal(model.coef_, again.coef_)
    assert np.array_equal([label == model.classes_[1] for label in model.predict(X)], again.predict(X) == 1)
    assert [model.classes_[k] for k in HIT] == list(np.array(y) if name.endswith("NumPy") else y)
    assert model.score(X, y) == again.score(X, HIT) > 0.6
    if isinstance(y, np.ndarray):
        assert model.classes_.dtype == y.dtype


def test_labels_of_several_types_keep_their_types():
    """NumPy would make texts of them all."""
    y = np.array(["sick", 2], object)[1 - HIT]
    assert estimator("MultinomialPG").fit(X, y).classes_.tolist() == [2, "sick"]


def test_the_container_of_dates_may_change_between_fit_and_score():
    model = estimator("MultinomialPG").fit(X, np.array(DATES, "M8[ns]")[HIT])
    same = [np.array(DATES, "M8[D]")[HIT], [DATES[k] for k in HIT], pl.Series([DATES[k] for k in HIT])]
    assert {model.score(X, y) for y in same} == {model.score(X, np.array(DATES, "M8[ns]")[HIT])}
    groups = np.array([*DATES, *TIMES], "M8[ns]")[np.arange(N) % 4]
    hierarchical = estimator("HierarchicalSlice").fit(X, HIT, groups=groups)
    as_known = hierarchical.predict_proba(X, groups)
    assert np.array_equal(hierarchical.predict_proba(X, pl.Series(groups.astype("M8[us]"))), as_known)
    with pytest.warns(UserWarning, match="1 row has a group that was not in the fit"):
        hierarchical.predict_proba(X[:1], np.array(["1999-01-01"], "M8[D]"))


def test_readers_of_labels():
    """The steps that the estimators are made of."""
    assert comparable_labels(np.array(DATES, "M8[ns]")) == comparable_labels(np.array(DATES, object))
    assert comparable_labels(np.array(["2020-01-01T00:00:00.000000001"], "M8[ns]")) != comparable_labels(
        np.array(["2020-01-01"], "M8[ns]")
    )
    assert label_array([2, "a"]).tolist() == [2, "a"] and label_array([1, 2]).dtype.kind == "i"
    assert read_array(np.array([1, 2.5], object), "y").dtype == float
    assert read_array(np.array([True, False], object), "y").dtype == bool
    assert read_array(np.array([2**70, 1], object), "y").tolist() == [2**70, 1]


# ------------------------------------------------------------------------------------------------ what is missing


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_missing_labels_are_named(name):
    y = np.array(["a", "b"], object)[HIT]
    y[4] = float("nan")
    for given in (y, list(y)):  # NumPy makes the text 'nan' of a list with texts
        with pytest.raises(DataError, match=r"y row 5: found nan, needed a class label"):
            estimator(name).fit(X, given)


def test_missing_groups_and_observed_labels():
    pd = pytest.importorskip("pandas")
    groups = pd.Series(GROUPS, dtype="string")
    groups[6] = pd.NA
    with pytest.raises(DataError, match="groups row 7: found <NA>, needed the label of a group"):
        estimator("HierarchicalSlice").fit(X, HIT, groups=groups)
    with pytest.raises(DataError, match="groups row 7: found nan, needed the label of a group"):
        estimator("HierarchicalSlice").fit(X, HIT, groups=[*GROUPS[:6], float("nan"), *GROUPS[7:]])
    model = estimator("HierarchicalSlice").fit(X, HIT, groups=GROUPS)
    with pytest.warns(UserWarning, match="1 row has a group that was not in the fit"):
        assert np.isfinite(model.predict_proba(X, groups)).all()
    with pytest.raises(DataError, match="y row 7: found <NA>, needed a class label"):
        estimator("HorseshoeProbit").fit(X, HIT).score(X, pd.array(HIT, "Int64").astype("string").insert(6, pd.NA)[:N])


# ------------------------------------------------------------------------------------------------ what is masked


def masked(values, row=3, column=None):
    out = np.ma.masked_array(np.array(values), mask=False)
    out[(row,) if column is None else (row, column)] = np.ma.masked
    return out


@pytest.mark.parametrize("name", ["BayesianLasso", "HierarchicalSlice"])
def test_masked_values_are_refused_and_masks_without_any_are_not(name):
    y = response(name)
    plain = estimator(name).fit(X, y)
    hidden = estimator(name).fit(np.ma.masked_array(X, mask=False), np.ma.masked_array(y, mask=False))
    assert np.array_equal(plain.coef_, hidden.coef_)
    for call in (estimator(name).fit, plain.score):
        with pytest.raises(DataError, match="y row 4: found a masked value"):
            call(X, masked(y))
    with pytest.raises(DataError, match="predictors row 4, column 'x0': found a masked value"):
        plain.predict(masked(X, 3, 0))
    rows = [np.ma.masked_array(row) for row in X]
    rows[7][1] = np.ma.masked
    with pytest.raises(DataError, match="predictors row 8, column 'x1': found a masked value, needed a finite number"):
        estimator(name).fit(rows, y)


def test_masked_group_predictors():
    fit = lambda **given: estimator("HierarchicalSlice").fit(X, HIT, **{"groups": GROUPS} | given)
    for z in (masked(np.arange(4.0)), masked(np.arange(8.0).reshape(4, 2), 3, 1)):
        with pytest.raises(DataError, match="group_predictors row 4, column '?z?[01]'?: found a masked value"):
            fit(group_predictors=z)
    with pytest.raises(DataError, match="group_predictors row 2"):
        fit(group_predictors={"u": 1.0, "v": np.ma.masked, "w": 0.0, "x": 2.0})
    model = fit(group_predictors=np.arange(4.0))
    with pytest.raises(DataError, match="group_predictors row 4"):
        model.predict(X, group_predictors=masked(np.ones(N)))


# ------------------------------------------------------------------------------------------------ columns of X


@pytest.mark.parametrize("frame", ["polars", "pandas"])
def test_columns_of_dates_are_no_predictors(frame):
    kind = pl.DataFrame if frame == "polars" else pytest.importorskip("pandas").DataFrame
    table = kind({"a": X[:, 0], "b": labels_of(*DATES)})
    with pytest.raises(DataError, match=r"predictors.*column 'b'.*needed (a number|numbers, of dates)"):
        estimator("BayesianLasso").fit(table, MEASURED)
    fitted = estimator("BayesianLasso").fit(kind({"a": X[:, 0], "b": X[:, 1]}), MEASURED)
    with pytest.raises(DataError, match="column 'b'"):
        fitted.predict(table)
    with pytest.raises(DataError, match="column 'b'"):
        estimator("HierarchicalSlice").fit(X, HIT, GROUPS, group_predictors=table[:4])
    with pytest.raises(DataError):
        estimator("MultinomialPG").fit(X, table)  # counts


def test_columns_of_categories_are_no_predictors():
    table = pl.DataFrame({"a": X[:, 0], "b": pl.Series(labels_of("1", "2"), dtype=pl.Categorical)})
    with pytest.raises(DataError, match="column 'b' is of type .*, needed a column of 0 and 1 for each class"):
        estimator("HorseshoeProbit").fit(table, HIT)


def test_counts_in_extension_types():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(np.column_stack([HIT, 1 - HIT]) * 2, columns=["well", "ill"])
    expected = estimator("MultinomialPG").fit(X, frame)
    assert np.array_equal(estimator("MultinomialPG").fit(X, frame.astype("Int64")).coef_, expected.coef_)


# ------------------------------------------------------------------------------------------------ units


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("unit", [2.0**-43, 2.0**190])
def test_coefficients_scale_with_the_unit_of_a_column(name, unit):
    """A power of 2 changes no digit: the draws are the same but for the unit."""
    scaled = X * [1, unit]
    plain, other = (estimator(name).fit(Z, response(name)) for Z in (X, scaled))
    beta, again = (np.asarray(m.posterior["beta"]).reshape(20, -1, 2) for m in (plain, other))
    assert np.array_equal(again * [1, unit], beta)
    assert np.array_equal(other.predict(scaled), plain.predict(X))


@pytest.mark.parametrize(
    "column, message",
    [
        (np.full(N, 0.1), "column 'x1' has one value in every row"),
        (np.full(N, 1e-13), "column 'x1' has one value in every row"),
        (np.zeros(N), "column 'x1' has one value in every row"),
        (X[:, 1] * 1e-200, "column 'x1' lies from .*e-200 to .*e-200, needed a unit in which"),
        (1 + X[:, 1] * 1e-14, "column 'x1' has mean 1 and standard deviation .*e-15, too little for its digits"),
    ],
)  # fmt: skip
def test_columns_that_cannot_be_standardised(column, message):
    with pytest.raises(DataError, match=message):
        estimator("BayesianLasso").fit(np.column_stack([X[:, 0], column]), MEASURED)


# ------------------------------------------------------------------------------------------------ groups by name

Z_OF = dict(zip("uvwx", [0.0, 1.0, 2.0, 3.0], strict=True))


def population(group_predictors, groups=GROUPS):
    model = estimator("HierarchicalSlice").fit(X, HIT, groups=groups, group_predictors=group_predictors)
    return np.asarray(model.posterior["population"])


def test_group_predictors_go_by_the_index_of_pandas():
    pd = pytest.importorskip("pandas")
    expected = population(Z_OF)
    assert np.array_equal(population({g: Z_OF[g] for g in "xwvu"}), expected)
    shuffled = pd.DataFrame({"z": [Z_OF[g] for g in "wuxv"]}, index=list("wuxv"))
    for given in (shuffled, shuffled["z"], shuffled.astype("Float64"), shuffled.sort_index().reset_index(drop=True)):
        assert np.array_equal(population(given), expected)
    assert np.array_equal(population(pl.DataFrame({"z": [0.0, 1, 2, 3]})), expected)  # in sorted order: no index
    numbered = np.arange(N) % 4
    assert np.array_equal(population(pd.Series([3.0, 1, 0, 2], index=[3, 1, 0, 2]), numbered), expected)
    years = np.array([2001, 2002, 2003, 2004])[numbered]
    by_year = pd.DataFrame({"z": [3.0, 2, 1, 0]}, index=[2004, 2003, 2002, 2001])
    assert np.array_equal(population(by_year, years), expected)
    dates = pd.to_datetime([f"{year}-01-01" for year in range(2001, 2005)])
    by_date = pd.Series([3.0, 2, 1, 0], index=dates[::-1])
    assert np.array_equal(population(by_date, dates[numbered]), expected)


def test_group_predictors_of_other_groups_are_refused():
    pd = pytest.importorskip("pandas")
    frame = lambda index: pd.DataFrame({"z": np.arange(float(len(index)))}, index=index)
    for index, message in [
        (list("uvwy"), "group 'y' has no observations"),
        (list("uvwwx"), "found group 'w' twice"),
        (list("uvw"), "found no values for group 'x'"),
        (list("abcd"), r"the rows are named 'a', 'b', 'c', ..., needed the labels of groups: 'u', 'v', 'w', ...; or a"),
        ([3, 1, 0, 2], "the rows are named 3, 1, 0, ..., needed the labels of groups"),
    ]:
        with pytest.raises(DataError, match=f"group_predictors: {message}"):
            population(frame(index))


def test_group_predictors_of_a_prediction_go_by_the_names_of_the_fit():
    pd = pytest.importorskip("pandas")
    fitted = pd.DataFrame({"size": [1.0, 2, 3, 5], "age": [3.0, 1, 1, 0]}, index=list("uvwx"))
    model = estimator("HierarchicalSlice").fit(X, HIT, groups=GROUPS, group_predictors=fitted)
    new = pd.DataFrame({"size": RANDOM.normal(size=N), "age": RANDOM.normal(size=N)})
    expected = model.predict_proba(X, group_predictors=new.to_numpy())
    for given in (new, new[["age", "size"]], pl.from_pandas(new[["age", "size"]])):
        assert np.array_equal(model.predict_proba(X, group_predictors=given), expected)
    with pytest.raises(DataError, match="group_predictors: found the columns 'size', needed .* missing: 'age'"):
        model.predict_proba(X, group_predictors=new[["size"]])
    unnamed = estimator("HierarchicalSlice").fit(X, HIT, groups=GROUPS, group_predictors=fitted.to_numpy())
    assert np.isfinite(unnamed.predict_proba(X, group_predictors=new)).all()
