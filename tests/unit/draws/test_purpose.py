"""Counter words and keys; and that no two draws of a small run share a counter."""

import ctypes

import numpy as np
import pytest
from helpers.draw_batches import build, twin_source

from mmgibbs.draws import purpose as pu
from mmgibbs.draws.purpose import check_key, stream

PURPOSES = {
    name: value for name, value in vars(pu).items() if name.isupper() and isinstance(value, int) and name[0] != "_"
}


def test_purposes_are_the_contract_and_differ():
    contract = {"LOCATION": 1, "AUGMENT": 2, "LIABILITY": 3, "VARIANCE": 4, "INTERWEAVE": 5, "PERTURB": 6}
    assert {name: PURPOSES[name] for name in contract} == contract
    steps = [v for name, v in PURPOSES.items() if name != "MAX_TERM"]
    assert len(set(steps)) == len(steps)
    assert all(1 <= v <= 255 for v in steps)
    assert min(v for name, v in PURPOSES.items() if name.startswith("REGRESSION")) == 16


def test_stream_joins_purpose_and_term():
    assert stream(pu.VARIANCE, 5) == 0x04000005
    assert stream(255, pu.MAX_TERM) == 0xFFFFFFFF


@pytest.mark.parametrize(("purpose", "term"), [(0, 0), (256, 0), (-1, 0), (1, -1), (1, 1 << 24)])
def test_stream_refuses(purpose, term):
    with pytest.raises(ValueError, match="found .* needed"):
        stream(purpose, term)


def test_check_key():
    assert check_key(2**32 - 1, np.int64(3)) == (2**32 - 1, 3)


@pytest.mark.parametrize(
    ("seed", "chain", "who"),
    [(-1, 0, "seed"), (2**32, 0, "seed"), (1, 2**32, "chain"), (1.5, 0, "seed"), (1, -2, "chain")],
)
def test_check_key_refuses(seed, chain, who):
    with pytest.raises(ValueError, match=f"{who}: found .*, needed"):
        check_key(seed, chain)


RECORDER = """
static unsigned *recorded;
static unsigned n_recorded;
static inline void record(unsigned c0, unsigned c1, unsigned c2, unsigned c3) {
    unsigned *at = recorded + 4 * n_recorded++;
    at[0] = c0; at[1] = c1; at[2] = c2; at[3] = c3;
}
"""

# Every kind of draw, each with its own draw index, at each (sweep, level, stream) of a small run. Shapes and means are
# chosen so that rejection loops really loop.
SMALL_RUN = """
extern "C" unsigned small_run(unsigned *room, const unsigned *streams, unsigned n_streams) {
    using namespace mmgibbs;
    recorded = room;
    n_recorded = 0;
    double sum = 0.0, a, b;
    for (unsigned sweep = 0; sweep < 3; ++sweep)
        for (unsigned level = 0; level < 7; ++level)
            for (unsigned s = 0; s < n_streams; ++s) {
                unsigned w = streams[s];
                normal_pair(sweep, level, w, 0, 11, 0, a, b);
                sum += a + b + normal(sweep, level, w, 2, 11, 0);
                exponential_pair(sweep, level, w, 2, 11, 0, a, b);
                sum += a + b + mmgibbs::gamma(0.3, sweep, level, w, 3, 11, 0);
                sum += mmgibbs::gamma(1.0, sweep, level, w, 4, 11, 0);
                sum += chi_square(1.0, sweep, level, w, 5, 11, 0);
                sum += truncated_normal_positive(0.46, sweep, level, w, 6, 11, 0);
                sum += truncated_normal_negative(-0.5, sweep, level, w, 7, 11, 0);
                sum += truncated_normal(0.0, 0.0, 2.5, sweep, level, w, 8, 11, 0);
                sum += inverse_gaussian(2.0, 1.0, sweep, level, w, 9, 11, 0);
                sum += polya_gamma_1(2.8, sweep, level, w, 10, 11, 0);
                sum += polya_gamma(16, 2.8, sweep, level, w, 11, 11, 0);
                sum += polya_gamma(40, 1.0, sweep, level, w, 255, 11, 0);
            }
    return sum == sum ? n_recorded : 0;
}
"""


def recorded_counters(folder, mutations=()):
    """(n, 4) counters used by the small run."""
    start = "word32 &w0, word32 &w1, word32 &w2, word32 &w3) {\n    for (int round"
    text = twin_source([(start, start.replace("{\n", "{\n    record(c0, c1, c2, c3);\n")), *mutations])
    library = build(folder, "recorder", RECORDER + text + SMALL_RUN)
    streams = np.array([stream(p, t) for p in (1, 2, 3, 4, 5, 6, 16, 255) for t in (0, 1, pu.MAX_TERM)], np.uint32)
    room = np.zeros((400_000, 4), np.uint32)
    n = library.small_run(
        ctypes.c_void_p(room.ctypes.data), ctypes.c_void_p(streams.ctypes.data), ctypes.c_uint(streams.size)
    )
    assert 0 < n < room.shape[0]
    return room[:n]


def test_no_two_draws_of_a_small_run_share_a_counter(tmp_path):
    counters = recorded_counters(tmp_path)
    draws = np.unique(counters[:, 3] >> 24)
    assert draws.tolist() == [*range(12), 255]
    assert np.unique(counters, axis=0).shape[0] == counters.shape[0]


def test_overlapping_attempts_would_be_noticed(tmp_path):
    counters = recorded_counters(
        tmp_path, [("draw, i << 12, k0, k1);\n        return total", "draw, i << 1, k0, k1);\n        return total")]
    )
    assert np.unique(counters, axis=0).shape[0] < counters.shape[0]
