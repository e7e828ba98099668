"""`collapsed: auto`: whether a further draw with z integrated out gives more effective draws a second.

With precisions d of the priors, a sweep by z keeps the share 1 - r of a direction of the coefficients, r an eigenvalue
of (W'W + D)^-1 (H + D): H is the information of the responses (ellipse.py), W'W that of z. With the expansion (Haar
PX-DA) the direction of the coefficients themselves is left out, since it moves along it. Measured on 43 data sets (n
100 to 10,000, p 5 to 100, responses from balanced to 1 % positive, from noise to separated;
`python benchmarks/regressions_defaults.py horseshoe`), in effective draws of a sweep of two chains:

    slowest coefficient   about 0.7 r without the further draw, mostly more than tau with it
    tau                   about 0.9 / p in either way, within a factor of three
    time of a sweep       1.7 to 2.9 times with the further draw

So the further draw gives more of what mixes worst, coefficients and tau, where r is below RATE / p: 1.1 to 4.7 times as
much in all 11 data sets on that side, and 0.2 to 1 times in 30 of 32 on the other. The two others had separated classes
and gave fewer than 10 effective draws a second in either way.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular

from mmgibbs.regressions.horseshoe.ellipse import expansion, penalised_log_likelihood
from mmgibbs.regressions.horseshoe.rows import ProbitRows
from mmgibbs.regressions.options import Choice

RATE = 0.9
MOST_PREDICTORS = 200  # for which r is looked at: it takes products of n p^2, and tau has to be faster than RATE / p
MOST_ROWS = 20_000_000  # the further draw holds three linear predictors of each in every chain, so up to 0.5 GB
STEPS = 8  # of Newton's method, each with new precisions


def choose_collapsed(
    rows: ProbitRows, gram: np.ndarray, slab_precision: float, intercept_precision: float, has_expansion: bool
) -> Choice:
    """`collapsed` of data on the host with p <= n; gram (p + 1, p + 1): W'W."""
    if rows.p > MOST_PREDICTORS:
        return Choice(False, f"more than {MOST_PREDICTORS} predictors, whose common scale mixes more slowly")
    if rows.n > MOST_ROWS:
        return Choice(False, f"more than {MOST_ROWS:,} records, whose linear predictors take too much memory")
    rate = slowest_rate(rows, gram, slab_precision, intercept_precision, has_expansion)
    limit = RATE / rows.p
    slowest = "coefficients" if rate < limit else "tau"
    return Choice(rate < limit, f"without it {slowest} would mix most slowly, rates {rate:.2g} and {limit:.2g}")


def slowest_rate(
    rows: ProbitRows, gram: np.ndarray, slab_precision: float, intercept_precision: float, has_expansion: bool
) -> float:
    """r of the slowest direction: the least eigenvalue of (W'W + D)^-1 (H + D), without the direction of the
    coefficients where there is an expansion.
    """
    b, precision = typical_coefficients(rows, gram, slab_precision, intercept_precision)
    H, D = expansion(rows, b)[1], np.diag(precision)
    L = np.linalg.cholesky(gram + D)
    half = solve_triangular(L, H + D, lower=True)
    shares = solve_triangular(L, half.T, lower=True)
    if has_expansion:
        u = L.T @ b
        u /= max(float(np.linalg.norm(u)), 1e-300)
        away = np.eye(len(u)) - np.outer(u, u)
        shares = away @ shares @ away + np.outer(u, u)  # no eigenvalue is above 1
    return float(np.clip(np.linalg.eigvalsh(shares)[0], 0.0, 1.0))


def typical_coefficients(
    rows: ProbitRows, gram: np.ndarray, slab_precision: float, intercept_precision: float
) -> tuple[np.ndarray, np.ndarray]:
    """(p + 1,) coefficients and prior precisions that suit each other: Newton steps to the mode given d, and
    1/d_j = b_j^2 + its posterior variance after each.
    """
    squares = np.diag(gram)[:-1] / rows.n
    precision = np.append(np.where(squares > 0, squares, 1.0), intercept_precision)
    b = np.zeros(rows.p + 1)
    for _ in range(STEPS):
        gradient, H = expansion(rows, b)
        factor = cho_factor(H + np.diag(precision), lower=True)
        step = cho_solve(factor, gradient - precision * b)
        value = penalised_log_likelihood(rows, b, precision)
        while penalised_log_likelihood(rows, b + step, precision) < value and np.abs(step).max() > 1e-12:
            step *= 0.5
        b = b + step
        variance = np.diag(cho_solve(factor, np.eye(len(b))))
        precision[:-1] = 1 / (b[:-1] ** 2 + variance[:-1]) + slab_precision
    return b, precision
