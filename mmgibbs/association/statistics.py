"""Tests of a SNP from its score s (T,) and information I (T, T): of each trait, and of all traits together.

    b = I^-1 s        Var(b) = I^-1        chi2 = s' I^-1 s on T degrees of freedom

which are the generalised least-squares estimates of its effects (one copy of the counted allele) in the model of the
run, given the variances. Where T = 1, b = x'Py / x'Px and chi2 = b^2 x'Px.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import special, stats

from mmgibbs.results.p_values import LOG_10, log_p_of_z

CHI2_MEDIAN = float(stats.chi2(1).median())
MIN_RCOND = 1e-8  # of I, below which the effects of a SNP on several traits cannot be told apart


class SnpTests(NamedTuple):
    """Of m SNPs; NaN where a SNP cannot be tested."""

    effect: np.ndarray  # (m, T)
    error: np.ndarray  # (m, T) standard errors
    log_p: np.ndarray  # (m, T) -log10 p of each trait
    joint_chi2: np.ndarray  # (m,)
    joint_log_p: np.ndarray  # (m,)


def compute_tests(scores: np.ndarray, information: np.ndarray) -> SnpTests:
    """Tests of m SNPs. scores: (m, T); information: (m, T, T)."""
    m, T = scores.shape
    effect, error, chi2 = (np.full(shape, np.nan) for shape in ((m, T), (m, T), m))
    diagonal = np.einsum("mtt->mt", information)
    scale = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    correlation = information / (scale[:, :, None] * scale[:, None, :])
    is_testable = (diagonal > 0).all(axis=1)
    is_testable[is_testable] = np.linalg.eigvalsh(correlation[is_testable])[:, 0] > MIN_RCOND
    inverse = np.linalg.inv(correlation[is_testable]) / (scale[:, :, None] * scale[:, None, :])[is_testable]
    effect[is_testable] = np.einsum("mtu,mu->mt", inverse, scores[is_testable])
    error[is_testable] = np.sqrt(np.einsum("mtt->mt", inverse))
    chi2[is_testable] = np.einsum("mt,mt->m", scores[is_testable], effect[is_testable])
    return SnpTests(effect, error, log_p_of_z(effect / error), chi2, log_p_of_chi2(chi2, T))


def log_p_of_chi2(chi2: np.ndarray, freedom: int) -> np.ndarray:
    """-log10 of the upper tail."""
    if freedom == 1:
        return log_p_of_z(np.sqrt(chi2))
    with np.errstate(divide="ignore"):
        log_p = np.log(special.gammaincc(freedom / 2, chi2 / 2))
    half = freedom / 2
    far = (half - 1) * np.log(np.maximum(chi2, 1.0) / 2) - chi2 / 2 - special.gammaln(half)  # leading term
    return -np.where(np.isneginf(log_p), far, log_p) / LOG_10


def genomic_inflation(log_p: np.ndarray) -> float:
    """Median chi2 of one degree of freedom over that without any effect (Devlin & Roeder 1999), from -log10 p."""
    known = log_p[np.isfinite(log_p)]
    if not known.size:
        return float("nan")
    return float(stats.chi2(1).isf(10.0 ** -np.median(known)) / CHI2_MEDIAN)
