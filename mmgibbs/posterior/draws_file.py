"""draws.nc, a NetCDF4 file of groups as xarray and ArviZ write and open it, written without xarray: that alone, with
the pandas and Dask that it looks for, takes longer to import than a small run takes to sample.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, NamedTuple

import numpy as np


class Variable(NamedTuple):
    dims: tuple[str, ...]
    values: np.ndarray
    attributes: Mapping[str, str] = {}


class Group(NamedTuple):
    """Variables by name, and the labels of every dimension that they have."""

    variables: Mapping[str, Variable]
    labels: Mapping[str, Sequence[str] | np.ndarray]


def write_groups(path: str | PathLike, groups: Mapping[str, Group], attributes: Mapping[str, Any]) -> None:
    """Write groups to NetCDF as `xarray.DataTree.to_netcdf` does.

    Labels are variables, NaN fills numbers with fractions, truth values are bytes with the attribute `dtype` "bool", by
    which xarray reads them as truth values.

    attributes: text and numbers, of the whole file. Raises OSError where it cannot be written, ValueError where a
    variable does not have the size of its dimensions.
    """
    import h5netcdf

    with h5netcdf.File(path, "w") as file:
        file.attrs.update(attributes)
        for name, (variables, labels) in groups.items():
            group = file.create_group(name)
            for dimension, coordinate in labels.items():
                group.dimensions[dimension] = len(coordinate)
            for dimension, coordinate in labels.items():
                _write(group, dimension, Variable((dimension,), np.asarray(coordinate)))
            for variable in variables:
                _write(group, variable, variables[variable])


def _write(group: Any, name: str, variable: Variable) -> None:
    import h5py

    values, attributes = variable.values, dict(variable.attributes)
    sizes = tuple(group.dimensions[d].size for d in variable.dims)
    if values.shape != sizes:
        raise ValueError(f"{name} has shape {values.shape}, its dimensions {sizes}")
    if values.dtype.kind == "b":
        values, attributes = values.astype(np.int8), attributes | {"dtype": "bool"}
    text, fraction = values.dtype.kind in "UO", values.dtype.kind == "f"
    kind, fill = h5py.string_dtype() if text else values.dtype, values.dtype.type(np.nan) if fraction else None
    written = group.create_variable(name, variable.dims, kind, fillvalue=fill)
    written.attrs.update(attributes)
    if values.size:
        written[...] = values.astype(object) if text else values
