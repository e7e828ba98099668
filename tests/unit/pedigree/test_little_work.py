"""Kernels that Python runs over little data: the same to the bit, compiled ones where data are many or it is one
already."""

import warnings

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from unit.pedigree.test_inbreeding import pedigrees, random_pedigree

from pedigree import inbreeding as of_inbreeding
from pedigree import little_work, recode, relationship
from pedigree.inbreeding import inbreeding, inbreeding_with_metafounders, inbreeding_with_selfing
from pedigree.little_work import by_size, interpreted


@numba.njit
def half(x):
    return 0.5 * x


@numba.njit
def quarter(x):
    return half(half(x))


@numba.njit
def twice(x):
    return 2 * x


@numba.njit(error_model="numpy")
def mixed(x):
    return x * np.uint64(0xBF58476D1CE4E5B9), np.float64(1.0) / np.float64(x - x)


def everything(sire, dam, groups=0):
    """What the kernels of little work make of a pedigree."""
    rows = [np.where(parent < sire.size, parent, -1) for parent in (sire, dam)]
    n, gamma = sire.size, np.array([[0.6, 0.1], [0.1, 0.9]])[:groups, :groups]
    F = inbreeding(sire, dam)
    made = [F, *inbreeding_with_selfing(sire, dam, np.linspace(0, 0.9, n)), *recode.parents_first(*rows)]
    if groups:
        made.append(inbreeding_with_metafounders(sire, dam, gamma))
    kin = relationship.relatives(sire, dam, 0.5 * F, groups)
    return [*made, kin.diagonal, kin.dinv, kin.progeny_ptr, kin.progeny, kin.mate]


def in_both_ways(function, *arguments):
    """What it makes, compiled and in Python, as it stands in memory."""
    compiled = function(*arguments)
    with pytest.MonkeyPatch.context() as patch:
        for module in (of_inbreeding, recode, relationship):
            patch.setattr(module, "by_size", lambda kernel, steps: interpreted(kernel))
        return compiled, function(*arguments)


@given(pedigrees(hermaphrodites=True))
@settings(max_examples=60, deadline=None)
def test_the_same_to_the_bit(pedigree):
    compiled, plain = in_both_ways(everything, *pedigree)
    for a, b in zip(compiled, plain, strict=True):
        assert a.dtype == b.dtype and a.tobytes() == b.tobytes()


@given(pedigrees(groups=2))
@settings(max_examples=40, deadline=None)
def test_the_same_with_metafounders(pedigree):
    compiled, plain = in_both_ways(everything, *pedigree, 2)
    assert all(a.tobytes() == b.tobytes() for a, b in zip(compiled, plain, strict=True))


def test_the_same_of_an_inbred_herd_and_of_a_loop():
    sire, dam = random_pedigree(800, 3)
    compiled, plain = in_both_ways(everything, sire, dam)
    assert max(compiled[0]) > 0.1 and all(a.tobytes() == b.tobytes() for a, b in zip(compiled, plain, strict=True))
    ring = np.array([1, 2, 0], np.int32), np.full(3, -1, np.int32)
    compiled, plain = in_both_ways(recode.parents_first, *ring)
    assert plain[1].size == 3 and all(a.tobytes() == b.tobytes() for a, b in zip(compiled, plain, strict=True))


def test_a_kernel_that_differs_is_seen(monkeypatch):
    @numba.njit
    def mendelian_variance(sire, dam, F, d):  # a product of int32, which Numba widens and Python does not
        for i in range(d.size):
            d[i] = (sire[i] + np.int32(2**16)) * np.int32(2**16)

    monkeypatch.setattr(relationship, "_mendelian_variance", mendelian_variance)
    none = np.zeros(3, np.int32)
    compiled, plain = in_both_ways(relationship.mendelian_variance, none, none, np.zeros(3))
    assert compiled.tobytes() != plain.tobytes()


def test_which_is_taken(monkeypatch):
    monkeypatch.setattr(little_work, "MOST_STEPS", 10)
    monkeypatch.setattr(little_work, "_steps", little_work.Counter())
    plain = by_size(half, 10)
    assert plain is not half and plain(1.0) == 0.5 and not half.signatures
    assert by_size(half, 1) is half, "many calls are much work"
    assert by_size(twice, 11) is twice
    twice(1)
    assert by_size(twice, 0) is twice  # it is there already


def test_kernels_that_call_kernels_are_refused():
    with pytest.raises(TypeError, match="quarter calls half: needed a kernel that calls no other"):
        interpreted(quarter)


def test_levels_count_as_steps_too(monkeypatch):
    """Millions of levels with a few records are much work."""
    asked = {}
    monkeypatch.setattr(relationship, "by_size", lambda kernel, steps: asked.update({kernel: steps}) or kernel)
    n, none = 5_000, np.full(5_000, -1, np.int32)
    assert relationship.relatives(none, none).progeny.size == 0 and asked[relationship._list_progeny] >= 3 * n


def test_numbers_overflow_in_silence():
    big = np.uint64(2**63 + 1)
    with pytest.warns(RuntimeWarning, match="overflow|divide"):
        mixed.py_func(big)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert interpreted(mixed)(big) == mixed(big)
