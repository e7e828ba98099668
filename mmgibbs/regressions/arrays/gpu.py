"""CuPy arrays and the draws' CUDA kernels: what arrays.Host is, on a GPU.

The draws are those of the host, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from mmgibbs.draws.source import NAMES, cuda_source
from mmgibbs.machine.device import Device
from mmgibbs.regressions.keys import Array, Keys

KERNELS = Path(__file__).resolve().parent / "kernels" / "array_draws.cu"


def source() -> str:
    """The text of array_draws.cu with the draws it calls."""
    return cuda_source(*NAMES) + KERNELS.read_text(encoding="utf-8")


class Gpu:
    """Arrays on the current CUDA device. DeviceError says what is missing where there is none."""

    device = "gpu"
    threads: int | None = None

    def __init__(self, device: Device | None = None):
        self._device = device or Device()
        self.xp: ModuleType = self._device.cupy
        self._kernels = self._device.kernels(source())
        self._chains: dict[tuple[int, ...], Array] = {}  # the chains' numbers, on the device once

    @property
    def cuda(self) -> Device:
        """The device, for samplers with kernels of their own."""
        return self._device

    def asarray(self, values: Any, dtype: npt.DTypeLike | None = None) -> Array:
        return self.xp.asarray(values, dtype)

    def fetch(self, array: Array) -> np.ndarray:
        return self._device.fetch(array)

    def fetch_all(self, arrays: Mapping[str, Array]) -> dict[str, np.ndarray]:
        """Several arrays by name, those of a type as one: each fetch waits for the device."""
        out: dict[str, np.ndarray] = {}
        for dtype in {array.dtype for array in arrays.values()}:
            alike = {name: array for name, array in arrays.items() if array.dtype == dtype}
            values = self.fetch(self.xp.concatenate([array.reshape(-1) for array in alike.values()]))
            ends = np.cumsum([array.size for array in alike.values()])
            pieces = zip(alike.items(), np.split(values, ends[:-1]), strict=True)
            out |= {name: piece.reshape(array.shape) for (name, array), piece in pieces}
        return {name: out[name] for name in arrays}

    def wait(self) -> None:
        """Wait until the queued work is done."""
        self._device.current_stream().synchronize()

    def at_once(self, calls: Iterable[Callable[[], None]]) -> None:
        """Run the calls one after another: what they queue runs on the device."""
        for call in calls:
            call()

    def cholesky(self, A: Array, overwrite: bool = False) -> Array:
        """Lower factors L L' = A of (..., m, m); numpy.linalg.LinAlgError where one is not positive definite.

        CuPy takes a stack of matrices, even of one, to potrfBatched, which is made for many small ones.
        """
        return self._device.cholesky(_squeeze_single(A, 2)).reshape(A.shape)

    def solve_lower(self, L: Array, b: Array, transposed: bool = False) -> Array:
        """L^-1 b, or L'^-1 b, of (..., m, m) and (..., m)."""
        x = self.xp.broadcast_to(b, L.shape[:-1])
        return self._device.solve_triangular(_squeeze_single(L, 2), _squeeze_single(x, 1), transposed).reshape(x.shape)

    def log_ndtr(self, x: Array) -> Array:
        """log Phi(x)."""
        return self._device.log_ndtr(x)

    def uniforms(self, keys: Keys, sweep: int, stream: int, n: int, k: int = 1) -> Array:
        return self._draw("uniforms", keys, sweep, stream, (n, k), k)

    def normals(self, keys: Keys, sweep: int, stream: int, n: int, k: int = 1) -> Array:
        return self._draw("normals", keys, sweep, stream, (n, k), k)

    def exponentials(self, keys: Keys, sweep: int, stream: int, n: int) -> Array:
        return self._draw("exponentials", keys, sweep, stream, (n,))

    def gammas(self, keys: Keys, sweep: int, stream: int, shape: Array) -> Array:
        return self._draw("gammas", keys, sweep, stream, shape.shape[1:], self._values(shape, shape.shape))

    def inverse_gaussians(self, keys: Keys, sweep: int, stream: int, mean: Array, shape: Array) -> Array:
        parameters = self._values(mean, mean.shape), self._values(shape, mean.shape)
        return self._draw("inverse_gaussians", keys, sweep, stream, mean.shape[1:], *parameters)

    def truncated_normals(self, keys: Keys, sweep: int, stream: int, mean: Array, positive: Array) -> Array:
        sides = self._values(positive, mean.shape[1:], np.uint8)
        return self._draw(
            "truncated_normals", keys, sweep, stream, mean.shape[1:], self._values(mean, mean.shape), sides
        )

    def polya_gammas(self, keys: Keys, sweep: int, stream: int, h: Array, z: Array) -> Array:
        parameters = self._values(h, z.shape, np.int64), self._values(z, z.shape)
        return self._draw("polya_gammas", keys, sweep, stream, z.shape[1:], *parameters)

    def _values(self, values: Any, shape: tuple[int, ...], dtype: npt.DTypeLike = np.float64) -> Array:
        return self.xp.ascontiguousarray(self.xp.broadcast_to(self.xp.asarray(values, dtype), shape))

    def _draw(
        self, kernel: str, keys: Keys, sweep: int, stream: int, shape: tuple[int, ...], *parameters: Any
    ) -> Array:
        """(C, *shape) by one thread for each chain and level; arguments in the order of the kernels."""
        if keys.chains not in self._chains:
            self._chains[keys.chains] = self.xp.asarray(np.array(keys.chains, np.uint32))
        out = self.xp.empty((len(keys), *shape))
        arguments = shape[0], *parameters, sweep, stream, keys.seed, self._chains[keys.chains], out
        self._kernels.launch(kernel, len(keys) * shape[0], *arguments, stream=self._device.current_stream())
        return out[..., 0] if out.ndim == 3 and shape[1] == 1 else out


def _squeeze_single(A: Array, dimensions: int) -> Array:
    """A, or without its leading dimensions where they hold a single matrix (2) or vector (1)."""
    single = A.shape[len(A.shape) - dimensions :]
    return A.reshape(single) if A.size == np.prod(single) else A
