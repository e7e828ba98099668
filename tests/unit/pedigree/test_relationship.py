"""A-inverse in its three forms, A times a vector, A among some: against the tabular A and dense matrices."""

import subprocess
import sys

import numpy as np
import pytest
from helpers.support import ROOT
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import tabular

from mmgibbs.pedigree.errors import PedigreeError
from mmgibbs.pedigree.inbreeding import inbreeding
from mmgibbs.pedigree.relationship import (
    a_inverse_csr,
    a_inverse_times,
    a_inverse_triplets,
    list_progeny,
    mendelian_variance,
    quadratic_form,
    relatives,
)
from mmgibbs.pedigree.relationship_products import a_times, relationship_block


def random_pedigree(n, seed, n_groups=0, selfing=False):
    """Looped and inbred; parents unknown on one side, both, or neither. With groups every unknown parent is one of
    them."""
    rng = np.random.default_rng(seed)
    sire, dam = np.full(n, -1, np.int32), np.full(n, -1, np.int32)
    for i in range(4, n):
        s, d = rng.integers(max(0, i - 12), i, 2)
        if not selfing:
            s, d = s - s % 2, d - d % 2 + 1 if d - d % 2 + 1 < i else 1
        sire[i] = s if rng.random() < 0.85 else -1
        dam[i] = d if rng.random() < 0.85 else -1
    if n_groups:
        for parent in (sire, dam):
            missing = parent < 0
            parent[missing] = n + rng.integers(0, n_groups, missing.sum())
    return sire, dam


CASES = [  # seed, groups, random_groups, selfing, account
    (0, 0, False, False, True),
    (1, 0, False, False, False),
    (2, 0, False, True, True),
    (3, 3, False, False, True),
    (4, 3, True, False, True),
    (5, 2, False, True, False),
    (6, 1, True, True, True),
]


def built(seed, groups, random_groups, selfing, account):
    sire, dam = random_pedigree(40, seed, groups, selfing)
    F = inbreeding(sire, dam) if account else None
    dense = tabular.relationship_inverse(sire, dam, groups, random_groups, account)
    return relatives(sire, dam, F, groups, random_groups), dense


@pytest.mark.parametrize(("seed", "groups", "random_groups", "selfing", "account"), CASES)
class TestAgainstDense:
    """Every form against the inverse of the tabular A, the QP matrix where there are groups."""

    def test_csr(self, seed, groups, random_groups, selfing, account):
        r, dense = built(seed, groups, random_groups, selfing, account)
        csr = a_inverse_csr(r)
        assert csr.toarray() == pytest.approx(dense, abs=1e-10)
        assert csr.has_sorted_indices and csr.has_canonical_format

    def test_triplets(self, seed, groups, random_groups, selfing, account):
        r, dense = built(seed, groups, random_groups, selfing, account)
        row, column, value = a_inverse_triplets(r)
        assert len(set(zip(row.tolist(), column.tolist()))) == row.size
        assert (row.dtype, column.dtype, value.dtype) == (np.int32, np.int32, np.float64)
        out = np.zeros(dense.shape)
        out[row, column] = value
        assert out == pytest.approx(dense, abs=1e-10)

    def test_diagonal(self, seed, groups, random_groups, selfing, account):
        r, dense = built(seed, groups, random_groups, selfing, account)
        assert r.diagonal == pytest.approx(np.diag(dense), abs=1e-10)

    @pytest.mark.parametrize("shape", [(), (1,), (3,)])
    def test_times(self, seed, groups, random_groups, selfing, account, shape):
        r, dense = built(seed, groups, random_groups, selfing, account)
        x = np.random.default_rng(1).normal(size=(r.n_levels, *shape))
        assert a_inverse_times(r, x) == pytest.approx(dense @ x, abs=1e-9)

    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    def test_quadratic_form(self, seed, groups, random_groups, selfing, account, dtype):
        r, dense = built(seed, groups, random_groups, selfing, account)
        theta = np.random.default_rng(2).normal(size=(r.n_levels, 3)).astype(dtype)
        exact = theta.astype(float).T @ dense @ theta.astype(float)
        assert quadratic_form(r, theta) == pytest.approx(exact, rel=1e-9 if dtype == np.float64 else 1e-4)


@settings(max_examples=60)
@given(st.integers(1, 40), st.integers(0, 10**6), st.integers(0, 3), st.booleans())
def test_random_pedigrees(n, seed, groups, selfing):
    sire, dam = random_pedigree(n, seed, groups, selfing)
    F = inbreeding(sire, dam)
    r = relatives(sire, dam, F, groups)
    dense = tabular.relationship_inverse(sire, dam, groups)
    # rounding grows with the condition of A: 1/d of inbred parents
    tolerance = 1e-10 * r.dinv.max() ** 2
    assert a_inverse_csr(r).toarray() == pytest.approx(dense, abs=tolerance)
    assert r.progeny_ptr[-1] == (sire >= 0).sum() + (dam >= 0).sum()
    A = tabular.relationship(sire, dam)
    v = np.random.default_rng(seed).normal(size=(n, 2))
    assert a_times(sire, dam, F, v) == pytest.approx(A @ v, abs=1e-11)
    chosen = np.random.default_rng(seed).integers(0, n, 5)
    assert relationship_block(sire, dam, F, chosen) == pytest.approx(A[np.ix_(chosen, chosen)], abs=1e-12)
    assert relationship_block(sire, dam, F, chosen, np.array([3, 0])) == pytest.approx(
        A[np.ix_(chosen, chosen[[3, 0]])], abs=1e-12
    )


@pytest.mark.parametrize("m", [0, 1, 16, 17, 40])
def test_among_in_blocks_of_columns(m):
    sire, dam = random_pedigree(80, 3)
    F = inbreeding(sire, dam)
    chosen = np.random.default_rng(3).permutation(80)[:m]
    assert relationship_block(sire, dam, F, chosen) == pytest.approx(
        tabular.relationship(sire, dam)[np.ix_(chosen, chosen)], abs=1e-12
    )


def test_times_without_inbreeding_is_the_ignoring_matrix():
    sire, dam = random_pedigree(50, 4)
    A = tabular.relationship(sire, dam, inbreeding=False)
    assert a_times(sire, dam, None, np.eye(50)) == pytest.approx(A, abs=1e-12)


def test_mendelian_variances():
    """1 without parents; 3/4 - F/4 with one; 1/2 - (F + F)/4 with two (docs/explanation/theory.md)."""
    F = np.array([0.2, 0.4, 0, 0, 0])
    d = mendelian_variance(np.array([-1, -1, 0, 0, 7], np.int32), np.array([-1, -1, -1, 1, 1], np.int32), F)
    assert d == pytest.approx([1, 1, 0.75 - 0.05, 0.5 - 0.15, 0.75 - 0.1], abs=1e-15)


# The small textbook pedigree: 1 2 3 are base animals, 4's dam is unknown; sires' group 8, dams' group 9. Calves 4-8
# have records.
TEXTBOOK_SIRE = np.array([8, 8, 8, 0, 2, 0, 3, 2], np.int32)
TEXTBOOK_DAM = np.array([9, 9, 9, 9, 1, 1, 4, 5], np.int32)
MALE = [0, 3, 4]  # of the five calves with records


def test_textbook_groups_rank():
    """QP: 10 levels of rank 8. The mixed-model equations with two sexes: 12 equations of rank 11, 12 with random
    groups."""
    for random_groups, rank in ((False, 11), (True, 12)):
        r = relatives(TEXTBOOK_SIRE, TEXTBOOK_DAM, None, 2, random_groups)
        qp = a_inverse_csr(r).toarray()
        assert np.linalg.matrix_rank(qp) == (10 if random_groups else 8)
        X = np.zeros((5, 2))
        X[:, 1] = 1
        X[MALE] = [1, 0]
        Z = np.zeros((5, 10))
        Z[np.arange(5), np.arange(3, 8)] = 1
        C = np.block([[X.T @ X, X.T @ Z], [Z.T @ X, Z.T @ Z + 2 * qp]])  # variance ratio 40 : 20
        assert np.linalg.matrix_rank(C) == rank


def test_both_parents_the_same_group():
    """Founder 0 with both parents in group 1: w = (1, -1), so QP = [[1, -1], [-1, 1]]; it stands in the list twice."""
    r = relatives(np.array([1], np.int32), np.array([1], np.int32), None, 1)
    assert r.progeny.tolist() == [0, 0] and r.mate.tolist() == [1, 1] and r.progeny_ptr.tolist() == [0, 0, 2]
    assert a_inverse_csr(r).toarray().tolist() == [[1, -1], [-1, 1]]


def test_what_was_given_may_change_later():
    """1/d and the diagonal are made when they are asked for, from the inbreeding that was given."""
    sire, dam = np.array([-1, -1, 0, 2, 3], np.int32), np.array([-1, -1, 1, 1, 2], np.int32)
    F, within = inbreeding(sire, dam), np.array([0.0, 0.0, 0.1, 0.2, 0.3])
    expected = relatives(sire, dam, F.copy(), within=within.copy())
    kept = relatives(sire, dam, F, within=within)
    before = expected.dinv, expected.diagonal
    F[:], within[:] = 0.9, 5.0
    np.testing.assert_array_equal(kept.inbreeding, expected.inbreeding)
    np.testing.assert_array_equal(kept.dinv, before[0])
    np.testing.assert_array_equal(kept.diagonal, before[1])


def test_refusals():
    two = np.array([-1, -1, 5], np.int32), np.array([-1, -1, 1], np.int32)
    with pytest.raises(PedigreeError, match=r"animal code 2 has parent code 5: codes run to 3 \(3 animals and 1"):
        relatives(*two, None, 1)
    with pytest.raises(PedigreeError, match="animal code 0 has parent codes 1 and -1: parents must come before"):
        relatives(np.array([1, -1], np.int32), np.array([-1, -1], np.int32))
    with pytest.raises(PedigreeError, match="one value for each of 3 animals"):
        relatives(np.array([-1, -1, 0], np.int32), two[1], np.zeros(2))
    with pytest.raises(PedigreeError, match=r"code 2: .* F = 1\.5 \(code 0\) and F = 1 \(code 1\), makes .* -0\.125; "):
        relatives(np.array([-1, -1, 0], np.int32), two[1], np.array([1.5, 1.0, 0.0]))
    with pytest.raises(PedigreeError, match="must lie in 0 .. 2, found 1 .. 3"):
        relationship_block(np.array([-1, -1, 0], np.int32), two[1], None, [1, 3])
    r = relatives(np.array([-1, -1, 0], np.int32), two[1])
    for wrong in (np.zeros(2), np.zeros((2, 3))):
        with pytest.raises(ValueError, match="3 rows"):
            a_inverse_times(r, wrong)
        with pytest.raises(ValueError, match="3 rows"):
            quadratic_form(r, wrong)


def test_exported_names_are_there():
    from mmgibbs import pedigree

    assert all(getattr(pedigree, name).__name__ == name for name in pedigree.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        pedigree.nonsense  # noqa: B018


def test_needs_no_polars():
    code = (
        "import sys; sys.modules['polars'] = None\n"
        "import numpy as np, mmgibbs.pedigree.relationship as r, mmgibbs.pedigree.inbreeding as f\n"
        "sire, dam = np.array([-1, -1, 0], np.int32), np.array([-1, -1, 1], np.int32)\n"
        "r.a_inverse_csr(r.relatives(sire, dam, f.inbreeding(sire, dam)))\n"
        "from mmgibbs import pedigree; pedigree.relatives\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def test_lists_of_progeny_in_another_order():
    """Entries of a level keep their order; levels, and what they point at, have new numbers."""
    sire, dam = random_pedigree(40, 3)
    r, rng = relatives(sire, dam), np.random.default_rng(4)
    order = rng.permutation(r.n_levels)
    place = np.append(np.argsort(order), 99).astype(np.uint32)
    ptr = np.empty(r.n_levels + 1, np.uint64)
    progeny, mate = np.empty(r.n_entries, np.uint32), np.empty(r.n_entries, np.uint32)
    list_progeny(r.sire, r.dam, place, ptr, progeny, mate)
    for level, old in enumerate(order.tolist()):
        mine, theirs = slice(*ptr[level : level + 2].tolist()), slice(*r.progeny_ptr[old : old + 2].tolist())
        assert progeny[mine].tolist() == place[r.progeny[theirs]].tolist()
        assert mate[mine].tolist() == place[r.mate[theirs]].tolist()
    assert int(ptr[-1]) == r.n_entries == (r.sire >= 0).sum() + (r.dam >= 0).sum() and 99 in mate
