"""The regressions in the settings of the papers they come from, one table each, beside the published numbers and this
machine's bounds.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mmgibbs.errors import DataError, DeviceError
from mmgibbs.machine.device import Device
from mmgibbs.machine.memory import peak_bytes
from mmgibbs.regressions.arrays.base import Arrays, Host
from mmgibbs.regressions.arrays.gpu import Gpu
from mmgibbs.regressions.device_chains import ChainsOnDevice
from mmgibbs.regressions.estimator import make_arrays
from mmgibbs.regressions.predictors import read_predictors
from mmgibbs.regressions.protocol import DeviceSampler, Keys, RegressionData

LARGE = 1_000_000  # rows of the second horseshoe setting, as uint8: 1 GB


def bench_regressions(args: argparse.Namespace) -> dict:
    """The tables of `args.parts`, or Beam's grid of N, p and K alone."""
    if args.grid:
        from benchmarks.regressions_hmc import grid

        return {"scale": args.scale, "gradient and leapfrog": as_table(grid(args.scale, args.threads))}
    tables: dict[str, Any] = {}
    for part in args.parts:
        tables |= {f"{part}: {name}": rows for name, rows in _TABLES[part](args).items()}
    return (
        {"scale": args.scale, "threads": args.threads} | tables | on_a_gpu(args) | {"peak resident bytes": peak_bytes()}
    )


def as_table(rows: Iterable[Any]) -> list[dict]:
    return [
        {name.replace("_", " "): "" if value is None else value for name, value in asdict(row).items()} for row in rows
    ]


# Seconds of a sweep on an H200 by arithmetic, of the kernels as they are: bytes of memory and of shared memory,
# operations, steps in turn (20 us for a panel of 64 columns, 9 us to solve by it, 2 us a kernel). No measurement.
HIERARCHICAL_ON_A_GPU = ((1, "0.12 ms", 8e-5), (16, "0.5 ms", 3.5e-4))  # chains, the goal, seconds
LASSO_ON_A_GPU_SECONDS = 3e-4  # n = 425, p = 1000
MULTINOMIAL_ON_A_GPU_SECONDS = 3.2e-3  # n = 506,450, p = 56, K = 9
HMC_ON_A_GPU = (  # chains, published, the goal, seconds of a trajectory
    (1, "200 trajectories in 234 s on a K20", "5 ms", 2.8e-2),
    (16, "", "16 ms", 0.26),
)
HORSESHOE_ON_A_GPU = (  # rows, type, chains, published, the goal, seconds
    (10_000, "float32", 1, "10,000 sweeps: 41 s Titan X", "10,000 sweeps: 4 s", 6e-4),
    (LARGE, "uint8", 1, "10,000 sweeps: 2 min Titan X", "10,000 sweeps: 9 s", 2.3e-3),
    (LARGE, "uint8", 16, "", "10,000 sweeps: 18 s", 2e-2),
)


@dataclass(frozen=True)
class GpuRow:
    setting: str
    published: str
    goal: str
    seconds_per_sweep: float  # median, random draws included, by the host's clock after the device is done
    predicted_seconds: float | None = None  # by arithmetic, before anything was measured
    measured_over_predicted: float | None = None


def on_a_gpu(args: argparse.Namespace) -> dict:
    """Seconds per sweep of the parts that have a goal for a GPU; why there are none where no GPU can be used."""
    try:
        arrays = make_arrays("gpu", None)
    except DeviceError as error:
        return {"on a GPU": f"not measured: {error}"}
    return {
        "on a GPU": as_table([row for part in args.parts if part in _ON_A_GPU for row in _ON_A_GPU[part](args, arrays)])
    }


def _horseshoe_on_a_gpu(args: argparse.Namespace, arrays: Arrays) -> list[GpuRow]:
    from benchmarks.regressions_horseshoe import synthetic
    from mmgibbs.regressions.horseshoe.probit import HorseshoeProbitModel, HorseshoeProbitOptions

    assert isinstance(arrays, Gpu)
    rows = []
    for n, dtype, chains, published, goal, predicted in HORSESHOE_ON_A_GPU:
        n = max(2000, round(n * args.scale))
        X, y = synthetic(n, 1000, dtype, 1)
        options = HorseshoeProbitOptions(precision="single", collapsed=False)
        sampler = HorseshoeProbitModel.prepare(RegressionData(read_predictors(X), y), options, Host())
        setting = f"horseshoe probit n = {n:,}, p = 1000, {dtype}, {chains} chain(s)"
        seconds = seconds_on_device(sampler, arrays.cuda, chains)
        rows.append(GpuRow(setting, published, goal, seconds, predicted, seconds / predicted))
    return rows


def _hmc_on_a_gpu(args: argparse.Namespace, arrays: Arrays) -> list[GpuRow]:
    """Trajectories of a table of the size of MNIST, whose values change no time."""
    from benchmarks.regressions_hmc import make_mnist_sampler

    assert isinstance(arrays, Gpu)
    n, rng = max(2000, round(60_000 * args.scale)), np.random.default_rng(1)
    sampler = make_mnist_sampler(rng.integers(0, 256, (n, 784), np.uint8), np.arange(n) % 10, args.threads)
    rows = []
    for n_chains, published, goal, predicted in HMC_ON_A_GPU:
        seconds = seconds_on_device(sampler, arrays.cuda, n_chains, 20)
        setting = f"HMC, {n:,} x 785 x 10, uint8, single, a trajectory of L = 100, {n_chains} chain(s)"
        rows.append(GpuRow(setting, published, goal, seconds, predicted, seconds / predicted))
    return rows


def _multinomial_on_a_gpu(args: argparse.Namespace, arrays: Arrays) -> list[GpuRow]:
    from benchmarks.regressions_multinomial import simulate
    from mmgibbs.regressions.multinomial.polya_gamma import MultinomialPGModel, MultinomialPGOptions

    assert isinstance(arrays, Gpu)
    n = max(1000, round(506_450 * args.scale))
    X, y = simulate(n, 56, 9, 1)
    sampler = MultinomialPGModel.prepare(RegressionData(read_predictors(X), y), MultinomialPGOptions(), Host())
    seconds, predicted = seconds_on_device(sampler, arrays.cuda, 1, 20), MULTINOMIAL_ON_A_GPU_SECONDS
    setting = f"multinomial n = {n:,}, p = 56, K = 9, double, 1 chain(s)"
    return [GpuRow(setting, '"100x", no seconds', "2 ms", seconds, predicted, seconds / predicted)]


def _hierarchical_on_a_gpu(args: argparse.Namespace, arrays: Arrays) -> list[GpuRow]:
    from benchmarks.regressions_hierarchical import PUBLISHED, simulate
    from mmgibbs.regressions.hierarchical.slice import HierarchicalSliceOptions, HierarchicalSliceSampler

    assert isinstance(arrays, Gpu)
    n = max(10, round(500 * args.scale))
    X, y, groups = simulate(n, 500, 10, 1)
    data = RegressionData(read_predictors(X), y, "y", groups)
    sampler = HierarchicalSliceSampler(data, HierarchicalSliceOptions(method="slice", precision="single"), Host())
    setting = f"hierarchical logit, {n} groups x 500, p = 10, single"
    return [
        GpuRow(
            f"{setting}, {n_chains} chain(s)",
            PUBLISHED,
            goal,
            seconds := seconds_on_device(sampler, arrays.cuda, n_chains),
            predicted,
            seconds / predicted,
        )
        for n_chains, goal, predicted in HIERARCHICAL_ON_A_GPU
    ]


def seconds_on_device(sampler: DeviceSampler, device: Device, n_chains: int, n_sweeps: int = 200) -> float:
    """Seconds of a sweep of all chains, no draw kept."""
    keys = Keys(1, tuple(range(n_chains)))
    chains = ChainsOnDevice(sampler, device, keys, 5 * n_sweeps)
    chains.advance(3)  # kernels are loaded, and the sweep is recorded
    started = time.perf_counter()
    chains.advance(3 + n_sweeps)  # waits at the end
    return (time.perf_counter() - started) / n_sweeps


def _lasso_on_a_gpu(args: argparse.Namespace, arrays: Arrays) -> list[GpuRow]:
    from benchmarks.regressions_lasso import simulate
    from mmgibbs.regressions.lasso import Lasso, LassoOptions

    assert isinstance(arrays, Gpu)
    X, y = simulate(425, 1000, 1)
    sampler = Lasso.prepare(RegressionData(read_predictors(X, standardise=True), y), LassoOptions(), Host())
    seconds = seconds_on_device(sampler, arrays.cuda, 1)
    setting, published = "lasso n = 425, p = 1000, double, 1 chain(s)", "150 times their CPU form"
    return [GpuRow(setting, published, "0.3 ms", seconds, LASSO_ON_A_GPU_SECONDS, seconds / LASSO_ON_A_GPU_SECONDS)]


_ON_A_GPU = {
    "lasso": _lasso_on_a_gpu,
    "horseshoe": _horseshoe_on_a_gpu,
    "hmc": _hmc_on_a_gpu,
    "multinomial": _multinomial_on_a_gpu,
    "hierarchical": _hierarchical_on_a_gpu,
}


def _horseshoe(args: argparse.Namespace) -> dict:
    from benchmarks.regressions_horseshoe import mixing_rows, row

    n, large, p = (max(20, round(size * args.scale)) for size in (10_000, LARGE, 1000))
    sweeps = [
        row(n, p, threads=args.threads),
        row(n, p, "float32", "single", threads=args.threads),
        row(n, p, "uint8", "single", chains=4, threads=args.threads),
        row(large, p, "uint8", "single", threads=args.threads, sweeps=5),
    ]
    return {"sweeps": as_table(sweeps)} | _with_data(
        args,
        "covertype_cover",
        lambda folder: {"rare positives": as_table(mixing_rows(folder / "cover.npz", threads=args.threads))},
    )


def _hmc(args: argparse.Namespace) -> dict:
    from benchmarks.regressions_hmc import gradient_rows, mnist_row

    def rows(folder: Path) -> dict:
        both = sorted({1, args.threads})
        gradients = [r for threads in both for r in gradient_rows(folder, threads=threads)]
        return {
            "gradient": as_table(gradients),
            "trajectories": as_table([mnist_row(folder, max(1, round(20 * args.scale)), threads=args.threads)]),
        }

    return _with_data(args, "mnist", rows)


def _lasso(args: argparse.Namespace) -> dict:
    from benchmarks.regressions_lasso import row

    return {"sweeps": as_table([row(threads=threads) for threads in sorted({1, args.threads})])}


def _multinomial(args: argparse.Namespace) -> dict:
    from benchmarks.regressions_multinomial import draws_row, row

    n = max(1000, round(506_450 * args.scale))
    sweeps = [row(n, threads=args.threads, precision=precision) for precision in ("double", "single")]
    return {"sweeps": as_table(sweeps), "PG(1, z)": as_table([draws_row(spread) for spread in (0.0, 1.0, 4.0)])}


def _hierarchical(args: argparse.Namespace) -> dict:
    from benchmarks.regressions_hierarchical import row

    groups = max(10, round(500 * args.scale))
    return {"samplers": as_table(row(groups, threads=args.threads))}


_TABLES = {
    "horseshoe": _horseshoe,
    "hmc": _hmc,
    "lasso": _lasso,
    "multinomial": _multinomial,
    "hierarchical": _hierarchical,
}


def _with_data(args: argparse.Namespace, name: str, make: Callable[[Path], dict]) -> dict:
    """What `make(folder)` gives where the data set is there; else why it was not measured."""
    folder = None if args.data is None else Path(args.data) / name
    if folder is None:
        return {f"on {name}": "not measured: needs --data DIR"}
    if not folder.is_dir():
        raise DataError(
            f"--data: found no folder '{name}' in '{args.data}', needed one with the files of that data set"
        )
    return make(folder)
