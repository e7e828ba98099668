"""Rank of the fixed effects against numpy.linalg.matrix_rank of the dense columns."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mmgibbs.data import rank
from mmgibbs.data.rank import Columns, cholesky_pivots, independent_columns


def dense(effect: Columns) -> np.ndarray:
    """(n, levels x covariates), covariate fastest."""
    out = np.zeros((len(effect.level), effect.n_levels, effect.width))
    for r, level in enumerate(effect.level):
        if level >= 0:
            out[r, level] = 1.0 if effect.covariates is None else effect.covariates[r]
    return out.reshape(len(effect.level), -1)


def check(effects, intercept=None):
    """The kept columns are independent and span what all columns span."""
    result = independent_columns(effects, intercept)
    X = np.hstack([dense(e) for e in effects])
    keep = np.concatenate([k.ravel() for k in result.independent])
    assert keep.sum() == np.linalg.matrix_rank(X)
    assert np.linalg.matrix_rank(X[:, keep]) == keep.sum()
    assert np.array_equal(np.concatenate([k.ravel() for k in result.with_records]), np.any(X != 0, axis=0))
    return result


@st.composite
def models(draw):
    n = draw(st.integers(1, 30))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    effects = []
    for _ in range(draw(st.integers(1, 4))):
        q = draw(st.integers(1, 8))
        effects.append(Columns(rng.integers(0, q, n).astype(np.int32), q))
    for _ in range(draw(st.integers(0, 2))):
        q, m = draw(st.integers(1, 4)), draw(st.integers(1, 3))
        # Whole numbers, so that dependence is exact or far away.
        effects.append(
            Columns(rng.integers(-(q > 1), q, n).astype(np.int32), q, rng.integers(-2, 3, (n, m)).astype(float))
        )
    return effects


@settings(max_examples=80)
@given(models())
def test_kept_columns_are_a_basis(effects):
    check(effects)


def test_the_largest_class_keeps_its_levels_and_the_reference_levels_of_the_others_go():
    rng = np.random.default_rng(2)
    sex, herd, year = (Columns(rng.integers(0, q, 200).astype(np.int32), q) for q in (2, 20, 5))
    result = check([sex, herd, year])
    assert result.independent[0].ravel().tolist() == [False, True]
    assert result.independent[1].all()
    assert result.independent[2].ravel().tolist() == [False] + [True] * 4
    result = check([replace(sex, reference=1), replace(herd, reference=7), replace(year, reference=3)])
    assert result.independent[0].ravel().tolist() == [True, False]
    assert result.independent[1].all()
    assert result.independent[2].ravel().tolist() == [True, True, True, False, True]


def test_an_intercept_takes_the_place_of_the_reference_level():
    rng = np.random.default_rng(2)
    level = rng.integers(0, 4, 50).astype(np.int32)
    level[level == 0] = 2  # the first level has no records, so the one after it goes
    result = check(
        [Columns(np.zeros(50, np.int32), 1), Columns(level, 4), Columns(rng.integers(0, 3, 50).astype(np.int32), 3)],
        intercept=0,
    )
    assert result.independent[0].all()
    assert result.independent[1].ravel().tolist() == [False, False, True, True]
    assert result.independent[2].ravel().tolist() == [False, True, True]


def test_one_level_of_each_part_of_a_large_class_goes(monkeypatch):
    """Herds 0 and 1 with years 0-2, herds 2 and 3 with years 3-5: the reference, and the first of the other part."""
    monkeypatch.setattr(rank, "DENSE_COLUMNS", 1)
    herd = np.repeat(np.arange(8), 6).astype(np.int32)
    year = np.concatenate([np.tile([0, 1, 2], 8), np.tile([3, 4, 5], 8)]).astype(np.int32)
    for reference, dropped in ((0, [0, 3]), (1, [1, 3]), (5, [0, 5])):
        result = check([Columns(herd, 8), Columns(year, 6, reference=reference)])
        assert np.flatnonzero(~result.independent[1][:, 0]).tolist() == dropped


def in_force(effect, keep):
    """The columns of a class with those that are not kept set to 0."""
    level = effect.level
    return replace(effect, level=np.where((level >= 0) & keep[level, 0], level, -1).astype(np.int32))


@st.composite
def two_classes(draw):
    """An intercept and two classes, of which some records lack a level; the first class is the larger one."""
    n, q = draw(st.integers(2, 40)), draw(st.integers(2, 12))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    missing = draw(st.sampled_from([(0, 0), (0, 1), (1, 0), (1, 1)]))
    one, other = (rng.integers(-m, size, n).astype(np.int32) for m, size in zip(missing, (q + 3, q), strict=True))
    return [Columns(np.zeros(n, np.int32), 1), Columns(one, q + 3), Columns(other, q)]


@settings(max_examples=150)
@given(two_classes(), st.booleans())
def test_levels_set_to_0_in_a_class_too_large_for_the_full_check(effects, with_intercept):
    """Where a record has a level of one class alone its part has full rank; the intercept stands for a level that the
    larger class lacks. Columns of full rank are all kept.
    """
    effects = effects if with_intercept else effects[1:]
    limit, rank.DENSE_COLUMNS = rank.DENSE_COLUMNS, 1
    try:
        first = check(effects, 0 if with_intercept else None)
        assert first.checked_apart == (len(effects) - 1,)
        left = [in_force(e, keep) for e, keep in zip(effects, first.independent, strict=True)]
        again = check(left, 0 if with_intercept else None)
    finally:
        rank.DENSE_COLUMNS = limit
    for keep, before in zip(again.independent, first.independent, strict=True):
        np.testing.assert_array_equal(keep, before)


def test_slopes_too_many_for_the_full_check(monkeypatch):
    monkeypatch.setattr(rank, "DENSE_COLUMNS", 4)
    rng = np.random.default_rng(4)
    pen = rng.integers(0, 12, 40).astype(np.int32)
    x = rng.normal(size=(40, 1)) ** np.arange(1, 3)
    means = np.stack([x[pen == p].mean(axis=0) if np.any(pen == p) else [0, 0] for p in range(12)])
    result = check([Columns(pen, 12), Columns(pen, 12, x - means[pen])])
    assert result.checked_apart == (1,)


@pytest.mark.parametrize("p", [1, 95, 96, 97, 250])
def test_cholesky_pivots_over_several_panels(p):
    """Every third column repeats the sum of the two before it."""
    rng = np.random.default_rng(p)
    X = rng.normal(size=(2 * p + 3, p))
    for j in range(2, p, 3):
        X[:, j] = X[:, j - 1] + X[:, j - 2]
    keep = cholesky_pivots(X.T @ X, (X * X).sum(axis=0))
    assert np.array_equal(keep, np.arange(p) % 3 != 2)


@pytest.mark.parametrize("seed", range(6))
def test_records_are_taken_in_parts(seed, monkeypatch):
    """The sums do not depend on how many records are looked at together; a part left out would show."""
    rng, n = np.random.default_rng(seed), 50
    effects = [Columns(rng.integers(0, q, n).astype(np.int32), q) for q in (3, 4)]
    effects.append(Columns(rng.integers(-1, 2, n).astype(np.int32), 2, rng.normal(size=(n, 2))))
    effects.append(Columns(np.zeros(n, np.int32), 1, rng.normal(size=(n, 1))))
    absorbed = Columns(rng.integers(0, 9, n).astype(np.int32), 9)
    counts = np.bincount(absorbed.level, minlength=9).astype(float)
    whole = rank._schur(effects, absorbed, counts)
    fewer = rank._schur([e.part(slice(0, n - 1)) for e in effects], absorbed.part(slice(0, n - 1)), counts)
    assert not np.allclose(fewer[0], whole[0])
    monkeypatch.setattr(rank, "ROWS", 7)
    for part, found in zip(whole, rank._schur(effects, absorbed, counts), strict=True):
        np.testing.assert_allclose(found, part, rtol=0, atol=1e-12 * n)
