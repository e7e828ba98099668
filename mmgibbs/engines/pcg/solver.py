"""Preconditioned conjugate gradients on the structured equations: BLUP at given variances, C theta = W' R^-1 y.

C is applied, never stored: theta -> e = W theta -> W' R^-1 e + K^-1 Theta G^-1, for any number of right-hand sides in
one pass over the data. The preconditioner is the inverse of each level's k x k diagonal block of C; for BLUP animals
without progeny, or the levels of another term where these are more, are absorbed first, where the terms fit
(absorption.py). Components held at 0 are left out of the system. BLUP is solved by SciPy's iteration;
`conjugate_gradients` runs several right-hand sides side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from mmgibbs.engines.base import refuse_singular
from mmgibbs.engines.coloured.unrolled import UNROLL_FROM
from mmgibbs.engines.dense_products import dense_times
from mmgibbs.engines.pcg.absorption import MOST_VISITS, absorbed_equations
from mmgibbs.engines.pcg.blocks import add_dense, add_prior, invert_blocks, level_blocks, precondition
from mmgibbs.engines.pcg.rows import row_product
from mmgibbs.equations.base import precisions
from mmgibbs.equations.records import add_matvec, add_transpose_matvec, weigh
from mmgibbs.equations.structured import StructuredEquations
from mmgibbs.errors import ModelError
from mmgibbs.machine.threads import ALONE, Threads, blas_threads
from mmgibbs.models.design import Design
from mmgibbs.pedigree.kernels import kernel

VECTORS_PER_COLUMN = 10  # of the length of theta, that a right-hand side takes while it is solved for
RECORDS_PER_COLUMN = 4  # of the size of y

DRAWS_AT_ONCE = 8  # right-hand sides that share a pass; beyond that the vectors outgrow the caches again

Operator = Callable[[np.ndarray], np.ndarray]
PRECONDITIONERS = ("absorption", "blocks")  # of BLUP; `auto` is absorption where the terms fit


class Absorbed(NamedTuple):
    term: str
    levels: int


@dataclass(frozen=True)
class Solution:
    theta: list[np.ndarray]  # per term (q, k) float64, model order
    iterations: int
    relative_residual: float  # |b - C theta| / |b|
    absorbed: Absorbed | None = None  # None: iterated on C itself

    @property
    def preconditioner(self) -> str:
        """The preconditioner that was used, one of PRECONDITIONERS."""
        return "blocks" if self.absorbed is None else "absorption"

    @property
    def preconditioned_by(self) -> str:
        """The preconditioner, described in words."""
        if self.absorbed is None:
            return "diagonal blocks of the levels"
        return f"{self.absorbed.levels:,} level{'s' * (self.absorbed.levels != 1)} of {self.absorbed.term} absorbed"


class System(NamedTuple):
    """A positive definite system whose solution x gives theta."""

    absorbed: Absorbed | None
    right: np.ndarray
    times: Operator
    precondition: Operator
    solution: Operator  # x -> theta of all equations


class Columns(NamedTuple):
    """Solutions of several right-hand sides, one per column."""

    x: np.ndarray  # (N, m)
    iterations: np.ndarray  # (m,) int64
    error: np.ndarray  # (m,) what is left of it, in posterior standard deviations (see solve_columns)
    relative_residual: np.ndarray  # (m,) |b - C x| / |b|


def bytes_per_column(design: Design) -> int:
    """Count the bytes that each of several right-hand sides takes during a solve."""
    return 8 * (VECTORS_PER_COLUMN * design.n_effects + RECORDS_PER_COLUMN * design.y.size)


class PcgSolver:
    """BLUP by PCG in float64, whatever the precision of the equations. Vectors are in sweep order, (N,) or (N, m).

    threads: for solutions, which do not depend on their number. preconditioner: of `solve`, "auto" or one of
    PRECONDITIONERS."""

    def __init__(self, equations: StructuredEquations, threads: Threads = ALONE, preconditioner: str = "auto"):
        self.equations, self.threads, self.preconditioner = equations, threads, preconditioner
        self.columns_at_once = DRAWS_AT_ONCE * threads.count
        self.shapes = [(t.n_levels, t.n_components) for t in equations.design.terms]
        self.bounds = np.cumsum([0] + [q * k for q, k in self.shapes])
        self.active = np.concatenate(
            [
                np.ones(q * k) if a.shape[0] == 0 else a.ravel()
                for (q, k), a in zip(self.shapes, self._masks(), strict=True)
            ]
        )
        self._held = np.flatnonzero(self.active == 0)
        self._of_dense: dict[int, np.ndarray] = {}

    def _masks(self) -> list[np.ndarray]:
        return [lists.active for lists in self.equations.terms]

    def split(self, x: np.ndarray) -> list[np.ndarray]:
        """Views of (N,) over all equations as (q, k) per term; of (N, m) as (q, k, m)."""
        return [
            x[a:b].reshape(*shape, *x.shape[1:])
            for a, b, shape in zip(self.bounds[:-1], self.bounds[1:], self.shapes, strict=True)
        ]

    def set_variances(self, G: Sequence[np.ndarray | None], R: np.ndarray) -> None:
        self.set_precisions(*precisions(self.equations.design, G, R))

    def set_precisions(self, Ginv: list[np.ndarray], Rinv: np.ndarray) -> None:
        """Set the precisions that `precisions` computes from the variances."""
        self.Ginv, self.Rinv = Ginv, Rinv
        self.inverse_blocks = [self._level_inverses(i) for i in range(len(self.shapes))]

    def _level_inverses(self, i: int) -> np.ndarray:
        eq = self.equations
        blocks = np.empty((*self.shapes[i], self.shapes[i][1]))
        every = np.arange(len(blocks), dtype=np.uint32)
        level_blocks(eq.terms[i], eq.relationships[i], self._dense_diagonal(i), self.Ginv[i], self.Rinv, every, blocks)
        failed = invert_blocks(blocks)
        if failed >= 0:
            refuse_singular(eq, i, failed)
        return blocks

    def _dense_diagonal(self, i: int) -> np.ndarray:
        """Return what the dense block of K^-1 adds to kappa_ll, (q,); empty where there is none.

        It is kept: that by a core takes many products, and a sweep sets variances.
        """
        if i in self._of_dense:
            return self._of_dense[i]
        dense, out = self.equations.dense[i], np.zeros(self.shapes[i][0])
        if dense is None:
            return np.empty(0)
        out[dense.positions] = dense.diagonal()
        self._of_dense[i] = out
        return out

    def times(self, x: np.ndarray, threads: Threads = ALONE) -> np.ndarray:
        """C x: x (N,) or (N, m); threads: for dense blocks."""
        eq = self.equations
        columns = self.zero_held(_columns(x))
        fitted = np.zeros((*eq.records.y.shape, columns.shape[1]))
        thetas = self.split(columns)
        for lists, theta in zip(eq.terms, thetas, strict=True):
            add_matvec(lists, theta, fitted)
        out = self._transposed(fitted)
        for i, (theta, total) in enumerate(zip(thetas, self.split(out), strict=True)):
            self.add_term_prior(i, theta, total, threads)
        return self._hold(out).reshape(np.shape(x))

    def add_term_prior(self, i: int, theta: np.ndarray, total: np.ndarray, threads: Threads = ALONE) -> None:
        """total += K^-1 Theta G^-1 of term i, both (q, k, m) in sweep order; threads: for dense blocks."""
        K, dense, Ginv = self.equations.relationships[i], self.equations.dense[i], self.Ginv[i]
        if not Ginv.any():
            return
        add_prior(K, Ginv, theta, total)
        if dense is not None:
            dense_rows = total[dense.positions]
            add_dense(Ginv, dense_times(dense, theta, threads), dense_rows)
            total[dense.positions] = dense_rows

    def diagonals_of_inverse_blocks(self) -> list[np.ndarray]:
        """Return the diagonal of the inverse of each level's block of C, (q, k) per term in sweep order."""
        return [np.einsum("qkk->qk", blocks) for blocks in self.inverse_blocks]

    def weighted_sums(self, e: np.ndarray) -> np.ndarray:
        """W' R^-1 e over the equations in force: e (n, T) gives (N,), e (n, T, m) gives (N, m)."""
        e = np.array(e, dtype=np.float64)
        several = e.ndim == 3
        out = self._hold(self._transposed(e if several else e[:, :, None]))
        return out if several else out[:, 0]

    def _transposed(self, e: np.ndarray) -> np.ndarray:
        """W' R^-1 e, (N, m); e (n, T, m) is overwritten by R^-1 e."""
        weigh(self.equations.records, self.Rinv, e)
        out = np.zeros((self.bounds[-1], e.shape[2]))
        for lists, total in zip(self.equations.terms, self.split(out), strict=True):
            add_transpose_matvec(lists, e, total)
        return out

    def _hold(self, x: np.ndarray) -> np.ndarray:
        """x, whose elements that are set to 0 become 0."""
        x[self._held] = 0.0
        return x

    def zero_held(self, x: np.ndarray) -> np.ndarray:
        """x with 0 in the places of components set to 0: itself, where it is so."""
        return self._hold(x.copy()) if x[self._held].any() else x

    def precondition(self, x: np.ndarray) -> np.ndarray:
        """Multiply x, (N,) or (N, m), by the inverse of each level's block of C."""
        columns = self.zero_held(_columns(x))
        out = np.empty(columns.shape)
        for inverses, residual, total in zip(self.inverse_blocks, self.split(columns), self.split(out), strict=True):
            precondition(inverses, residual, total)
        return out.reshape(np.shape(x))

    def solve(
        self, tolerance: float, max_iterations: int | None = None, callback: Callable[[int], None] | None = None
    ) -> Solution:
        """BLUE and BLUP. Raises ModelError where the iteration does not reach |b - C theta| <= tolerance |b|."""
        from scipy.sparse.linalg import LinearOperator, cg  # which chains, that import this file too, do not need

        b = self.weighted_sums(self.equations.records.y)
        norm = float(np.linalg.norm(b))
        if norm == 0.0:
            return Solution(self.to_model_order(b), 0, 0.0)
        count = [0]

        def step(x: np.ndarray) -> None:
            count[0] += 1
            if callback is not None:
                callback(count[0])

        # BLAS sums its products in another order for every number of threads; whatever overflows is refused below
        with blas_threads(1), np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            system = self._system(b)
            size = system.right.size
            C = LinearOperator((size, size), system.times, dtype=np.float64)
            M = LinearOperator((size, size), system.precondition, dtype=np.float64)
            limit = max_iterations or self.iteration_limit
            x, _ = cg(C, system.right, rtol=0.0, atol=tolerance * norm, maxiter=limit, M=M, callback=step)
            theta = system.solution(x)
            reached = float(np.linalg.norm(b - self.times(theta))) / norm
        refuse_residual(self.equations.design, count[0], reached, tolerance)
        return Solution(self.to_model_order(theta), count[0], reached, system.absorbed)

    def _system(self, b: np.ndarray) -> System:
        """Return the system that is iterated on: C itself, or the rest of it when levels are absorbed."""
        if self.preconditioner != "blocks":
            blocks = self.bounds, self.threads, self.inverse_blocks
            reduced = absorbed_equations(self.equations, *blocks, self.Ginv, self.Rinv)
            if reduced is not None:
                solution = lambda x: self._hold(reduced.solution(x, b))
                right = reduced.right_hand_side(b)
                absorbed = Absorbed(self.equations.design.terms[reduced.term].name, reduced.absorbed.size)
                return System(absorbed, right, reduced.product, reduced.preconditioned, solution)
            if self.preconditioner != "auto":
                raise ModelError(
                    f"sampler.preconditioner: found {self.preconditioner}, needed auto or blocks: levels can be "
                    "absorbed where there are at most 4 traits, every term of the model has 1 to 4 components, at most "
                    "two effects, a pedigree or independent levels, no covariates, genomic relationships, metafounders "
                    f"or relationship file, and at least {UNROLL_FROM:,} levels or visits by records, and where levels "
                    f"without progeny have at most {MOST_VISITS} records each"
                )
        return System(None, b, *self._operators(), lambda x: x)

    def _operators(self) -> tuple[Operator, Operator]:
        """C x and M x of one vector: in rows and over threads where the terms fit (rows.py)."""
        fast = row_product(self.equations, self.bounds, self.threads)
        if fast is None:
            return partial(self.times, threads=self.threads), self.precondition
        return (
            lambda x: self._hold(fast.times(self.zero_held(x), self.Ginv, self.Rinv)),
            lambda x: fast.precondition(self.zero_held(x), self.inverse_blocks),
        )

    @property
    def iteration_limit(self) -> int:
        return max(2000, min(int(self.bounds[-1]) * 10, 20000))

    def solve_columns(self, b: np.ndarray, start: np.ndarray, tolerance: float, relative: bool = False) -> Columns:
        """x with C x_j = b_j for all columns of b (N, m) at once, from `start` (N, m).

        Stops where r' M r <= tolerance^2 N, r = b - C x, M the preconditioner, N the equations in force. The posterior
        deviation of a draw has d' C d of about N: so the error left is `tolerance` posterior standard deviations, root
        mean square, in the norm of the preconditioner. relative: where r' M r <= tolerance^2 b' M b instead, for b that
        are not of the size of a draw's. Raises ModelError where the iteration does not get there.
        Threads share out the columns: what is found for one does not depend on the others.
        """
        n = max(1, self.equations.n_equations)
        size = column_products(b, self.precondition(b)) if relative else np.full(b.shape[1], float(n))
        wanted = tolerance**2 * size
        parts = np.array_split(np.arange(b.shape[1]), max(1, min(self.threads.count, b.shape[1])))
        results: list = [None] * len(parts)

        def solve_group(i: int) -> None:
            rhs, at = (np.ascontiguousarray(a[:, parts[i]]) for a in (b, start))
            limit = self.iteration_limit
            results[i] = conjugate_gradients(self.times, self.precondition, rhs, at, wanted[parts[i]], limit)

        self.threads([partial(solve_group, i) for i in range(len(parts))])
        x, residual = (np.concatenate([f[i] for f in results], axis=1) for i in (0, 1))
        residual_norms, iterations = (np.concatenate([f[i] for f in results]) for i in (2, 3))
        error = np.sqrt(residual_norms / np.where(size > 0, size, 1.0))
        refuse_unsolved(self.equations.design, iterations, error, tolerance)
        norms = np.sqrt(column_products(b, b))
        reached = np.sqrt(column_products(residual, residual)) / np.where(norms > 0, norms, 1.0)
        return Columns(x, iterations, error, reached)

    def to_model_order(self, x: np.ndarray) -> list[np.ndarray]:
        out = []
        for lists, theta in zip(self.equations.terms, self.split(x), strict=True):
            ordered = np.empty(theta.shape)
            ordered[lists.code] = theta
            out.append(ordered)
        return out


def refuse_residual(design: Design, iterations: int, reached: float, tolerance: float) -> None:
    """ModelError where the relative residual of a solution is too large."""
    if not reached <= max(100 * tolerance, 1e-10):
        raise ModelError(
            f"PCG stopped after {iterations} iterations at a relative residual of {reached:.1e}, needed "
            f"{tolerance:.1e}: {_describe_near_singularity(design)}"
        )


def refuse_unsolved(design: Design, iterations: np.ndarray, error: np.ndarray, tolerance: float) -> None:
    """ModelError where a column has not reached the tolerance."""
    if not np.all(error <= tolerance):
        raise ModelError(
            f"PCG stopped after {iterations.max()} iterations at an error of {error.max():.1e} "
            f"posterior standard deviations, needed {tolerance:.1e}: {_describe_near_singularity(design)}"
        )


def _describe_near_singularity(design: Design) -> str:
    """Why the equations are hard to solve, and what to look at."""
    for term in design.terms:
        if term.relationship.stiff_part:
            return (
                f"iterations hardly solve for {term.relationship.stiff_part} (model.random.{term.name}), and the "
                "equations are too many for a factor; needed fewer levels"
            )
    return "the equations are close to singular; check the variances and the fixed effects"


def _columns(x: np.ndarray) -> np.ndarray:
    """Return (N,) or (N, m) as (N, m) float64, a view or a copy."""
    x = np.ascontiguousarray(x, dtype=np.float64)
    return x.reshape(x.shape[0], -1)


def conjugate_gradients(
    times: Operator,
    precondition: Operator,
    b: np.ndarray,
    start: np.ndarray,
    wanted: np.ndarray,
    limit: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Solve C x_j = b_j for the columns of b (N, m), each by its own conjugate gradients, all in the same passes.

    A column that has reached r' M r <= wanted (m,) rests while the others continue. Returns x (N, m), r (N, m), r' M r
    (m,) and the iterations (m,) of each. Hestenes & Stiefel (1952).
    """
    x = np.array(start, dtype=np.float64)
    residual = np.array(b, dtype=np.float64)
    if x.any():
        residual -= times(x)
    direction = precondition(residual)
    residual_norms = column_products(residual, direction)
    iterations = np.zeros(residual_norms.size, np.int64)
    for _ in range(limit):
        moving = residual_norms > wanted
        if not moving.any():
            break
        iterations += moving
        product = times(direction)
        curvature = column_products(direction, product)
        with np.errstate(divide="ignore", invalid="ignore"):
            step = np.where(moving, residual_norms / curvature, 0.0)
            advance(x, residual, direction, product, step)
            z = precondition(residual)
            now = column_products(residual, z)
            turn(direction, z, np.where(moving, now / residual_norms, 0.0))
        residual_norms = np.where(moving, now, residual_norms)
    return x, residual, residual_norms, iterations


@kernel
def column_products(a, b):
    """Compute (m,) sum_i a_ij b_ij for a (N, m) and b (N, m), in the order of i."""
    out = np.zeros(a.shape[1])
    for i in range(np.uint64(a.shape[0])):
        for j in range(np.uint64(a.shape[1])):
            out[j] += a[i, j] * b[i, j]
    return out


@kernel
def advance(x, residual, direction, product, step):
    """x += step direction, residual -= step product, column by column; (N, m) in place."""
    for i in range(np.uint64(x.shape[0])):
        for j in range(np.uint64(x.shape[1])):
            x[i, j] += step[j] * direction[i, j]
            residual[i, j] -= step[j] * product[i, j]


@kernel
def turn(direction, z, beta):
    """direction = z + beta direction, column by column; (N, m) in place."""
    for i in range(np.uint64(z.shape[0])):
        for j in range(np.uint64(z.shape[1])):
            direction[i, j] = z[i, j] + beta[j] * direction[i, j]
