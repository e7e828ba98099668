"""Arguments of any container (lists, NumPy, Polars, pandas) as plain NumPy arrays: nothing masked, nothing turned into
another type on the way. A date is never its count of nanoseconds, and a missing value never a text or a truth value.
"""

from __future__ import annotations

import datetime
import warnings
from collections import Counter
from collections.abc import Sequence
from typing import Any, Protocol, TypeGuard

import numpy as np
import numpy.typing as npt

from mmgibbs.errors import DataError

NUMBERS = (int, float, np.integer, np.floating)
TYPES_WITHOUT_NUMBERS = (  # beginnings of names of column types in Polars and pandas, in lower case
    "date", "time", "duration", "period", "interval", "categor", "enum", "dictionary", "list", "array", "struct",
    "binary",
)  # fmt: skip
TEXTS_OF_MISSING = ("", "nan", "NaN", "NaT", "<NA>")  # what NumPy and pandas write where they make texts of them
_WIDE_INTEGERS = ("Int128", "UInt128")


class Frame(Protocol):
    """A table with named columns, of Polars, pandas or another library."""

    @property
    def columns(self) -> Any: ...

    def to_numpy(self) -> np.ndarray: ...

    def __getitem__(self, names: list[str], /) -> Frame: ...


def is_frame(X: object) -> TypeGuard[Frame]:
    return hasattr(X, "columns") and hasattr(X, "to_numpy")


def read_array(values: npt.ArrayLike | Frame, name: str, needed: str = "one value for each row") -> np.ndarray:
    """The values as a plain array. DataError, which begins with `name`, for a sparse matrix, a masked value, columns of
    dates or categories beside others, and what is no array.
    """
    if hasattr(values, "toarray"):
        raise DataError(f"{name}: found a sparse matrix, needed a dense one: {name}.toarray()")
    if is_frame(values) and len(values.columns) > 1:  # one column of labels keeps its type
        refuse_columns_without_numbers(values, name)
    values = with_masks(narrow_integers(values))
    refuse_masked(values, name, needed)
    try:
        array = np.asarray(values)
        if array.dtype.kind in "US" and array.ndim == 1 and not hasattr(values, "dtype"):
            array = _texts(values, array)
    except (TypeError, ValueError):
        raise DataError(f"{name}: found rows of different lengths, needed {needed}") from None
    return _numbers_of_objects(array) if array.dtype.kind == "O" else array


def find_doubtful_labels(values: np.ndarray) -> list[str]:
    """Describe labels (n,) that are texts of missing values, or one label in several spellings."""
    if values.ndim != 1 or values.dtype.kind not in "UO":
        return []
    counts = Counter(label for label in values.tolist() if isinstance(label, str))
    said = [
        f"{counts[text]:,} of {len(values):,} labels are the text {text!r}, which is taken as a label and not as a "
        "missing value (missing are None and NaN)"
        for text in TEXTS_OF_MISSING
        if counts[text]
    ]
    spellings: dict[str, list[str]] = {}
    for label in sorted(counts):
        spellings.setdefault("".join(label.split()).casefold(), []).append(label)
    return said + [
        f"{' and '.join(map(repr, of_one))} are taken as {len(of_one)} different labels"
        for of_one in spellings.values()
        if len(of_one) > 1
    ]


def narrow_integers(values: Any) -> Any:
    """Polars' integers of 128 bits as Python's: NumPy has none that are so wide."""
    if str(getattr(values, "dtype", "")) in _WIDE_INTEGERS:
        return np.array(values.to_list(), object)
    if is_frame(values) and any(str(dtype) in _WIDE_INTEGERS for dtype in getattr(values, "dtypes", ())):
        rows: Any = values
        return np.array(rows.rows(), object)
    return values


def find_rows_in_other_order(X: object, **beside: object) -> list[str]:
    """Names of the arguments whose index has the row labels of X (both of pandas) in another order than X."""
    index = get_index(X)
    if index is None:
        return []
    indexes = {name: get_index(values) for name, values in beside.items()}
    return [
        name
        for name, second_index in indexes.items()
        if second_index is not None
        and len(second_index) == len(index)
        and not index.equals(second_index)
        and Counter(index.tolist()) == Counter(second_index.tolist())
    ]


def get_index(values: object) -> Any:
    """The index of a Series or a DataFrame of pandas, else None."""
    index = getattr(values, "index", None)
    return index if hasattr(values, "loc") and hasattr(index, "equals") else None


def with_masks(values: Any) -> Any:
    """Return a list with masked rows or values as a masked array; np.asarray would drop the masks."""
    if isinstance(values, (list, tuple)) and any(isinstance(value, np.ma.MaskedArray) for value in values):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a masked value that is also written as nan
            return np.ma.array(values)
    return values


def refuse_masked(values: Any, name: str, needed: str, columns: Sequence[str] | None = None) -> None:
    """DataError for a masked value, with its row and its column."""
    if not isinstance(values, np.ma.MaskedArray):
        return
    mask = np.ma.getmaskarray(values)
    if mask.any():
        place = np.argwhere(mask)[0]
        column = ""
        if mask.ndim == 2:
            named = columns is not None and len(columns) == mask.shape[1]
            column = f", column '{columns[place[1]]}'" if named and columns else f", column {place[1] + 1}"
        raise DataError(f"{name} row {place[0] + 1}{column}: found a masked value, needed {needed}")


def refuse_columns_without_numbers(frame: Frame, name: str) -> None:
    """DataError for a column of dates, durations or categories, whose numbers inside are not what it means. A pandas
    column of categories that are numbers is taken as these.
    """
    dtypes = getattr(frame, "dtypes", None)
    if dtypes is None:
        return
    for column, dtype in zip(frame.columns, dtypes, strict=True):
        kind = str(dtype)
        if not kind.lower().startswith(TYPES_WITHOUT_NUMBERS):
            continue
        categories = getattr(getattr(dtype, "categories", None), "dtype", None)
        if getattr(categories, "kind", "O") in "iufb":
            _refuse_missing_categories(frame, column, name)
            continue
        hint = (
            "a column of 0 and 1 for each class, as OneHotEncoder makes them"
            if kind.lower().startswith(("categor", "enum"))
            else "numbers, of dates for instance the days since one of them"
        )
        raise DataError(f"{name}: column '{column}' is of type {kind.partition('(')[0]}, needed {hint}")


def _refuse_missing_categories(frame: Any, column: Any, name: str) -> None:
    """DataError for a missing value in a column of categories that are numbers: pandas casts it to any whole number."""
    missing = np.asarray(frame[column].isna())
    if missing.any():
        raise DataError(f"{name} row {missing.argmax() + 1}, column '{column}': found a missing value, needed a number")


def _texts(values: Any, array: np.ndarray) -> np.ndarray:
    """The texts of a list; with the values that are none as they are, where one of them is missing (nan is a text for
    NumPy)."""
    values = list(values)
    if not any(is_missing(value) for value in values):
        return array
    objects = np.empty(len(values), object)
    objects[:] = values
    return objects


def _numbers_of_objects(array: np.ndarray) -> np.ndarray:
    """An array of Python's numbers or truth values, as some pandas columns give it, in a type of NumPy."""
    kinds = set(map(type, array.ravel().tolist()))
    are_truth_values = bool(kinds) and kinds <= {bool, np.bool_}
    are_numbers = bool(kinds) and all(issubclass(k, NUMBERS) and k is not bool for k in kinds)
    if not (are_truth_values or are_numbers):
        return array
    try:
        plain = np.array(array.tolist())
    except OverflowError:
        return array
    return plain if plain.dtype.kind in "biuf" else array  # whole numbers beyond 64 bits stay as they are


def is_missing(value: object) -> bool:
    """Check for None, NaN, NaT, pandas' NA, a masked value: not equal to itself, or unable to compare."""
    if value is None or value is np.ma.masked:
        return True
    try:
        return bool(value != value)
    except (TypeError, ArithmeticError):
        return True
    except ValueError:  # an array in place of a value
        return False


def missing_rows(values: np.ndarray) -> np.ndarray:
    """(n,) bool of values (n,) of any type; infinite numbers are not missing."""
    if values.dtype.kind == "O":
        return np.array([is_missing(value) for value in values.tolist()], bool)
    if values.dtype.kind in "Mm":
        return np.isnat(values)
    return np.isnan(values) if values.dtype.kind in "fc" else np.zeros(len(values), bool)


def read_real(values: np.ndarray, name: str, needed: str = "a number") -> np.ndarray:
    """float64 of values (n,) or (n, K); NaN stays. DataError names the row of a value that is no number."""
    if values.dtype.kind == "c":
        raise DataError(f"{name}: found values of type {values.dtype}, needed numbers. Complex data not supported")
    if values.dtype.kind not in "fiubO":
        raise DataError(f"{name}: found values of type {values.dtype}, needed numbers")
    numbers, place = to_floats(values)
    if place is not None:
        where = f"{name} row {place[0] + 1}" if place else name
        raise DataError(f"{where}: found {shown(values[place])}, needed {needed}")
    return numbers


def to_floats(values: np.ndarray) -> tuple[np.ndarray, tuple[int, ...] | None]:
    """(float64 of numbers or objects of any shape, None), or the values as they are and the place of the first that is
    no number."""
    try:
        if values.dtype.kind != "O" or not any(isinstance(v, (np.datetime64, np.timedelta64)) for v in values.flat):
            return values.astype(np.float64), None
    except (TypeError, ValueError, OverflowError):
        pass
    return values, next(place for place in np.ndindex(values.shape) if not is_number(values[place]))


def is_number(value: object) -> bool:
    """Check whether a value can be a float64.

    A list of one number would make an array, and a date a count of nanoseconds.
    """
    if isinstance(value, (np.datetime64, np.timedelta64)):
        return False
    try:
        return np.ndim(np.float64(value)) == 0  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return False


def shown(value: object) -> str:
    """`value` in a message: texts in quotes, missing values by what they are called."""
    return repr(value) if isinstance(value, str) or not is_missing(value) else str(value)


def python_labels(labels: np.ndarray) -> list[Any]:
    """Labels as Python's values; dates that are too fine for those stay NumPy's, never their count of nanoseconds."""
    values = labels.tolist()
    if labels.dtype.kind in "Mm" and any(isinstance(value, int) for value in values):
        return list(labels)
    return values


def label_array(labels: Sequence[Any], dtype: np.dtype | None = None) -> np.ndarray:
    """(K,) the labels as one array; each of its own type where they have several.

    dtype: of the values they were made of, which dates keep.
    """
    if dtype is not None and dtype.kind in "Mm":
        return np.array(labels, dtype)
    if not any(isinstance(label, tuple) for label in labels):
        array = np.asarray(labels)
        of_one_type = all(type(a) is type(b) for a, b in zip(array.tolist(), labels, strict=True))
        if array.dtype.kind in "Mm" or of_one_type:
            return array
    array = np.empty(len(labels), object)
    array[:] = list(labels)
    return array


def comparable_labels(labels: np.ndarray) -> list[Any]:
    """Labels as values that are equal where they mean the same: a date is its first instant, whatever its container."""
    if labels.dtype.kind == "M" or (labels.dtype.kind == "m" and np.datetime_data(labels.dtype)[0] not in "YM"):
        plain = labels.astype(f"{labels.dtype.kind}8[us]")
        return [
            v if is_exact else raw for v, is_exact, raw in zip(plain.tolist(), plain == labels, labels, strict=True)
        ]
    return [_instant(label) for label in labels.tolist()]


def _instant(label: Any) -> Any:
    if isinstance(label, datetime.date) and not isinstance(label, datetime.datetime):
        return datetime.datetime(label.year, label.month, label.day)
    return label
