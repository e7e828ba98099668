"""Tables that are passed from Python, of Polars, pandas, or anything that speaks the Arrow PyCapsule interface.

Ordered categories become an Enum, which keeps their order.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import polars as pl


def is_pandas(value: object) -> bool:
    return type(value).__module__.partition(".")[0] == "pandas" and hasattr(value, "columns")


def is_series_of_pandas(value: Any) -> bool:
    """A single column, which would need pyarrow and is no table."""
    return type(value).__module__.partition(".")[0] == "pandas" and hasattr(value, "to_frame")


def as_polars(value: Any) -> pl.DataFrame | None:
    """The table as a Polars frame; None for what is no table. ValueError says what of it cannot be read."""
    import polars as pl

    if isinstance(value, pl.DataFrame):
        return value
    if is_pandas(value):
        return _convert_pandas(value)
    if is_series_of_pandas(value):
        name = f" ({value.name!r})" if getattr(value, "name", None) is not None else ""
        raise ValueError(f"{'an' if type(value).__name__ == 'Index' else 'a'} {type(value).__name__} of pandas{name}")
    if not hasattr(value, "__arrow_c_stream__"):
        return None
    try:
        frame = keep_orders(pl.DataFrame(value), value)
    except Exception as error:  # noqa: BLE001  a foreign library may raise anything
        raise ValueError(f"a table of {type(value).__module__} that cannot be read ({error})") from None
    if frame.columns == [""]:
        raise ValueError("a single column without a name")
    return frame


def _convert_pandas(table: Any) -> pl.DataFrame:
    """Column by column, which needs no pyarrow; an index with a name is a column, unless it repeats one."""
    import polars as pl

    _names(table)
    levels = table.index.set_names([None] * table.index.nlevels)  # by number: a name may be a number, too
    names, columns = list(table.index.names), set(table.columns)
    repeated = [i for i, name in enumerate(names) if name is not None and name in columns]
    for i in repeated:
        if not levels.get_level_values(i).equals(table.set_index([names[i]]).index):
            raise ValueError(f"a table with the index '{names[i]}' and another column '{names[i]}'")
    if len(repeated) == len(names):
        table = table.reset_index(drop=True)
    elif repeated:
        unique = [name for i, name in enumerate(names) if i not in repeated]
        table = table.set_axis(levels.droplevel(repeated).set_names(unique))
    if any(name is not None for name in table.index.names):
        table = table.reset_index()
    return pl.DataFrame([_column(name, table.iloc[:, j]) for j, name in enumerate(_names(table))])


def keep_orders(frame: pl.DataFrame, table: Any) -> pl.DataFrame:
    """The frame with the order of ordered dictionaries of a pyarrow table, which Polars does not read."""
    import polars as pl

    for field in getattr(table, "schema", ()):
        if getattr(getattr(field, "type", None), "ordered", False) and frame[field.name].dtype == pl.Categorical:
            column = table.column(field.name)
            chunks = getattr(column, "chunks", [column])
            words = dict.fromkeys(word for chunk in chunks for word in chunk.dictionary.to_pylist())
            frame = frame.with_columns(pl.col(field.name).cast(pl.String).cast(pl.Enum(list(words))))
    return frame


def _names(table: Any) -> list[str]:
    """List the names of the columns. ValueError for two that are one."""
    names = [str(name) for name in table.columns]
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise ValueError(f"a table with the column '{twice[0]}' twice")
    return names


def _column(name: str, column: Any) -> pl.Series:
    """Missing values are null. Whole numbers that became float because one of them is missing, as pandas does it, are
    whole again: ids would be other texts. Integers stay integers, of any number of digits.
    """
    import polars as pl

    if hasattr(column.dtype, "fill_value"):  # a sparse column, whose type has none of the properties asked for below
        column = column.sparse.to_dense()
    missing = column.isna().to_numpy(bool)
    kind = getattr(column.dtype, "kind", "O")
    if kind in "iu":
        # in pandas' own types for integers with gaps `to_numpy()` gives floats
        values = column.to_numpy(dtype="uint64" if kind == "u" else "int64", **_na_value(missing, 0))
        return pl.Series(name, values).set(pl.Series(missing), None)
    if kind == "f":
        values = column.to_numpy(dtype="float64", **_na_value(missing, np.nan))
        known = values[~missing]
        if column.dtype.itemsize < 8:  # the limits of exact whole numbers are those of the type
            return pl.Series(name, values.astype(f"float{8 * column.dtype.itemsize}")).fill_nan(None)
        if missing.any() and (np.abs(known) < 2**53).all() and (known == np.floor(known)).all():
            return pl.Series(name, np.where(missing, 0, values).astype(np.int64)).set(pl.Series(missing), None)
        return pl.Series(name, values).fill_nan(None)
    if kind == "b" and not missing.any():
        return pl.Series(name, column.to_numpy(dtype=bool))
    cells = [None if lost else v for v, lost in zip(column.tolist(), missing.tolist(), strict=True)]
    kinds = {type(v) for v in cells if v is not None}
    if getattr(column.dtype, "ordered", False) and all(isinstance(word, str) for word in column.dtype.categories):
        return pl.Series(name, cells, dtype=pl.Enum(list(column.dtype.categories)))
    return pl.Series(name, cells if len(kinds) <= 1 else [None if v is None else _as_written(v) for v in cells])


def _na_value(missing: np.ndarray, value: float) -> dict[str, float]:
    return {"na_value": value} if missing.any() else {}


def _as_written(value: Any) -> str:
    """Text of a value of a column of mixed types: 5.0 is 5, as among integers."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return str(value)
