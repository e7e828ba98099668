"""Multinomial logit with normal priors by Polya-Gamma data augmentation (Polson, Scott & Windle 2013).

    y_i ~ Multinomial(n_i, softmax(z_i B)),     beta_j ~ N(m_j, P_j^-1), j < K,     beta_K = 0

z_i are the predictors of row i, standardised where asked for, and 1 for the intercept, which comes last. For one
category at a time, *first* its omega and at once its beta (no joint law of the omegas of all categories exists):

    c_i = log sum_{k != j} exp(z_i beta_k),    omega_i ~ PG(n_i, z_i beta_j - c_i),    kappa_i = y_ij - n_i/2
    beta_j ~ N(V [Z'(kappa + omega c) + P_j m_j], V),    V = (Z' diag(omega) Z + P_j)^-1

K = 2 is the binary logit: c = 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
import numpy.typing as npt

from mmgibbs.draws.purpose import REGRESSION_COEFFICIENT, REGRESSION_LATENT, stream
from mmgibbs.errors import ConfigError, DataError
from mmgibbs.machine.threads import blas_threads
from mmgibbs.regressions.arrays.base import Arrays, Host, added
from mmgibbs.regressions.classes import read_classes
from mmgibbs.regressions.description import Columns, Description
from mmgibbs.regressions.multinomial.description import multinomial_description
from mmgibbs.regressions.multinomial.device import MAX_COLUMNS, MultinomialChains
from mmgibbs.regressions.multinomial.kernels import category_weights
from mmgibbs.regressions.multinomial.separation import refuse_improper
from mmgibbs.regressions.multinomial.softmax_gradient import averaged_softmax
from mmgibbs.regressions.options import option
from mmgibbs.regressions.predictors import Predictors
from mmgibbs.regressions.protocol import Array, Keys, Parameter, RegressionData, State

BLOCK_BYTES = {"cpu": 1 << 21, "gpu": 1 << 28}  # a block of rows of Z in the working type
MOST_ROWS = 8192  # of a block on the host, so that few columns still make several blocks
STRIPS = 32  # ranges of blocks that threads take; their sums are added in order, so threads change no bit
SMALLEST = 1e-30  # sqrt(omega) below it counts as that
Table = list  # of an option: K - 1 rows, p columns


@dataclass(frozen=True)
class MultinomialPGOptions:
    prior_mean: float | Table | np.ndarray = option(
        0.0, "m, of all coefficients, or a table of K - 1 classes by p predictors"
    )
    prior_precision: float | Table | np.ndarray = option(
        0.1,
        "1 / variance: of all coefficients, or such a table; 0 is flat. An array (K - 1, p, p) holds a matrix P_j "
        "for each class",
    )
    intercept: bool = option(True, "an intercept for each class but the last")
    intercept_mean: float | Table | np.ndarray = option(0.0, "m of the intercepts, or a list for K - 1 classes")
    intercept_precision: float | Table | np.ndarray = option(
        0.0, "1 / variance of the intercepts, or a list; 0 is flat"
    )
    precision: Literal["double", "single"] = option(
        "double", "type in which predictors are multiplied; sums and draws are float64"
    )


class MultinomialPGModel:
    """The plugin. Response: labels (n,) of K >= 2 classes or counts (n, K); the last class is the reference."""

    name = "multinomial_pg"
    standardise = True
    Options = MultinomialPGOptions

    @staticmethod
    def prepare(data: RegressionData, options: MultinomialPGOptions, arrays: Arrays) -> MultinomialPGSampler:
        """DataError for a response that cannot be used (row named), ModelError where a flat prior leaves the posterior
        improper.
        """
        return MultinomialPGSampler(data, options, arrays)

    @staticmethod
    def predict(draws: Mapping[str, np.ndarray], predictors: Predictors, classes: list | None) -> np.ndarray:
        """(n, K): softmax averaged over the draws."""
        intercept = draws.get("intercept", np.zeros(draws["beta"].shape[::2]))
        return averaged_softmax(draws["beta"], intercept, predictors)


class MultinomialPGSampler:
    """State: beta (C, K - 1, d) on the scale of Z, the intercept last. All else is made from it in each sweep."""

    def __init__(self, data: RegressionData, options: MultinomialPGOptions, arrays: Arrays):
        X, o = data.predictors, options
        response, classes = read_classes(data.response, data.response_name)
        if len(response) != X.n:
            raise DataError(
                f"{data.response_name}: found {len(response)} rows, needed {X.n}, one for each row of the predictors"
            )
        if X.origin.any() and not o.intercept:
            raise ConfigError(
                "intercept: found false with centred predictors, whose means it absorbs; needed true, or "
                "standardise: false"
            )
        self.has_kernels = X.p + o.intercept <= MAX_COLUMNS  # otherwise a GPU runs array operations
        arrays = Host() if self.has_kernels and not isinstance(arrays, Host) else arrays
        self.arrays, self.X, self.options, self.K = arrays, X, o, len(classes)
        mean, P = read_prior(o, self.K - 1, X.p)
        refuse_improper(X, response, np.abs(P).sum(2) == 0, data.response_name, classes)
        self.prior_precision = arrays.asarray(P)
        self.prior_shift = arrays.asarray(np.einsum("jab,jb->ja", P, mean))  # P_j m_j
        real = np.float32 if o.precision == "single" else np.float64
        self.rows = (HostRows if arrays.device == "cpu" else DeviceRows)(X, response, o.intercept, arrays, real)
        self.parameters = {
            "beta": Parameter(("predictor", "contrast"), "change of the log odds against the last class")
        }
        if o.intercept:
            self.parameters["intercept"] = Parameter(
                ("contrast",), "log odds against the last class where the predictors are 0"
            )
        self.coords = {"predictor": list(X.names), "class": classes, "contrast": classes[:-1]}

    def adapt_until(self, burn_in: int) -> None:
        """Nothing adapts."""

    def start(self, keys: Keys) -> State:
        return {"beta": self.arrays.xp.zeros((len(keys), *self.prior_shift.shape))}

    def step(self, state: State, sweep: int, keys: Keys) -> State:
        a, beta = self.arrays, state["beta"].copy()
        C, categories, d = beta.shape
        logits = a.xp.empty((C, categories, self.X.n))
        with blas_threads(1 if a.device == "cpu" else None):  # the threads share the rows instead
            for j in range(categories):
                stale = slice(0, categories) if j == 0 else slice(j - 1, j)
                curvature, right = self.rows.moments(j, stale, beta, logits, keys, sweep)
                L = a.cholesky(curvature + self.prior_precision[j])
                half = a.solve_lower(L, right + self.prior_shift[j]) + a.normals(
                    keys, sweep, stream(REGRESSION_COEFFICIENT, j), d
                )
                beta[:, j] = a.solve_lower(L, half, transposed=True)
        return {"beta": beta}

    def plan_device_chains(self, keys: Keys, burn_in: int, thin: int) -> MultinomialChains:
        """Plan the same chains on a GPU, see protocol.DeviceSampler."""
        return MultinomialChains(self, keys, burn_in, thin)

    def log(self, state: State) -> dict:
        asarray, p = self.arrays.asarray, self.X.p
        slopes = state["beta"][..., :p] / asarray(self.X.scale)
        values = {"beta": slopes.swapaxes(1, 2)}
        if self.options.intercept:
            values["intercept"] = state["beta"][..., p] - (slopes * asarray(self.X.origin)).sum(2)
        return values

    def statistics(self, state: State) -> dict:
        return {}

    def describe(self, columns: Columns) -> Description:
        o = self.options
        priors = [_prior_words("β_{jk}", o.prior_mean, o.prior_precision, "prior")]
        if o.intercept:
            priors.append(_prior_words("α_{k}", o.intercept_mean, o.intercept_precision, "intercept"))
        return multinomial_description(columns, self.coords["class"], self.X, o.intercept, priors)


def _prior_words(symbol: str, mean: float | Table | np.ndarray, precision: float | Table | np.ndarray, of: str) -> str:
    """'beta_{jk} ~ N(0, variance 10)', as the option is a precision; of: how the names of the two options begin."""
    if not (isinstance(mean, (int, float)) and isinstance(precision, (int, float))):
        return f"{symbol} normal, with means and precisions as given ({of}_mean, {of}_precision)"
    return f"p({symbol}) ∝ 1 (flat)" if precision == 0 else f"{symbol} ~ N({mean:g}, variance {1 / precision:g})"


def read_prior(options: MultinomialPGOptions, categories: int, p: int) -> tuple[np.ndarray, np.ndarray]:
    """Means (K - 1, d) and precision matrices (K - 1, d, d). ConfigError for shapes and values that make no prior."""

    def read(name: str, shapes: Sequence[tuple[int, ...]]) -> np.ndarray:
        value = np.asarray(getattr(options, name), dtype=object)
        try:
            value = value.astype(np.float64)
        except (TypeError, ValueError):
            raise ConfigError(
                f"{name}: found {getattr(options, name)!r}, needed numbers in a table without gaps"
            ) from None
        if not np.isfinite(value).all():
            raise ConfigError(f"{name}: found a value that is not finite, needed numbers")
        for shape in shapes:
            if value.ndim in (0, len(shape)) and value.shape in ((), shape):
                return np.broadcast_to(value, shape)
        raise ConfigError(
            f"{name}: found an array of shape {value.shape}, needed a number or an array of shape "
            f"{' or '.join(map(str, shapes))}"
        )

    d = p + options.intercept
    mean, P = np.zeros((categories, d)), np.zeros((categories, d, d))
    mean[:, :p] = read("prior_mean", [(categories, p)])
    precision = read("prior_precision", [(categories, p), (categories, p, p)])
    P[:, :p, :p] = precision if precision.ndim == 3 else [np.diag(row) for row in precision]
    if options.intercept:
        mean[:, p] = read("intercept_mean", [(categories,)])
        P[:, p, p] = read("intercept_precision", [(categories,)])
    negative = np.diagonal(P, axis1=1, axis2=2) < 0
    if negative.any():
        name = "prior_precision" if negative[:, :p].any() else "intercept_precision"
        raise ConfigError(f"{name}: found a negative precision, needed 0 (flat) or more")
    if precision.ndim == 3:
        symmetric = np.allclose(precision, precision.swapaxes(1, 2), rtol=1e-10, atol=0)
        if not symmetric or np.linalg.eigvalsh(precision).min() <= 0:
            raise ConfigError(
                "prior_precision: found a matrix that is not symmetric and positive definite; a flat prior is a "
                "table with 0"
            )
    return mean, P


class HostRows:
    """Passes over the rows on the host: a block stays in the cache from its logits to its share of Z' diag(omega) Z."""

    def __init__(self, X: Predictors, response: np.ndarray, intercept: bool, arrays: Arrays, real: npt.DTypeLike):
        self.X, self.intercept, self.arrays, self.real = X, intercept, arrays, real
        self.response = response
        self.trials = response.sum(1) if response.ndim == 2 else np.ones(X.n, np.int64)
        self.values = arrays.asarray(X.values)
        self.plain, self.centre, self.scale = X.plain, arrays.asarray(X.centre, real), arrays.asarray(X.scale, real)
        m = max(
            1,
            min(
                BLOCK_BYTES[arrays.device] // (np.dtype(real).itemsize * X.p),
                MOST_ROWS if arrays.device == "cpu" else X.n,
            ),
        )
        blocks = [slice(first, min(first + m, X.n)) for first in range(0, X.n, m)]
        stripe = -(-len(blocks) // STRIPS)
        self.strips = [blocks[k : k + stripe] for k in range(0, len(blocks), stripe)]

    def moments(self, j: int, stale: slice, beta: Array, logits: Array, keys: Keys, sweep: int) -> tuple[Array, Array]:
        """(Z' diag(omega) Z, Z'(kappa + omega c)) of category j, (C, d, d) and (C, d), after the draw of its omega.

        logits (C, K - 1, n): those of the categories `stale` are renewed from beta (C, K - 1, d) first.
        """
        sums: dict[int, Array] = {}
        chains = np.array(keys.chains, np.uint64)

        def strip(number: int) -> None:
            total: Array | None = None
            for rows in self.strips[number]:
                Z = self.block(rows)
                self.renew(Z, rows, stale, beta, logits)
                omega, right = np.empty((2, len(beta), len(Z)))
                successes, latent = self.successes(j, rows), stream(REGRESSION_LATENT, j)
                category_weights(
                    logits[:, :, rows],
                    j,
                    successes,
                    self.trials[rows],
                    sweep,
                    rows.start,
                    latent,
                    keys.seed,
                    chains,
                    omega,
                    right,
                )
                products = self.products(Z, omega, right)
                total = products if total is None else total + products
            assert total is not None, "a strip has rows"
            sums[number] = total

        self.arrays.at_once([partial(strip, number) for number in range(len(self.strips))])
        return split(sums[number] for number in range(len(self.strips)))

    def block(self, rows: slice) -> Array:
        """Z without the intercept for some rows, in the working type; X itself where it needs no change."""
        X = self.values[rows].astype(self.real, copy=False)
        return X if self.plain else (X - self.centre) / self.scale

    def successes(self, j: int, rows: slice) -> Array:
        """y_ij, (m,) int64."""
        y = self.response[rows]
        return y[:, j].copy() if y.ndim == 2 else (y == j).astype(np.int64)

    def renew(self, Z: Array, rows: slice, stale: slice, beta: Array, logits: Array) -> None:
        new = beta[:, stale, : self.X.p].astype(self.real) @ Z.T
        logits[:, stale, rows] = new + beta[:, stale, self.X.p :] if self.intercept else new

    def products(self, Z: Array, omega: Array, right: Array) -> Array:
        """G'G in float64, (C, d + 1, d + 1), of G = [Z sqrt(omega), right / sqrt(omega)]:
        all that beta's law needs of these rows.
        """
        xp, p = self.arrays.xp, self.X.p
        root = xp.sqrt(omega)
        G = xp.empty((*omega.shape, p + self.intercept + 1), self.real)
        xp.multiply(Z, root.astype(self.real)[..., None], out=G[..., :p])
        if self.intercept:
            G[..., p] = root
        G[..., -1] = right / xp.maximum(root, SMALLEST)  # rows without trials: 0
        return (G.swapaxes(1, 2) @ G).astype(np.float64, copy=False)


class DeviceRows(HostRows):
    """Passes over the rows in array operations: logits of all rows, their omega, then the products."""

    def __init__(self, X: Predictors, response: np.ndarray, intercept: bool, arrays: Arrays, real: npt.DTypeLike):
        super().__init__(X, response, intercept, arrays, real)
        self.response, self.trials = arrays.asarray(self.response), arrays.asarray(self.trials)

    def moments(self, j: int, stale: slice, beta: Array, logits: Array, keys: Keys, sweep: int) -> tuple[Array, Array]:
        xp, blocks = self.arrays.xp, [rows for strip in self.strips for rows in strip]
        for rows in blocks:
            self.renew(self.block(rows), rows, stale, beta, logits)
        largest = xp.zeros_like(logits[:, 0])
        for k in range(logits.shape[1]):
            largest = largest if k == j else xp.maximum(largest, logits[:, k])
        total = xp.exp(-largest)
        for k in range(logits.shape[1]):
            total = total if k == j else total + xp.exp(logits[:, k] - largest)
        offset = largest + xp.log(total)
        omega = self.arrays.polya_gammas(keys, sweep, stream(REGRESSION_LATENT, j), self.trials, logits[:, j] - offset)
        right = self.successes(j, slice(None)) - 0.5 * self.trials + omega * offset
        return split(self.products(self.block(rows), omega[:, rows], right[:, rows]) for rows in blocks)


def split(products: Iterable[Array]) -> tuple[Array, Array]:
    """(Z' diag(omega) Z, Z' right) from the products of all rows."""
    total = added(products)
    return total[:, :-1, :-1], total[:, :-1, -1]
