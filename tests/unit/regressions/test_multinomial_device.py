"""The multinomial logit's kernels without a GPU: the chain of the host up to rounding."""

import numpy as np
import pytest
from helpers.device_chains import (
    assert_contract,
    assert_draws_of_host,
    assert_failed_factor_ends_the_chain,
    assert_sweep_of_host,
    compile_once,
    make_device_chains,
)
from helpers.nvrtc import ARCHITECTURES, assert_kernels_fit
from helpers.races import assert_barrier_is_needed, run_without_race
from helpers.selection import first

from mmgibbs.regressions.arrays.base import Host
from mmgibbs.regressions.multinomial.device import MAX_COLUMNS, NAMES, make_source
from mmgibbs.regressions.multinomial.polya_gamma import MultinomialPGModel, MultinomialPGOptions
from mmgibbs.regressions.predictors import read_predictors
from mmgibbs.regressions.protocol import RegressionData
from mmgibbs.regressions.spd import ONE_ROUND

KERNELS = [*(f"mmgibbs::{name}" for name in NAMES), ONE_ROUND]


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """The kernels of a model, compiled once for each type of predictors and products."""
    compile_types = compile_once(tmp_path_factory.mktemp("multinomial"), make_source, KERNELS)
    return lambda model: compile_types(model.X.values.dtype, model.rows.real)


def sampler(n, p, n_classes=3, dtype=np.float64, are_counts=False, standardise=True, **options):
    rng = np.random.default_rng(n)
    X = rng.integers(0, 3, (n, p)).astype(dtype) if dtype == np.uint8 else rng.normal(2, 1, (n, p)).astype(dtype)
    y = rng.integers(0, 4, (n, n_classes)) if are_counts else rng.integers(0, n_classes, n)
    data = RegressionData(read_predictors(X, standardise=standardise), y)
    return MultinomialPGModel.prepare(data, MultinomialPGOptions(**options), Host(1))


CASES = {
    "three classes, several pieces": (dict(n=300, p=4), 1e-9),
    "two classes, no intercept": (dict(n=50, p=4, n_classes=2, intercept=False, standardise=False), 1e-9),
    "counts, a prior": (dict(n=40, p=3, n_classes=4, are_counts=True, prior_mean=0.5, intercept_precision=2.0), 1e-9),
    "two panels": (dict(n=40, p=70), 1e-8),
    "whole numbers, single precision": (dict(n=70, p=5, dtype=np.uint8, precision="single"), 2e-3),
}


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_the_chain_of_the_host_up_to_rounding(library, name, backwards):
    case, tolerance = CASES[name]
    model = sampler(**case)
    chains, _ = make_device_chains(library(model), model, burn_in=1, backwards=backwards)
    assert_draws_of_host(chains, model, 4, tolerance, burn_in=1)


@pytest.mark.parametrize("p, n_nodes", [(4, 6), (70, 12)])
def test_contract(library, p, n_nodes):
    """Three kernels for each of two categories, and three rounds where the factor has two panels."""
    model = sampler(40, p)
    assert_contract(library(model), model, 4, n_nodes)


def test_wide_tables_run_as_array_operations():
    assert sampler(150, MAX_COLUMNS - 1).has_kernels and not sampler(150, MAX_COLUMNS).has_kernels


def test_logits_whose_exponential_is_beyond_all_numbers(library):
    model = sampler(60, 4)

    def enlarge(beta):
        beta *= 5e3 / np.abs(beta).max()

    assert_sweep_of_host(library(model), model, {"beta": enlarge}, 1e-6)


def test_a_factor_that_fails_ends_the_chain(library, monkeypatch):
    model = sampler(60, 4)
    monkeypatch.setattr(model, "prior_precision", model.prior_precision - 1e6)
    assert_failed_factor_ends_the_chain(library(model), model, "beta")


MAIN = """
using namespace mmgibbs;

int main() {
    const int n = 70, p = 3, d = 4, categories = 2, pieces = 2;
    static double values[n * p], centre[p], scale[p], precision[categories * d * d], shift[categories * d];
    static double logits[categories * n], sums[pieces * (d + 1) * d], solved[d], beta[categories * d];
    static double A[(d + 1) * d], diagonals[PANEL * PANEL], slots[2 * categories * d];
    static int successes[n * categories];
    static word32 sweep[1] = {3}, chain[1] = {1};
    static unsigned arrived[1];
    for (int i = 0; i < n * p; ++i) values[i] = (i * 7 % 13) / 6.0 - 1;
    for (int i = 0; i < n; ++i) successes[2 * i + i % 2] = i * 5 % 3 > 0;
    for (int j = 0; j < p; ++j) scale[j] = 1;
    for (int j = 0; j < categories * d; ++j) precision[j * d + j % d] = 1, beta[j] = .1 * j;
    Multinomial s = {values, successes, 0, centre, scale, precision, shift, logits, sums, solved, beta, sweep, chain,
                     arrived, 1, 2, 7, n, p, d, categories, 1, 64, pieces};
    Spd spd = {A, diagonals, d, d + 1, 1};
    Ring ring = {slots, categories * d, 2, 0, 1};
    for (int j = 0; j < categories; ++j) {
        run([=] { draw_weights(s, j); }, pieces, MULTINOMIAL_THREADS);
        run([=] { fill_curvature(s, spd, j); }, 1, 8);
        run([=] { draw_category(s, spd, ring, j); }, 1, 8);
    }
    for (double value : slots) printf("%.17g ", value);
}
"""
NEEDED = "parts[part][i] = total;"  # what stands before a barrier


@pytest.mark.slow
def test_threads_of_a_block_do_not_race_and_a_barrier_that_is_taken_out_is_noticed(tmp_path):
    text = make_source(np.float64, np.float64)
    complete = run_without_race(tmp_path, text, MAIN)
    values = np.array(complete.printed.split(), float)
    assert np.isfinite(values).all() and np.count_nonzero(values) == len(values) / 2  # one of two slots
    assert_barrier_is_needed(tmp_path, text, MAIN, NEEDED, complete)


# Bytes that may be spilled: around calls of functions that the compiler keeps.
SPILLED_BYTES = {"draw_weights": 80, "draw_category": 80}


@pytest.mark.parametrize("architecture", first(1, ARCHITECTURES))
def test_kernels_fit_on_a_device(architecture):
    text = make_source(np.uint8, np.float64)
    assert_kernels_fit(text, architecture, [ONE_ROUND], {*NAMES, "one_round"}, SPILLED_BYTES)
