"""Conjugate gradients on a device: C and the preconditioner of blocks applied there, to many vectors side by side.

Vectors are (m, N) on the device, in the order of the sweep but for levels: those of a component stand together, so that
every product below reads columns as they lie. With W (n T, N) and K^-1 as sparse matrices (cuSPARSE),

    C x = W' (w R_P^-1 (W x)) + K^-1 Theta G^-1        M x = blocks of C, inverted, times x

The blocks are made on the host (solver.py). The host waits once for ITERATIONS_AT_ONCE iterations. The library's calls
are those that CuPy shares with NumPy and SciPy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mmgibbs.engines.pcg.solver import Columns, PcgSolver, Solution, refuse_residual, refuse_unsolved
from mmgibbs.equations.core import CoreLevels
from mmgibbs.equations.dense import DenseLevels
from mmgibbs.equations.structured import StructuredEquations, TermLists
from mmgibbs.errors import DeviceError
from mmgibbs.machine.device import Device, refuse_beyond_device
from mmgibbs.machine.threads import ALONE, Threads

ITERATIONS_AT_ONCE = 16  # between two looks at what is left
MAX_COLUMNS = 64  # right-hand sides side by side
VECTORS = 8  # of theta that a right-hand side takes
RECORD_VECTORS = 3  # of the records
BYTES_OF_ELEMENT = 12  # of a sparse matrix: its value and its column
MAX_ELEMENTS = 2**31 - 1  # of a sparse matrix, whose positions have 31 bits
Array = Any  # of the device


def make_solver(
    equations: StructuredEquations, threads: Threads = ALONE, preconditioner: str = "auto", device: str = "cpu"
) -> PcgSolver:
    """Make the solver of 'cpu' or 'gpu'."""
    if device == "gpu":
        return DevicePcgSolver(equations, threads, Device())
    return PcgSolver(equations, threads, preconditioner)


def count_bytes(equations: StructuredEquations) -> tuple[int, int]:
    """Device memory of the equations, and of each right-hand side."""
    design, (n, T) = equations.design, equations.records.y.shape
    total = 8 * T * T * n
    for i, (term, lists) in enumerate(zip(design.terms, equations.terms, strict=True)):
        q, k, dense = term.n_levels, term.n_components, equations.dense[i]
        total += 2 * BYTES_OF_ELEMENT * count_elements(lists) + 8 * q * k * k + 4 * q
        total += BYTES_OF_ELEMENT * term.relationship.lists_csr()[1].size
        total += 0 if dense is None else sum(a.nbytes for a in dense if isinstance(a, np.ndarray))
    return total + 4 * n * T, 8 * (VECTORS * design.n_effects + RECORD_VECTORS * n * T)


def bytes_per_iteration(equations: StructuredEquations, columns: int = 1) -> int:
    """Bytes that an iteration of so many right-hand sides must move.

    The matrices count once: W and its transpose, K^-1 of random terms, weights of the records and the preconditioner's
    blocks. So do the vectors that an iteration reads or writes: of the equations x, the residual and the direction,
    which change, C times the direction and the preconditioned residual; of the records W times the direction, which
    is weighted.
    """
    design, (n, T) = equations.design, equations.records.y.shape
    total = 8 * T * T * n
    for i, (term, lists) in enumerate(zip(design.terms, equations.terms, strict=True)):
        q, k, dense = term.n_levels, term.n_components, equations.dense[i]
        total += 2 * BYTES_OF_ELEMENT * count_elements(lists) + 8 * q * k * k
        if term.kind == "random":
            total += BYTES_OF_ELEMENT * term.relationship.lists_csr()[1].size
            total += 0 if dense is None else sum(a.nbytes for a in dense if isinstance(a, np.ndarray))
    of_vectors = 8 * (3 * 2 + 2) * design.n_effects + 8 * 2 * n * T
    return total + columns * of_vectors


def count_elements(lists: TermLists) -> int:
    """Elements of W of a term."""
    per_effect = np.diff(lists.effect_first)
    if lists.visit_effect.size == 0:
        return int(lists.visit_record.size * per_effect[0])
    return int(np.bincount(lists.visit_effect, minlength=per_effect.size) @ per_effect)


class DevicePcgSolver(PcgSolver):
    """`PcgSolver` that iterates on a device; what it does not iterate on is the host's.

    DeviceError where the equations and one right-hand side do not fit there.
    """

    def __init__(self, equations: StructuredEquations, threads: Threads, device: Device):
        super().__init__(equations, threads, "blocks")
        of_equations, per_column = count_bytes(equations)
        free = device.free_bytes()
        what = f"{equations.n_equations:,} equations and a right-hand side"
        refuse_beyond_device(of_equations + per_column, free, what, "use device: cpu")
        self.columns_at_once = max(1, min(MAX_COLUMNS, (free - of_equations) // per_column))
        self.device, self.xp = device, device.cupy
        self.order = np.concatenate(
            [a + np.arange(q * k).reshape(q, k).T.ravel() for (q, k), a in zip(self.shapes, self.bounds, strict=False)]
        )  # (N,) place in the sweep of each equation of the device
        W = design_matrix(equations, self.bounds)
        self.W, self.W_transposed = self._sparse(W), self._sparse(W.T.tocsr())
        self.inverses = [self._sparse(self._list_inverse(i)) for i in range(len(self.shapes))]
        self.dense = [None if d is None else DeviceDense(d, self.xp) for d in equations.dense]
        held = np.flatnonzero(self.active[self.order] == 0)
        self.held_equations = self.xp.asarray(held) if held.size else None

    def _list_inverse(self, i: int) -> Any:
        """K^-1 of a term as its lists have it, levels in sweep order."""
        from scipy.sparse import csr_array

        code, q = self.equations.terms[i].code, self.shapes[i][0]
        indptr, indices, values = self.equations.design.terms[i].relationship.lists_csr()
        in_real = values.astype(self.equations.real).astype(float)
        return csr_array((in_real, indices, indptr), shape=(q, q))[code][:, code]

    def _sparse(self, matrix: Any) -> Any:
        if matrix.nnz > MAX_ELEMENTS:
            raise DeviceError(
                f"device: gpu: found {matrix.nnz:,} elements of a sparse matrix, needed at most {MAX_ELEMENTS:,}; use "
                "device: cpu"
            )
        matrix.sort_indices()
        return self.device.csr(matrix)

    def set_precisions(self, Ginv: list[np.ndarray], Rinv: np.ndarray) -> None:
        """Set the precisions: see PcgSolver.set_precisions."""
        super().set_precisions(Ginv, Rinv)
        records, xp = self.equations.records, self.xp
        by_pattern = xp.asarray(np.ascontiguousarray(np.moveaxis(Rinv, 0, -1)))
        self._weights = by_pattern[:, :, xp.asarray(records.pattern.astype(np.int64))]  # (T, T, n)
        if records.weight.size:
            self._weights = self._weights * xp.asarray(records.weight.astype(np.float64))
        self._inverse_blocks = [
            xp.asarray(np.ascontiguousarray(np.moveaxis(blocks, 0, -1))) for blocks in self.inverse_blocks
        ]
        self._precisions = [xp.asarray(g) if g.any() else None for g in Ginv]

    # Products, of (m, N) on the device

    def _split(self, x: Array) -> list[Array]:
        """Split x into (m, k, q) per term."""
        return [
            x[:, a:b].reshape(len(x), k, q)
            for a, b, (q, k) in zip(self.bounds[:-1], self.bounds[1:], self.shapes, strict=True)
        ]

    def _times(self, x: Array) -> Array:
        """C x, of an x that is 0 where components are held."""
        n, T = self.equations.records.y.shape
        fitted = times_blocks(self._weights, times_sparse(self.W, x).reshape(len(x), T, n))
        parts = self._split(times_sparse(self.W_transposed, fitted.reshape(len(x), -1)))
        for i, theta in enumerate(self._split(x)):
            if self._precisions[i] is not None:
                parts[i] = parts[i] + self.xp.matmul(self._precisions[i], self._times_inverse(i, theta))
        return self._hold_equations(self._join(parts))

    def _times_inverse(self, i: int, theta: Array) -> Array:
        """K^-1 Theta, (m, k, q)."""
        rows = self.xp.ascontiguousarray(theta.reshape(-1, theta.shape[-1]))
        dense = self.dense[i]
        out = times_sparse(self.inverses[i], rows) if self.inverses[i].nnz else self.xp.zeros(rows.shape)
        if dense is not None:
            out[:, dense.positions] += dense.times(rows[:, dense.positions])
        return out.reshape(theta.shape)

    def _precondition(self, x: Array) -> Array:
        pairs = zip(self._inverse_blocks, self._split(x), strict=True)
        return self._hold_equations(self._join([times_blocks(blocks, part) for blocks, part in pairs]))

    def _join(self, parts: list[Array]) -> Array:
        return self.xp.concatenate([part.reshape(len(part), -1) for part in parts], axis=1)

    def _hold_equations(self, x: Array) -> Array:
        if self.held_equations is not None:
            x[:, self.held_equations] = 0.0
        return x

    # Solutions

    def solve(
        self, tolerance: float, max_iterations: int | None = None, callback: Callable[[int], None] | None = None
    ) -> Solution:
        """See PcgSolver.solve: by the blocks of the levels."""
        b = self.weighted_sums(self.equations.records.y)[:, None]
        norm = float(np.linalg.norm(b))
        if norm == 0.0:
            return Solution(self.to_model_order(b[:, 0]), 0, 0.0)
        wanted, limit = np.array([(tolerance * norm) ** 2]), max_iterations or self.iteration_limit
        x, _, _, iterations = self._iterate(b, np.zeros(b.shape), wanted, limit, of_residual=True, callback=callback)
        reached = float(np.linalg.norm(b - self.times(x))) / norm
        refuse_residual(self.equations.design, int(iterations[0]), reached, tolerance)
        return Solution(self.to_model_order(x[:, 0]), int(iterations[0]), reached)

    def solve_columns(self, b: np.ndarray, start: np.ndarray, tolerance: float, relative: bool = False) -> Columns:
        """Solve for several columns: see PcgSolver.solve_columns."""
        n = max(1, self.equations.n_equations)
        size = self._sizes(b) if relative else np.full(b.shape[1], float(n))
        limit, at_once = self.iteration_limit, self.columns_at_once
        parts = [slice(first, first + at_once) for first in range(0, b.shape[1], at_once)]
        results = [self._iterate(b[:, p], start[:, p], tolerance**2 * size[p], limit) for p in parts]
        x, residual = (np.concatenate([result[i] for result in results], axis=1) for i in (0, 1))
        squares, iterations = (np.concatenate([result[i] for result in results]) for i in (2, 3))
        error = np.sqrt(squares / np.where(size > 0, size, 1.0))
        refuse_unsolved(self.equations.design, iterations, error, tolerance)
        norms = np.linalg.norm(b, axis=0)
        return Columns(x, iterations, error, np.linalg.norm(residual, axis=0) / np.where(norms > 0, norms, 1.0))

    def _sizes(self, b: np.ndarray) -> np.ndarray:
        """b' M b of each column."""
        return np.einsum("ij,ij->j", b, self.precondition(b))

    def _iterate(
        self,
        b: np.ndarray,
        start: np.ndarray,
        wanted: np.ndarray,
        limit: int,
        of_residual: bool = False,
        callback: Callable[[int], None] | None = None,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Iterate as `solver.conjugate_gradients`; of_residual: until r' r <= wanted in place of r' M r.

        callback: called with the number of iterations, each time that the host has waited.
        """
        xp = self.xp
        x, residual, aim = self._upload(start), self._upload(b), xp.asarray(wanted)
        if start.any():
            residual = residual - self._times(x)
        direction = self._precondition(residual)
        squares = (residual * direction).sum(axis=1)
        left = (residual * residual).sum(axis=1) if of_residual else squares
        iterations = xp.zeros(squares.shape, np.int64)
        for first in range(0, limit, ITERATIONS_AT_ONCE):
            if not bool((left > aim).any()):
                break
            for _ in range(min(ITERATIONS_AT_ONCE, limit - first)):
                moving = left > aim
                iterations += moving
                product = self._times(direction)
                curvature = xp.where(moving, (direction * product).sum(axis=1), 1.0)
                step = xp.where(moving, squares / curvature, 0.0)[:, None]
                x += step * direction
                residual -= step * product
                z = self._precondition(residual)
                now = (residual * z).sum(axis=1)
                turn = xp.where(moving, now / xp.where(moving, squares, 1.0), 0.0)[:, None]
                direction = z + turn * direction
                squares = xp.where(moving, now, squares)
                left = (residual * residual).sum(axis=1) if of_residual else squares
            if callback is not None:
                callback(int(iterations.max()))
        fetch = self.device.fetch
        return self._download(x), self._download(residual), fetch(squares), fetch(iterations)

    def _upload(self, x: np.ndarray) -> Array:
        """Upload (N, m) of the host, in sweep order, as (m, N) of the device."""
        return self._hold_equations(self.xp.asarray(np.ascontiguousarray(x[self.order].T)))

    def _download(self, x: Array) -> np.ndarray:
        out = np.empty((x.shape[1], x.shape[0]))
        out[self.order] = self.device.fetch(x).T
        return out


class DeviceDense:
    """The dense block of a term's K^-1 on the device: its values, or products with a core."""

    def __init__(self, dense: DenseLevels | CoreLevels, xp: Any):
        self.positions = xp.asarray(dense.positions)
        self.values = None if isinstance(dense, CoreLevels) else xp.asarray(dense.values.astype(np.float64))
        if isinstance(dense, CoreLevels):
            assert not dense.less, "models/gpu_rules.py refuses it"
            self.core, self.non_core = xp.asarray(dense.core), xp.asarray(dense.non_core)
            self.of_core, self.products = (xp.asarray(a.astype(np.float64)) for a in (dense.of_core, dense.products))
            self.variance, self.weight = xp.asarray(dense.conditional_variance), dense.weight

    def times(self, rows: Array) -> Array:
        """S x of the rows (m, levels) of x."""
        if self.values is not None:
            return rows @ self.values
        of_core = rows[:, self.core]
        moved = (rows[:, self.non_core] - of_core @ self.products.T) / self.variance
        out = rows * 0.0
        out[:, self.core] = self.weight * (of_core @ self.of_core - moved @ self.products)
        out[:, self.non_core] = self.weight * moved
        return out


def times_sparse(matrix: Any, x: Array) -> Array:
    """Multiply x (m, columns) by a sparse A (rows, columns): (m, rows) A x, each of these a vector as it lies."""
    return matrix.dot(x.T).T


def times_blocks(blocks: Array, x: Array) -> Array:
    """Multiply x (m, k, q) by blocks (k, k, q): block l times x_l."""
    out = blocks[:, 0] * x[:, :1]
    for b in range(1, blocks.shape[1]):
        out += blocks[:, b] * x[:, b : b + 1]
    return out


def design_matrix(equations: StructuredEquations, bounds: np.ndarray) -> Any:
    """W (T n, N) as a sparse matrix: records of a trait and levels of a component stand together."""
    from scipy.sparse import coo_array

    n, T = equations.records.y.shape
    rows, columns, values = [], [], []
    for lists, first in zip(equations.terms, bounds, strict=False):
        q = lists.code.size
        level = np.repeat(np.arange(q), np.diff(lists.visit_ptr).astype(np.int64))
        record = lists.visit_record.astype(np.int64)
        effect = lists.visit_effect if lists.visit_effect.size else np.zeros(record.size, np.int64)
        for e, (start, stop) in enumerate(zip(lists.effect_first[:-1], lists.effect_first[1:], strict=True)):
            met = np.flatnonzero(effect == e)
            for c in range(start, stop):
                rows.append(lists.trait[c] * n + record[met])
                columns.append(first + c * q + level[met])
                has_covariates = lists.covariates.shape[0] > 0
                z = lists.covariates[record[met], lists.regressor[c]] if has_covariates else np.ones(met.size)
                times = lists.visit_weight[met] if lists.visit_weight.size else 1.0
                values.append(z.astype(np.float64) * times)
    places = np.concatenate(rows or [[]]), np.concatenate(columns or [[]])
    shape = T * n, int(bounds[-1])
    return coo_array((np.concatenate(values or [[]]), places), shape=shape).tocsr()
