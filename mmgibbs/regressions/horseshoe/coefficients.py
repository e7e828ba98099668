"""Intercept and coefficients given z and the precisions of their priors: exact normal draws, two ways.

    z = 1 a + Z b + e,   b_j ~ N(0, 1/d_j),   a ~ N(0, 1/d_0)  (flat: d_0 = 0)

CoefficientsByGram (p <= n), with W = [Z 1] and Sigma^-1 = W'W + diag(d):

    L L' = Sigma^-1,   u = L^-1 W'z,   misfit = z'z - u'u,   (b, a) = L'^-1 (u + s),  s ~ N(0, I)

CoefficientsByRowGram (n < p; Bhattacharya, Chakraborty & Mallick 2016, O(n^2 p)), with V = I + Z D^-1 Z', a
first, with b integrated out:

    q = d_0 + 1'V^-1 1,   m = 1'V^-1 z / q,   misfit = z'V^-1 z - q m^2,   a ~ N(m, 1/q)
    c ~ N(0, D^-1),  f ~ N(Z c, I),   b = c + D^-1 Z'V^-1 (z - 1 a - f)

In both misfit = z'(I - W Sigma W')z, which the expansion of the parameters needs: z may still be multiplied by g (the
same for each row) once misfit is known, and `draw(g)` gives the coefficients of g z.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from mmgibbs.draws.purpose import REGRESSION_COEFFICIENT, stream
from mmgibbs.errors import ModelError
from mmgibbs.regressions.arrays.base import Arrays
from mmgibbs.regressions.horseshoe.rows import Latent, ProbitRows
from mmgibbs.regressions.protocol import Array, Keys

SMALLEST_MISFIT = 1e-10  # over z'z: 6 digits of it are known
COLUMN_BLOCK = 256  # columns of Z that are scaled and multiplied while they are in the cache
COEFFICIENTS = stream(REGRESSION_COEFFICIENT, 0)
INTERCEPT = stream(REGRESSION_COEFFICIENT, 1)
ROW_NOISE = stream(REGRESSION_COEFFICIENT, 2)


class CoefficientsByGram:
    """gram: (p + 1, p + 1), W'W; or W'QW for rows that weigh Q. `keep_z`: does `given` need z itself?"""

    keep_z = False

    def __init__(self, gram: np.ndarray, arrays: Arrays):
        self.arrays, self.gram = arrays, arrays.asarray(gram)
        self.p = len(gram) - 1

    def factor(self, precision: Array) -> Array:
        """L of Sigma^-1, (C, p + 1, p + 1); precision (C, p + 1), the intercept's last."""
        diagonal = self.arrays.xp.arange(self.p + 1)
        A = self.arrays.xp.repeat(self.gram[None], len(precision), axis=0)
        A[:, diagonal, diagonal] += precision
        try:
            return self.arrays.cholesky(A, overwrite=True)
        except np.linalg.LinAlgError as error:
            raise ModelError(
                "the coefficients' precision is no longer positive definite: found predictors that depend on each "
                "other linearly while their prior is nearly flat; needed independent columns, standardised columns, or "
                "slab_scale"
            ) from error

    def given(self, latent: Latent, precision: Array) -> CoefficientsByGram.Posterior:
        L = self.factor(precision)
        half = self.arrays.solve_lower(L, latent.right)
        return self.Posterior(self, L, half, latent.square - (half**2).sum(1))

    @dataclass
    class Posterior:
        fit: CoefficientsByGram
        L: Array
        half: Array  # (C, p + 1): L^-1 W'z
        misfit: Array  # (C,)

        def draw(self, g: Array, keys: Keys, sweep: int) -> tuple[Array, Array]:
            """beta (C, p) and intercept (C,) given g z."""
            a = self.fit.arrays
            both = a.solve_lower(
                self.L, g[:, None] * self.half + a.normals(keys, sweep, COEFFICIENTS, self.fit.p + 1), transposed=True
            )
            return both[:, :-1], both[:, -1]


class CoefficientsByRowGram:
    """Draw of coefficients for n < p. Nothing of the size p x p is formed."""

    keep_z = True

    def __init__(self, rows: ProbitRows, arrays: Arrays):
        self.arrays, self.rows, self.real, self.n, self.p = arrays, rows, rows.real, rows.n, rows.p

    def columns(self) -> Iterator[tuple[slice, Array]]:
        """(where, Z[:, where]) a block of columns at a time, in the working type."""
        r = self.rows
        for first in range(0, self.p, COLUMN_BLOCK):
            at = slice(first, min(first + COLUMN_BLOCK, self.p))
            yield at, ((r.values[:, at] - r.centre[at]) / r.scale[at]).astype(self.real)

    def given(self, latent: Latent, precision: Array) -> CoefficientsByRowGram.Posterior:
        xp, C = self.arrays.xp, len(precision)
        sd = 1.0 / xp.sqrt(precision[:, :-1])
        V = xp.repeat(xp.eye(self.n)[None], C, axis=0)
        for at, Z in self.columns():
            for c in range(C):
                half = Z * sd[c, at].astype(self.real)
                V[c] += half @ half.T
        L = self.arrays.cholesky(V, overwrite=True)
        assert latent.z is not None, "it is kept for those who say keep_z"
        half, solved_ones = self.arrays.solve_lower(L, latent.z), self.arrays.solve_lower(L, xp.ones((C, self.n)))
        q = precision[:, -1] + (solved_ones**2).sum(1)
        m = (solved_ones * half).sum(1) / q
        return self.Posterior(self, L, latent.z, sd, q, m, (half**2).sum(1) - q * m**2)

    @dataclass
    class Posterior:
        fit: CoefficientsByRowGram
        L: Array
        z: Array  # (C, n)
        sd: Array  # (C, p): 1 / sqrt(d)
        q: Array  # (C,): precision of the intercept with b integrated out
        m: Array  # (C,): its mean
        misfit: Array  # (C,)

        def draw(self, g: Array, keys: Keys, sweep: int) -> tuple[Array, Array]:
            """beta (C, p) and intercept (C,) given g z."""
            f, a, xp = self.fit, self.fit.arrays, self.fit.arrays.xp
            C = len(keys)
            intercept = g * self.m + a.normals(keys, sweep, INTERCEPT, 1)[:, 0] / xp.sqrt(self.q)
            c = self.sd * a.normals(keys, sweep, COEFFICIENTS, f.p)
            fitted = a.normals(keys, sweep, ROW_NOISE, f.n)
            for at, Z in f.columns():
                for k in range(C):
                    fitted[k] += Z @ c[k, at].astype(f.real)
            residual = g[:, None] * self.z - intercept[:, None] - fitted
            residual = a.solve_lower(self.L, a.solve_lower(self.L, residual), transposed=True).astype(f.real)
            for at, Z in f.columns():
                for k in range(C):
                    c[k, at] += self.sd[k, at] ** 2 * (residual[k] @ Z)
            return c, intercept
