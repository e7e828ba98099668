"""All variances as one vector x without bounds, and the prior of x.

Each covariance matrix that is sampled is G = L L', L lower triangular within the blocks that may covary, and

    l_ii = s_ii log(1 + exp(x_ii)),   l_ij = s_ij x_ij (i > j)

    log p(x) = log p(G) + sum_i (k - i + 1) log l_ii + log h(x_ii),    i = 1 ... k in each block, h(x) = 1/(1 + exp(-x))

the Jacobian of G -> L -> x. So x_ii is log l_ii where l_ii is far below s_ii, and l_ii in units of s_ii far above: with
s_ii near the posterior standard deviation of l_ii, p(x) is near normal where the data know a variance well, and has no
end where it may be 0 (`linear_beyond`). log p(G) is that of each prior (models/priors/log_density.py), its auxiliary
variables integrated out. A variance of 0 or a correlation of 1 is infinitely far.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mmgibbs.models.covariance import CovarianceModel
from mmgibbs.pedigree.kernels import kernel
from mmgibbs.sampler.interweave import jacobian_exponents
from mmgibbs.sampler.mixed_model import MixedModel

TRACE, LOGS_OF_PRECISIONS, LOGS_OF_VARIANCES = range(3)  # forms of log p(G) beside the powers of l_ii
FAR = 100.0
RELATIVE = (0.02, 1.0)  # of s_ii to l_ii


class Elements(NamedTuple):
    """The elements of x, matrix by matrix, and the priors of the matrices that are sampled (m of them)."""

    matrix: np.ndarray  # (p,) int64
    row: np.ndarray  # (p,) int64 in its matrix
    column: np.ndarray  # (p,) int64
    scale: np.ndarray  # (p,) s_ij
    exponent: np.ndarray  # (p,) of l_ii in Jacobian and prior together; 0 off the diagonal
    first: np.ndarray  # (m + 1,) int64 the first element of each matrix
    place: np.ndarray  # (m,) int64 where it starts in psi
    size: np.ndarray  # (m,) int64
    form: np.ndarray  # (m,) int64
    S: np.ndarray  # (m, k, k) of the trace
    exponents: np.ndarray  # (m, k) of the logarithms, with
    factors: np.ndarray  # (m, k)
    offsets: np.ndarray  # (m, k)


@dataclass(frozen=True)
class LogCholesky:
    """x of a model. psi: G of each random term, row by row, one after another; then R of each class."""

    elements: Elements
    start: np.ndarray  # psi of the starts of the model, those that are not sampled as they stay

    def __len__(self) -> int:
        return self.elements.row.size

    def psi(self, x: np.ndarray) -> tuple[np.ndarray, float]:
        """psi, and log p(x) of the prior up to a constant."""
        out = self.start.copy()
        return out, float(_matrices(x, self.elements, out))

    def x(self, psi: np.ndarray) -> np.ndarray:
        """Convert positive definite matrices to coordinates x (p,)."""
        e, out = self.elements, np.empty(len(self))
        for m, (place, k) in enumerate(zip(e.place, e.size, strict=True)):
            L = np.linalg.cholesky(psi[place : place + k * k].reshape(k, k))
            elements = slice(e.first[m], e.first[m + 1])
            values = L[e.row[elements], e.column[elements]] / e.scale[elements]
            out[elements] = np.where(e.row[elements] == e.column[elements], inverse_of_softplus(np.abs(values)), values)
        return out

    def extrapolate(self, x: np.ndarray, sd: np.ndarray) -> LogCholesky:
        """Return the coordinates with s_ii the standard deviation of l_ii, within bounds.

        x and sd (p,): where it is, and standard deviations, of log l_ii still (see `log_cholesky`)."""
        e = self.elements
        on_diagonal = e.row == e.column
        scale = np.where(on_diagonal, e.scale * softplus(x) * np.clip(sd, *RELATIVE), e.scale)
        return self.with_scale(scale)

    def with_scale(self, scale: np.ndarray) -> LogCholesky:
        return LogCholesky(self.elements._replace(scale=scale), self.start)

    def slopes(self, x: np.ndarray) -> np.ndarray:
        """Compute d l / dx of each element, (p,)."""
        e = self.elements
        return e.scale * np.where(e.row == e.column, logistic(x), 1.0)

    def gradient(self, x: np.ndarray, slopes: np.ndarray) -> np.ndarray:
        """Compute the gradient (p,) of log p(x | y). slopes: D of each matrix, as psi, d log p(y | psi) = tr(D dG)."""
        e, psi, slope = self.elements, self.psi(x)[0], self.slopes(x)
        l_ii = e.scale * softplus(x)
        out = np.where(e.row == e.column, e.exponent * slope / l_ii + logistic(-x), 0.0)
        for m, (place, k) in enumerate(zip(e.place, e.size, strict=True)):
            G, D = (a[place : place + k * k].reshape(k, k) for a in (psi, slopes))
            elements = slice(e.first[m], e.first[m + 1])
            row, column = e.row[elements], e.column[elements]
            L = np.zeros((k, k))
            L[row, column] = np.where(row == column, l_ii[elements], x[elements] * e.scale[elements])
            of_L = 2.0 * (D + self._prior_slope(m, G)) @ L
            out[elements] += of_L[row, column] * slope[elements]
        return out

    def _prior_slope(self, m: int, G: np.ndarray) -> np.ndarray:
        """Compute D (k, k) of the part of the prior beside powers of |G|."""
        e, inverse, k = self.elements, np.linalg.inv(G), len(G)
        if e.form[m] == TRACE:
            return 0.5 * inverse @ e.S[m, :k, :k] @ inverse
        exponents, factors, offsets = (a[m, :k] for a in (e.exponents, e.factors, e.offsets))
        if e.form[m] == LOGS_OF_VARIANCES:
            return -np.diag(exponents * factors / (factors * np.diag(G) + offsets))
        return (inverse * (exponents * factors / (factors * np.diag(inverse) + offsets))) @ inverse

    def blocks(self) -> list[np.ndarray]:
        """Numbers of the elements of each matrix."""
        e = self.elements
        return [np.arange(a, b) for a, b in zip(e.first[:-1], e.first[1:], strict=True)]


def softplus(x: np.ndarray) -> np.ndarray:
    """log(1 + exp(x))"""
    return np.maximum(x, 0.0) + np.log1p(np.exp(-np.abs(x)))


def logistic(x: np.ndarray) -> np.ndarray:
    """1 / (1 + exp(-x)), 0 where that is too large for a float."""
    with np.errstate(over="ignore"):
        return 1.0 / (1.0 + np.exp(-x))


def inverse_of_softplus(value: np.ndarray) -> np.ndarray:
    return value + np.log(-np.expm1(-np.maximum(value, np.finfo(float).tiny)))


def log_cholesky(model: MixedModel) -> LogCholesky:
    """Build the coordinates of the matrices that are sampled, with s_ii FAR above the starts.

    x_ii is log l_ii and a constant.
    """
    matrices = [model.covariance(i) for i in model.random_terms] + list(model.residual.matrices)
    places = np.cumsum([0, *(c.start.size for c in matrices)])
    sampled = [(c, int(at)) for c, at in zip(matrices, places[:-1], strict=True) if not c.fixed]
    widest = max((len(c.start) for c, _ in sampled), default=0)
    start = np.concatenate([np.asarray(c.start, float).ravel() for c in matrices])
    return LogCholesky(_elements(sampled, widest), start)


def _elements(sampled: list[tuple[CovarianceModel, int]], widest: int) -> Elements:
    m = len(sampled)
    rows: list[tuple[int, int, int, float, float]] = []
    first, form = [0], np.zeros(m, np.int64)
    S, logs = np.zeros((m, widest, widest)), np.zeros((3, m, widest))
    for number, (model, _) in enumerate(sampled):
        k = len(model.start)
        prior = model.prior.log_density(model.blocks)
        exponents = jacobian_exponents(model.blocks) - prior.powers
        S[number, :k, :k] = prior.scale
        logs[:, number, :k] = prior.exponents, prior.factors, prior.offsets
        if prior.exponents.any():
            form[number] = LOGS_OF_VARIANCES if prior.of_variances else LOGS_OF_PRECISIONS
        s = np.sqrt(np.diag(model.start))
        pairs = sorted((c, j) for b in model.blocks for c in b for j in b if j <= c)
        rows += [
            (number, c, j, float(s[c]) * (FAR if c == j else 1.0), float(exponents[c]) if c == j else 0.0)
            for c, j in pairs
        ]
        first.append(len(rows))
    matrix, row, column, scale, exponent = (np.array([r[i] for r in rows]) for i in range(5))
    of_elements = matrix.astype(np.int64), row.astype(np.int64), column.astype(np.int64)
    place, size = np.array([at for _, at in sampled], np.int64), np.array([len(c.start) for c, _ in sampled], np.int64)
    values = scale.astype(float), exponent.astype(float)
    return Elements(*of_elements, *values, np.array(first, np.int64), place, size, form, S, *logs)


@kernel
def _matrices(x, elements, psi):
    """psi from x, in place; log p(x) up to a constant."""
    total = 0.0
    for m in range(elements.size.size):
        k, at = elements.size[m], elements.place[m]
        L, X = np.zeros((k, k)), np.zeros((k, k))
        for e in range(elements.first[m], elements.first[m + 1]):
            i, j = elements.row[e], elements.column[e]
            if i == j:
                small = np.log1p(np.exp(-abs(x[e])))
                L[i, i] = elements.scale[e] * (max(x[e], 0.0) + small)
                total += elements.exponent[e] * np.log(L[i, i]) + min(x[e], 0.0) - small
            else:
                L[i, j] = x[e] * elements.scale[e]
        for i in range(k):
            for j in range(i + 1):
                s = 0.0
                for n in range(j + 1):
                    s += L[i, n] * L[j, n]
                psi[at + i * k + j] = s
                psi[at + j * k + i] = s
                t = 1.0 if i == j else 0.0
                for n in range(j, i):
                    t -= L[i, n] * X[n, j]
                X[i, j] = t / L[i, i]
        if elements.form[m] != TRACE:
            for i in range(k):
                s = 0.0
                for n in range(i, k):
                    s += X[n, i] * X[n, i]
                if elements.form[m] == LOGS_OF_VARIANCES:
                    s = psi[at + i * k + i]
                total -= elements.exponents[m, i] * np.log(elements.factors[m, i] * s + elements.offsets[m, i])
        else:
            for n in range(k):
                for a in range(n + 1):
                    for b in range(n + 1):
                        total -= 0.5 * X[n, a] * elements.S[m, a, b] * X[n, b]
    return total
