"""Exact, independent draws of all locations given the variances: perturb and solve (Garcia-Cortes & Sorensen 1996).

With theta* drawn from the prior and y* = W theta* + e*, e*_r ~ N(0, R[P,P] / w_r), a solution of C delta = W' R^-1 (y -
y*) makes theta* + delta a draw from the posterior. Multiplied out, with K^-1 = B' B and G^-1 = F F',

    C theta = W' R^-1 (y + e*) + B' Z F',        e* and Z independent normals

the right-hand side of the mixed-model equations plus noise of covariance C. This form is the one computed: it asks for
a root of K^-1 and never for one of K, flat effects simply get no noise, and components set to 0 leave the system (the
roots of K^-1: the Mendelian sampling of a pedigree, I, and a sparse factor of a user's matrix).

Normals are keyed by level and record in model order, so the draws do not depend on the partition. Where the variances
are held fixed, the noise alone is solved for, from 0, and added to the BLUP: an iteration stopped early is then an odd
function of the noise, so the mean of the draws is exact, and several draws share every pass over the data.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mmgibbs.draws.normal import fill_normals
from mmgibbs.draws.purpose import PERTURB, stream
from mmgibbs.engines.base import HostState, Key
from mmgibbs.engines.facts import DeviceTraffic
from mmgibbs.engines.markers import with_markers
from mmgibbs.engines.pcg.device_solver import bytes_per_iteration, count_bytes, make_solver
from mmgibbs.engines.pcg.solver import Columns
from mmgibbs.engines.scores import with_scores
from mmgibbs.equations.core import CoreLevels
from mmgibbs.equations.structured import StructuredEquations
from mmgibbs.machine.threads import blas_threads
from mmgibbs.models.design import Design
from mmgibbs.models.residual import stack_classes
from mmgibbs.pedigree.kernels import kernel

ROOM = 1_000_000_000  # bytes of work arrays up to which draws are made at once


class PcgEngine(HostState):
    """Draws theta given variances and y, independently of the last draw. Theta is held as one flat float64 vector.

    The state is the last draw, from which the next one is iterated; draws made ahead are made again, to the same bits.

    variances_fixed: promise that set_variances is called once, before the first sweep; draws are then made
    `draws_at_once` at a time (each is the same, to the last bit, in whatever company it is made); device: 'cpu' or
    'gpu', on which the equations are solved.
    """

    name = "pcg"
    options = ("tolerance", "variances_fixed", "device")

    def __init__(
        self,
        equations: StructuredEquations,
        tolerance: float,
        variances_fixed: bool = False,
        draws_at_once: int | None = None,
        device: str = "cpu",
    ):
        super().__init__(equations, np.dtype(np.float64))
        self.tolerance, self.variances_fixed = tolerance, variances_fixed
        self.solver = make_solver(equations, device=device)
        wanted = self.solver.columns_at_once if draws_at_once is None else draws_at_once
        per_draw = 8 * (6 * int(self.solver.bounds[-1]) + equations.records.y.size)
        self.draws_at_once = max(1, min(wanted, ROOM // per_draw)) if variances_fixed else 1
        self._noise_of = [
            term.relationship.noise(K, lists.code, f"term '{term.name}': engine {self.name}")
            for term, K, lists in zip(equations.design.terms, equations.relationships, equations.terms, strict=True)
        ]
        self._streams = [stream(PERTURB, i) for i in range(len(equations.terms) + 1)]
        self._hold(np.zeros(self.solver.bounds[-1]))

    @staticmethod
    def refuses(design: Design) -> str | None:
        """Describe what it refuses: see EngineFacts.refuses."""
        return with_markers(design) or with_scores(design)

    @staticmethod
    def count_device_bytes(equations: StructuredEquations, interweaved: Sequence[int] = ()) -> int:
        """Count the bytes of the equations and of a right-hand side."""
        return sum(count_bytes(equations))

    @staticmethod
    def count_device_traffic(equations: StructuredEquations, needed: int, free: int) -> DeviceTraffic:
        """Count what an iteration moves."""
        return DeviceTraffic("an iteration", bytes_per_iteration(equations), {})

    def _hold(self, x: np.ndarray) -> None:
        self._x = np.ascontiguousarray(x)
        self._theta = self.solver.split(self._x)  # views
        self.moved()

    @property
    def theta(self) -> list[np.ndarray]:
        return self._theta

    def put_theta(self, term: int, theta: np.ndarray) -> None:
        if theta is not self._theta[term]:
            self._theta[term][:] = theta
        self.moved()

    def take_y(self, y: np.ndarray) -> None:
        super().take_y(y)
        self._forget_draws()

    def transform_term(self, term: int, M: np.ndarray) -> None:
        super().transform_term(term, M)
        self._forget_residuals_of_liabilities()

    def move_term(self, term: int, theta: np.ndarray) -> None:
        super().move_term(term, theta)
        self._forget_residuals_of_liabilities()

    def _forget_residuals_of_liabilities(self) -> None:
        """Make e anew: it is read before the next sweep, and must be what a chain finds that continues from here."""
        if self.equations.design.responses:
            self.moved()

    def _forget_draws(self) -> None:
        self._blup: np.ndarray | None = None
        self._ready: dict[int, tuple[np.ndarray, dict[str, float]]] = {}
        self._ready_key: Key | None = None

    def set_variances(self, G: Sequence[np.ndarray | None], R: np.ndarray) -> None:
        super().set_variances(G, R)
        self.solver.set_precisions(self.Ginv, self.Rinv)
        self._noise_roots = [root_of_precision(Ginv) for Ginv in self.Ginv]
        self._record_roots = roots_by_pattern(self.equations.design, self.R)
        self._forget_draws()

    def sweep(self, number: int, key: Key) -> dict[str, float]:
        """theta ~ N(C^-1 b, C^-1); `number` and key = (seed, chain) say which draw it is. Facts:
        what PCG did for it.
        """
        if self.variances_fixed:
            x, facts = self._fixed_draw(number, key)
        else:
            y = self.y.astype(np.float64)[:, :, None]
            solved = self.solver.solve_columns(self._noise([number], key, y), self._x[:, None], self.tolerance)
            x, facts = solved.x[:, 0], _facts(solved, 0)
        self._hold(x)
        return facts

    def _fixed_draw(self, number: int, key: Key) -> tuple[np.ndarray, dict[str, float]]:
        if self._blup is None:
            b = self.solver.weighted_sums(self.y)[:, None]
            self._blup = self.solver.solve_columns(b, np.zeros(b.shape), self.tolerance).x
        if number not in self._ready or key != self._ready_key:
            numbers = range(number, number + self.draws_at_once)
            right = self._noise(numbers, key, np.zeros((*self.y.shape, len(numbers))))
            solved = self.solver.solve_columns(right, np.zeros(right.shape), self.tolerance)
            draws = self._blup + solved.x
            self._ready = {n: (draws[:, j].copy(), _facts(solved, j)) for j, n in enumerate(numbers)}
            self._ready_key = key
        return self._ready.pop(number)

    def _noise(self, numbers: Sequence[int], key: Key, e: np.ndarray) -> np.ndarray:
        """W' R^-1 (e + e*) + B' Z F', (N, m), one column for each sweep number; e (n, T, m) is overwritten."""
        records = self.equations.records
        z = np.empty(records.y.shape)
        for j, number in enumerate(numbers):
            fill_normals(z, number, records.record.view(np.int32), self._streams[-1], key[0], key[1])
            add_residual_noise(records, self._record_roots, z, j, e)
        out = self.solver.weighted_sums(e)
        for i, noise in enumerate(self.solver.split(out)):
            root = self._noise_roots[i]
            if root is None:
                continue
            lists, z = self.equations.terms[i], allocate_normals(self.equations, i)
            by_core = isinstance(self.equations.dense[i], CoreLevels)
            for j, number in enumerate(numbers):
                fill_normals(z, number, lists.code, self._streams[i], key[0], key[1])
                with blas_threads(1 if by_core else None):  # sums of the core's products, in one order
                    noise[:, :, j] += self._noise_of[i](z) @ root.T
        return out * self.solver.active[:, None]


def allocate_normals(equations: StructuredEquations, i: int) -> np.ndarray:
    """Room for what the noise of a term takes: (q, k), or several of these side by side."""
    term = equations.design.terms[i]
    return np.empty((term.n_levels, term.n_components * term.relationship.sets_of_normals))


def _facts(solved: Columns, column: int) -> dict[str, float]:
    """Diagnostics of the noise solve, for sample_stats; a draw waits for this solve alone."""
    return {
        "pcg_iterations": int(solved.iterations[column]),
        "pcg_error": float(solved.error[column]),
        "pcg_relative_residual": float(solved.relative_residual[column]),
    }


def roots_by_pattern(design: Design, R: np.ndarray) -> np.ndarray:
    """Compute Cholesky factors (patterns, T, T) of R[P, P], zero-padded. R: (T, T), or (classes, T, T)."""
    matrices = stack_classes(R)[design.class_of_pattern]
    out = np.zeros(matrices.shape)
    for root, matrix, observed in zip(out, matrices, design.patterns, strict=True):
        index = np.ix_(observed, observed)
        root[index] = np.linalg.cholesky(matrix[index])
    return out


def root_of_precision(precision: np.ndarray) -> np.ndarray | None:
    """F with F F' = precision (k, k), which may be singular: a prior on some components alone. None where it is 0."""
    if not precision.any():
        return None
    values, vectors = np.linalg.eigh(precision)
    return vectors * np.sqrt(np.maximum(values, 0.0))


@kernel
def add_residual_noise(records, roots, z, column, e):
    """e_r += chol(R[P,P]) z_r / sqrt(w_r) in one column of e (n, T, m); roots (patterns, T, T) zero-padded.

    z (n, T) standard normals; records: Records of equations/structured.py.
    """
    T = z.shape[1]
    for r in range(np.uint64(z.shape[0])):
        scale = 1.0 / np.sqrt(np.float64(records.weight[r])) if records.weight.size > 0 else 1.0
        p = records.pattern[r]
        for t in range(T):
            s = 0.0
            for u in range(t + 1):
                s += roots[p, t, u] * z[r, u]
            e[r, t, column] += scale * s
