"""The coefficients of all groups and chains in lockstep, array by array: the plain form of the loops and the kernels.

A lane is a group of a chain. Every lane takes the same step at the same moment; a mask keeps those that are done out
of it. Counters are those of kernels.py and polya_gamma.py, so both draw the same chain up to rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from mmgibbs.draws.purpose import REGRESSION_COEFFICIENT, REGRESSION_LATENT, REGRESSION_SLICE, stream
from mmgibbs.errors import ModelError
from mmgibbs.machine.threads import fold
from mmgibbs.regressions.arrays.base import Arrays, added
from mmgibbs.regressions.hierarchical.grouped import Groups
from mmgibbs.regressions.hierarchical.slice import HierarchicalSliceOptions
from mmgibbs.regressions.protocol import Keys

Array = np.ndarray

LANE = 64  # observations in a piece of a group
UNIFORMS = 16  # of a slice step at first; more where a lane needs them
MOST_UNIFORMS = 512


def slice_steps(h: Callable[[Array], Array], width: Array, most_steps: int, uniforms: Callable[[int], Array]) -> Array:
    """(C, G) moves d: slice steps of all lanes, see slice_kernels.slice_step. h(d) (C, G) log density of each lane
    less that at 0.

    uniforms(k): (C, G, k), the same ones at the head for a larger k. ModelError where a lane finds nothing.
    """
    u = uniforms(UNIFORMS)
    log_u = np.log(u[..., 0])
    lower = -width * u[..., 1]
    right = lower + width
    steps = (most_steps * u[..., 2]).astype(np.int64)
    for end, sign, most in ((lower, -1, steps), (right, 1, most_steps - 1 - steps)):
        growing, taken = most > 0, 0
        while bool(growing.any()):
            growing &= h(end) > log_u
            end += sign * width * growing
            taken += 1
            growing &= most > taken
    d, open_ = np.zeros(width.shape), np.ones(width.shape, bool)
    at = 3
    while bool(open_.any()):
        if at == u.shape[2]:
            if at == MOST_UNIFORMS:
                raise ModelError(
                    f"slice sampling: no candidate accepted after {at - 3}; most likely a predictor's scale is "
                    "extreme; needed standardised predictors"
                )
            u = uniforms(min(4 * at, MOST_UNIFORMS))
        candidate = lower + u[..., at] * (right - lower)
        inside = h(candidate) > log_u
        d = np.where(open_ & inside, candidate, d)
        open_ &= ~inside
        lower = np.where(open_ & (candidate < 0), candidate, lower)
        right = np.where(open_ & (candidate >= 0), candidate, right)
        at += 1
    return d


class LockstepVisits:
    """All coefficients of all groups and chains at once."""

    def __init__(self, groups: Groups, options: HierarchicalSliceOptions, arrays: Arrays):
        self.options, self.arrays = options, arrays
        self.M, self.D = groups.cross.shape[1:]
        ptr = groups.ptr
        blocks = [
            groups.columns[self.D * a : self.D * b].reshape(self.D, -1) for a, b in zip(ptr[:-1], ptr[1:], strict=True)
        ]
        X = (np.concatenate(blocks, axis=1) - groups.centre[:, None]) * groups.factor[:, None]
        self.X = arrays.asarray(X, np.float32 if options.precision == "single" else np.float64)
        self.cross, self.trials = arrays.asarray(groups.cross), arrays.asarray(groups.trials)
        self.member = arrays.asarray(np.repeat(np.arange(len(ptr) - 1), np.diff(ptr)))
        self.starts, self.first = (arrays.asarray(a) for a in fold(ptr, LANE))

    def total(self, values: Array) -> Array:
        """Sums over the observations of each group, in a fixed order: (C, n) -> (C, G)."""
        return np.add.reduceat(np.add.reduceat(values, self.starts, axis=1), self.first, axis=1)

    def __call__(self, beta: Array, Q: Array, mean: Array, width: Array, sweep: int, keys: Keys) -> None:
        """beta (C, G, d) in place; Q (C, d, d); mean, width (C, G, d)."""
        of_class = self._slices if self.options.method == "slice" else self._polya_gamma
        eta = [self._predictor(beta, k) for k in range(self.M)]
        for k in range(self.M):
            log_sums = self._log_sum_except(eta, k)
            of_class(k, eta[k] - log_sums, log_sums, beta, Q, mean, width, sweep, keys)
            if self.M > 1:
                eta[k] = self._predictor(beta, k)

    def _predictor(self, beta: Array, k: int) -> Array:
        return added(self.X[j] * beta[:, self.member, k * self.D + j] for j in range(self.D))

    def _log_sum_except(self, eta: Sequence[Array], k: int) -> Array:
        """log sum_{l != k} exp(eta_l), the reference class with eta = 0 among them; 0 where it is the only one."""
        total = np.zeros_like(eta[k])
        for m in range(self.M):
            if m != k:
                total = np.logaddexp(total, eta[m])
        return total

    def _loss(self, psi: Array) -> Array:
        if self.options.family == "poisson":
            return self.total(np.exp(psi))
        return self.total(self.trials * (np.maximum(psi, 0) + np.log1p(np.exp(-np.abs(psi)))))

    def _slices(
        self,
        k: int,
        psi: Array,
        log_sums: Array,
        beta: Array,
        Q: Array,
        mean: Array,
        width: Array,
        sweep: int,
        keys: Keys,
    ) -> None:
        for j in range(self.D):
            c, x = k * self.D + j, self.X[j]
            linear = self.cross[:, k, j] - ((beta - mean) @ Q[:, :, c, None])[..., 0]
            loss_at_zero, curvature = self._loss(psi), Q[:, c, c, None]
            name = stream(REGRESSION_SLICE, c)
            d = slice_steps(
                lambda d: d * (linear - 0.5 * curvature * d) - (self._loss(psi + x * d[:, self.member]) - loss_at_zero),  # noqa: B023
                width[:, :, c],
                self.options.most_steps,
                lambda n: self.arrays.uniforms(keys, sweep, name, beta.shape[1], n),  # noqa: B023
            )
            beta[:, :, c] += d
            psi = psi + x * d[:, self.member]

    def _polya_gamma(
        self,
        k: int,
        psi: Array,
        log_sums: Array,
        beta: Array,
        Q: Array,
        mean: Array,
        width: Array,
        sweep: int,
        keys: Keys,
    ) -> None:
        D = self.D
        columns = slice(k * D, (k + 1) * D)
        omega = self.arrays.polya_gammas(keys, sweep, stream(REGRESSION_LATENT, k), self.trials.astype(np.int64), psi)
        away = beta - mean
        away[:, :, columns] = -mean[:, :, columns]
        rhs = self.cross[:, k] - away @ Q[:, :, columns]
        pull = omega * log_sums - 0.5 * self.trials
        P = np.tile(Q[:, None, columns, columns], (1, beta.shape[1], 1, 1))
        for j in range(D):
            rhs[:, :, j] += self.total(self.X[j] * pull)
            for m in range(j + 1):
                P[:, :, j, m] += self.total(omega * self.X[j] * self.X[m])
                P[:, :, m, j] = P[:, :, j, m]
        z = self.arrays.normals(keys, sweep, stream(REGRESSION_COEFFICIENT, k), beta.shape[1], D).reshape(rhs.shape)
        beta[:, :, columns] = self._draw_normal(self.arrays.cholesky(P), rhs, z)

    def _draw_normal(self, L: Array, rhs: Array, z: Array) -> Array:
        """Draws of N(P^-1 rhs, P^-1), P = L L' (C, G, D, D), by substitution in all lanes at once."""
        x = np.array(rhs)
        for j in range(self.D):
            x[..., j] = (x[..., j] - (L[..., j, :j] * x[..., :j]).sum(-1)) / L[..., j, j]
        x += z
        for j in reversed(range(self.D)):
            x[..., j] = (x[..., j] - (L[..., j + 1 :, j] * x[..., j + 1 :]).sum(-1)) / L[..., j, j]
        return x
