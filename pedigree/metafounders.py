"""Metafounders: ancestral populations in the place of unknown parents, with relationships Gamma among them.

A metafounder k represents a pool of gametes. Two gametes drawn from it are alike with a relationship gamma_kk, one from
it and one from pool l with gamma_kl (Legarra, Christensen, Vitezica, Aguilar & Misztal 2015, Genetics 200:455). With Q
the expected shares of the metafounders in the animals, L those of animals in their descendants and D the variances of
Mendelian sampling,

    A = L D L' + Q Gamma Q',        d_i = 1 - (A_ss + A_tt) / 4        (A_kk = gamma_kk where a parent is a metafounder)

and over (u, g), the metafounders' own values among the unknowns,

    (u' g') K^-1 (u' g')' = sum_i m_i^2 / d_i + g' Gamma^-1 g,        m_i = u_i - (u_s + u_t) / 2

so that K^-1 is a pedigree's with groups and a dense Gamma^-1 in the rows of the metafounders. Gamma = 0 is a base of
unrelated animals, and a parent that stays unknown counts as such a pool; large diagonals are groups with a flat prior.
"""

from __future__ import annotations

import numpy as np

from mmgibbs.pedigree.errors import PedigreeError
from mmgibbs.pedigree.group_shares import group_composition
from mmgibbs.pedigree.inbreeding import inbreeding_with_metafounders
from mmgibbs.pedigree.partitioned import COLUMNS, inverse_among, restricted
from mmgibbs.pedigree.relationship import Relatives, relatives
from mmgibbs.pedigree.relationship_products import a_times_relatives, relationship_block


def metafounder_relatives(sire: np.ndarray, dam: np.ndarray, gamma: np.ndarray) -> Relatives:
    """The structured K^-1 without Gamma^-1, which belongs into the rows of the metafounders (the last m levels).

    sire, dam: (n,) int32 codes, parents first; n .. n + m - 1 metafounders. gamma: (m, m), see `checked_gamma`.
    """
    gamma = checked_gamma(gamma)
    F = inbreeding_with_metafounders(sire, dam, gamma)
    return relatives(sire, dam, F, len(gamma), False, _lost_by_metafounders(sire, dam, gamma))


def _lost_by_metafounders(sire: np.ndarray, dam: np.ndarray, gamma: np.ndarray) -> np.ndarray:
    """(n,) -gamma_kk / 4 for each parent that is a metafounder k: what `relatives` adds to d of an unknown parent."""
    n = len(sire)
    lost = np.zeros(n)
    for parent in (np.asarray(sire), np.asarray(dam)):
        of_pool = parent >= n
        lost[of_pool] -= 0.25 * np.diag(gamma)[parent[of_pool] - n]
    return lost


def checked_gamma(gamma: np.ndarray) -> np.ndarray:
    """Gamma as float64; PedigreeError unless it is symmetric, positive definite, and within what populations can have.

    With allele frequencies p_k, gamma_kl = 8 cov(p_k, p_l) about 1/2: the diagonal lies between 0 and 2.
    """
    gamma = np.ascontiguousarray(gamma, np.float64)
    if gamma.ndim != 2 or gamma.shape[0] != gamma.shape[1] or not np.isfinite(gamma).all():
        raise PedigreeError(f"Gamma must be a square matrix of numbers, found shape {gamma.shape}")
    if not np.allclose(gamma, gamma.T, rtol=1e-8, atol=1e-10):
        k, j = (int(i) for i in np.unravel_index(np.argmax(np.abs(gamma - gamma.T)), gamma.shape))
        raise PedigreeError(
            f"Gamma must be symmetric, found {gamma[k, j]:g} for ({k + 1}, {j + 1}) and {gamma[j, k]:g} "
            f"for ({j + 1}, {k + 1})"
        )
    diagonal = np.diag(gamma)
    if (diagonal <= 0).any() or (diagonal >= 2).any():
        k = int(np.argmax((diagonal <= 0) | (diagonal >= 2)))
        raise PedigreeError(
            f"Gamma has {diagonal[k]:g} at ({k + 1}, {k + 1}); needed a value above 0 (unrelated founders) and below 2 "
            "(a population without variation)"
        )
    lowest = float(np.linalg.eigvalsh(gamma)[0])
    if lowest <= 1e-10 * diagonal.max():
        raise PedigreeError(
            f"Gamma must be positive definite, its lowest eigenvalue is {lowest:.3g}: two metafounders may be the same "
            "population, which should then have one name"
        )
    return 0.5 * (gamma + gamma.T)


def a_times_with_metafounders(kin: Relatives, gamma: np.ndarray, v: np.ndarray) -> np.ndarray:
    """A v among the animals, (n,) or (n, k): L D L' v + Q Gamma Q' v, by passes over the pedigree."""
    Q = group_composition(kin.sire, kin.dam, kin.n_groups)[: kin.n_animals].astype(np.float64)
    return a_times_relatives(kin, v) + Q @ (gamma @ (Q.T @ v))


def a_among_with_metafounders(kin: Relatives, gamma: np.ndarray, animals: np.ndarray) -> np.ndarray:
    """The relationships among chosen animals, (m, m) float64, in blocks of columns."""
    small, number = restricted(kin, animals)
    chosen = number[animals]
    out = np.empty((chosen.size, chosen.size))
    for first in range(0, chosen.size, COLUMNS):
        block = chosen[first : first + COLUMNS]
        unit = np.zeros((small.n_animals, block.size))
        unit[block, np.arange(block.size)] = 1.0
        out[:, first : first + COLUMNS] = a_times_with_metafounders(small, gamma, unit)[chosen]
    return out


def inverse_among_with_metafounders(kin: Relatives, gamma: np.ndarray, animals: np.ndarray) -> np.ndarray:
    """A22^-1 of chosen animals, (m, m) float64: that of them and the metafounders, from which these are absorbed."""
    m = len(animals)
    both = inverse_among(kin, np.concatenate([animals, np.arange(kin.n_animals, kin.n_levels)]))
    both[m:, m:] += np.linalg.inv(gamma)
    return both[:m, :m] - both[:m, m:] @ np.linalg.solve(both[m:, m:], both[m:, :m])


def estimated_gamma(
    sire: np.ndarray, dam: np.ndarray, inbreeding: np.ndarray | None, m: int, animals: np.ndarray, M: np.ndarray
) -> np.ndarray:
    """Gamma from genotypes, (m, m), by generalised least squares (Garcia-Baccino et al. 2017, Genet. Sel. Evol. 49:34).

    The mean of a SNP's counts in each base population, about 1, given that animals inherit them with covariance A22,

        mu = (Q' A22^-1 Q)^-1 Q' A22^-1 (M - 1),        Gamma = 2/p sum over SNPs of [mu mu' - s2 (Q' A22^-1 Q)^-1]

    where s2, the mean square of the SNP's residuals, takes away what the error of mu adds to its square (the paper
    leaves it: with few genotyped animals its Gamma is too large).

    sire, dam, inbreeding: as in `relatives`, unrelated founders within populations. animals: (g,) codes of those with
    genotypes. M: (g, p) counts 0 .. 2 of one allele, none missing. Raises PedigreeError where a population has no share
    in the genotyped animals, or two have the same.
    """
    if len(animals) <= m:
        raise PedigreeError(f"Gamma of {m} metafounders needs more than {m} genotyped animals, found {len(animals)}")
    Q = group_composition(sire, dam, m)[animals].astype(np.float64)
    without = np.flatnonzero(Q.max(axis=0, initial=0.0) <= 0)
    if without.size:
        raise PedigreeError(
            f"metafounder {without[0] + 1} has no descendant with a genotype ({without.size} such): Gamma cannot be "
            "estimated from genotypes for it"
        )
    L = np.linalg.cholesky(relationship_block(sire, dam, inbreeding, animals))
    half = np.linalg.solve(L, np.column_stack([Q, np.asarray(M, np.float64) - 1.0]))
    W, Z = half[:, :m], half[:, m:]
    values, vectors = np.linalg.eigh(W.T @ W)
    if values[0] <= 1e-9 * values[-1]:
        k = int(np.argmax(np.abs(vectors[:, 0])))
        raise PedigreeError(
            f"the share of metafounder {k + 1} in the genotyped animals is a sum of those of others: Gamma cannot be "
            "estimated for all of them; needed fewer metafounders, or Gamma from elsewhere"
        )
    mu = np.linalg.solve(W.T @ W, W.T @ Z)
    error = np.sum((Z - W @ mu) ** 2) / (len(Z) - m)  # of all SNPs together
    return 2.0 / mu.shape[1] * (mu @ mu.T - error * np.linalg.inv(W.T @ W))
