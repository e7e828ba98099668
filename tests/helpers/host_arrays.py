"""CuPy without a GPU: NumPy behind the few names that programs here use, as strict as CuPy is.

Arrays of the device and of the host do not mix; functions of NumPy do not take arrays of the device; sparse matrices
multiply matrices whose columns lie together, and give such. The host waits where a value of the device decides.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve_triangular


class DeviceArray(np.ndarray):
    """An array on the device."""

    waits = 0  # of the host, for all arrays

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **options):
        plain = [_plain(value) for value in inputs]
        if out is not None:
            options["out"] = tuple(_plain(value) for value in out)
        return _on_device(getattr(ufunc, method)(*plain, **options))

    def __array_function__(self, function, types, arguments, options):
        raise TypeError(f"numpy.{function.__name__} of an array on the device")

    def __getitem__(self, key):
        _check_key(key)
        return _on_device(self.view(np.ndarray)[_plain_key(key)])

    def __setitem__(self, key, value):
        _check_key(key)
        self.view(np.ndarray)[_plain_key(key)] = _plain(value)

    def __bool__(self):
        DeviceArray.waits += 1
        return bool(self.view(np.ndarray))

    def __int__(self):
        DeviceArray.waits += 1
        return int(self.view(np.ndarray))


def _plain(value):
    assert isinstance(value, DeviceArray) or np.isscalar(value), f"{type(value)} on the host beside the device"
    return value.view(np.ndarray) if isinstance(value, DeviceArray) else value


def _on_device(value):
    return np.asarray(value).view(DeviceArray)


def _check_key(key):
    parts = key if isinstance(key, tuple) else (key,)
    assert not any(type(part) is np.ndarray for part in parts), "an index on the host"


def _plain_key(key):
    plain = lambda part: part.view(np.ndarray) if isinstance(part, DeviceArray) else part
    return tuple(map(plain, key)) if isinstance(key, tuple) else plain(key)


def _of_device(function):
    def call(*arguments, **options):
        flat = [a for argument in arguments for a in (argument if isinstance(argument, list) else [argument])]
        for value in flat:
            assert isinstance(value, DeviceArray) or np.isscalar(value) or isinstance(value, tuple), type(value)
        plain = [[_plain(a) for a in x] if isinstance(x, list) else _any(x) for x in arguments]
        return _on_device(function(*plain, **options))

    return call


def _any(value):
    return value.view(np.ndarray) if isinstance(value, DeviceArray) else value


class HostCupy:
    """Names of CuPy that are used, and no others."""

    float64, float32, int64, int32, int8 = np.float64, np.float32, np.int64, np.int32, np.int8
    concatenate, where, matmul, ascontiguousarray = map(
        _of_device, (np.concatenate, np.where, np.matmul, np.ascontiguousarray)
    )

    @staticmethod
    def asarray(values, dtype=None):
        assert not isinstance(values, DeviceArray) or dtype is None
        return _on_device(np.array(_any(values), dtype))

    @staticmethod
    def eye(n):
        return _on_device(np.eye(n))

    @staticmethod
    def zeros(shape, dtype=np.float64):
        return _on_device(np.zeros(shape, dtype))


class HostSparse:
    """cupyx.scipy.sparse.csr_matrix with `dot`."""

    def __init__(self, matrix):
        assert matrix.has_canonical_format and matrix.indices.dtype.kind == "i"
        self.matrix, self.nnz, self.shape = matrix, matrix.nnz, matrix.shape

    def dot(self, x):
        assert isinstance(x, DeviceArray) and x.ndim == 2 and self.nnz, "cuSPARSE has no product with an empty matrix"
        assert x.flags.f_contiguous, "a copy of every vector would be made"
        return np.asfortranarray(self.matrix @ x.view(np.ndarray)).view(DeviceArray)


class ArraysDevice:
    """`mmgibbs.machine.device.Device` for programs of arrays."""

    name, nominal_bandwidth, cupy = "this host", 1e12, HostCupy

    def __init__(self, free=1 << 40):
        self.free = free

    def free_bytes(self):
        return self.free

    def cholesky(self, A):
        return _on_device(np.linalg.cholesky(_plain(A)))

    def solve_triangular(self, L, b, transposed):
        return _on_device(solve_triangular(_plain(L), _plain(b), trans=int(transposed), lower=True))

    def csr(self, matrix):
        return HostSparse(matrix)

    def fetch(self, array):
        DeviceArray.waits += 1
        assert isinstance(array, DeviceArray)
        return array.view(np.ndarray).copy()
