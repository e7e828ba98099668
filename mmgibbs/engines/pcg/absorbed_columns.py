"""Several right-hand sides by the equations that are left when levels are absorbed, a column at a time on each thread.

A product with C of one vector reads rows of theta as vectors of the processor (rows.py), and absorption takes about
half as many iterations. So for records of a few traits this takes half the time of `solve_columns`, which shares passes
over the data among columns.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from mmgibbs.engines.pcg.absorption import AbsorbedEquations, absorbed_equations
from mmgibbs.engines.pcg.solver import Columns, PcgSolver, column_products, conjugate_gradients, refuse_unsolved
from mmgibbs.machine.threads import ALONE


class AbsorbedColumns:
    """Solves C x_j = b_j at the variances of a solver."""

    def __init__(self, solver: PcgSolver, equations: AbsorbedEquations):
        self.solver = solver
        self._copies = [equations, *(equations.copy_for_thread() for _ in range(solver.threads.count - 1))]

    def solve(self, b: np.ndarray, start: np.ndarray, tolerance: float, relative: bool = False) -> Columns:
        """Solve as `PcgSolver.solve_columns`, with M the inverse diagonal blocks of the remaining equations."""
        N, m = b.shape
        x, iterations, error, reached = np.empty((N, m)), np.zeros(m, np.int64), np.zeros(m), np.zeros(m)
        available = list(self._copies)

        def solve_column(j: int) -> None:
            equations = available.pop()  # as many as there are threads
            try:
                x[:, j], iterations[j], error[j], reached[j] = self._solve_column(
                    equations, np.ascontiguousarray(b[:, j]), np.ascontiguousarray(start[:, j]), tolerance, relative
                )
            finally:
                available.append(equations)

        self.solver.threads([partial(solve_column, j) for j in range(m)])
        refuse_unsolved(self.solver.equations.design, iterations, error, tolerance)
        return Columns(x, iterations, error, reached)

    def _solve_column(
        self, equations: AbsorbedEquations, b: np.ndarray, start: np.ndarray, tolerance: float, relative: bool
    ) -> tuple[np.ndarray, int, float, float]:
        right = equations.right_hand_side(b)[:, None]
        times = lambda v: equations.product(v[:, 0])[:, None]
        precondition = lambda v: equations.preconditioned(v[:, 0])[:, None]
        size = np.array([float(max(1, self.solver.equations.n_equations))])
        if relative:
            size = column_products(right, precondition(right))
        limit = self.solver.iteration_limit
        at, residual, squares, iterations = conjugate_gradients(
            times, precondition, right, equations.keep(start)[:, None], tolerance**2 * size, limit
        )
        theta = self.solver.zero_held(equations.solution(at[:, 0], b))
        norm = float(np.linalg.norm(b))
        error = float(np.sqrt(squares[0] / (size[0] if size[0] > 0 else 1.0)))
        return theta, int(iterations[0]), error, float(np.linalg.norm(residual)) / (norm if norm > 0 else 1.0)


def absorbed_columns(solver: PcgSolver) -> AbsorbedColumns | None:
    """Build the solver of absorbed equations; None where no levels can be absorbed."""
    inverses = solver.inverse_blocks
    equations = absorbed_equations(solver.equations, solver.bounds, ALONE, inverses, solver.Ginv, solver.Rinv)
    return None if equations is None else AbsorbedColumns(solver, equations)
