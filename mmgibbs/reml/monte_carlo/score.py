"""Score and average information of the variances psi from solutions of the mixed-model equations alone.

With V = var(y), P its projection off the fixed effects and V_k = dV/dpsi_k, the score of the restricted likelihood is

    d log p / d psi_k = 1/2 [ y'P V_k P y - tr(P V_k) ]

and tr(P V_k) = E[y*'P V_k P y*] for records y* simulated at psi. So the score is half the difference between a
quadratic form of the records and its mean over simulated records, both from solutions of C theta = W' R^-1 y:

    D_G = 1/2 G^-1 [ S - mean S* ] G^-1                           S   = Theta' K^-1 Theta
    D_R = 1/2 sum_p R_p^-1 [ E_p - mean E_p* ] R_p^-1             E_p = sum_{r of p} w_r e_r e_r'

The score of one sample has the expected information as its variance. With m samples the maximum of the sampled score
is therefore about 1/sqrt(m) standard errors from the maximum of the likelihood, whatever the model is.

The average information takes a solution for each element k, with working variates f = V_k P y:

    AI_kl = 1/2 f_k' P f_l,      P f = R^-1 (f - W C^-1 W' R^-1 f)

Each solution starts from the one at the variances before. Those are kept in single precision: the run that
`--resume` continues then has the same bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from mmgibbs.engines.dense_products import dense_quadratic_form
from mmgibbs.engines.pcg.absorbed_columns import AbsorbedColumns, absorbed_columns
from mmgibbs.engines.pcg.device_solver import make_solver
from mmgibbs.engines.pcg.solver import bytes_per_column
from mmgibbs.equations.records import add_matvec, add_transpose_matvec, weigh
from mmgibbs.equations.relationships import quadratic_form
from mmgibbs.equations.structured import StructuredEquations
from mmgibbs.likelihood.base import Likelihood, Place
from mmgibbs.likelihood.matrices import Variances
from mmgibbs.likelihood.working_variates import working_effects, working_residuals
from mmgibbs.machine.memory import free_bytes
from mmgibbs.machine.threads import Threads, blas_threads
from mmgibbs.pedigree.kernels import kernel
from mmgibbs.reml.monte_carlo.simulated import SimulatedRecords

COLUMNS_PER_THREAD = 8  # right-hand sides that share a pass; beyond that the vectors outgrow the caches
# Errors of solutions, in posterior standard deviations, for each standard error of the estimates. Errors of all N
# equations add up in the score, whose own standard deviation grows with the root of N. Measured on 432,204 equations:
# solutions to 1e-4 move the estimates by 0.03 standard errors.
LARGEST_SHARE, SHARE_TIMES_ROOT = 3e-3, 1.0
TOLERANCE_OF_INFORMATION = 1e-3  # of solutions for working variates, relative


class SampledLikelihood(Likelihood):
    """The restricted likelihood of a design known by its score, from simulated records; it has no value.

    equations: in double precision. n_samples: used from the next point on, at most `most_samples`, for whose solutions
    and those of `n_elements` working variates there is memory. tolerance: of estimates, in standard errors.
    """

    def __init__(
        self,
        equations: StructuredEquations,
        most_samples: int,
        n_elements: int,
        seed: int,
        tolerance: float,
        threads: Threads,
        device: str = "cpu",
    ):
        super().__init__(equations.design)
        self.equations, self.threads = equations, threads
        self.solver = make_solver(equations, threads, "blocks", device)
        self._can_absorb = device == "cpu"
        self.simulated = SimulatedRecords(equations, seed)
        self.n_samples = self.most_samples = most_samples
        pattern = np.asarray(equations.records.pattern)
        self.observed = self.design.patterns[pattern]  # (n, T)
        self.class_of_record = self.design.class_of_pattern[pattern]  # (n,)
        # solutions for the records, each sample and each working variate, one after another
        self.starts = np.zeros((1 + most_samples + n_elements, int(self.solver.bounds[-1])), np.float32)
        self.tolerance = tolerance * min(LARGEST_SHARE, SHARE_TIMES_ROOT / np.sqrt(max(1, equations.n_equations)))
        self.iterations = 0  # of PCG, the most that a column of the last point took
        self._at: Variances | None = None
        self._absorbed: AbsorbedColumns | None = None

    def evaluate(self, variances: Variances) -> SampledPoint:
        """Compute the score at some variances; ModelError where a matrix is not positive definite."""
        self.matrices.refuse_singular(variances)
        self.set_variances(variances)
        self.iterations = 0
        return SampledPoint(self, variances, self.n_samples)

    def set_variances(self, variances: Variances) -> None:
        """Make the solver's blocks those of these variances."""
        if self._at is not variances:
            self.solver.set_variances(variances.G, variances.R)
            self._absorbed = absorbed_columns(self.solver) if self._can_absorb else None
            self._at = variances

    def solve(self, b: np.ndarray, rows: slice, tolerance: float, relative: bool = False) -> np.ndarray:
        """C^-1 b of some columns, (N, m), from the solutions in these rows of `starts`, which they become."""
        start = np.ascontiguousarray(self.starts[rows].T, dtype=np.float64)
        solve = self.solver.solve_columns if self._absorbed is None else self._absorbed.solve
        solved = solve(b, start, tolerance, relative)
        self.starts[rows] = solved.x.T
        self.iterations = max(self.iterations, int(solved.iterations.max()))
        return solved.x

    def fit(self, theta: np.ndarray) -> np.ndarray:
        """Compute W theta (n, T, m) of theta (N, m)."""
        fitted = np.zeros((*self.equations.records.y.shape, theta.shape[1]))
        for lists, values in zip(self.equations.terms, self.solver.split(theta), strict=True):
            add_matvec(lists, values, fitted)
        return fitted

    def known_starts(self) -> tuple[np.ndarray, np.ndarray]:
        """Views of the solutions that there are so far: of the records and samples, and of working variates."""
        return self.starts[: 1 + self.n_samples], self.starts[1 + self.most_samples :]

    def restore_starts(self, of_samples: np.ndarray, of_elements: np.ndarray) -> None:
        """Put back what `known_starts` gave."""
        self.starts[: len(of_samples)] = of_samples
        self.starts[len(of_samples) : 1 + self.most_samples] = 0.0
        self.starts[1 + self.most_samples :] = of_elements

    @property
    def columns_at_once(self) -> int:
        """Number of columns that threads and memory allow at once; values do not depend on it."""
        wanted, free = self._columns_wanted, free_bytes()
        return wanted if free is None else max(1, min(wanted, free // (2 * bytes_per_column(self.design))))

    @property
    def _columns_wanted(self) -> int:
        """Number of columns that share a pass over the equations."""
        return COLUMNS_PER_THREAD * self.threads.count if self._can_absorb else self.solver.columns_at_once

    def _mean_unknown_diagonal(self, i: int) -> float:
        raise AssertionError("such relationships are refused before")

    @property
    def description(self) -> str:
        return f"{self.design.n_equations:,} equations, by Monte Carlo with up to {self.most_samples} samples"

    @property
    def step(self) -> str:
        return "for an iteration"

    @property
    def bytes(self) -> int:
        return self.starts.nbytes + self._columns_wanted * bytes_per_column(self.design)

    @property
    def operations(self) -> float:
        return 0.0

    @property
    def facts(self) -> dict[str, Any]:
        return {"likelihood": "monte_carlo", "samples": self.n_samples}


class SampledPoint:
    """Score and information at one psi."""

    def __init__(self, likelihood: SampledLikelihood, variances: Variances, n_samples: int):
        self.likelihood, self.variances, self.n_samples = likelihood, variances, n_samples
        self.Ginv, self.Rinv = likelihood.solver.Ginv, likelihood.solver.Rinv
        y = np.asarray(likelihood.equations.records.y, np.float64)[:, :, None]
        theta = likelihood.solve(likelihood.solver.weighted_sums(y), slice(0, 1), likelihood.tolerance)
        self.theta = [t[:, :, 0] for t in likelihood.solver.split(theta)]  # sweep order
        self.e = np.where(likelihood.observed, (y - likelihood.fit(theta))[:, :, 0], 0.0)

    @property
    def log_likelihood(self) -> float:
        return np.nan

    @property
    def residuals(self) -> np.ndarray:
        """Residuals e (n, T), records in model order; 0 where not observed."""
        out = np.empty(self.e.shape)
        out[self.likelihood.equations.records.record] = self.e
        return out

    @property
    def solutions(self) -> list[np.ndarray]:
        """BLUE and BLUP at these variances, (q, k) per term, on the scale of the equations."""
        return self.likelihood.solver.to_model_order(np.concatenate([t.ravel() for t in self.theta]))

    @property
    def inverse_diagonal(self) -> np.ndarray:
        raise NotImplementedError("prediction error variances are computed once, at the estimates")

    def solve_equations(self, b: np.ndarray) -> np.ndarray:
        raise NotImplementedError("solutions are computed once, at the estimates")

    @cached_property
    def simulated_forms(self) -> list[Variances]:
        """1/2 G^-1 S* G^-1 and 1/2 sum_p R_p^-1 E_p* R_p^-1 of each sample."""
        likelihood, out = self.likelihood, []
        likelihood.set_variances(self.variances)
        for numbers in _batches(1, self.n_samples + 1, likelihood.columns_at_once):
            y = likelihood.simulated.draw(numbers, self.variances)
            theta = likelihood.solve(
                likelihood.solver.weighted_sums(y), slice(numbers.start, numbers.stop), likelihood.tolerance
            )
            e = y - likelihood.fit(theta)
            terms = likelihood.solver.split(theta)
            out += [self.quadratic_forms([t[:, :, j] for t in terms], e[:, :, j]) for j in range(len(numbers))]
        return out

    def quadratic_forms(self, theta: Sequence[np.ndarray], e: np.ndarray) -> Variances:
        """1/2 G^-1 S G^-1 and 1/2 sum_p R_p^-1 E_p R_p^-1 of one solution."""
        likelihood = self.likelihood
        equations = likelihood.equations
        G: list[np.ndarray | None] = [None] * len(theta)
        for i in likelihood.random:
            values, dense = np.ascontiguousarray(theta[i]), equations.dense[i]
            S = quadratic_form(equations.relationships[i], values)
            S = S if dense is None else S + dense_quadratic_form(dense, values, likelihood.threads)
            G[i] = 0.5 * self.Ginv[i] @ S @ self.Ginv[i]
        products = np.zeros(self.Rinv.shape)
        sum_record_products(equations.records, np.ascontiguousarray(e), products)
        R = np.zeros(self.variances.R.shape)
        for c, inverse, E in zip(likelihood.matrices.sizes.class_of_pattern, self.Rinv, products, strict=True):
            R[c] += 0.5 * inverse @ E @ inverse
        return Variances(G, R)

    @cached_property
    def derivatives(self) -> Variances:
        """D of each matrix."""
        observed, total, m = self.quadratic_forms(self.theta, self.e), self.simulated_forms[0], self.n_samples
        for sample in self.simulated_forms[1:]:
            total = Variances([_add(a, b) for a, b in zip(total.G, sample.G, strict=True)], total.R + sample.R)
        G = [None if a is None or b is None else a - b / m for a, b in zip(observed.G, total.G, strict=True)]
        return Variances(G, observed.R - total.R / m)

    def average_information(self, places: Sequence[Place]) -> np.ndarray:
        """Compute 1/2 F' P F (p, p) of p elements, F = (dV/dpsi) P y the working variates.

        X = C^-1 B, B = W'R^-1 F, is known to a residual B - C X. With

            F' P F = F' R^-1 (F - W X) - X' (B - C X)

        the error is of second order in that of X.
        """
        likelihood, solver, p = self.likelihood, self.likelihood.solver, len(places)
        likelihood.set_variances(self.variances)
        rows = slice(1 + likelihood.most_samples, 1 + likelihood.most_samples + p)
        units = [theta @ inverse for theta, inverse in zip(self.theta, self.Ginv, strict=True)]
        weighted = self._weigh_residuals()
        batches = list(_batches(0, p, likelihood.columns_at_once))
        for numbers in batches:
            F = self._working_variates(units, weighted, [places[k] for k in numbers])
            batch = slice(rows.start + numbers.start, rows.start + numbers.stop)
            likelihood.solve(solver.weighted_sums(F), batch, TOLERANCE_OF_INFORMATION, relative=True)
        X, out = likelihood.starts[rows], np.empty((p, p))
        for numbers in batches:
            F = self._working_variates(units, weighted, [places[k] for k in numbers])
            x = np.ascontiguousarray(X[numbers.start : numbers.stop].T, dtype=np.float64)
            remainder = np.ascontiguousarray((solver.weighted_sums(F) - solver.times(x)).T)
            F -= likelihood.fit(x)
            weigh(likelihood.equations.records, self.Rinv, F)
            sums = [np.zeros(t.shape) for t in solver.split(x)]
            for lists, total in zip(likelihood.equations.terms, sums, strict=True):
                add_transpose_matvec(lists, F, total)
            for j, number in enumerate(numbers):
                out[:, number] = self._multiply_by_variates(
                    units, weighted, [s[:, :, j] for s in sums], F[:, :, j], places
                )
                with blas_threads(1):  # sums in one order
                    out[:, number] -= [float(x_k.astype(np.float64) @ remainder[j]) for x_k in X]
        return (out + out.T) / 4

    def _weigh_residuals(self) -> np.ndarray:
        """Compute R_P^-1 e_r, (n, T)."""
        return np.einsum("rtu,ru->rt", self.Rinv[self.likelihood.equations.records.pattern], self.e)

    def _working_variates(
        self, units: Sequence[np.ndarray], weighted: np.ndarray, places: Sequence[Place]
    ) -> np.ndarray:
        """Compute F (n, T, m) in sweep order; units: Theta_j G^-1 (q, k) per term, weighted: R_P^-1 e_r (n, T)."""
        F = working_residuals(places, weighted, self.likelihood.class_of_record)
        for lists, effects in zip(self.likelihood.equations.terms, working_effects(places, units), strict=True):
            if effects.any():
                add_matvec(lists, effects, F)
        return F

    def _multiply_by_variates(
        self,
        units: Sequence[np.ndarray],
        weighted: np.ndarray,
        sums: Sequence[np.ndarray],
        projected: np.ndarray,
        places: Sequence[Place],
    ) -> np.ndarray:
        """Compute f_k' g (p,) of all working variates f_k; projected: g (n, T), sums: W_j' g (q, k) per term."""
        likelihood = self.likelihood
        with blas_threads(1):  # sums in one order
            term_products = {i: np.ascontiguousarray(sums[i]).T @ units[i] for i in likelihood.random}
            class_products = [
                np.ascontiguousarray(projected)[in_class].T @ weighted[in_class]
                for in_class in (likelihood.class_of_record == c for c in range(len(self.variances.R)))
            ]
        out = []
        for term, residual_class, a, b in places:
            products = class_products[residual_class] if term is None else term_products[term]
            out.append(products[a, b] + (products[b, a] if a != b else 0.0))
        return np.array(out)


def _add(a: np.ndarray | None, b: np.ndarray | None) -> np.ndarray | None:
    return None if a is None or b is None else a + b


def _batches(first: int, last: int, size: int) -> Iterator[range]:
    """first ... last - 1 in ranges of at most `size`."""
    return (range(at, min(at + size, last)) for at in range(first, last, size))


@kernel
def sum_record_products(records, e, out):
    """out_p += sum_{r of p} w_r e_r e_r': e (n, T), out (patterns, T, T) float64 in place."""
    for r in range(np.uint64(e.shape[0])):
        p = records.pattern[r]
        w = np.float64(records.weight[r]) if records.weight.size > 0 else 1.0
        for t in range(e.shape[1]):
            for u in range(e.shape[1]):
                out[p, t, u] += w * e[r, t] * e[r, u]
