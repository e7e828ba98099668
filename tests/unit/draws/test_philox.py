"""Philox4x32-10 against the published known answers (kat_vectors of Random123: counter, key, result)."""

import numpy as np
import pytest

from mmgibbs.draws import philox as px

philox, uniform, short_uniform = px.philox, px.uniform, px.short_uniform

KNOWN_ANSWERS = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]


@pytest.mark.parametrize(("counter", "key", "answer"), KNOWN_ANSWERS)
def test_known_answers(counter, key, answer):
    assert tuple(int(word) for word in philox(*counter, *key)) == answer


def test_words_are_taken_modulo_2_to_32():
    a = philox(np.uint64(3), np.uint64(2**32 + 4), np.uint64(5), np.uint64(6), np.uint64(7), np.uint64(8))
    assert a == philox(np.uint64(3), np.uint64(4), np.uint64(5), np.uint64(6), np.uint64(7), np.uint64(8))


@pytest.mark.parametrize(
    ("high", "low", "numerator"), [(0, 0, 1), (0xFFFFFFFF, 0xFFFFFFFF, 2**53 - 1), (0x80000000, 0, 2**52 + 1)]
)
def test_uniforms_lie_strictly_inside_the_unit_interval(high, low, numerator):
    u = uniform(np.uint64(high), np.uint64(low))
    assert u == numerator / 2**53
    assert 0.0 < u < 1.0


def test_short_uniforms_lie_strictly_inside_the_unit_interval():
    assert short_uniform(np.uint64(0)) == 2.0**-33
    assert short_uniform(np.uint64(0xFFFFFFFF)) == 1 - 2.0**-33
