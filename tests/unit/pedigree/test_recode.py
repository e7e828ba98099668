"""Ids to rows, generations, parents-first codes."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mmgibbs.pedigree.recode import IdIndex, parents_first, parents_first_order, recode
from mmgibbs.pedigree.relationship import relatives

TEXT = st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=6)


@settings(max_examples=100)
@given(st.lists(TEXT, max_size=40), st.lists(st.one_of(st.none(), TEXT), max_size=40))
def test_index_is_a_dictionary(ids, wanted):
    wanted = wanted + ids[::3]
    index = IdIndex(pl.Series(ids, dtype=pl.String))
    first = {}
    for i, name in enumerate(ids):
        first.setdefault(name, i)
    assert index.first.tolist() == [first[name] for name in ids]
    assert index.find(pl.Series(wanted, dtype=pl.String)).tolist() == [first.get(name, -1) for name in wanted]


def test_index_at_scale():
    """100,000 ids that differ in one character: nothing is confused."""
    ids = pl.Series(range(100_000)).cast(pl.String).str.zfill(12)
    shuffled = np.random.default_rng(1).permutation(100_000)
    index = IdIndex(ids)
    assert (index.first == np.arange(100_000)).all()
    assert (index.find(ids.gather(shuffled)) == shuffled).all()
    assert (index.find(ids + "x") == -1).all()


@st.composite
def shuffled_pedigrees(draw):
    """sire, dam rows of a valid pedigree in any order of rows."""
    n = draw(st.integers(1, 30))
    place = np.array(draw(st.permutations(range(n))))
    parent = [np.full(n, -1, np.int32), np.full(n, -1, np.int32)]
    for i in range(1, n):
        for p in parent:
            j = draw(st.integers(-1, i - 1))
            p[place[i]] = place[j] if j >= 0 else -1
    return parent


@settings(max_examples=100)
@given(shuffled_pedigrees())
def test_parents_come_first_and_stay_the_same_animals(parents):
    sire, dam = parents
    n = sire.size
    generation, loop = parents_first(sire, dam)
    assert loop.size == 0
    for i in range(n):
        known = [generation[p] for p in (sire[i], dam[i]) if p >= 0]
        assert generation[i] == (1 + max(known) if known else 0)
    order = parents_first_order(sire, dam, generation)
    code, new_sire, new_dam = recode(sire, dam, order)
    assert sorted(order.tolist()) == list(range(n))
    for c in range(n):
        for row, new in ((sire, new_sire), (dam, new_dam)):
            assert new[c] < c
            assert new[c] == (code[row[order[c]]] if row[order[c]] >= 0 else -1)
    relatives(new_sire, new_dam)  # accepts them


def test_order_of_the_file_is_kept_where_it_can_be():
    sire, dam = np.array([-1, -1, 0, -1], np.int32), np.array([-1, -1, 1, -1], np.int32)
    generation, _ = parents_first(sire, dam)
    assert generation.tolist() == [0, 0, 1, 0]
    assert parents_first_order(sire, dam, generation).tolist() == [0, 1, 2, 3]


def test_a_long_line_needs_no_deep_recursion():
    n = 200_000
    sire = np.arange(1, n + 1, dtype=np.int32)  # each the progeny of the next row
    sire[-1] = -1
    generation, loop = parents_first(sire, np.full(n, -1, np.int32))
    assert loop.size == 0 and (generation == np.arange(n)[::-1]).all()


@pytest.mark.parametrize("length", [1, 2, 3, 7])
def test_loops_are_found(length):
    """Rows 5 .. 5 + length - 1 in a loop, among others that lead into it."""
    n = 20
    sire, dam = np.full(n, -1, np.int32), np.full(n, -1, np.int32)
    for k in range(length):
        (sire if k % 2 else dam)[5 + k] = 5 + (k + 1) % length
    sire[0] = dam[3] = 5
    _, loop = parents_first(sire, dam)
    assert sorted(loop.tolist()) == list(range(5, 5 + length))
    for k, i in enumerate(loop):
        assert loop[(k + 1) % length] in (sire[i], dam[i])
