"""F against the tabular method, Wright's path counting, known recursions of inbred lines, and the published simdata
file."""

import numpy as np
import pytest
from helpers.support import shared_data
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import tabular

from mmgibbs.pedigree.errors import PedigreeError
from mmgibbs.pedigree.inbreeding import continue_inbreeding, inbreeding


def pedigree_codes(sire, dam):
    return np.array(sire, np.int32), np.array(dam, np.int32)


@st.composite
def pedigrees(draw, largest=14, hermaphrodites=False, groups=0):
    """sire, dam of a random pedigree full of loops: few animals, so that relatives mate."""
    n = draw(st.integers(1, largest))
    sire, dam = [], []
    for i in range(n):
        males = [j for j in range(i) if hermaphrodites or j % 2 == 0]
        females = [j for j in range(i) if hermaphrodites or j % 2 == 1]
        unknown = [n + g for g in range(groups)] if groups else [-1]
        sire.append(draw(st.sampled_from(males + unknown)))
        dam.append(draw(st.sampled_from(females + unknown)))
    return pedigree_codes(sire, dam)


def random_pedigree(n, seed, parents=30):
    """n animals, both parents among the last `parents` of their sex mostly: overlapping and inbred."""
    rng = np.random.default_rng(seed)
    sire, dam = np.full(n, -1, np.int32), np.full(n, -1, np.int32)
    for i in range(10, n):
        sire[i] = 2 * rng.integers(max(0, i - parents) // 2, i // 2) if rng.random() < 0.9 else -1
        dam[i] = 2 * rng.integers(max(0, i - 2 * parents) // 2, i // 2) + 1 if rng.random() < 0.9 else -1
    return sire, dam


def by_path_counting(sire, dam):
    """Wright (1922): F_i = sum over paths sire - ... - common ancestor a - ... - dam without a shared animal:
    (1/2)^animals (1 + F_a)."""
    n = len(sire)

    def lines(i):  # every line of descent from i up to each ancestor, as tuples that begin with i
        found = [(i,)]
        for p in (sire[i], dam[i]):
            if 0 <= p < n:
                found += [(i, *rest) for rest in lines(p)]
        return found

    F = np.zeros(n)
    for i in range(n):
        if not (0 <= sire[i] < n and 0 <= dam[i] < n):
            continue
        for up in lines(sire[i]):
            for down in lines(dam[i]):
                if up[-1] == down[-1] and len(set(up) & set(down)) == 1:
                    F[i] += 0.5 ** (len(up) + len(down) - 1) * (1 + F[up[-1]])
    return F


@settings(max_examples=80)
@given(pedigrees())
def test_path_counting(pedigree):
    assert inbreeding(*pedigree) == pytest.approx(by_path_counting(*pedigree), abs=1e-14)


@settings(max_examples=100)
@given(pedigrees(hermaphrodites=True))
def test_tabular_with_selfing(pedigree):
    assert inbreeding(*pedigree) == pytest.approx(tabular.inbreeding(*pedigree), abs=1e-14)


@pytest.mark.parametrize("seed", range(4))
def test_tabular_on_larger_pedigrees(seed):
    sire, dam = random_pedigree(400, seed)
    F = inbreeding(sire, dam)
    assert F.max() > 0.1
    assert pytest.approx(tabular.inbreeding(sire, dam), abs=1e-13) == F


def test_a_looped_pedigree_by_hand():
    """0 x 1 -> 2, 3 (full sibs); 2 x 3 -> 4 (F = 1/4); 2 x 4 -> 5: F = a(2,4)/2 = (a(2,2) + a(2,3))/4 = (1 + 1/2)/4 =
    3/8."""
    F = inbreeding(*pedigree_codes([-1, -1, 0, 0, 2, 2], [-1, -1, 1, 1, 3, 4]))
    assert F.tolist() == [0, 0, 0, 0, 0.25, 0.375]


def test_full_sib_line_of_ten_generations():
    """F_t = (1 + 2 F_{t-1} + F_{t-2})/4 (Wright 1921), generation 0 the founders: 0, 0, 1/4, 3/8, 1/2, 19/32 ..."""
    sire, dam = [-1, -1], [-1, -1]
    for generation in range(10):
        first = 2 * generation
        sire += [first, first]
        dam += [first + 1, first + 1]
    F = inbreeding(*pedigree_codes(sire, dam))
    expected = [0.0, 0.0]
    for _ in range(9):
        expected.append((1 + 2 * expected[-1] + expected[-2]) / 4)
    assert expected[:5] == [0, 0, 0.25, 0.375, 0.5]
    assert expected[:7] == [0, 0, 0.25, 0.375, 0.5, 19 / 32, 43 / 64] and len(expected) == 11
    assert F[::2] == pytest.approx(expected, abs=1e-15)
    assert F[1::2].tolist() == F[::2].tolist()


def test_selfing_and_a_backcross():
    """F_t = (1 + F_{t-1})/2. A sire mated to his daughter, granddaughter, ...: F = 1/4, 3/8, 7/16, as a(s, d_t) =
    (1 + a(s, d_{t-1}))/2."""
    F = inbreeding(*pedigree_codes([-1, 0, 1, 2, 3], [-1, 0, 1, 2, 3]))
    assert F.tolist() == [0, 0.5, 0.75, 0.875, 0.9375]
    F = inbreeding(*pedigree_codes([-1, -1, 0, 0, 0, 0], [-1, -1, 1, 2, 3, 4]))
    assert F.tolist() == [0, 0, 0, 0.25, 0.375, 0.4375]


def test_unknown_and_group_parents_are_unrelated():
    sire, dam = pedigree_codes([-1, 0, 0, 2, 7], [-1, 5, 6, 1, 7])
    assert inbreeding(sire, dam) == pytest.approx(inbreeding(*pedigree_codes([-1, 0, 0, 2, -1], [-1, -1, -1, 1, -1])))
    assert inbreeding(sire, dam)[3] == 0.125


def test_simdata_published_inbreeding():
    """simdata: F of 4641 animals as printed by another program, eight decimals."""
    import polars as pl

    from mmgibbs.pedigree.read import read_pedigree

    pedigree = read_pedigree(shared_data("data/simdata/simped.txt"))
    expected = pl.read_csv(
        shared_data("data/simdata/exact_blup_trait1_inb.csv"), schema_overrides={"animal": pl.String}
    )
    code = pedigree.codes(expected["animal"])
    F = inbreeding(pedigree.sire, pedigree.dam)[code.to_numpy()]
    assert code.null_count() == 0 and len(code) == 4641
    assert (expected["F"] > 0).sum() > 1000
    assert np.abs(F - expected["F"].to_numpy()).max() < 6e-9


@pytest.mark.parametrize("first", [0, 1, 150, 299, 300])
def test_continuing_from_known_values(first):
    sire, dam = random_pedigree(300, 9)
    F = inbreeding(sire, dam)
    again = F.copy()
    again[first:] = np.nan
    continue_inbreeding(sire, dam, again, first)
    assert again.tolist() == F.tolist()


def test_empty_pedigree():
    assert inbreeding(np.empty(0, np.int32), np.empty(0, np.int32)).size == 0


def test_parents_of_another_length_are_refused():
    with pytest.raises(PedigreeError, match="one length"):
        inbreeding(np.array([-1, -1], np.int32), np.array([-1], np.int32))


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("code", [-2, 2, 3])  # no code at all, the animal itself, a later one
def test_codes_that_are_no_earlier_animal_are_refused(side, code):
    parents = [np.array([-1, -1, 0, 1], np.int32), np.array([-1, -1, 1, 0], np.int32)]
    parents[side][2] = code
    with pytest.raises(PedigreeError, match="animal code 2 has parent codes"):
        inbreeding(*parents)
