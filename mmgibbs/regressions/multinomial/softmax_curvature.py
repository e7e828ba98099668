"""Curvature of the log posterior of the multinomial logit, for the mass matrices of Hamiltonian Monte Carlo.

Minus the Hessian at B is sum_i n_i C(p_i) (x) z_i z_i' + prior, with the row's probabilities p_i and C(p) = diag(p) - p
p'. It is brought to one product of a matrix of the classes and one of the predictors: with w_i = n_i tr C(p_i),

    S = sum_i n_i C(p_i) / sum_i w_i,      A = sum_i w_i z_i z_i' + prior,      M = S (x) A,

exact where all rows have the same C up to a factor. The share FLOOR of C(f), f the classes' frequencies, is added to
each C(p_i): rows that are certain at B are not so everywhere in the posterior, and a mass too small makes all steps
small.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mmgibbs.regressions.multinomial.hamiltonian import KroneckerMass
from mmgibbs.regressions.multinomial.softmax_gradient import softmax
from mmgibbs.regressions.predictors import Predictors

FLOOR = 0.05


class SoftmaxCurvature:
    """response: codes (n,) or counts (n, K); prior_precision: (D,), D = p, or p + 1 with an intercept last."""

    def __init__(
        self,
        predictors: Predictors,
        response: np.ndarray,
        n_classes: int,
        prior_precision: np.ndarray,
        intercept: bool,
        real: npt.DTypeLike = np.float64,
    ):
        self.Z, self.prior_precision, self.intercept, self.real = predictors, prior_precision, intercept, real
        counts = response.ndim == 2
        counted = response.sum(0) if counts else np.bincount(response, minlength=n_classes)
        self.frequencies = (counted + 1.0) / (counted.sum() + n_classes)
        self.trials = response.sum(1).astype(np.float64) if counts else np.ones(predictors.n)

    def position(self) -> np.ndarray:
        """(K - 1, D): where every row has the classes' frequencies; 0 without an intercept."""
        f, p = self.frequencies, self.Z.p
        B = np.zeros((len(f) - 1, p + self.intercept))
        B[:, p:] = np.log(f[:-1] / f[-1])[:, None]
        return B

    def inverse_diagonal(self) -> np.ndarray:
        """(K - 1, D): 1 / the diagonal of the Hessian where every row has the classes' frequencies."""
        total, f = np.zeros(self.Z.p), self.frequencies[:-1]
        for first, last, X in self.Z.blocks(self.real):
            total += self.trials[first:last] @ ((X - self.Z.centre) / self.Z.scale) ** 2
        diagonal = np.append(total, [self.trials.sum()] * self.intercept)
        return 1 / (np.outer(f - f**2, diagonal) + self.prior_precision)

    def mass(self, at: np.ndarray) -> KroneckerMass:
        """M at B = at (1 or C, K - 1, D)."""
        S, A = zip(*map(self._factors, at), strict=True)
        return KroneckerMass(np.stack(S), np.stack(A))

    def _factors(self, B: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        Z, p, n, f = self.Z, self.Z.p, self.trials, self.frequencies[:-1]
        P = Z.times(B[:, :p].T, self.real).T.astype(np.float64) + B[:, p:].sum(1)[:, None]
        softmax(P[None])
        w = n * ((P - P**2).sum(0) + FLOOR * (f - f**2).sum())
        S = (np.diag(P @ n) - (P * n) @ P.T + FLOOR * n.sum() * (np.diag(f) - np.outer(f, f))) / w.sum()
        A = np.empty((len(self.prior_precision),) * 2)
        A[:p, :p] = Z.gram(w, self.real)
        if self.intercept:
            A[p, :p] = A[:p, p] = Z.transposed_times(w[:, None])[:, 0]
            A[p, p] = w.sum()
        A[np.diag_indices(len(A))] += self.prior_precision / np.diag(S).mean()
        return S, A
