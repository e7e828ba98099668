"""Bayesian lasso, p = 1000 predictors and n = 425 records: milliseconds per sweep.

Flops of a sweep, n < p: Z D Z' n^2 p (one triangle), its Cholesky factor n^3/3, four triangular solutions 4 n^2 and
three products with Z, 6 n p. Each is compared with the dgemm of the same machine, measured in turn with the sweeps.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Literal

import numpy as np

from mmgibbs.machine.threads import blas_threads
from mmgibbs.regressions.arrays.base import Host
from mmgibbs.regressions.lasso import Lasso, LassoOptions
from mmgibbs.regressions.predictors import read_predictors
from mmgibbs.regressions.protocol import Keys, RegressionData


@dataclass(frozen=True)
class LassoRow:
    setting: str
    published: str
    goal_ms: float
    ms_per_sweep: float  # least
    median_ms: float
    megaflops: float
    bound_ms: float  # these flops at the speed of a large product of matrices
    times_the_bound: float


def simulate(n: int, p: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """X (n, p) standard normal, ten columns with effects, and y (n,)."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    return X, X[:, :10] @ rng.standard_normal(10) + rng.standard_normal(n)


def row(
    n: int = 425,
    p: int = 1000,
    sweeps: int = 60,
    chains: int = 1,
    threads: int = 2,
    precision: Literal["double", "single"] = "double",
    seed: int = 1,
) -> LassoRow:
    """Synthetic standard normal predictors, ten of them with effects; sweeps and products of matrices take turns."""
    X, y = simulate(n, p, seed)
    sampler = Lasso.prepare(
        RegressionData(read_predictors(X, standardise=True), y), LassoOptions(precision=precision), Host(threads)
    )
    keys = Keys(seed, tuple(range(chains)))
    real = np.float32 if precision == "single" else np.float64
    square: np.ndarray = np.random.default_rng(seed).standard_normal((800, 800)).astype(real)
    state, spent, rate = sampler.start(keys), [], 0.0
    with blas_threads(threads):
        for sweep in range(1, sweeps + 1):
            started = time.perf_counter()
            state = sampler.step(state, sweep, keys)
            spent.append(time.perf_counter() - started)
            if sweep % 5 == 0:
                started = time.perf_counter()
                square @ square.T[::-1]
                rate = max(rate, 2 * len(square) ** 3 / (time.perf_counter() - started))
    small, large = min(n, p), max(n, p)
    flops = chains * ((small**2 * large + 4 * small**2 + 6 * n * p if n < p else 2 * p**2) + small**3 / 3)
    least = 1e3 * min(spent)
    return LassoRow(
        setting=f"lasso n = {n}, p = {p}, {chains} chain{'s' * (chains > 1)}, {precision}, {threads} "
        f"thread{'s' * (threads > 1)}",
        published="977 ms, monomvn, one core, reference BLAS" if (n, p) == (425, 1000) else "",
        goal_ms=30.0,
        ms_per_sweep=least,
        median_ms=1e3 * float(np.median(spent)),
        megaflops=flops / 1e6,
        bound_ms=1e3 * flops / rate,
        times_the_bound=least / (1e3 * flops / rate),
    )
