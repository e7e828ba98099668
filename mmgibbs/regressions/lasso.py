"""The Bayesian lasso (Park & Casella 2008) by the two-block Gibbs sampler of Rajaratnam et al. (2019).

    y | alpha, beta, sigma^2 ~ N(1 alpha + Z beta, sigma^2 I),    alpha flat,    sigma^2 ~ IG(a, b)
    beta_j | sigma^2, tau_j^2 ~ N(0, sigma^2 tau_j^2)
    tau_j^2 ~ Exp(lambda^2 / 2),    lambda^2 ~ Gamma(r, rate delta)

so that beta_j | sigma^2 is Laplace with rate lambda / sigma. Z are the predictors, centred (which integrates alpha out
of all that follows) and, where they are standardised, of length 1; y is centred. With D = diag(tau^2), one sweep is

    sigma^2 | tau            ~ IG(a + (n - 1)/2, b + y' (I + Z D Z')^-1 y / 2)          beta is integrated out
    beta | sigma^2, tau      ~ N(A^-1 Z'y, sigma^2 A^-1),    A = Z'Z + D^-1             at once after its sigma^2
    1/tau_j^2 | beta, sigma^2, lambda ~ InvGauss(lambda sigma / |beta_j|, lambda^2)
    lambda^2 | tau           ~ Gamma(r + p, rate delta + sum_j tau_j^2 / 2)

A record of weight w counts as w equal records: with W = diag(w), n is the sum of the weights, means are weighted, and
rows of Z and y are multiplied by sqrt(w), so that Z'Z, Z'y and y'y are Z'WZ, Z'Wy and y'Wy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from mmgibbs.draws.purpose import (
    REGRESSION_COEFFICIENT,
    REGRESSION_GLOBAL_SCALE,
    REGRESSION_LOCAL_SCALE,
    REGRESSION_RESIDUAL,
    REGRESSION_START,
    stream,
)
from mmgibbs.draws.shrinkage import lasso_means, lasso_rate
from mmgibbs.regressions.arrays.base import Arrays, Host
from mmgibbs.regressions.description import Columns, Description, predictors_counted, predictors_words
from mmgibbs.regressions.lasso_device import LARGEST_PIVOT, LassoChains
from mmgibbs.regressions.numbers import read_numbers
from mmgibbs.regressions.options import option
from mmgibbs.regressions.predictors import Predictors
from mmgibbs.regressions.protocol import Array, Keys, Parameter, RegressionData, State

REFINEMENTS = 3  # of least squares
RIDGE = 1e-12  # of the longest column's square, so that predictors that depend on each other have a factor, too
COLUMN_BLOCK = 256  # columns of Z that are scaled and multiplied while they are in the cache


@dataclass(frozen=True)
class LassoOptions:
    penalty: float | None = option(None, "lambda, fixed; sampled if absent", above=0)
    penalty_shape: float = option(1.0, "r of the prior of lambda^2, Gamma(r, rate delta)", above=0)
    penalty_rate: float = option(1.78, "delta of the prior of lambda^2, for predictors of length 1", above=0)
    residual_shape: float = option(0.0, "a of the prior of sigma^2, inverse gamma(a, b)", least=0)
    residual_scale: float = option(0.0, "b of the prior of sigma^2", least=0)
    precision: Literal["double", "single"] = option(
        "double", "type in which predictors are multiplied in each sweep (n < p); sums and draws are float64"
    )


class Lasso:
    """Linear regression with Laplace priors on the coefficients."""

    name = "bayesian_lasso"
    standardise = True
    Options = LassoOptions

    @staticmethod
    def prepare(data: RegressionData, options: LassoOptions, arrays: Arrays) -> LassoSampler:
        """DataError for a response that is not one finite number for each row, or has the same value in all."""
        X, y = data.predictors, read_numbers(data.response, data.predictors.n, data.response_name)
        return LassoSampler(X, y, options, arrays, data.weights)

    @staticmethod
    def predict(draws: Mapping[str, np.ndarray], predictors: Predictors, classes: list | None = None) -> np.ndarray:
        """(n,): X E(beta) + E(intercept)."""
        given = replace(predictors, centre=np.zeros(predictors.p), scale=np.ones(predictors.p))
        return given.times(draws["beta"].mean(axis=0)[:, None])[:, 0] + draws["intercept"].mean()


class LassoSampler:
    """State: beta (C, p) of Z, tau2 (C, p), sigma2, lambda2 and alpha (C, 1):
    the intercept at the means of the predictors.
    """

    has_kernels = True

    def __init__(
        self,
        X: Predictors,
        y: np.ndarray,
        options: LassoOptions,
        arrays: Arrays,
        weights: np.ndarray | None = None,
    ):
        self.arrays = arrays = arrays if isinstance(arrays, Host) else Host()  # a GPU has kernels: `plan_device_chains`
        self.options, self.p = options, X.p
        self.n = X.n if weights is None else float(weights.sum())  # records that the rows represent
        self.X = unit_columns(X, weights)
        self.mean = y.mean() if weights is None else weights @ y / self.n
        y = y - self.mean
        self.start_variance = float(y @ (y if weights is None else weights * y)) / self.n
        self.real, self.is_wide = np.dtype(np.float32 if options.precision == "single" else np.float64), X.n < self.p
        if self.is_wide:
            self.fit: WoodburySolver | GramSolver = WoodburySolver(self.X, y, arrays, self.real, weights)
        else:
            self.fit = GramSolver(self.X, y, arrays, weights)
        self.parameters = {
            "beta": Parameter(("predictor",), "coefficients"),
            "intercept": Parameter(),
            "sigma2": Parameter(help="residual variance"),
            "lambda": Parameter(
                help="rate of the Laplace prior of beta / sigma, for predictors of length 1 where they are standardised"
            ),
        }
        self.coords = {"predictor": list(X.names)}

    def adapt_until(self, burn_in: int) -> None:
        """Nothing adapts."""

    def start(self, keys: Keys) -> State:
        """tau^2 from its prior; the first step draws all else from it."""
        xp, o = self.arrays.xp, self.options
        ones = xp.ones((len(keys), 1))
        lambda2 = ones * (o.penalty_shape / o.penalty_rate if o.penalty is None else o.penalty**2)
        tau2 = self.arrays.exponentials(keys, 0, stream(REGRESSION_START, 0), self.p) * 2.0 / lambda2
        return {
            "beta": xp.zeros_like(tau2),
            "tau2": tau2,
            "sigma2": ones * self.start_variance,
            "lambda2": lambda2,
            "alpha": ones * self.mean,
        }

    def step(self, state: State, sweep: int, keys: Keys) -> State:
        a, o, xp = self.arrays, self.options, self.arrays.xp
        ones = xp.ones((len(keys), 1))
        tau = xp.sqrt(state["tau2"])
        posterior = self.fit.given(tau)

        shape = o.residual_shape + 0.5 * (self.n - 1)
        sigma2 = (o.residual_scale + 0.5 * posterior.misfit) / a.gammas(
            keys, sweep, stream(REGRESSION_RESIDUAL, 0), ones * shape
        )
        sigma = xp.sqrt(sigma2)
        beta = posterior.draw(sigma, keys, sweep)
        alpha = self.mean + sigma / np.sqrt(self.n) * a.normals(keys, sweep, stream(REGRESSION_COEFFICIENT, 2), 1)

        lambda2 = state["lambda2"]
        mean = lasso_means(beta, lambda2, sigma, xp)
        tau2 = 1.0 / a.inverse_gaussians(
            keys, sweep, stream(REGRESSION_LOCAL_SCALE, 0), mean, xp.broadcast_to(lambda2, mean.shape)
        )
        if o.penalty is None:
            rate = lasso_rate(o.penalty_rate, tau2.sum(1, keepdims=True))
            lambda2 = (
                a.gammas(keys, sweep, stream(REGRESSION_GLOBAL_SCALE, 0), ones * (o.penalty_shape + self.p)) / rate
            )
        return {"beta": beta, "tau2": tau2, "sigma2": sigma2, "lambda2": lambda2, "alpha": alpha}

    def plan_device_chains(self, keys: Keys, burn_in: int, thin: int) -> LassoChains:
        """Plan the same chains on a GPU, see protocol.DeviceSampler."""
        return LassoChains(self, keys, burn_in, thin)

    def log(self, state: State) -> dict:
        beta = state["beta"] / self.arrays.asarray(self.X.scale)
        intercept = state["alpha"][:, 0] - (beta * self.arrays.asarray(self.X.origin)).sum(1)
        return {
            "beta": beta,
            "intercept": intercept,
            "sigma2": state["sigma2"][:, 0],
            "lambda": self.arrays.xp.sqrt(state["lambda2"][:, 0]),
        }

    def statistics(self, state: State) -> dict:
        return {}

    def describe(self, columns: Columns) -> Description:
        o, y = self.options, columns.response[0]
        flat = o.residual_shape == 0 and o.residual_scale == 0
        return Description(
            model=f"Bayesian lasso: linear regression of {y} on {predictors_counted(self.p)}, with Laplace priors, "
            "which shrink small coefficients by a larger share than large ones.",
            equations=(f"{y} = α + zβ + e", "e ~ N(0, σ²)"),
            priors=(
                "β_{j} ~ Laplace(0, σ / λ)",
                f"λ² ~ Gamma({o.penalty_shape:g}, rate {o.penalty_rate:g})"
                if o.penalty is None
                else f"λ = {o.penalty:g}, given",
                "p(σ²) ∝ 1 / σ²" if flat else f"σ² ~ inverse gamma({o.residual_shape:g}, {o.residual_scale:g})",
                "p(α) ∝ 1 (flat)",
            ),
            where=(
                predictors_words(self.X, "scaled to a sum of squares of 1"),
                "α is the intercept, σ² is sigma2 and λ is lambda.",
            ),
        )


def unit_columns(X: Predictors, weights: np.ndarray | None = None) -> Predictors:
    """X with its columns centred; those that are standardised are of length 1 instead of variance 1."""
    n = X.n if weights is None else weights.sum()
    if not X.plain:
        return replace(X, scale=X.scale * np.sqrt(n))
    if weights is None:
        return replace(X, centre=sum(block.sum(0, dtype=np.float64) for _, _, block in X.blocks()) / n)
    return replace(X, centre=sum(weights[a:b] @ block for a, b, block in X.blocks()) / n)


class GramSolver:
    """p <= n, from S = I + T Z'Z T, T = diag(tau): A^-1 = T S^-1 T, and no eigenvalue of S is below 1 whatever tau
    is.

    y'y - y'Z A^-1 Z'y would be the difference of two numbers that agree in all digits where residuals are small. It is
    the least value of |y - Z b|^2 + b'D^-1 b, at b = A^-1 Z'y = T x. About any b_0, with r = y - Z b_0 and u = b - b_0,

        misfit = r'r - 2 u'Z'r + u'Z'Z u + x'x

    whose parts are small where r is: b_0 are least squares, which make Z'r nearly 0.
    """

    def __init__(self, X: Predictors, y: np.ndarray, arrays: Arrays, weights: np.ndarray | None = None):
        weighted = y if weights is None else weights * y
        self.arrays, self.gram = arrays, arrays.asarray(X.gram(weights))
        self.right = arrays.asarray(X.transposed_times(weighted[:, None])[:, 0])
        self.identity = arrays.asarray(np.eye(X.p))
        self.reference, self.residual_right, self.residual_square = self._fit_least_squares(X, y, weights)

    def _fit_least_squares(
        self, X: Predictors, y: np.ndarray, weights: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """b_0 (p,), Z'r (p,) and r'r."""
        L = self.arrays.cholesky(self.gram + RIDGE * (self.gram.max() or 1.0) * self.identity)
        b, r, right = np.zeros(X.p), y, self.right
        for _ in range(REFINEMENTS):
            half = self.arrays.solve_lower(L, right)
            b = b + self.arrays.solve_lower(L, half, transposed=True)
            r = y - X.times(b[:, None])[:, 0]
            weighted = r if weights is None else weights * r
            right = X.transposed_times(weighted[:, None])[:, 0]
        return b, right, float(r @ weighted)

    def given(self, tau: Array) -> GramSolver.Posterior:
        S = self.gram * tau[:, :, None] * tau[:, None, :] + self.identity
        L = self.arrays.cholesky(S)
        return self.Posterior(self, tau, L, self.arrays.solve_lower(L, tau * self.right))

    @dataclass
    class Posterior:
        fit: GramSolver
        tau: np.ndarray  # (C, p)
        L: np.ndarray  # (C, p, p)
        half: np.ndarray  # (C, p): L^-1 T Z'y

        @property
        def misfit(self) -> Array:
            """y'y - y'Z A^-1 Z'y, (C, 1)."""
            fit, x = self.fit, self.fit.arrays.solve_lower(self.L, self.half, transposed=True)
            u = self.tau * x - fit.reference
            parts = (u @ fit.gram) * u - 2.0 * u * fit.residual_right + x**2
            return fit.residual_square + parts.sum(1, keepdims=True)

        def draw(self, sigma: Array, keys: Keys, sweep: int) -> Array:
            """beta = T L'^-1 (L^-1 T Z'y + sigma z)."""
            z = self.fit.arrays.normals(keys, sweep, stream(REGRESSION_COEFFICIENT, 0), self.tau.shape[1])
            return self.tau * self.fit.arrays.solve_lower(self.L, self.half + sigma * z, transposed=True)


class WoodburySolver:
    """n < p, from M = I + Z D Z' (Woodbury); a draw by Bhattacharya, Chakraborty & Mallick (2016), O(n^2 p).

    Rounding moves y'M^-1 y by some 1e-18 times the largest pivot of M, relative to itself: beyond LARGEST_PIVOT nothing
    is drawn.
    """

    def __init__(
        self,
        X: Predictors,
        y: np.ndarray,
        arrays: Arrays,
        real: npt.DTypeLike,
        weights: np.ndarray | None = None,
    ):
        self.arrays, self.real, self.n, self.p = arrays, real, X.n, X.p
        self.root = None if weights is None else arrays.asarray(np.sqrt(weights))  # (n,), of each row
        self.values, self.y = arrays.asarray(X.values), arrays.asarray(y if weights is None else np.sqrt(weights) * y)
        self.centre, self.scale = arrays.asarray(X.centre), arrays.asarray(X.scale)
        self.identity = arrays.asarray(np.eye(X.n))

    def columns(self) -> Iterator[tuple[slice, Array]]:
        """(where, X[:, where]) a block of columns at a time, in the working type."""
        for first in range(0, self.p, COLUMN_BLOCK):
            at = slice(first, min(first + COLUMN_BLOCK, self.p))
            yield at, self.values[:, at].astype(self.real, copy=False)

    def given(self, tau: Array) -> WoodburySolver.Posterior:
        M = self.identity + self.arrays.xp.zeros((len(tau), 1, 1))
        for at, X in self.columns():
            half = (X - self.centre[at].astype(self.real)) * (tau[:, None, at] / self.scale[at]).astype(
                self.real
            )  # Z T
            if self.root is not None:
                half = half * self.root[:, None].astype(self.real)
            M += half @ half.swapaxes(1, 2)
        L = self.arrays.cholesky(M)
        if not np.diagonal(L, axis1=1, axis2=2).max() < np.sqrt(LARGEST_PIVOT):
            raise np.linalg.LinAlgError("the predictors leave next to nothing of the response")
        return self.Posterior(self, tau, L, self.arrays.solve_lower(L, self.y))

    def times(self, u: Array) -> Array:
        """Z u, (C, n), of (C, p)."""
        u = u / self.scale
        total = self.arrays.xp.zeros((1, self.n)) - (u * self.centre).sum(1, keepdims=True)
        for at, X in self.columns():
            total += (X @ u[:, at, None].astype(self.real))[..., 0]
        return total if self.root is None else total * self.root

    def transposed_times(self, r: Array) -> Array:
        """Z' r, (C, p), of (C, n)."""
        r = r if self.root is None else r * self.root
        out, column = self.arrays.xp.empty((len(r), self.p)), r[..., None].astype(self.real)
        for at, X in self.columns():
            out[:, at] = (X.T @ column)[..., 0]
        return (out - r.sum(1, keepdims=True) * self.centre) / self.scale

    @dataclass
    class Posterior:
        fit: WoodburySolver
        tau: np.ndarray  # (C, p)
        L: np.ndarray  # (C, n, n)
        half: np.ndarray  # (C, n): L^-1 y

        @property
        def misfit(self) -> Array:
            """y' M^-1 y, (C, 1)."""
            return (self.half**2).sum(1, keepdims=True)

        def draw(self, sigma: Array, keys: Keys, sweep: int) -> Array:
            """u ~ N(0, sigma^2 D), v ~ N(Z u, sigma^2 I), beta = u + D Z' M^-1 (y - v)."""
            f, a, tau = self.fit, self.fit.arrays, self.tau
            u = sigma * tau * a.normals(keys, sweep, stream(REGRESSION_COEFFICIENT, 0), f.p)
            v = f.times(u) + sigma * a.normals(keys, sweep, stream(REGRESSION_COEFFICIENT, 1), f.n)
            residual = a.solve_lower(self.L, self.half - a.solve_lower(self.L, v), transposed=True)
            return u + tau**2 * f.transposed_times(residual)
