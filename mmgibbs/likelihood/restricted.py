"""The restricted likelihood of the variances psi and its derivatives by covariance matrices, as REML needs them.

With the location effects theta integrated out (Harville 1974; flat fixed effects too),

    log p(y | psi) = -1/2 [ sum_r log|R_r| + sum_j (q_j log|G_j| + k_j log|K_j|) + log|C| + y'Py + (N - p) log 2 pi ]

    y'Py = sum_r e_r' R_r^-1 e_r + sum_j tr(G_j^-1 Theta_j' K_j^-1 Theta_j)        at C theta = W' R^-1 y

N observations, p fixed equations. C is filled from lists (coefficients.py), without a product of matrices for each psi.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from scipy.sparse import csr_array

from mmgibbs.equations.base import refuse_reduced_rank
from mmgibbs.likelihood.coefficients import Blocks, Coefficients, coefficients
from mmgibbs.likelihood.matrices import Variances
from mmgibbs.likelihood.memory import refuse_large_lists
from mmgibbs.likelihood.records import RecordsLikelihood, RecordsPoint
from mmgibbs.models.design import Design


class RestrictedLikelihood(RecordsLikelihood):
    """log p(y | psi) of any design with normal traits.

    of_terms, of_residuals: components that may covary (see coefficients).
    """

    name = "sparse"

    def __init__(self, design: Design, of_terms: Sequence[Blocks | None], of_residuals: Sequence[Blocks]):
        refuse_large_lists(design, of_terms)
        refuse_reduced_rank(design)
        super().__init__(design)
        self.coefficients: Coefficients = coefficients(design, of_terms, of_residuals)
        self.symbolic = self.coefficients.symbolic
        self.W = csr_array(self.W_of_theta[:, self.in_force])

    @property
    def bytes(self) -> int:
        return self.coefficients.bytes

    def evaluate(self, variances: Variances) -> Point:
        """ModelError where C is not positive definite there."""
        return Point(self, variances)


class Point(RecordsPoint):
    """The likelihood at one psi; what derivatives need is computed when it is asked for."""

    likelihood: RestrictedLikelihood

    def __init__(self, likelihood: RestrictedLikelihood, variances: Variances):
        super().__init__(likelihood, variances)
        self.Rinv = self._invert(variances)
        factor = likelihood.coefficients.factor_precisions(self.Ginv, self.Rinv)
        self._solve(likelihood.weigh(self.Rinv), likelihood.W, factor)

    @cached_property
    def derivatives(self) -> Variances:
        """D of each matrix."""
        traces = self.likelihood.coefficients.traces(self.selected)
        S = [square + trace for square, trace in zip(self.squares, traces.of_terms, strict=True)]
        return self.likelihood.matrices.differentiate(self.v, S, self._products() + traces.of_records)
