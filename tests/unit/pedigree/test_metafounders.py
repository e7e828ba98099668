"""Metafounders against the tabular method with Gamma in the founders' place, and Gamma from simulated genotypes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import tabular
from unit.pedigree.test_inbreeding import pedigrees, random_pedigree

from mmgibbs.pedigree.errors import PedigreeError
from mmgibbs.pedigree.group_shares import group_composition
from mmgibbs.pedigree.inbreeding import inbreeding, inbreeding_with_metafounders
from mmgibbs.pedigree.metafounders import (
    a_times_with_metafounders,
    checked_gamma,
    estimated_gamma,
    metafounder_relatives,
)
from mmgibbs.pedigree.relationship import a_inverse_csr


def some_gamma(m, seed):
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.1, 0.9, (m, 40))
    return 8 / 40 * (p - 0.5) @ (p - 0.5).T + 0.05 * np.eye(m)


@settings(max_examples=60)
@given(pedigrees(groups=2), st.integers(0, 1000))
def test_inbreeding_is_that_of_the_table(parents, seed):
    sire, dam = parents
    gamma = some_gamma(2, seed)
    F = inbreeding_with_metafounders(sire, dam, gamma)
    np.testing.assert_allclose(F, np.diag(tabular.with_metafounders(sire, dam, gamma))[: len(sire)] - 1, atol=1e-12)


def with_metafounders(n, seed, m):
    """Unknown parents belong to one of m metafounders; one in five stays unknown."""
    sire, dam = random_pedigree(n, seed)
    rng = np.random.default_rng(seed)
    return tuple(
        np.where((p < 0) & (rng.random(n) < 0.8), n + rng.integers(0, m, n), p).astype(np.int32) for p in (sire, dam)
    )


def test_the_inverse_is_that_of_the_table():
    sire, dam = with_metafounders(300, 1, 3)
    gamma = some_gamma(3, 2)
    kin = metafounder_relatives(sire, dam, gamma)
    inverse = a_inverse_csr(kin).toarray()
    inverse[300:, 300:] += np.linalg.inv(gamma)
    A = tabular.with_metafounders(sire, dam, gamma)
    np.testing.assert_allclose(inverse @ A, np.eye(303), atol=1e-9)
    v = np.random.default_rng(3).normal(size=(300, 2))
    np.testing.assert_allclose(a_times_with_metafounders(kin, gamma, v), A[:300, :300] @ v, atol=1e-5)  # Q is float32


def test_populations_that_are_as_unlike_as_can_be():
    """Relationships of exactly -1, which no mark of the passes may look like."""
    sire, dam = with_metafounders(60, 6, 2)
    gamma = np.array([[1.5, -1.0], [-1.0, 1.5]])
    F = inbreeding_with_metafounders(sire, dam, gamma)
    np.testing.assert_allclose(F, np.diag(tabular.with_metafounders(sire, dam, gamma))[:60] - 1, atol=1e-12)


def test_gamma_of_numbers_and_near_zero():
    sire, dam = with_metafounders(400, 4, 2)
    F = inbreeding_with_metafounders(sire, dam, 1e-12 * np.eye(2))
    np.testing.assert_allclose(F, inbreeding(sire, dam), atol=1e-11)
    sire, dam = np.array([2, 2], np.int32), np.array([2, 3], np.int32)  # both parents of one pool; of two pools
    gamma = np.array([[0.6, 0.2], [0.2, 0.5]])
    np.testing.assert_allclose(inbreeding_with_metafounders(sire, dam, gamma), [0.3, 0.1])


@pytest.mark.parametrize(
    ("gamma", "words"),
    [
        ([[0.5, 0.1], [0.2, 0.5]], "symmetric"),
        ([[0.5, 0.5], [0.5, 0.5]], "positive definite"),
        ([[0.0, 0.0], [0.0, 0.5]], "above 0"),
        ([[2.5]], "below 2"),
        ([[np.nan]], "numbers"),
        ([0.5], "square"),
    ],
)
def test_a_gamma_that_cannot_be(gamma, words):
    with pytest.raises(PedigreeError, match=words):
        checked_gamma(np.array(gamma))


def dropped(sire, dam, frequency, seed):
    """Counts of an allele by gene dropping from pools of the given frequencies (m, p)."""
    rng = np.random.default_rng(seed)
    n, p = len(sire), frequency.shape[1]
    genes = np.empty((n, 2, p), bool)
    for i in range(n):
        for side, parent in enumerate((sire[i], dam[i])):
            if parent >= n:
                genes[i, side] = rng.random(p) < frequency[parent - n]
            else:
                genes[i, side] = np.where(rng.random(p) < 0.5, genes[parent, 0], genes[parent, 1])
    return genes.sum(axis=1).astype(float)


def two_breeds(seed=5, p=4000):
    rng = np.random.default_rng(seed)
    n, founders = 260, 60
    sire, dam = np.empty(n, np.int32), np.empty(n, np.int32)
    for i in range(n):
        if i < founders:
            sire[i] = dam[i] = n + i % 2
        else:
            sire[i], dam[i] = 2 * rng.integers(0, i // 2), 2 * rng.integers(0, i // 2) + 1
    frequency = np.clip(rng.normal(0.5, 0.2, (2, p)), 0.02, 0.98)
    truth = 8 / p * (frequency - 0.5) @ (frequency - 0.5).T
    return sire, dam, dropped(sire, dam, frequency, seed), truth


def test_gamma_from_genotypes():
    sire, dam, M, truth = two_breeds()
    animals = np.arange(150, 260)
    found = estimated_gamma(sire, dam, inbreeding(sire, dam), 2, animals, M[animals])
    np.testing.assert_allclose(found, truth, atol=0.02)
    # Without the correction for the error of mu the diagonal is too large by far more than that.
    Q = group_composition(sire, dam, 2)[animals].astype(float)
    plain = np.linalg.lstsq(Q, M[animals] - 1, rcond=None)[0]
    assert (np.diag(2 / M.shape[1] * plain @ plain.T) - np.diag(truth)).min() > 0.05


def test_gamma_of_populations_that_the_genotypes_do_not_show():
    sire, dam, M, _ = two_breeds(p=50)
    F = inbreeding(sire, dam)
    with pytest.raises(PedigreeError, match="metafounder 2 has no descendant with a genotype"):
        estimated_gamma(sire, dam, F, 2, np.arange(0, 60, 2), M[np.arange(0, 60, 2)])
    with pytest.raises(PedigreeError, match="more than 2 genotyped"):
        estimated_gamma(sire, dam, F, 2, np.arange(2), M[:2])
    # Animals that are all halves of either breed.
    sire, dam = np.full(20, 20, np.int32), np.full(20, 21, np.int32)
    with pytest.raises(PedigreeError, match="sum of those of others"):
        estimated_gamma(sire, dam, np.zeros(20), 2, np.arange(20), M[:20])
