"""Prediction error variances by Monte Carlo, for equations whose factor is too large: with a standard error for each.

With u drawn from its prior and e* from that of the residuals, a solution of

    C delta = W' R^-1 e* - (K^-1 (x) G^-1) u          delta ~ N(0, C^-1)

is a draw of the prediction errors: delta = u_hat - u, where u_hat is the BLUP from records y = W u + e* (Garcia-Cortes,
Moreno, Varona & Altarriba 1995). The mean square of delta is not used as it is. Per
level, with P its block of C, n = C delta, and p the diagonal of P^-1,

    A = p + mean of m^2                 m = delta - P^-1 n, the mean of delta given all other levels
    B = K_ll G - mean of u_hat^2        where the diagonal of K is known

    var A = 2 (PEV - p)^2 / samples     var B = 2 (K_ll G - PEV)^2 / samples

A is the mean square less its known part (Rao-Blackwell); B is what Garcia-Cortes et al. and Hickey et al. (2009)
combine with it, which is exact for animals without information. Prediction errors are independent of u_hat, and so are
A and B: they are weighted by the inverse of their variances. The draws come in two halves, each weighted by what the
other one says of PEV, so that weights and estimates are independent and the mean is exact for any number of draws.

Levels that are put back on the scale of the user's covariates (design.rescale, shifts) have the mean square of delta.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from mmgibbs.draws.normal import fill_normals
from mmgibbs.draws.purpose import PREDICTION_ERROR, stream
from mmgibbs.engines.pcg.engine import (
    ROOM,
    add_residual_noise,
    allocate_normals,
    root_of_precision,
    roots_by_pattern,
)
from mmgibbs.engines.pcg.solver import PcgSolver
from mmgibbs.equations.core import CoreLevels
from mmgibbs.machine.speed import Lines, Tell, describe_duration
from mmgibbs.machine.threads import blas_threads
from mmgibbs.models.design import Design
from mmgibbs.models.relationships.core import CoreBlock
from mmgibbs.models.relationships.pedigree import Pedigree
from mmgibbs.models.terms import Term

SHARE_OF_ITERATIONS = 0.6  # of those that a solution to its last digits takes, with what is drawn
TOLERANCE = 1e-4  # of delta, in posterior standard deviations: far below what any number of draws sees


@dataclass(frozen=True)
class MonteCarloPev:
    """PEV of all levels, (q, k) per term in model order, on the user's scale."""

    sd: list[np.ndarray]  # sqrt(PEV); 0 of components that are set to 0
    error: list[np.ndarray]  # Monte Carlo standard error of PEV
    samples: int


def monte_carlo_pev(
    solver: PcgSolver,
    G: Sequence[np.ndarray | None],
    R: np.ndarray,
    diagonals: Sequence[np.ndarray | None],
    samples: int,
    seed: int,
    tell: Tell | None = None,
    iterations: int = 0,
) -> MonteCarloPev:
    """PEV from so many draws of the prediction errors; normals are keyed by seed, sample, level and record.

    solver: with the variances G per term and R (or that of each residual class). diagonals: of K per random term, (q,)
    in model order, where it is known and K can be drawn from. tell: called before the first draw and once a minute;
    iterations: that the solution of the equations took. Raises ModelError where K^-1 has no root or the iteration
    does not converge.
    """
    made = _Draws(solver, G, R, diagonals, seed)
    half = samples - samples // 2
    sums = [_Sums(solver, made.drawn), _Sums(solver, made.drawn)]
    per_draw = 8 * (8 * int(solver.bounds[-1]) + solver.equations.records.y.size)
    at_once = max(1, min(solver.columns_at_once, ROOM // per_draw))
    if tell is not None:
        duration = describe_duration(_seconds(solver, samples, at_once, iterations))
        tell(f"PEV: {samples:,} samples of the prediction errors{duration}")
    lines, done = Lines(tell), 0
    for of_half, numbers in zip(sums, (range(1, half + 1), range(half + 1, samples + 1)), strict=True):
        for first in range(numbers.start, numbers.stop, at_once):
            chosen = range(first, min(first + at_once, numbers.stop))
            noise, u = made.noise(chosen)
            delta = solver.solve_columns(noise, np.zeros(noise.shape), TOLERANCE).x
            of_half.add(delta, delta - solver.precondition(noise), u)
            done += len(chosen)
            lines.show(partial(_progress_words, done, samples))
    return _put_together(solver, G, diagonals, sums, samples)


def _progress_words(done: int, samples: int, seconds: float) -> str:
    remaining = describe_duration(seconds / done * (samples - done))
    return f"PEV: {done:,} of {samples:,} samples{remaining}{' to go' if remaining else ''}"


def _seconds(solver: PcgSolver, samples: int, at_once: int, iterations: int) -> float:
    """About how long the samples take: a product with C of some columns is timed."""
    x = np.ones((int(solver.bounds[-1]), min(samples, at_once)))
    start = time.perf_counter()
    solver.times(x)
    return (time.perf_counter() - start) / x.shape[1] * samples * SHARE_OF_ITERATIONS * iterations


def prior_diagonals(design: Design, inbreeding: bool) -> list[np.ndarray | None]:
    """List the diagonal of K per term, (q,) in model order; None of groups, and where it is not exact or not drawn.

    inbreeding: the pedigree accounts for it, so that 1 + F is the diagonal of A.
    """
    return [_diagonal(term, inbreeding) for term in design.terms]


def _diagonal(term: Term, inbreeding: bool) -> np.ndarray | None:
    """Return the diagonal of K, (q,), where it is known exactly and can be used, else None."""
    K = term.relationship
    if term.kind == "fixed" or term.active is not None or K.n_groups or not (K.known_diagonal and K.can_draw):
        return None
    if not K.of_pedigree:
        if K.diagonal is None:
            return np.ones(term.n_levels)
        values = K.dense.parts.products if isinstance(K.dense, CoreBlock) else K.dense.values if K.dense else K.diagonal
        return K.diagonal if values.dtype == np.float64 else None  # K^-1 is rounded, and has another K
    exact = inbreeding and K.dense is None and K.diagonal is None  # that of single-step may be an estimate
    return 1.0 + K.relatives.inbreeding if exact and isinstance(K, Pedigree) else None


class _Draws:
    """Right-hand sides n = C delta of draws of the prediction errors."""

    def __init__(
        self,
        solver: PcgSolver,
        G: Sequence[np.ndarray | None],
        R: np.ndarray,
        diagonals: Sequence[np.ndarray | None],
        seed: int,
    ):
        self.solver, self.seed = solver, seed
        equations = solver.equations
        self.drawn = [d is not None for d in diagonals]
        self._roots = [
            np.linalg.cholesky(g) if g is not None and d else None for g, d in zip(G, self.drawn, strict=True)
        ]
        self._precisions = [None if d else root_of_precision(P) for P, d in zip(solver.Ginv, self.drawn, strict=True)]
        self._records = roots_by_pattern(equations.design, R)
        self._noise_of = [
            term.relationship.noise(K, lists.code, f"term '{term.name}': sampler.pev_samples")
            if root is not None
            else None
            for term, K, lists, root in zip(
                equations.design.terms, equations.relationships, equations.terms, self._precisions, strict=True
            )
        ]
        self._streams = [stream(PREDICTION_ERROR, i) for i in range(len(equations.terms) + 1)]

    def noise(self, numbers: Sequence[int]) -> tuple[np.ndarray, list[np.ndarray | None]]:
        """n (N, m) in sweep order, a column for each number, and per term u (q, k, m), None where it is not drawn."""
        solver, records = self.solver, self.solver.equations.records
        e, z = np.zeros((*records.y.shape, len(numbers))), np.empty(records.y.shape)
        for j, number in enumerate(numbers):
            fill_normals(z, number, records.record.view(np.int32), self._streams[-1], self.seed, 0)
            add_residual_noise(records, self._records, z, j, e)
        out = solver.weighted_sums(e)
        every: list[np.ndarray | None] = []
        for i, of_term in enumerate(solver.split(out)):
            with self._sums_in_one_order(i):
                u = self._values(i, numbers) if self.drawn[i] else None
            every.append(u)
            if u is not None:
                of_prior = np.zeros(of_term.shape)
                solver.add_term_prior(i, u, of_prior, solver.threads)
                of_term -= of_prior
            elif self._noise_of[i] is not None:
                with self._sums_in_one_order(i):
                    self._add_noise(i, numbers, of_term)
        return out * solver.active[:, None], every

    def _sums_in_one_order(self, i: int) -> AbstractContextManager[Any]:
        """Use one thread for products with a core: the order of the sums in BLAS depends on the number of threads."""
        return blas_threads(1 if isinstance(self.solver.equations.dense[i], CoreLevels) else None)

    def _values(self, i: int, numbers: Sequence[int]) -> np.ndarray:
        """Draw (q, k, m) u ~ N(0, K (x) G) in sweep order."""
        q, k = self.solver.shapes[i]
        z, root = np.empty((q, k)), self._roots[i]
        assert root is not None
        levels, columns = np.arange(q, dtype=np.int32), np.empty((q, k, len(numbers)))
        for j, number in enumerate(numbers):
            fill_normals(z, number, levels, self._streams[i], self.seed, 0)
            columns[:, :, j] = z @ root.T
        term, lists = self.solver.equations.design.terms[i], self.solver.equations.terms[i]
        return np.ascontiguousarray(term.relationship.draw(columns.reshape(q, -1)).reshape(columns.shape)[lists.code])

    def _add_noise(self, i: int, numbers: Sequence[int], total: np.ndarray) -> None:
        """B' Z F' where u cannot be drawn, or its prior is flat in some directions."""
        lists, z, of, root = (
            self.solver.equations.terms[i],
            allocate_normals(self.solver.equations, i),
            self._noise_of[i],
            self._precisions[i],
        )
        assert of is not None and root is not None
        for j, number in enumerate(numbers):
            fill_normals(z, number, lists.code, self._streams[i], self.seed, 0)
            total[:, :, j] += of(z) @ root.T


class _Sums:
    """Sums of the squares of one half of the draws."""

    def __init__(self, solver: PcgSolver, drawn: Sequence[bool]):
        self.solver, self.n = solver, 0
        design = solver.equations.design
        self.of_errors = np.zeros(solver.bounds[-1])  # m^2
        self.drawn = drawn
        self.of_solutions = [np.zeros(shape if d else (0, 0)) for shape, d in zip(solver.shapes, drawn, strict=True)]
        touched = {r.term for r in design.rescale} | {s.target for s in (*design.shifts, *design.base)}
        self.on_scale = {i: np.zeros(solver.shapes[i]) for i in sorted(touched)}  # model order
        self._zero = design.to_original_scale([np.zeros(shape) for shape in solver.shapes])

    def add(self, delta: np.ndarray, conditional: np.ndarray, u: Sequence[np.ndarray | None]) -> None:
        """delta, conditional (N, m); u as drawn."""
        self.n += delta.shape[1]
        self.of_errors += np.einsum("ij,ij->i", conditional, conditional)
        for total, delta_of_term, u_of_term in zip(self.of_solutions, self.solver.split(delta), u, strict=True):
            if u_of_term is not None:
                total += np.einsum("qkm,qkm->qk", delta_of_term + u_of_term, delta_of_term + u_of_term)
        if self.on_scale:
            for j in range(delta.shape[1]):
                moved = self.solver.equations.design.to_original_scale(self.solver.to_model_order(delta[:, j]))
                for i, total in self.on_scale.items():
                    total += (moved[i] - self._zero[i]) ** 2


def _put_together(
    solver: PcgSolver,
    G: Sequence[np.ndarray | None],
    diagonals: Sequence[np.ndarray | None],
    halves: list[_Sums],
    n: int,
) -> MonteCarloPev:
    """PEV of every level from the sums of both halves of the draws, with its Monte Carlo error."""
    of_errors = [[sums / half.n for sums in solver.split(half.of_errors)] for half in halves]
    sd, error = [], []
    for i, (lists, p, g, diagonal) in enumerate(
        zip(solver.equations.terms, solver.diagonals_of_inverse_blocks(), G, diagonals, strict=True)
    ):
        a = [of[i] for of in of_errors]
        if diagonal is None or g is None:
            pev = p + sum(half.n * sums for half, sums in zip(halves, a, strict=True)) / n
            variance = 2 * (pev - p) ** 2 / n
        else:
            prior = diagonal[lists.code][:, None] * np.diag(g)
            b = [half.of_solutions[i] / half.n for half in halves]
            pev, variance = combined(p, prior, a, b, [half.n for half in halves])
        held = solver.split(solver.active)[i] == 0
        pev, variance = (np.where(held, 0.0, v) for v in (np.maximum(pev, p), variance))
        estimate, standard_error = np.empty(pev.shape), np.empty(pev.shape)
        estimate[lists.code], standard_error[lists.code] = pev, np.maximum(np.sqrt(variance), TOLERANCE * pev)
        if i in halves[0].on_scale:
            estimate, standard_error = _to_user_scale(solver, i, estimate, standard_error, halves, n)
        sd.append(np.sqrt(estimate))
        error.append(standard_error)
    return MonteCarloPev(sd, error, n)


def combined(
    p: np.ndarray, prior: np.ndarray, a: Sequence[np.ndarray], b: Sequence[np.ndarray], sizes: Sequence[int]
) -> tuple[np.ndarray, np.ndarray]:
    """Combine the mean squares of m and u_hat of two halves to PEV and its sampling variance: see above."""
    n, pev, weights = sum(sizes), np.zeros(p.shape), []
    for half, other_half in ((0, 1), (1, 0)):
        # PEV - p and K_ll G - PEV as the other half sees them, squared
        of_a, of_b = a[other_half] ** 2, b[other_half] ** 2
        w = np.divide(of_b, of_a + of_b, out=np.full(p.shape, 0.5), where=of_a + of_b > 0)
        pev += sizes[half] / n * (w * (p + a[half]) + (1 - w) * (prior - b[half]))
        weights.append(w)
    above, below = np.maximum(pev - p, 0.0), np.maximum(prior - pev, 0.0)
    variance = sum(
        (size / n) ** 2 * 2 / size * ((w * above) ** 2 + ((1 - w) * below) ** 2)
        for size, w in zip(sizes, weights, strict=True)
    )
    return pev, variance


def _to_user_scale(
    solver: PcgSolver, i: int, estimate: np.ndarray, error: np.ndarray, halves: list[_Sums], n: int
) -> tuple[np.ndarray, np.ndarray]:
    """Replace the PEV of the levels that scales of covariates move by those on the user's scale."""
    design = solver.equations.design
    normals = [np.random.default_rng(0).standard_normal(shape) for shape in solver.shapes]
    moved = design.to_original_scale(normals)[i] - halves[0]._zero[i] != normals[i]
    if (estimated := design.estimated(i)) is not None:
        moved &= estimated
        estimate, error = np.where(estimated, estimate, 0.0), np.where(estimated, error, 0.0)
    squares = sum(half.on_scale[i] for half in halves) / n
    return np.where(moved, squares, estimate), np.where(moved, np.sqrt(2 / n) * squares, error)
