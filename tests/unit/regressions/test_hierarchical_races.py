"""No two threads of a block of the hierarchical model's kernels race, and a barrier that is taken out is noticed; what
the kernels take of a device, as its compiler says.
"""

import numpy as np
import pytest
from helpers.nvrtc import ARCHITECTURES, assert_kernels_fit
from helpers.races import assert_barrier_is_needed, run_without_race
from helpers.selection import first

from mmgibbs.regressions.hierarchical.device import POLYA_GAMMA_GROUPS, SLICE_GROUPS, make_source
from mmgibbs.regressions.hierarchical.population import GROUPS_OF_A_PIECE

MAIN = """
using namespace mmgibbs;

int main() {
    const int G = 2, D = 2, M = 2, d = D * M, n = 20, q = 1, C = 1, rows = G * n;
    static float X[rows * D];
    static long long ptr[G + 1] = {0, n, rows};
    static double centre[D], factor[D] = {1, 1}, trials[rows], cross[G * d], reach[G * D], fifth[G * D];
    static double information[G * d], scratch[1000];
    static double Z[G * q] = {1, 1}, W[q * G] = {1, 1}, U[1] = {1}, eigenvalues[1] = {2};
    static double beta[G * d], population[d], covariance[d * d], Q[d * d], of_rows[d], away[G * d];
    static double slots[2 * (d + d * d + G * d)];
    static word32 sweep[C] = {3}, chain[C] = {1};
    for (int i = 0; i < rows * D; ++i) X[i] = (float)(i * 7 % 13) / 6 - 1;
    for (int i = 0; i < rows; ++i) trials[i] = 1 + i % 2;
    for (int i = 0; i < G * D; ++i) reach[i] = 1, fifth[i] = 60000;
    for (int i = 0; i < G * d; ++i) cross[i] = 5 * (i % 3 - 1), information[i] = 9, beta[i] = .1 * i;
    for (int i = 0; i < d; ++i) covariance[i * d + i] = 1;
    Groups g = {X, ptr, centre, factor, trials, cross, reach, fifth, information, scratch, 1000, 2.5, G, n, D, M, 10};
    Hyperprior prior = {Z, W, U, eigenvalues, d + 5.0, 2.0, 0.01, q};
    Chains chains = {beta, population, covariance, Q, of_rows, away, 0, sweep, chain, d, d + d * d, 7, d};
    Ring ring = {slots, d + d * d + G * d, 2, 0, 1};
    run([=] { invert_covariances(chains, q); }, C, 8);
    VISIT
    run([=] { draw_rows(g, prior, chains, 11); }, C * q, 8);
    run([=] { draw_hyperparameters(g, prior, chains, ring, 12); }, C, 8);
    for (double value : slots) printf("%.17g ", value);
}
"""
VISITS = {
    "slice": "run([=] { slice_groups<false>(g, prior, chains, ring, C * G, 5); }, C, 8);",
    "polya_gamma": "run([=] { polya_gamma_groups(g, prior, chains, ring, C * G, 5, 6); }, C, 8);",
}
NEEDED = {  # what stands before a barrier
    "slice": "sums[2][threadIdx.x] = s3, sums[3][threadIdx.x] = s4;",
    "polya_gamma": "pull[r] = omega[r] * log_sum - 0.5 * t;",
}


def text_of(method):
    """The kernels, with a piece for each group, so that threads add what others summed."""
    text, constant = make_source(np.float32, method), "GROUPS_OF_A_PIECE = "
    assert constant in text
    return text.replace(f"{constant}{GROUPS_OF_A_PIECE};", f"{constant}1;")


@pytest.mark.slow
@pytest.mark.parametrize("method", VISITS)
def test_threads_of_a_block_do_not_race_and_a_barrier_that_is_taken_out_is_noticed(tmp_path, method):
    text, main = text_of(method), MAIN.replace("VISIT", VISITS[method])
    complete = run_without_race(tmp_path, text, main)
    values = np.array(complete.printed.split(), float)
    assert np.isfinite(values).all() and np.count_nonzero(values) == len(values) / 2  # one of two slots
    assert_barrier_is_needed(tmp_path, text, main, NEEDED[method], complete)


# Bytes that may be spilled: around the call of a Polya-Gamma draw, which the compiler keeps as a function; two
# registers of a slice step, where the compiler takes 64 so that more threads are on the device.
SPILLED_BYTES = {"polya_gamma_groups": 80, "slice_groups": 8}
POPULATION = {"draw_rows", "draw_hyperparameters", "invert_covariances"}
KERNELS = {  # instances of templates, and names of all functions
    "slice": (list(SLICE_GROUPS.values()), {"slice_groups", *POPULATION}),
    "polya_gamma": ([POLYA_GAMMA_GROUPS], {"polya_gamma_groups", *POPULATION}),
}


@pytest.mark.parametrize("architecture", first(1, ARCHITECTURES))
def test_kernels_fit_on_a_device(architecture):
    for method, (instances, names) in KERNELS.items():
        assert_kernels_fit(make_source(np.float32, method), architecture, instances, names, SPILLED_BYTES)
