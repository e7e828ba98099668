"""Philox4x32-10 (Salmon, Moraes, Dror & Shaw 2011): a bijection of 128-bit counters, one for each 64-bit key.

The draws here take counters and key as (c0, c1, c2, ..., k0, k1): whole numbers modulo 2^32, of which c0 is the
sweep, c1 the level or record, c2 the stream (purpose.py) and (k0, k1) the seed and the chain; the fourth counter word
is `draw_word` of the draw (0..255) and the attempt.

Words are uint64 below 2^32: Numba and NumPy disagree about uint32 arithmetic, and 64-bit lanes with masks vectorise.
"""

from __future__ import annotations

import numpy as np

from mmgibbs.draws.elementary import from_bits
from mmgibbs.pedigree.kernels import kernel

WORD = np.uint64(0xFFFFFFFF)
SHIFT_12 = np.uint64(12)
SHIFT_20 = np.uint64(20)
SHIFT_24 = np.uint64(24)
SHIFT_32 = np.uint64(32)
MULTIPLIER_0 = np.uint64(0xD2511F53)
MULTIPLIER_1 = np.uint64(0xCD9E8D57)
STEP_0 = np.uint64(0x9E3779B9)
STEP_1 = np.uint64(0xBB67AE85)
MAX_ATTEMPTS = np.uint64(4096)  # of a rejection sampler; each accepts with probability above 1/2, so no run comes near
ONE_BITS = np.uint64(0x3FF0000000000000)  # bits of 1.0
ONE_LESS_HALF_STEP = 1.0 - 2.0**-53
ONE_LESS_HALF_SHORT_STEP = 1.0 - 2.0**-33


@kernel(fastmath=False, forceinline=True)
def _round(c0, c1, c2, c3, k0, k1):
    p0 = MULTIPLIER_0 * (c0 & WORD)  # masked here, not in the result: vector multiplications read the low halves alone
    p1 = MULTIPLIER_1 * (c2 & WORD)
    return (p1 >> SHIFT_32) ^ c1 ^ k0, p1, (p0 >> SHIFT_32) ^ c3 ^ k1, p0


@kernel(fastmath=False, forceinline=True)
def philox(c0, c1, c2, c3, k0, k1):
    """Four random words (uint64, below 2^32) of counter (c0, c1, c2, c3) under key (k0, k1), all taken modulo 2^32."""
    c0, c1, c2, c3 = np.uint64(c0) & WORD, np.uint64(c1) & WORD, np.uint64(c2) & WORD, np.uint64(c3) & WORD
    k0, k1 = np.uint64(k0) & WORD, np.uint64(k1) & WORD
    c0, c1, c2, c3 = _round(c0, c1, c2, c3, k0, k1)
    k0, k1 = (k0 + STEP_0) & WORD, (k1 + STEP_1) & WORD
    c0, c1, c2, c3 = _round(c0, c1, c2, c3, k0, k1)
    k0, k1 = (k0 + STEP_0) & WORD, (k1 + STEP_1) & WORD
    c0, c1, c2, c3 = _round(c0, c1, c2, c3, k0, k1)
    k0, k1 = (k0 + STEP_0) & WORD, (k1 + STEP_1) & WORD
    c0, c1, c2, c3 = _round(c0, c1, c2, c3, k0, k1)
    k0, k1 = (k0 + STEP_0) & WORD, (k1 + STEP_1) & WORD
    c0, c1, c2, c3 = _round(c0, c1, c2, c3, k0, k1)
    k0, k1 = (k0 + STEP_0) & WORD, (k1 + STEP_1) & WORD
    c0, c1, c2, c3 = _round(c0, c1, c2, c3, k0, k1)
    k0, k1 = (k0 + STEP_0) & WORD, (k1 + STEP_1) & WORD
    c0, c1, c2, c3 = _round(c0, c1, c2, c3, k0, k1)
    k0, k1 = (k0 + STEP_0) & WORD, (k1 + STEP_1) & WORD
    c0, c1, c2, c3 = _round(c0, c1, c2, c3, k0, k1)
    k0, k1 = (k0 + STEP_0) & WORD, (k1 + STEP_1) & WORD
    c0, c1, c2, c3 = _round(c0, c1, c2, c3, k0, k1)
    k0, k1 = (k0 + STEP_0) & WORD, (k1 + STEP_1) & WORD
    c0, c1, c2, c3 = _round(c0, c1, c2, c3, k0, k1)
    return c0 & WORD, c1 & WORD, c2 & WORD, c3 & WORD


@kernel(fastmath=False, forceinline=True)
def draw_word(draw, attempt):
    """The fourth counter word: draw (0..255) in the top 8 bits, attempt (0..2^24-1) below."""
    return (np.uint64(draw) << SHIFT_24) | np.uint64(attempt)


@kernel(fastmath=False, forceinline=True)
def uniform(high, low):
    """The uniform (2 n + 1) / 2^53, n = high * 2^20 + low div 2^12 < 2^52: inside (0, 1), symmetric about 1/2."""
    n = (high << SHIFT_20) | (low >> SHIFT_12)
    return from_bits(n | ONE_BITS) - ONE_LESS_HALF_STEP


@kernel(fastmath=False, forceinline=True)
def short_uniform(word):
    """The uniform (2 n + 1) / 2^33 of one 32-bit word n: for angles and for the decisions of rejection samplers."""
    return from_bits((word << SHIFT_20) | ONE_BITS) - ONE_LESS_HALF_SHORT_STEP


@kernel(fastmath=False, forceinline=True)
def uniform_pair(c0, c1, c2, c3, k0, k1):
    """Draw two uniforms inside (0, 1), odd multiples of 2^-53, from one block: words (0, 1) and words (2, 3)."""
    w0, w1, w2, w3 = philox(c0, c1, c2, c3, k0, k1)
    return uniform(w0, w1), uniform(w2, w3)


@kernel(fastmath=False, forceinline=True)
def exhausted(attempt, u):
    """True from attempt 4096 on. u is a uniform of the attempt: `u < 1` always holds, unknown to the compiler.

    With a known number of attempts LLVM vectorises the rejection loop and makes twelve attempts for each one needed,
    which is 8 times slower.
    """
    return attempt >= MAX_ATTEMPTS and u < 1.0
