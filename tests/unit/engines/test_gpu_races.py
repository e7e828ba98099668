"""No two threads of a block race in the sums of the structured engine's kernels, and a missing barrier is noticed."""

import numpy as np
import pytest
from helpers.races import remove_barrier, run_with_threads, run_without_race

from mmgibbs.engines.coloured_gpu.source import source

MAIN = """
int main() {
    static double scratch[4 * 1000], sums[4];
    for (int i = 0; i < 4000; ++i) scratch[i] = i;
    run([] { mmgibbs::fold_strands(scratch, 1000, sums); }, 4, 128);
    for (double value : sums) printf("%.17g ", value);
}
"""


@pytest.mark.slow
def test_strands_are_folded_without_a_race_and_a_barrier_that_is_taken_out_is_noticed(tmp_path):
    text = source(np.dtype(np.float32), np.dtype(np.uint8))
    complete = run_without_race(tmp_path, text, MAIN)
    expected = np.arange(4000.0).reshape(4, 1000).sum(1)
    np.testing.assert_array_equal(np.array(complete.printed.split(), float), expected)
    place = "fold_strands(const double *scratch, word32 strands, double *out) {"
    outcome = run_with_threads(tmp_path, "without", remove_barrier(text, place), MAIN)
    assert outcome.races or not outcome.has_ended
