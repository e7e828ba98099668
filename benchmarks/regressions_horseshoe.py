"""Horseshoe probit: seconds per sweep on synthetic data of Terenin et al. (2018), and effective draws per second for
rare positives.

Bytes of a sweep: X once (eta, z and X'z while its rows are in the cache), whatever the number of chains. Flops: 4 n p
for these two products and p^3/3 for the Cholesky factor, for each chain. Each is compared with what this machine does,
measured in turn with the sweeps: a sum over X for bytes, a product of matrices for flops, both on as many threads as
the sweeps.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from scipy.special import ndtr

from mmgibbs.machine.threads import blas_threads
from mmgibbs.regressions.arrays.base import Host
from mmgibbs.regressions.horseshoe.ellipse import probit_fit
from mmgibbs.regressions.horseshoe.probit import HorseshoeProbitModel, HorseshoeProbitOptions
from mmgibbs.regressions.predictors import read_predictors
from mmgibbs.regressions.protocol import Keys, RegressionData

TRUE = (1.3, 4.0, -1.0, 1.6, 5.0, -2.0)  # then zeros
PUBLISHED = {
    (10_000, 1000): "41 s Titan X, 95 min R on a laptop: 10,000 sweeps",
    (1_000_000, 1000): "2 min Titan X, 71 min 16 cores: 10,000 sweeps",
}
GOALS = {(10_000, 1000): 130.0}


@dataclass(frozen=True)
class SweepRow:
    setting: str
    published: str
    seconds_per_sweep: float  # least
    median_seconds: float
    seconds_for_10000: float  # 10,000 of the least: extrapolated
    goal_seconds: float | None
    bytes_per_second: float  # of X
    bound_seconds: float  # X read once and the flops at the machine's speeds, one after the other
    times_the_bound: float


@dataclass(frozen=True)
class MixingRow:
    setting: str
    sampler: str
    published: str
    seconds_per_sweep: float  # median
    least_ess_per_sweep: float  # over intercept and coefficients
    least_ess_per_second: float
    times_plain: float


def synthetic(n: int, p: int, dtype: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """X standard normal, or whole numbers 0, 1, 2 for the types of one byte;
    labels from TRUE on the standardised columns.
    """
    rng = np.random.default_rng(seed)
    X = np.empty((n, p), dtype)
    for first in range(0, n, 10_000):
        rows = X[first : first + 10_000]
        rows[:] = rng.integers(0, 3, rows.shape) if X.itemsize == 1 else rng.standard_normal(rows.shape)
    eta = X[:, : len(TRUE)].astype(np.float64) @ TRUE
    return X, rng.random(n) < ndtr((eta - eta.mean()) / (np.sqrt(2 / 3) if X.itemsize == 1 else 1.0))


def row(
    n: int = 10_000,
    p: int = 1000,
    dtype: str = "float64",
    precision: Literal["double", "single"] = "double",
    chains: int = 1,
    threads: int = 2,
    sweeps: int = 40,
    collapsed: bool = False,
    seed: int = 1,
) -> SweepRow:
    """PX-DA, without the collapsed draw unless asked for; sweeps, sums over X and products of matrices take turns."""
    X, y = synthetic(n, p, dtype, seed)
    arrays = Host(threads)
    options = HorseshoeProbitOptions(precision=precision, collapsed=collapsed)
    sampler = HorseshoeProbitModel.prepare(
        RegressionData(read_predictors(X, standardise=X.itemsize == 1), y), options, arrays
    )
    keys = Keys(seed, tuple(range(chains)))
    square = np.random.default_rng(0).standard_normal((1000, 1000))
    flat = X.reshape(-1).view(np.uint8)
    products, pieces = (
        np.empty((threads, 1000, 1000)),
        np.array_split(flat[: flat.size // 8 * 8].view(np.uint64), threads),
    )
    state, spent, read, flops_per_second = sampler.start(keys), [], np.inf, 0.0
    for sweep in range(1, sweeps + 1):
        started = time.perf_counter()
        state = sampler.step(state, sweep, keys)
        spent.append(time.perf_counter() - started)
        if sweep % 5 == 1:
            with blas_threads(1):
                started = time.perf_counter()
                arrays.at_once([partial(np.max, part) for part in pieces])
                read = min(read, time.perf_counter() - started)
                started = time.perf_counter()
                arrays.at_once([partial(np.matmul, square, square.T[::-1], out=out) for out in products])
                flops_per_second = max(flops_per_second, threads * 2e9 / (time.perf_counter() - started))
    flops = chains * (4 * n * p + p**3 / 3)
    least, bound = min(spent[1:]), read + flops / flops_per_second
    return SweepRow(
        setting=f"horseshoe probit n = {n:,}, p = {p}, {dtype}, {precision}, {count(chains, 'chain')}, "
        f"{count(threads, 'thread')}" + (", collapsed" if collapsed else ""),
        published=PUBLISHED.get((n, p), ""),
        seconds_per_sweep=least,
        median_seconds=float(np.median(spent[1:])),
        seconds_for_10000=1e4 * least,
        goal_seconds=GOALS.get((n, p)),
        bytes_per_second=X.nbytes / least,
        bound_seconds=bound,
        times_the_bound=least / bound,
    )


def count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number > 1)}"


def mixing_rows(
    file: str | Path, sweeps: int = 600, plain_sweeps: int = 3000, threads: int = 2, seed: int = 1
) -> list[MixingRow]:
    """The plain sampler of the paper, PX-DA, and PX-DA with the collapsed draw in turns of 50 sweeps.

    `file` holds x (n, p) and y, as cover.npz.

    All start at the maximum of the likelihood, so that no burn-in is needed. The fewer sweeps, the more the slow
    samplers' effective draws are overestimated: a chain that has not yet moved shows no autocorrelation.
    """
    from arviz_stats.base.array import array_stats

    table = np.load(file)
    X, y = read_predictors(table["x"].astype(np.float32), standardise=True), np.ravel(table["y"])
    arrays, keys = Host(threads), Keys(seed, (0,))
    kinds: dict[str, dict[str, Any]] = {
        "plain": {"expansion": False, "collapsed": False},
        "PX-DA": {"collapsed": False},
        "PX-DA and collapsed draw": {"collapsed": True},
    }
    samplers = {
        name: HorseshoeProbitModel.prepare(RegressionData(X, y), HorseshoeProbitOptions(**kind), arrays)
        for name, kind in kinds.items()
    }
    number = {name: sweeps if kinds[name].get("collapsed") else plain_sweeps for name in kinds}
    states = {name: sampler.start(keys) for name, sampler in samplers.items()}
    b = probit_fit(samplers["plain"].rows).b
    for state in states.values():
        state["beta"][:], state["intercept"][:] = b[:-1], b[-1]
    kept: dict[str, list[np.ndarray]] = {name: [] for name in kinds}
    spent: dict[str, list[float]] = {name: [] for name in kinds}
    for first in range(1, max(number.values()) + 1, 50):
        for name, sampler in samplers.items():
            for sweep in range(first, min(first + 50, number[name] + 1)):
                started = time.perf_counter()
                states[name] = sampler.step(states[name], sweep, keys)
                spent[name].append(time.perf_counter() - started)
                kept[name].append(np.append(states[name]["beta"][0], states[name]["intercept"]))
    seconds = {name: float(np.median(values)) for name, values in spent.items()}
    least = {
        name: min(float(array_stats.ess(column[None])) for column in np.array(values).T) / len(values)
        for name, values in kept.items()
    }
    return [
        MixingRow(
            setting=f"{Path(file).stem}: n = {X.n:,}, p = {X.p}, {np.mean(y == 1):.2%} positives, {threads} threads",
            sampler=name,
            published="0.6 to 3.6 ESS/s on 1.3 M rows" if name == "plain" else "",
            seconds_per_sweep=seconds[name],
            least_ess_per_sweep=least[name],
            least_ess_per_second=least[name] / seconds[name],
            times_plain=least[name] / seconds[name] / (least["plain"] / seconds["plain"]),
        )
        for name in kinds
    ]
