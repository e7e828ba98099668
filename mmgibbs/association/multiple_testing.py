"""Many tests at once: false discovery rates, and a genome-wide threshold for SNPs that are correlated.

False discovery rate: Benjamini & Hochberg (1995), q of rank r is the least p_s m / s of the ranks s >= r. Threshold:
alpha / M with M the effective number of tests (Li & Ji 2005), from eigenvalues v of the correlations of neighbouring
SNPs, in blocks between which SNPs are taken as independent:

    M = sum over blocks of sum_i [ 1(v_i >= 1) + (v_i - floor(v_i)) ]
"""

from __future__ import annotations

import numpy as np

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
