"""Polya-Gamma multinomial logit, n = 506,450 records, p = 56 predictors, K = 9 classes (synthetic): seconds per sweep;
PG(1, z) draws per second.

A sweep draws n (K - 1) Polya-Gammas and makes as many rows of Z' diag(omega) Z, (p + 1)^2 flops each for one triangle;
it reads X from memory K - 1 times. The bound is the draws at their own speed and the flops at that of a large product
of matrices, on all threads, both measured here.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from mmgibbs.draws.purpose import REGRESSION_LATENT, stream
from mmgibbs.machine.threads import blas_threads
from mmgibbs.regressions.arrays.base import Host
from mmgibbs.regressions.arrays.draws import polya_gammas
from mmgibbs.regressions.multinomial.polya_gamma import MultinomialPGModel, MultinomialPGOptions
from mmgibbs.regressions.predictors import read_predictors
from mmgibbs.regressions.protocol import Keys, RegressionData


@dataclass(frozen=True)
class MultinomialRow:
    setting: str
    published: str
    goal_seconds: float
    seconds_per_sweep: float  # least
    median_seconds: float
    processor_seconds: float  # least of a sweep, all threads together: what other programs take away is not in it
    nanoseconds_per_row_and_category: float  # of processor time
    gigaflops: float  # of a sweep
    gigabytes: float  # of X read in a sweep
    bound_seconds: float
    times_the_bound: float


@dataclass(frozen=True)
class DrawsRow:
    setting: str
    goal_million_per_second: float
    million_per_second: float  # one core, most of several repeats
    nanoseconds: float


def simulate(n: int, p: int, K: int, seed: int, real: npt.DTypeLike = np.float64) -> tuple[np.ndarray, np.ndarray]:
    """X standard normal, labels from a multinomial logit whose linear predictors have standard deviation 1."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)).astype(real)
    B = rng.standard_normal((p, K)) / np.sqrt(p)
    B[:, -1] = 0
    return X, (X @ B + rng.gumbel(size=(n, K))).argmax(axis=1)


def row(
    n: int = 506_450,
    p: int = 56,
    K: int = 9,
    sweeps: int = 5,
    threads: int = 2,
    precision: Literal["double", "single"] = "double",
    seed: int = 1,
) -> MultinomialRow:
    """One chain, intercept, X float32 for single precision; all sweeps count, the compiled kernels are warm."""
    X, y = simulate(n, p, K, seed, np.float32 if precision == "single" else np.float64)
    options = MultinomialPGOptions(precision=precision)
    prepare = lambda rows: MultinomialPGModel.prepare(
        RegressionData(read_predictors(X[rows]), y[rows]), options, Host(threads)
    )
    keys, warm = Keys(seed, (0,)), prepare(slice(0, 2000))
    warm.step(warm.start(keys), 1, keys)
    sampler = prepare(slice(None))
    state, spent, processor = sampler.start(keys), [], []
    for sweep in range(1, sweeps + 1):
        started, clock = time.perf_counter(), time.process_time()
        state = sampler.step(state, sweep, keys)
        spent.append(time.perf_counter() - started)
        processor.append(time.process_time() - clock)
    flops = n * (K - 1) * (p + 1) ** 2
    draws = n * (K - 1) * draws_row(1.0).nanoseconds / 1e9
    bound = (draws + flops / product_rate(X.dtype)) / threads
    least = min(spent)
    return MultinomialRow(
        setting=f"multinomial n = {n:,}, p = {p}, K = {K}, {precision}, {threads} thread{'s' * (threads > 1)}",
        published='"100x", no seconds',
        goal_seconds=2.0,
        seconds_per_sweep=least,
        median_seconds=float(np.median(spent)),
        processor_seconds=min(processor),
        nanoseconds_per_row_and_category=1e9 * min(processor) / (n * (K - 1)),
        gigaflops=flops / 1e9,
        gigabytes=X.nbytes * (K - 1) / 1e9,
        bound_seconds=bound,
        times_the_bound=least / bound,
    )


def product_rate(dtype: npt.DTypeLike) -> float:
    """Flops per second of one core in a product of 800 x 800 matrices."""
    square, least = np.random.default_rng(0).standard_normal((800, 800)).astype(dtype), np.inf
    with blas_threads(1):
        for _ in range(6):
            started = time.perf_counter()
            square @ square.T[::-1]
            least = min(least, time.perf_counter() - started)
    return 2 * len(square) ** 3 / least


def draws_row(spread: float, n: int = 10_000, repeats: int = 200) -> DrawsRow:
    """PG(1, z) on one core, z ~ N(-2, spread^2): what a class of probability 0.12 draws at the start, and later."""
    z = np.random.default_rng(0).normal(-2, spread, n)
    out, ones, least = np.empty(n), np.ones(n, np.int64), np.inf
    for repeat in range(repeats + 1):
        started = time.perf_counter()
        polya_gammas(out, ones, z, repeat, 0, stream(REGRESSION_LATENT, 0), 1, 0)
        least = min(least, time.perf_counter() - started) if repeat else np.inf  # the first call may compile
    return DrawsRow(f"PG(1, z), z ~ N(-2, {spread:g}^2), one core", 8.0, n / least / 1e6, 1e9 * least / n)
