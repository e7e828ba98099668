"""Predictors as they lie in memory: products against dense ones, nothing widened as a whole, mistakes named by row and
column.
"""

import numpy as np
import polars as pl
import pytest

from mmgibbs.errors import DataError
from mmgibbs.regressions import predictors as module
from mmgibbs.regressions.predictors import read_predictors

RNG = np.random.default_rng(4)
SMALL = RNG.integers(0, 3, (57, 6))


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Blocks of a few rows, so that their edges are met."""
    monkeypatch.setattr(module, "ROW_BLOCK_BYTES", 500)


@pytest.mark.parametrize("dtype", ["float64", "float32", "uint8", "int8"])
@pytest.mark.parametrize("standardise", [False, True])
def test_products_equal_dense_ones(dtype, standardise):
    X = read_predictors(SMALL.astype(dtype), standardise=standardise)
    assert X.values.dtype == dtype
    Z = (SMALL - X.centre) / X.scale
    if standardise:
        np.testing.assert_allclose(Z.mean(0), 0, atol=1e-12)
        np.testing.assert_allclose(Z.std(0), 1)
    B, V, w = RNG.normal(size=(6, 2)), RNG.normal(size=(57, 3)), RNG.random(57)
    np.testing.assert_allclose(X.times(B), Z @ B, atol=1e-12)
    np.testing.assert_allclose(X.transposed_times(V), Z.T @ V, atol=1e-12)
    np.testing.assert_allclose(X.gram(), Z.T @ Z, atol=1e-12)
    np.testing.assert_allclose(X.gram(w), Z.T @ (w[:, None] * Z), atol=1e-12)
    beta, intercept = X.to_original_scale(B[:, 0], np.float64(0.7))
    np.testing.assert_allclose(SMALL @ beta + intercept, Z @ B[:, 0] + 0.7)


def test_a_memory_map_is_used_as_it_is(tmp_path):
    SMALL.astype(np.uint8).tofile(tmp_path / "x")
    mapped = np.memmap(tmp_path / "x", np.uint8, "r", shape=SMALL.shape)
    assert read_predictors(mapped).values is mapped
    assert read_predictors(mapped).gram()[0, 0] == (SMALL[:, 0] ** 2).sum()


def test_frames_keep_their_names_and_new_data_are_put_in_order():
    frame = pl.DataFrame({f"snp{j}": SMALL[:, j].astype(np.uint8) for j in range(6)})
    X = read_predictors(frame, standardise=True)
    assert X.names == tuple(frame.columns)
    again = read_predictors(frame.select(reversed(frame.columns)), like=X)
    np.testing.assert_array_equal(again.values, X.values)
    assert again.centre is X.centre


NAN, INFINITE = SMALL.astype(float), SMALL.astype(np.float32)
NAN[20, 3], INFINITE[56, 0] = np.nan, np.inf
MISTAKES = {
    "missing": (NAN, {}, "predictors row 21, column 'x3': found a missing value (NaN), needed a finite number"),
    "infinite": (INFINITE, {}, "predictors row 57, column 'x0': found inf, needed a finite number"),
    "one dimension": (NAN[0], {}, "found an array of 1 dimensions"),
    "no rows": (SMALL[:0], {}, "found 0 rows and 6 columns, needed at least one of each"),
    "no columns": (SMALL[:, :0], {}, "found 0 feature(s) (shape=(57, 0)) while a minimum of 1 is required"),
    "text": (SMALL.astype(str), {}, "found values of type <U"),
    "names": (SMALL, {"names": ["a", "b"]}, "found 6 columns, needed 2, one for each name"),
    "a constant column": (np.ones((5, 1)), {"standardise": True}, "column 'x0' has one value in every row"),
    "new data with other columns": (
        SMALL[:, :2],
        {"like": read_predictors(SMALL)},
        "X has 2 features, but prediction is expecting 6 features as input",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_named(mistake):
    X, options, message = MISTAKES[mistake]
    with pytest.raises(DataError) as told:
        read_predictors(X, **options)
    assert message in str(told.value)


def test_a_missing_column_of_new_data_is_named():
    frame = pl.DataFrame({"a": [1.0, 2.0], "b": [2.0, 1.0]})
    with pytest.raises(DataError, match="missing: 'a'"):
        read_predictors(frame.rename({"a": "c"}), like=read_predictors(frame))
