"""Columns of large classes that depend on others, which records they leave determined."""

import numpy as np
import pytest
from scipy import sparse

from mmgibbs.data import rank
from mmgibbs.data.rank import Columns, independent_columns
from mmgibbs.validation import estimability
from mmgibbs.validation.estimability import find_aliased


def class_of(level):
    return Columns(np.asarray(level, np.int32), int(np.max(level)) + 1)


def dense(effects):
    return estimability._joined(effects).toarray()


def kept_columns(effects, monkeypatch, intercept=None, ends=True):
    monkeypatch.setattr(rank, "DENSE_COLUMNS", 4)
    found = independent_columns(effects, intercept)
    assert found.checked_apart
    kept, finished = find_aliased(effects, found)
    assert finished == ends
    return np.concatenate([k.ravel() for k in kept])


def solves(monkeypatch):
    """The shapes of the systems that are solved from here on."""
    solved, shapes = estimability._solved, []

    def counted(X, column):
        shapes.append(X.shape)
        return solved(X, column)

    monkeypatch.setattr(estimability, "_solved", counted)
    return shapes


def of_regions(n_regions, rng, order=None):
    """An intercept, a class of many levels, and two classes nested in regions."""
    n = 40 * n_regions
    region = np.arange(n) % n_regions if order is None else order[np.arange(n) % n_regions]
    herd, pen = region * 5 + rng.integers(0, 5, n), rng.integers(0, 4, n)
    nested = region * 4 + pen if order is None else (n_regions - 1 - region) * 4 + pen
    largest = class_of(rng.permutation(n) % (8 * n_regions))
    return [Columns(np.zeros(n, np.int32), 1), largest, class_of(herd), class_of(nested)]


@pytest.mark.parametrize("turned", [False, True])
def test_classes_nested_in_many_regions_take_few_solves(monkeypatch, turned):
    """Turned: the level of one class that depends on the largest lies in the first region, of the other in the last."""
    effects = of_regions(30, np.random.default_rng(1), np.arange(30) if turned else None)
    shapes = solves(monkeypatch)
    kept, X = kept_columns(effects, monkeypatch, 0), dense(effects)
    assert len(shapes) <= 4
    assert np.linalg.matrix_rank(X[:, kept]) == kept.sum() == np.linalg.matrix_rank(X)


def test_the_rounds_end(monkeypatch):
    """What is not found by then stays as it was without the check: more columns, of the same space."""
    effects = of_regions(6, np.random.default_rng(1))
    shapes = solves(monkeypatch)
    monkeypatch.setattr(estimability, "ROUNDS", 2)
    monkeypatch.setattr(estimability, "_drop_equal_sums", lambda effects, independent: [k.copy() for k in independent])
    monkeypatch.setattr(estimability, "_parts_without_common_records", lambda X: np.zeros(X.shape[1], int))
    kept, X = kept_columns(effects, monkeypatch, 0, ends=False), dense(effects)
    assert len(shapes) <= 4
    assert np.linalg.matrix_rank(X[:, kept]) == np.linalg.matrix_rank(X) < kept.sum()


def with_powers_of_age(seed, n, n_largest, n_other, shared=False):
    """An intercept, two classes, one more in the groups of the second where shared, and three powers of an age."""
    rng = np.random.default_rng(seed)
    age = rng.uniform(300, 400, n)
    other = rng.integers(0, n_other, n)
    effects = [Columns(np.zeros(n, np.int32), 1), class_of(rng.integers(0, n_largest, n)), class_of(other)]
    if shared:
        # in some records, so that no two classes have one sum
        alone = np.where(rng.integers(0, 2, n) == 0, other % 9, -1)
        rest = np.where(alone < 0, other % 9, -1)
        effects += [class_of(alone), class_of(rest)]
    return [*effects, Columns(np.zeros(n, np.int32), 1, np.stack([age, age**2, age**3], axis=1))]


def test_covariates_of_bad_scale_stay(monkeypatch):
    """Powers of a raw age are independent, however nearly collinear."""
    effects = with_powers_of_age(1, 8000, 1500, 1200)
    monkeypatch.setattr(rank, "DENSE_COLUMNS", 4)
    found = independent_columns(effects, 0)
    for kept, before in zip(find_aliased(effects, found)[0], found.independent, strict=True):
        assert (kept == before).all()


def test_classes_that_depend_on_others_go_beside_covariates_of_bad_scale(monkeypatch):
    effects = with_powers_of_age(3, 600, 70, 54, shared=True)
    kept, X = kept_columns(effects, monkeypatch, 0), dense(effects)
    assert kept[-3:].all()
    X = np.hstack([X[:, :-3][:, kept[:-3]], np.linalg.qr(X[:, -3:] / X[:, -3:].max(axis=0))[0]])
    every = np.hstack([dense(effects[:-1]), X[:, -3:]])
    assert np.linalg.matrix_rank(X) == X.shape[1] == np.linalg.matrix_rank(every)


def test_a_column_that_does_not_depend_on_others_stays(monkeypatch):
    """Where the solve stops early, what is left of z says nothing of the columns."""
    solved, first = estimability._solved, []

    def early(X, column):
        first.append(X.shape)
        return np.zeros(X.shape[1]) if len(first) == 1 else solved(X, column)

    monkeypatch.setattr(estimability, "_solved", early)
    effects = with_powers_of_age(3, 600, 70, 54)
    found = kept_columns(effects, monkeypatch, 0)
    assert len(first) == 2
    assert found.sum() == 1 + 69 + 53 + 3


@pytest.mark.parametrize("seed", [1, 2])
def test_records_that_slopes_within_levels_do_not_determine_take_two_solves(monkeypatch, seed):
    """Herds whose training records have one age leave their slope undetermined, of a record at another age alone; two
    slopes whose errors are the same but for the sign do not cancel."""
    rng, n_herds = np.random.default_rng(seed), 40
    herd, year = np.repeat(np.arange(n_herds), 4), rng.integers(0, 3, 4 * n_herds)
    age = np.where(herd % 2 == 0, 5.0, rng.uniform(1, 9, herd.size))  # one age in every second herd
    slopes = lambda h, a: [np.eye(n_herds)[h] * a[:, None], a[:, None] * (h == 0)[:, None]]
    design = lambda h, y, a: np.hstack([np.eye(n_herds)[h], np.eye(3)[y][:, 1:], *slopes(h, a)])
    given = design(herd, year, age)
    tested = rng.integers(0, n_herds, 60)
    wanted = design(tested, rng.integers(0, 3, 60), np.where(rng.integers(0, 2, 60) == 0, 5.0, 7.0))
    wanted[:2] = 0.0
    wanted[1, [0, n_herds + 2, -1]] = 1.0, 5.0 + 1.5, 5.0 - 1.5  # of herd 0: its slope too high, the other too low
    kept = np.ones(given.shape[1], bool)
    kept[n_herds + 2 : -1][::2] = kept[-1] = False
    M = np.linalg.lstsq(given[:, kept], given[:, ~kept], rcond=None)[0]
    assert np.allclose(given[:, kept] @ M, given[:, ~kept])
    expected = (np.abs(wanted[:, ~kept] - wanted[:, kept] @ M) > 1e-6).any(axis=1)
    assert expected[1] and not expected[0] and 10 < expected.sum() < 50
    shapes = solves(monkeypatch)
    assert (unpredictable_of(wanted, given, kept, monkeypatch) == expected).all()
    assert len(shapes) == 2


def unpredictable_of(wanted, given, kept, monkeypatch):
    matrices = iter([sparse.csc_array(wanted), sparse.csc_array(given)])
    monkeypatch.setattr(estimability, "_matrix", lambda *_: next(matrices))
    monkeypatch.setattr(estimability, "_active_columns", lambda *_: kept)
    return estimability.unpredictable(None, None, 0)


def test_contrasts_that_are_not_determined_do_not_cancel(monkeypatch):
    """Interactions and second differences of columns that are the same in the training records, of which one stays."""
    n = 20
    patterns = [{i: 1, i + 1: -2, i + 2: 1} for i in range(1, n - 2)]
    patterns += [{i: 1, i + 1: -1, i + k: -1, i + k + 1: 1} for i in range(1, n - 3) for k in range(2, n - 1 - i)]
    wanted = np.zeros((len(patterns), n))
    for row, pattern in zip(wanted, patterns, strict=True):
        row[list(pattern)] = list(pattern.values())
    kept = np.arange(n) == 0
    assert unpredictable_of(wanted, np.ones((5, n)), kept, monkeypatch).all()


def test_records_are_determined_in_any_unit_of_a_covariate(monkeypatch):
    """Ages in days, within herds: every second herd has one age in training, at which its other records are known."""
    rng, n_herds = np.random.default_rng(1), 200
    herd, year = np.repeat(np.arange(n_herds), 4), rng.integers(0, 5, 4 * n_herds)
    age = rng.integers(3000, 3600, herd.size).astype(float)
    first = age[::4]
    age = np.where(herd % 2 == 0, first[herd], age)
    eye = sparse.eye_array(n_herds, format="csr")
    years = sparse.eye_array(5, format="csr")[:, 1:]
    design = lambda h, y, a: sparse.csc_array(sparse.hstack([eye[h], years[y], eye[h] * a[:, None]]))
    tested = rng.integers(0, n_herds, 400)
    other = rng.integers(0, 2, 400) == 1
    wanted = design(tested, rng.integers(0, 5, 400), first[tested] + 100.0 * other)
    kept = np.ones(wanted.shape[1], bool)
    kept[n_herds + 4 :: 2] = False
    lost = unpredictable_of(wanted, design(herd, year, age), kept, monkeypatch)
    assert (lost == ((tested % 2 == 0) & other)).all()
