"""Class labels of any type, and counts: coded, kept, and refused with the row named."""

import datetime

import numpy as np
import pytest

from mmgibbs.errors import DataError
from mmgibbs.regressions.classes import read_classes


@pytest.mark.parametrize(
    "labels, classes, codes",
    [
        (["cow", "bull", "cow", "calf"], ["bull", "calf", "cow"], [2, 0, 2, 1]),
        ([3, 1, 3], [1, 3], [1, 0, 1]),
        ([0.5, -1.0], [-1.0, 0.5], [1, 0]),
        ([True, False], [False, True], [1, 0]),
        (np.array(["b", 2, "a"], dtype=object), [2, "a", "b"], [2, 0, 1]),
        (
            np.array(["2024-02-01", "2023-01-01"], "M8[D]"),
            [datetime.date(2023, 1, 1), datetime.date(2024, 2, 1)],
            [1, 0],
        ),
    ],
)
def test_labels(labels, classes, codes):
    found, kept = read_classes(labels)
    assert kept == classes and [type(a) for a in kept] == [type(a) for a in classes]
    assert found.dtype == np.int64 and found.tolist() == codes


@pytest.mark.parametrize("dtype", [float, np.int32, np.uint8, np.float32])
def test_counts(dtype):
    counts, classes = read_classes(np.array([[0, 3, 1], [0, 0, 0], [2, 0, 0]], dtype))
    assert counts.dtype == np.int64 and counts.sum(1).tolist() == [4, 0, 2] and classes == [0, 1, 2]


def test_counts_of_named_columns():
    assert read_classes([[0, 3], [2, 0]], "calves, lambs")[1] == ["calves", "lambs"]


@pytest.mark.parametrize(
    "y, message",
    [
        (["a", None, "b"], "litter row 2: found None, needed a class label"),
        ([1.0, 0.0, np.nan], "litter row 3: found nan, needed a class label"),
        (np.array(["2024-01-01", "NaT"], "M8[D]"), "row 2: found NaT"),
        (
            [1.5, 2.0, 3.25],
            "litter: found a different number in each of the 3 rows, such as 1.5: continuous measurements; needed "
            "labels",
        ),
        (["a", "a"], "litter: found the single class 'a' in all 2 rows, needed at least two"),
        ([], "found no rows"),
        (np.zeros((3, 1)), "found an array of shape (3, 1), needed labels (n,) or counts (n, K)"),
        (np.zeros((3, 2, 2)), "found an array of shape (3, 2, 2)"),
        ([[1, 2], [3, -1]], "litter row 2, class 2: found -1, needed a count"),
        ([[1, 2.5], [3, 1]], "litter row 1, class 2: found 2.5, needed a count"),
        ([[1, 2], [np.nan, 1]], "litter row 2, class 1: found nan, needed a count"),
        ([[1, np.inf], [1, 1]], "litter row 1, class 2: found inf, needed a count"),
        ([["1", "2"], ["a", "b"]], "needed counts, whole numbers from 0"),
        ([[0, 2, 0], [0, 1, 0]], "found the single class 2 in all trials"),
        ([[0, 0], [0, 0]], "found counts of 0 in all 2 rows"),
    ],
)
def test_refused(y, message):
    with pytest.raises(DataError) as error:
        read_classes(y, "litter")
    assert message in str(error.value)
