"""Tests of a SNP from its score s (T,) and information I (T, T): of each trait, and of all traits together.

    b = I^-1 s        Var(b) = I^-1        chi2 = s' I^-1 s on T degrees of freedom

which are the generalised least-squares estimates of its effects (one copy of the counted allele) in the model of the
run, given the variances. Where T = 1, b = x'Py / x'Px and chi2 = b^2 x'Px.

The effect on trait t is estimable unless x_t is a combination of the fixed effects: then P x_t = 0, and I_tt is
x_t'D_tt x_t less as much. A SNP is tested on the traits on which it is estimable, jointly where these are all.

Where traits are one trait in T environments, with V = I^-1 among them and 1 a vector of ones,

    mean = 1'b / T      Var = 1'V 1 / T^2      differences: b'V^-1 b - (1'V^-1 b)^2 / 1'V^-1 1 on T - 1 degrees

Of a window of m SNPs with scores s (m,) on a trait and information I (m, m), whose effects of a copy are taken as
independent with one variance, the score test that this variance is 0 (Wu et al. 2011) is

    Q = s's ~ sum_i lambda_i chi2(1),        lambda the eigenvalues of I

with p values by the saddlepoint of Kuonen (1999).

Many tests at once: false discovery rates, and a genome-wide threshold for SNPs that are correlated.

False discovery rate: Benjamini & Hochberg (1995), q of rank r is the least p_s m / s of the ranks s >= r. Threshold:
alpha / M with M the effective number of tests (Li & Ji 2005), from eigenvalues v of the correlations of neighbouring
SNPs, in blocks between which SNPs are taken as independent:

    M = sum over blocks of sum_i [ 1(v_i >= 1) + (v_i - floor(v_i)) ]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import optimize, special, stats

from mmgibbs.results.windows import LOG_10, log_p_of_z

CHI2_MEDIAN = float(stats.chi2(1).median())
MIN_WEIGHT = 1e-8  # of the largest, below which weights of a sum of chi-squares are 0
NEAR_MEAN = 1e-4  # of a saddlepoint in standard deviations, where its formula has no digits
MIN_RCOND = 1e-8  # of I, below which the effects of a SNP on several traits cannot be told apart
MIN_INFORMATION = 1e-10  # of what records say of a SNP where nothing else is unknown; below it is rounding


class SnpTests(NamedTuple):
    """Tests of m SNPs; NaN where a SNP cannot be tested."""

    effect: np.ndarray  # (m, T)
    error: np.ndarray  # (m, T) standard errors
    log_p: np.ndarray  # (m, T) -log10 p of each trait
    joint_chi2: np.ndarray  # (m,)
    joint_log_p: np.ndarray  # (m,)
    mean_effect: np.ndarray  # (m, F) of each family of environments
    mean_error: np.ndarray  # (m, F)
    mean_log_p: np.ndarray  # (m, F)
    differences_log_p: np.ndarray  # (m, F)


Families = Sequence[Sequence[int]]  # traits that are one trait in several environments


def empty_tests(m: int, n_traits: int, n_families: int) -> SnpTests:
    """Tests of m SNPs, none of which is made."""
    empty = lambda *shape: np.full((m, *shape), np.nan)
    of_traits, of_all = (empty(n_traits) for _ in range(3)), (empty() for _ in range(2))
    return SnpTests(*of_traits, *of_all, *(empty(n_families) for _ in range(4)))


def find_estimable(information: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """(m, T) traits on which the effects are estimable. information: (m, T, T); seen: (m, T) x'D_tt x."""
    return np.asarray(np.einsum("mtt->mt", information) > MIN_INFORMATION * seen)


def compute_tests(
    scores: np.ndarray, information: np.ndarray, families: Families = (), is_estimable: np.ndarray | None = None
) -> SnpTests:
    """Tests of m SNPs. scores: (m, T); information: (m, T, T); is_estimable: (m, T), by default all that have any."""
    m, T = scores.shape
    out = empty_tests(m, T, len(families))
    effect, error = out.effect, out.error
    diagonal = np.einsum("mtt->mt", information)
    is_estimable = (diagonal > 0) if is_estimable is None else is_estimable & (diagonal > 0)
    for pattern in np.unique(is_estimable, axis=0):
        traits = np.flatnonzero(pattern)
        rows = np.flatnonzero((is_estimable == pattern).all(axis=1))
        scale = np.sqrt(diagonal[np.ix_(rows, traits)])
        squared = scale[:, :, None] * scale[:, None, :]
        correlation = information[np.ix_(rows, traits, traits)] / squared
        if traits.size:
            is_separable = np.linalg.eigvalsh(correlation)[:, 0] > MIN_RCOND
            rows, correlation, squared = rows[is_separable], correlation[is_separable], squared[is_separable]
        if not rows.size or not traits.size:
            continue
        at = np.ix_(rows, traits)
        inverse = np.linalg.inv(correlation) / squared
        effect[at] = np.einsum("mtu,mu->mt", inverse, scores[at])
        error[at] = np.sqrt(np.einsum("mtt->mt", inverse))
        if traits.size == T:
            out.joint_chi2[rows] = np.einsum("mt,mt->m", scores[rows], effect[rows])
        for f, members in enumerate(families):
            if np.isin(members, traits).all():
                _test_environments(out, f, list(members), rows, inverse, np.searchsorted(traits, members))
    return out._replace(
        log_p=log_p_of_z(effect / error),
        joint_log_p=log_p_of_chi2(out.joint_chi2, T),
        mean_log_p=log_p_of_z(out.mean_effect / out.mean_error),
    )


def _test_environments(
    out: SnpTests, f: int, members: list[int], rows: np.ndarray, covariance: np.ndarray, places: np.ndarray
) -> None:
    """Mean and differences of the effects of one family, for SNPs that can be tested, in place; places: of its members
    in the covariance matrices."""
    b, V = out.effect[rows][:, members], covariance[:, places][:, :, places]
    out.mean_effect[rows, f] = b.mean(axis=1)
    out.mean_error[rows, f] = np.sqrt(V.sum(axis=(1, 2))) / len(members)
    solved = np.linalg.solve(V, np.stack([b, np.ones_like(b)], axis=2))  # V^-1 b and V^-1 1
    of_b, across, of_ones = np.einsum("mt,mt->m", b, solved[:, :, 0]), solved[:, :, 0].sum(1), solved[:, :, 1].sum(1)
    out.differences_log_p[rows, f] = log_p_of_chi2(np.maximum(of_b - across**2 / of_ones, 0.0), len(members) - 1)


def log_p_of_chi2(chi2: np.ndarray, freedom: int) -> np.ndarray:
    """-log10 of the upper tail."""
    if freedom == 1:
        return log_p_of_z(np.sqrt(chi2))
    with np.errstate(divide="ignore"):
        log_p = np.log(special.gammaincc(freedom / 2, chi2 / 2))
    half = freedom / 2
    far = (half - 1) * np.log(np.maximum(chi2, 1.0) / 2) - chi2 / 2 - special.gammaln(half)  # leading term
    return -np.where(np.isneginf(log_p), far, log_p) / LOG_10


def log_p_of_weighted_chi2(q: float, weights: np.ndarray) -> float:
    """-log10 P(sum_i w_i chi2(1) > q), by the saddlepoint of Kuonen (1999); weights at least 0, some above."""
    w = weights[weights > MIN_WEIGHT * weights.max()] / weights.max()
    q = q / weights.max()
    if w.size == 1:
        return float(log_p_of_z(np.sqrt(q)))
    if np.ptp(w) < MIN_WEIGHT:
        return float(log_p_of_chi2(np.array([q]), w.size)[0])
    slope = lambda z: float(np.sum(w / (1 - 2 * z * w)))  # of the cumulant generating function
    # roots lie where q = sum w / (1 - 2 z w), so between q = n_w w_max / (1 - 2 z) and its largest term alone
    low, high = min(0.0, (1 - w.size / q) / 2) - 1.0 if q > 0 else -np.inf, 0.5 - 0.5 / (2 * q + 2)
    if q <= 0:
        return 0.0
    while slope(high) < q:
        high = (high + 0.5) / 2
    z = optimize.brentq(lambda x: slope(x) - q, low, high, xtol=1e-14)
    value = -0.5 * float(np.sum(np.log1p(-2 * z * w)))
    curvature = 2 * float(np.sum((w / (1 - 2 * z * w)) ** 2))
    root = np.sign(z) * np.sqrt(max(2 * (z * q - value), 0.0))
    if abs(root) < NEAR_MEAN:  # q is the mean: the limit there
        at_0 = np.sum(w**3) * 8 / (2 * np.sum(w**2)) ** 1.5
        return float(-np.log10(0.5 - at_0 / (6 * np.sqrt(2 * np.pi))))
    return float(-special.log_ndtr(-(root + np.log(z * np.sqrt(curvature) / root) / root)) / LOG_10)


def genomic_inflation(log_p: np.ndarray) -> float:
    """Median chi2 of one degree of freedom over that without any effect (Devlin & Roeder 1999), from -log10 p."""
    known = log_p[np.isfinite(log_p)]
    if not known.size:
        return float("nan")
    return float(stats.chi2(1).isf(10.0 ** -np.median(known)) / CHI2_MEDIAN)


ALPHA = 0.05
BLOCK_SNPS = 256  # neighbouring SNPs whose correlations are looked at


def false_discovery_rates(p: np.ndarray) -> np.ndarray:
    """(m,) q values; NaN where p is."""
    out = np.full(p.shape, np.nan)
    known = np.flatnonzero(np.isfinite(p))
    order = known[np.argsort(p[known], kind="stable")]
    q = p[order] * order.size / np.arange(1, order.size + 1)
    out[order] = np.minimum(np.minimum.accumulate(q[::-1])[::-1], 1.0)
    return out


def effective_number(x: np.ndarray) -> float:
    """Effective number of tests of one block of SNPs; x: (m, animals) genotypes of m SNPs that vary."""
    if len(x) < 2:
        return float(len(x))
    eigenvalues = np.maximum(np.linalg.eigvalsh(np.corrcoef(x)), 0.0)
    whole = np.floor(eigenvalues + 1e-9)  # of a SNP that comes m times the eigenvalue is m
    return float(np.sum((eigenvalues >= 1.0 - 1e-9) + np.maximum(eigenvalues - whole, 0.0)))
