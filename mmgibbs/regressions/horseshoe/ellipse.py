"""A further exact draw of intercept and coefficients with z integrated out: elliptical slice sampling around an
expansion.

Data augmentation moves in steps of the size that z allows. Where most rows are far from 0 (rare positives, strong
effects) they say little of beta but much of z, and the chain crawls. With b a fit made beforehand and W = [Z 1],

    log L(beta) = v'beta - beta' H beta / 2 + rest(beta),    H = W'QW,   v = H b + W'(s r)
    r_i = phi(t_i)/Phi(t_i),   q_i = r_i (r_i + t_i),   t_i = s_i w_i b

and the prior N(0, D^-1), the quadratic part makes a normal N(m, (H + D)^-1). One step of Murray, Adams & MacKay (2010)
around m (Nishihara, Murray & Adams 2014): with f ~ N(0, (H + D)^-1) go to m + (beta - m) cos + f sin, the angle by
slice sampling of `rest` alone. It leaves the posterior given D exactly as it is, whatever b; a good b makes it forget
beta in about one step. Cost: one pass over X (m, beta and f at once), then a log likelihood for each angle tried.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.linalg import cho_factor, cho_solve
from scipy.special import log_ndtr

from mmgibbs.draws.purpose import REGRESSION_COEFFICIENT, REGRESSION_SLICE, stream
from mmgibbs.regressions.arrays.base import Arrays
from mmgibbs.regressions.horseshoe.coefficients import CoefficientsByGram
from mmgibbs.regressions.horseshoe.rows import ProbitRows
from mmgibbs.regressions.horseshoe.slice import slice_step
from mmgibbs.regressions.predictors import Predictors
from mmgibbs.regressions.protocol import Array, Keys

RIDGE = 1e-4  # prior precision of the fit for columns of mean square 1, so that a fit exists
NEWTON_STEPS = 50
CONVERGED = 1e-4  # twice what a further Newton step could add to the log likelihood
ROWS_OF_A_CLASS = 4  # times p + 1: rows of each class in the first look for a separating plane
ELLIPSE = stream(REGRESSION_COEFFICIENT, 3)
ANGLE = stream(REGRESSION_SLICE, 0)


@dataclass(frozen=True)
class Fit:
    b: np.ndarray  # (p + 1,) coefficients of the standardised columns, then the intercept
    separated: bool  # every row lies on its side of the plane


def expansion(rows: ProbitRows, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(W'(s r), W'QW) at b: gradient and curvature of the log likelihood."""
    t = rows.sign * _eta(rows, b)
    r = np.exp(-0.5 * t**2 - log_ndtr(t)) / np.sqrt(2 * np.pi)
    return rows.transposed(rows.sign * r), rows.gram(r * (r + t))


def probit_fit(rows: ProbitRows, b: np.ndarray | None = None) -> Fit:
    """Newton's method with a very weak ridge; it ends when all rows are on their side:
    the classes are then separated.
    """
    b = np.zeros(rows.p + 1) if b is None else b
    ridge = None
    for _ in range(NEWTON_STEPS):
        if np.all(rows.sign * _eta(rows, b) > 0):
            return Fit(b, True)
        gradient, H = expansion(rows, b)
        if ridge is None:
            ridge = RIDGE * np.append(np.maximum(np.diag(rows.gram())[:-1] / rows.n, 1e-300), 0.0)
        gradient -= ridge * b
        step = cho_solve(cho_factor(H + np.diag(ridge), lower=True), gradient)
        if step @ gradient < CONVERGED:
            break
        value = penalised_log_likelihood(rows, b, ridge)
        while penalised_log_likelihood(rows, b + step, ridge) < value:
            step *= 0.5
        b = b + step
    return Fit(b, False)


def separated(X: Predictors, positive: np.ndarray, arrays: Arrays, real: npt.DTypeLike) -> bool:
    """Check whether a plane with every row on its own side was found.

    Rows of each class are looked at, four times as many while they are separated: a part that cannot be separated
    settles it for all.
    """
    if X.n <= X.p:
        Z = (X.values - X.centre) / X.scale
        K = Z @ Z.T
        K = K / max(np.trace(K) / X.n, 1e-300) + 1.0
        sign = np.where(positive, 1.0, -1.0)
        return bool(np.all(sign * (K @ np.linalg.solve(K + 1e-8 * np.eye(X.n), sign)) > 0))
    most = ROWS_OF_A_CLASS * (X.p + 1)
    while True:
        rows = np.sort(np.concatenate([_spread(np.flatnonzero(positive == side), most) for side in (True, False)]))
        subset = Predictors(X.values[rows], X.names, X.centre, X.scale)
        is_separated = probit_fit(ProbitRows(subset, positive[rows], arrays, real)).separated
        if not is_separated or len(rows) == X.n:
            return is_separated
        most *= 4


class Ellipse:
    """The step around the expansion at b (p + 1,)."""

    def __init__(self, rows: ProbitRows, b: np.ndarray, gradient: np.ndarray, H: np.ndarray, arrays: Arrays):
        self.rows, self.arrays, self.fit = rows, arrays, CoefficientsByGram(H, arrays)
        self.right = arrays.asarray(H @ b + gradient)

    def draw(
        self, beta: Array, intercept: Array, precision: Array, keys: Keys, sweep: int
    ) -> tuple[Array, Array, Array]:
        """(beta (C, p), intercept (C,), angles tried (C,)); precision (C, p + 1) of the priors."""
        a, xp = self.arrays, self.arrays.xp
        L = self.fit.factor(precision)
        mean = a.solve_lower(L, a.solve_lower(L, xp.repeat(self.right[None], len(keys), axis=0)), transposed=True)
        f = a.solve_lower(L, a.normals(keys, sweep, ELLIPSE, self.fit.p + 1), transposed=True)
        axes = xp.stack([mean, xp.concatenate([beta, intercept[:, None]], 1) - mean, f], 1)  # (C, 3, p + 1)
        curved = xp.stack([xp.stack([self.fit.gram @ w for w in chain]) for chain in axes])
        quadratic = (axes[:, :, None] * curved[:, None]).sum(-1)  # (C, 3, 3)
        linear = (axes * self.right).sum(-1)
        eta = self.rows.eta(axes[..., :-1], axes[..., -1])

        def rest(angle: Array, chains: np.ndarray) -> Array:
            at = xp.stack([xp.ones_like(angle), xp.cos(angle), xp.sin(angle)], 1)
            normal = (at * linear[chains]).sum(1) - 0.5 * (at[:, :, None] * quadratic[chains] * at[:, None]).sum((1, 2))
            return self.rows.log_likelihood(lambda rows: (at[:, :, None] * eta[chains, :, rows]).sum(1)) - normal

        angle, tries = slice_step(rest, 2 * np.pi, keys, sweep, ANGLE, a)
        both = mean + axes[:, 1] * xp.cos(angle)[:, None] + f * xp.sin(angle)[:, None]
        return both[:, :-1], both[:, -1], tries


def _eta(rows: ProbitRows, b: np.ndarray) -> np.ndarray:
    return rows.eta(b[None, None, :-1], b[None, -1:])[0, 0]


def penalised_log_likelihood(rows: ProbitRows, b: np.ndarray, ridge: np.ndarray) -> float:
    """Log likelihood of b (p + 1,), less b' diag(ridge) b / 2."""
    eta = _eta(rows, b)[None]
    return float(rows.log_likelihood(lambda rows_of_chunk: eta[:, rows_of_chunk])[0]) - 0.5 * float(b @ (ridge * b))


def _spread(rows: np.ndarray, most: int) -> np.ndarray:
    return rows if len(rows) <= most else rows[np.linspace(0, len(rows) - 1, most).astype(np.int64)]
