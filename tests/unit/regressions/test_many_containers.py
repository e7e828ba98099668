"""Containers that regressions are given: for each argument at least fifty, each read as what it means or refused by its
name; none is read as something else in silence.
"""

from __future__ import annotations

import datetime
import warnings
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest

import mmgibbs
from mmgibbs.errors import DataError
from mmgibbs.regressions.classes import read_classes
from mmgibbs.regressions.containers import find_doubtful_labels, find_rows_in_other_order, missing_rows, read_array
from mmgibbs.regressions.estimator import _response
from mmgibbs.regressions.hierarchical.grouped import read_groups
from mmgibbs.regressions.numbers import read_numbers
from mmgibbs.regressions.predictors import read_predictors
from mmgibbs.regressions.weights import read_weights

pd = pytest.importorskip("pandas")
FEWEST_INPUTS = 50
N = 24
RANDOM = np.random.default_rng(0)
X = RANDOM.integers(0, 5, (N, 2))
Y = RANDOM.integers(0, 4, N)
NUMPY_TYPES = "f8 f4 f2 i8 i4 i2 i1 u8 u4 u2 u1 >f8 >i4 longdouble O".split()
PANDAS_TYPES = "float64 float32 int64 int8 Int64 Int8 UInt8 Float64 Float32 object".split()
POLARS_TYPES = [
    pl.Float64, pl.Float32, pl.Int64, pl.Int32, pl.Int8, pl.UInt64, pl.UInt8, pl.Decimal(8, 2), pl.Int128, pl.Object,
]  # fmt: skip
DATES = [datetime.date(2020, 1, 1 + int(day)) for day in Y]


def outcome(read: Callable[[Any], Any], values: Any, expected: Any) -> str:
    """'read', 'refused', or what else came of it. expected: None where the values must be refused."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            found = np.asarray(read(values))
        except DataError as error:
            message = str(error)
            assert len(message.splitlines()) == 1 and "needed" in message
            return "refused"
        except UserWarning:
            return "warned"
    return "read" if expected is not None and np.array_equal(found, expected) else f"read as {found.ravel()[:4]}"


def failures(read: Callable[[Any], Any], good: dict[str, Any], bad: dict[str, Any], expected: np.ndarray) -> list[str]:
    """good: containers of the expected values; bad: those that must be refused, or warned of."""
    assert len(good) + len(bad) >= FEWEST_INPUTS
    outcomes = {name: outcome(read, values, expected) for name, values in good.items()}
    wrong = [f"{name}: {what}" for name, what in outcomes.items() if what != "read"]
    outcomes = {name: outcome(read, values, None) for name, values in bad.items()}
    return wrong + [f"{name}: {what}" for name, what in outcomes.items() if what not in ("refused", "warned")]


def polars_series(values: np.ndarray, dtype: Any) -> pl.Series:
    if dtype == pl.Object:
        return pl.Series("a", values.tolist(), dtype=pl.Object)
    return pl.Series("a", values).cast(dtype)


# ------------------------------------------------------------------------------------------------ predictors


def tables() -> dict[str, Any]:
    """X in every container."""
    frame, labels = pd.DataFrame(X, columns=["a", "b"]), np.random.default_rng(1).permutation(N)
    categories = {"a": pd.Categorical(X[:, 0], categories=[4, 3, 2, 1, 0], ordered=True), "b": X[:, 1]}
    out = {f"numpy {t}": X.astype(t) for t in NUMPY_TYPES}
    out |= {f"pandas {t}": frame.astype(t) for t in PANDAS_TYPES}
    out |= {
        f"polars {t}": pl.DataFrame([polars_series(X[:, j], t).alias(str(j)) for j in (0, 1)]) for t in POLARS_TYPES
    }
    out |= {f"mixed {t}": pl.DataFrame({"a": polars_series(X[:, 0], t), "b": X[:, 1]}) for t in POLARS_TYPES}
    return out | {
        "Fortran": np.asfortranarray(X),
        "strides": np.repeat(X, 2, 0)[::2],
        "reversed": X[::-1].copy()[::-1],
        "masked without a mask": np.ma.array(X),
        "lists": X.tolist(),
        "tuples": [tuple(row) for row in X.tolist()],
        "rows": list(X),
        "decimals": [[Decimal(int(v)) for v in row] for row in X],
        "fractions": [[Fraction(int(v)) for v in row] for row in X],
        "memory": memoryview(X),
        "columns without names": pd.DataFrame(X),
        "shuffled index": frame.set_axis(labels),
        "several levels of columns": pd.DataFrame(X, columns=pd.MultiIndex.from_tuples([("a", 1), ("a", 2)])),
        "categories that are numbers": pd.DataFrame(categories),
        "sparse columns": frame.astype(pd.SparseDtype("int", 0)),
        "array of Polars": pl.Series(X.tolist(), dtype=pl.Array(pl.Float64, 2)),
    }


def no_tables() -> dict[str, Any]:
    """What no table of numbers can be made of."""
    beside = {
        "date": DATES,
        "datetime": pd.to_datetime(X[:, 0]),
        "time zone": pd.to_datetime(X[:, 0]).tz_localize("UTC"),
        "timedelta": pd.to_timedelta(X[:, 0]),
        "period": pd.PeriodIndex(pd.to_datetime(X[:, 0], unit="D"), freq="D"),
        "interval": pd.cut(X[:, 0], 3),
        "categories": pd.Categorical(X[:, 0].astype(str)),
        "missing category": pd.Categorical.from_codes(X[:, 0] - 1, [1, 2, 3, 4]),
        "missing integer": pd.array([None, *X[1:, 0]], "Int64"),
        "missing truth value": pd.array([None, *(X[1:, 0] > 2)], "boolean"),
        "text": ["x", *X[1:, 0].tolist()],
        "complex": X[:, 0] + 1j,
    }
    of_polars = {
        "null": [None, *X[1:, 0].tolist()],
        "null truth value": [None, *(X[1:, 0] > 2).tolist()],
        "nulls": [None] * N,
        "wide null": pl.Series([None, *X[1:, 0].tolist()], dtype=pl.Int128),
        "dates": DATES,
        "text": [f"u{x}" for x in X[:, 0]],
        "categories": pl.Series(X[:, 0].astype(str), dtype=pl.Categorical),
        "enum": pl.Series(X[:, 0].astype(str), dtype=pl.Enum(list("01234"))),
        "lists": X.tolist(),
    }
    out: dict[str, Any] = {f"pandas {name}": pd.DataFrame({"a": v, "b": X[:, 1]}) for name, v in beside.items()}
    out |= {f"polars {name}": pl.DataFrame({"a": v, "b": X[:, 1]}) for name, v in of_polars.items()}
    records = np.array([tuple(row) for row in X.tolist()], [("a", "i8"), ("b", "i8")])
    arrays = [
        X.astype(str),
        X.astype("S"),
        X.astype("M8[D]"),
        X.astype("m8[s]"),
        X + 1j,
        records,
        X[:, 0],
        X[..., None],
    ]
    arrays += [np.where(X == 0, bad, X) for bad in (np.nan, np.inf, None)] + [np.ma.array(X, mask=X == 0), X[:0]]
    arrays += [{"a": X[:, 0]}, {1, 2}, "abc", (row for row in X), pl.Series("a", X[:, 0]), pd.Series(X[:, 0])]
    return out | {f"array {i}": array for i, array in enumerate(arrays)}


def test_predictors():
    assert failures(lambda values: read_predictors(values).values, tables(), no_tables(), X) == []


# ------------------------------------------------------------------------------------------------ one value a row


def columns(values: np.ndarray) -> dict[str, Any]:
    """Numbers (n,) in every container."""
    series = pd.Series(values)
    out = {f"numpy {t}": values.astype(t) for t in NUMPY_TYPES}
    for t in [*PANDAS_TYPES, "category", "Sparse[int]"]:
        out |= {f"pandas {t}": series.astype(t), f"array {t}": series.astype(t).array}
    out |= {f"index {t}": pd.Index(series.astype(t)) for t in PANDAS_TYPES}
    out |= {f"polars {t}": polars_series(values, t) for t in POLARS_TYPES}
    return out | {
        "list": values.tolist(),
        "tuple": tuple(values.tolist()),
        "list of NumPy": list(values),
        "masked without a mask": np.ma.array(values),
        "decimals": [Decimal(int(v)) for v in values],
        "fractions": [Fraction(int(v)) for v in values],
        "memory": memoryview(values),
        "categories in another order": pd.Series(pd.Categorical(values, categories=[3, 2, 1, 0])),
    }


def no_numbers(values: np.ndarray) -> dict[str, Any]:
    with_null = [None, *values[1:].tolist()]
    arrays = [values.astype(str), values.astype("S"), values.astype("M8[D]"), values.astype("m8[s]"), values + 1j]
    arrays += [np.where(values == 0, bad, values) for bad in (np.nan, np.inf, None)]
    arrays += [np.ma.array(values, mask=values == 0), with_null, DATES, set(DATES), (v for v in values), 3.0]
    arrays += [
        pd.Series(pd.to_datetime(values)),
        pd.Series(pd.to_timedelta(values)),
        pd.Series(with_null, dtype="Int64"),
    ]
    arrays += [pd.Series(pd.to_datetime(values).tz_localize("UTC")), pd.Series(pd.cut(values, 3)), pd.Series(DATES)]
    arrays += [pl.Series(DATES), pl.Series(with_null), pl.Series(with_null, dtype=pl.Int128), pl.Series([[1]] * N)]
    return {f"no numbers {i}": array for i, array in enumerate(arrays)}


@pytest.mark.parametrize(
    "read",
    [
        lambda values: read_numbers(_response(values, "y"), N, "y", varying=False),
        lambda values: read_weights(values, N),
    ],
)
def test_responses_and_weights(read):
    assert failures(read, columns(Y), no_numbers(Y), Y) == []


def read_labels(values: Any) -> np.ndarray:
    codes, classes = read_classes(values, "y")
    return np.array(classes, object)[codes]


def read_labels_of_groups(values: Any) -> np.ndarray:
    codes, labels = read_groups(values, N)
    return np.array(labels, object)[codes]


def labels_of_texts() -> dict[str, Any]:
    texts = np.array(list("uvwx"))[Y]
    series = pd.Series(texts)
    return {
        "numpy": texts, "object": texts.astype(object), "list": texts.tolist(), "tuple": tuple(texts.tolist()),
        "category": series.astype("category"), "string": series.astype("string"), "pandas": series.astype(object),
        "index": pd.Index(texts), "polars": pl.Series(texts), "enum": pl.Series(texts, dtype=pl.Enum(list("xwvu"))),
        "categorical": pl.Series(texts, dtype=pl.Categorical), "masked without a mask": np.ma.array(texts),
    }  # fmt: skip


@pytest.mark.parametrize("read", [read_labels, read_labels_of_groups])
def test_labels_and_groups(read):
    with_null = [None, *Y[1:].tolist()]
    missing = [np.where(Y == 0, np.nan, Y), np.where(Y == 0, None, Y), np.ma.array(Y, mask=Y == 0), with_null]
    missing += [pd.Series(with_null, dtype=t) for t in ("Int64", "Float64", "object", "category")]
    missing += [pd.array([None, *(Y[1:] > 1)], "boolean"), pd.array([None, *["a", "b"] * 12][:N], "string")]
    missing += [pl.Series(with_null), pl.Series(with_null, dtype=pl.Int128), ["u", float("nan"), *["v"] * (N - 2)]]
    assert failures(read, columns(Y), {str(i): values for i, values in enumerate(missing)}, Y) == []
    texts = np.array(list("uvwx"))[Y]
    assert {name: outcome(read, values, texts) for name, values in labels_of_texts().items()} == dict.fromkeys(
        labels_of_texts(), "read"
    )
    dates = [np.array(DATES, "M8[D]"), DATES, pd.Series(DATES), pl.Series(DATES), np.array(DATES, object)]
    assert [outcome(read, values, np.array(DATES, object)) for values in dates] == ["read"] * len(dates)


# ------------------------------------------------------------------------------------------------ what is warned of


def test_rows_in_another_order():
    labels = [f"cow{i}" for i in range(N)]
    frame, ones = pd.DataFrame(X, index=labels), pd.Series(1.0, index=labels)
    shuffled = ones.sample(frac=1, random_state=1)
    for argument, given in {"y": {"y": shuffled}, "sample_weight": {"y": ones, "sample_weight": shuffled - 1}}.items():
        with (
            pytest.warns(UserWarning, match=f"the index of {argument} has the labels of X in another order"),
            pytest.raises(DataError),  # of responses or weights that are all the same: nothing need be sampled
        ):
            mmgibbs.BayesianLasso().fit(frame, **given)
    for y in (ones, ones.array, ones.reset_index(drop=True), ones.iloc[1:], ones.tolist(), pl.Series(ones.tolist())):
        assert find_rows_in_other_order(frame, y=y) == []
        assert find_rows_in_other_order(X, y=y) == []
    assert find_rows_in_other_order(frame.loc[shuffled.index], y=shuffled, groups=ones) == ["groups"]


def test_labels_that_are_texts_of_missing_values():
    labels = np.array(["a", "b", float("nan")])[np.arange(N) % 3]  # NumPy makes the text 'nan' of it
    said = "8 of 24 labels are the text 'nan', which is taken as a label and not as a missing value"
    assert find_doubtful_labels(labels) == [f"{said} (missing are None and NaN)"]
    with (
        pytest.warns(UserWarning, match="MultinomialPG: y: 24 of 24 labels are the text 'nan'"),
        pytest.raises(DataError, match="single class"),
    ):
        mmgibbs.MultinomialPG().fit(X, ["nan"] * N)
    with (
        pytest.warns(UserWarning, match="HierarchicalSlice: groups: 'a' and 'a ' are taken as 2 different labels"),
        pytest.raises(DataError, match="groups: found an array of shape"),
    ):
        mmgibbs.HierarchicalSlice().fit(X, Y, groups=["a", "b", "a "])


@pytest.mark.parametrize(
    "labels", [["a", "b"], ["1", "01"], ["none", "missing"], ["A", "AA"], ["nano", "-"], [1, 2], [None, 1.5]]
)
def test_labels_that_are_plain(labels):
    assert find_doubtful_labels(np.array(labels)) == find_doubtful_labels(np.array(labels, object)) == []


def test_whole_numbers_of_128_bits_beyond_64():
    wide = pl.Series("a", [2**70, 1, 2], dtype=pl.Int128)
    assert read_numbers(wide, 3, "y").tolist() == [2.0**70, 1, 2]
    assert missing_rows(read_array(pl.Series([2**70, None], dtype=pl.Int128), "y")).tolist() == [False, True]
