"""Arrays on the host or on a GPU, and the draws that fill them: what a sampler needs of a device, in one object.

Samplers are written once, over `arrays.xp` (numpy or cupy) and these methods. Every draw function returns an array with
the chains first; element [c, i] is the draw of level i (an observation, a coefficient, a group) of chain c, so its
counter words are (sweep, i, stream, draw) and its key (seed, chain).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from mmgibbs.machine.threads import blas_threads, cores, run_at_once
from mmgibbs.regressions.arrays import draws as host
from mmgibbs.regressions.arrays.cholesky import cholesky_in_place
from mmgibbs.regressions.arrays.log_normal_cdf import log_ndtr_in_place
from mmgibbs.regressions.arrays.triangular import solve_lower_systems
from mmgibbs.regressions.keys import Array, Keys

if TYPE_CHECKING:
    from mmgibbs.machine.device import Device

CHUNK = 8192  # levels that a thread draws at a time
MIN_THREADED_SIZE = 256  # matrices from this size on are factored over the threads


class Arrays(Protocol):
    """Host and GPU offer the same. Shapes: C chains, n levels, k draws of a level."""

    @property
    def xp(self) -> ModuleType: ...  # numpy or cupy
    @property
    def device(self) -> str: ...  # cpu or gpu
    @property
    def cuda(self) -> Device | None: ...  # for samplers with kernels of their own; None on the host
    @property
    def threads(self) -> int | None: ...  # None on a GPU

    def asarray(self, values: Any, dtype: npt.DTypeLike | None = None) -> Array: ...
    def fetch(self, array: Array) -> np.ndarray: ...
    def fetch_all(self, arrays: Mapping[str, Array]) -> dict[str, np.ndarray]: ...
    def wait(self) -> None: ...
    def at_once(self, calls: Iterable[Callable[[], None]]) -> None: ...
    def cholesky(self, A: Array, overwrite: bool = False) -> Array: ...
    def solve_lower(self, L: Array, b: Array, transposed: bool = False) -> Array: ...
    def log_ndtr(self, x: Array) -> Array: ...
    def uniforms(self, keys: Keys, sweep: int, stream: int, n: int, k: int = 1) -> Array: ...
    def normals(self, keys: Keys, sweep: int, stream: int, n: int, k: int = 1) -> Array: ...
    def exponentials(self, keys: Keys, sweep: int, stream: int, n: int) -> Array: ...
    def gammas(self, keys: Keys, sweep: int, stream: int, shape: Array) -> Array: ...
    def inverse_gaussians(self, keys: Keys, sweep: int, stream: int, mean: Array, shape: Array) -> Array: ...
    def truncated_normals(self, keys: Keys, sweep: int, stream: int, mean: Array, positive: Array) -> Array: ...
    def polya_gammas(self, keys: Keys, sweep: int, stream: int, h: Array, z: Array) -> Array: ...


class Host:
    """NumPy, SciPy and the compiled draws, on `threads` threads."""

    xp: ModuleType = np
    device = "cpu"
    cuda = None

    def __init__(self, threads: int | None = None):
        self.threads = threads or cores()
        self._pool = ThreadPoolExecutor(self.threads) if self.threads > 1 else None

    def asarray(self, values: Any, dtype: npt.DTypeLike | None = None) -> np.ndarray:
        return np.asarray(values, dtype)

    def fetch(self, array: Array) -> np.ndarray:
        return np.asarray(array)

    def fetch_all(self, arrays: Mapping[str, Array]) -> dict[str, np.ndarray]:
        """Several arrays by name."""
        return {name: self.fetch(array) for name, array in arrays.items()}

    def wait(self) -> None:
        """Work that was queued is done: here it always is."""

    def cholesky(self, A: Array, overwrite: bool = False) -> np.ndarray:
        """Lower factors L L' = A of (..., m, m), A lost where `overwrite`.

        numpy.linalg.LinAlgError where one is not positive definite.
        """
        if A.shape[-1] < MIN_THREADED_SIZE:
            return np.linalg.cholesky(A)
        L = np.array(A, np.float64, order="C", copy=None if overwrite else True)
        matrices = L.reshape(-1, *L.shape[-2:])
        with blas_threads(1):
            if len(matrices) < self.threads:
                for matrix in matrices:
                    cholesky_in_place(matrix, self.at_once, self.threads)
            else:
                self.at_once([partial(cholesky_in_place, matrix, run_serially) for matrix in matrices])
        return L

    def solve_lower(self, L: Array, b: Array, transposed: bool = False) -> np.ndarray:
        """L^-1 b, or L'^-1 b, of (..., m, m) and (..., m)."""
        m, x = L.shape[-1], np.array(np.broadcast_to(b, L.shape[:-1]), np.float64, order="C")
        solve_lower_systems(np.ascontiguousarray(L, np.float64).reshape(-1, m, m), x.reshape(-1, m), transposed)
        return x

    def log_ndtr(self, x: Array) -> np.ndarray:
        """log Phi(x), the standard normal distribution function."""
        out = np.array(x, np.float64)
        log_ndtr_in_place(out.reshape(-1))
        return out

    def at_once(self, calls: Iterable[Callable[[], None]]) -> None:
        """Run the calls over the threads and wait for them; a call may not come back here."""
        run_at_once(self._pool, self.threads, calls)

    def uniforms(self, keys: Keys, sweep: int, stream: int, n: int, k: int = 1) -> Array:
        """(C, n, k), or (C, n) for k = 1, strictly inside (0, 1)."""
        return self._draw(host.uniforms, keys, sweep, stream, (n, k))

    def normals(self, keys: Keys, sweep: int, stream: int, n: int, k: int = 1) -> Array:
        """(C, n, k), or (C, n) for k = 1: standard normals; k at most 512."""
        return self._draw(host.normals, keys, sweep, stream, (n, k))

    def exponentials(self, keys: Keys, sweep: int, stream: int, n: int) -> Array:
        """(C, n): rate 1."""
        return self._draw(host.exponentials, keys, sweep, stream, (n,))

    def gammas(self, keys: Keys, sweep: int, stream: int, shape: Array) -> Array:
        """(C, n) of shapes (C, n): rate 1."""
        return self._draw(host.gammas, keys, sweep, stream, shape.shape[1:], shape)

    def inverse_gaussians(self, keys: Keys, sweep: int, stream: int, mean: Array, shape: Array) -> Array:
        """(C, n) of means and shapes (C, n)."""
        return self._draw(
            host.inverse_gaussians, keys, sweep, stream, mean.shape[1:], mean, np.broadcast_to(shape, mean.shape)
        )

    def truncated_normals(self, keys: Keys, sweep: int, stream: int, mean: Array, positive: Array) -> Array:
        """(C, n): N(mean, 1) above 0 where positive (n,), below 0 elsewhere."""
        return self._draw(
            host.truncated_normals, keys, sweep, stream, mean.shape[1:], mean, np.broadcast_to(positive, mean.shape)
        )

    def polya_gammas(self, keys: Keys, sweep: int, stream: int, h: Array, z: Array) -> Array:
        """(C, n): PG(h, z), h (n,) or (C, n) whole numbers."""
        return self._draw(host.polya_gammas, keys, sweep, stream, z.shape[1:], np.broadcast_to(h, z.shape), z)

    def _draw(
        self,
        kernel: Callable[..., None],
        keys: Keys,
        sweep: int,
        stream: int,
        shape: tuple[int, ...],
        *parameters: np.ndarray,
    ) -> np.ndarray:
        """Fill a (C, *shape) array, CHUNK levels at a time over the threads."""
        out = np.empty((len(keys), *shape))
        parts = [(c, first) for c in range(len(keys)) for first in range(0, shape[0], CHUNK)]

        def fill(bounds: tuple[int, int]) -> None:
            c, first = bounds
            rows = slice(first, first + CHUNK)
            kernel(out[c, rows], *(p[c, rows] for p in parameters), sweep, first, stream, keys.seed, keys.chains[c])

        list(map(fill, parts) if self._pool is None or len(parts) == 1 else self._pool.map(fill, parts))
        return out[..., 0] if out.ndim == 3 and shape[1] == 1 else out


def added(parts: Iterable[Array]) -> Array:
    """Add the parts, one after the other."""
    parts = iter(parts)
    total: Array = 0 + next(parts)
    for term in parts:
        total = total + term
    return total


def run_serially(calls: Iterable[Callable[[], None]]) -> None:
    """Run the calls one after another."""
    for call in calls:
        call()
