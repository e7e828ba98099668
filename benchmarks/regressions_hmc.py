"""MultinomialHMC in the settings of Beam, Ghosh & Doyle (2016): MNIST with L = 100, and 224 combinations of N, K and p.

The gradient of all coefficients is compared with the two matrix products it contains, X B and X' R over the whole of X
in float32, by the same BLAS on as many threads; both take turns in one process and the least of each counts. Pixels are
divided by 255 (a scale that is carried: X stays uint8, or float32 as stated); the Cauchy priors have scale 1.
"""

from __future__ import annotations

import gzip
import itertools
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mmgibbs.machine.threads import blas_threads
from mmgibbs.regressions.arrays.base import Host
from mmgibbs.regressions.multinomial import hamiltonian as hmc
from mmgibbs.regressions.multinomial.hmc import MultinomialHMCModel, MultinomialHMCOptions, MultinomialHMCSampler
from mmgibbs.regressions.multinomial.softmax_gradient import SoftmaxGradient, averaged_softmax
from mmgibbs.regressions.predictors import Predictors
from mmgibbs.regressions.protocol import Keys, RegressionData

# The paper's 224 combinations
OBSERVATIONS = (100, 1_000, 5_000, 10_000)
PREDICTORS = (10, 50, 100, 500, 1_000, 5_000, 10_000, 20_000)
CLASSES = (2, 3, 4, 5, 10, 15, 20)
MNIST_STEP = 0.0035  # leapfrog, identity mass: close to the largest that is stable on 60,000 images


@dataclass(frozen=True)
class HmcRow:
    setting: str
    published: str
    measured: str
    seconds: float
    bound: float  # seconds of the two products in the same run
    ratio: float  # seconds / bound


@dataclass(frozen=True)
class GridRow:
    observations: int
    predictors: int
    classes: int
    gradient: float  # seconds, least of several
    leapfrog: float  # one trajectory of L = 1 with its energies
    products: float  # X B and X' R
    ratio: float  # gradient / products


def read_mnist(directory: str | Path) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Training pixels (60000, 784) uint8 and digits, test pixels and digits."""
    directory = Path(directory)
    train = np.load(directory / "mnist_train.npz")

    def read(name: str, offset: int) -> np.ndarray:
        return np.frombuffer(gzip.decompress((directory / name).read_bytes()), np.uint8, offset=offset)

    return (
        train["x"],
        train["y"],
        read("t10k-images-idx3-ubyte.gz", 16).reshape(-1, 784),
        read("t10k-labels-idx1-ubyte.gz", 8),
    )


def pixels(X: np.ndarray) -> Predictors:
    p = X.shape[1]
    return Predictors(X, tuple(f"pixel{j}" for j in range(p)), np.zeros(p), np.full(p, 255.0))


def in_turn(calls: Sequence[Callable[[], object]], repeats: int) -> list[list[float]]:
    """Seconds of each call in each round; the calls take turns."""
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(repeats):
        for call, seconds in zip(calls, times, strict=True):
            started = time.perf_counter()
            call()
            seconds.append(time.perf_counter() - started)
    return times


def products(X: np.ndarray, columns: int, threads: int) -> Callable[[], None]:
    """A call that multiplies X (n, p) by (p, columns) and X' by (n, columns), float32, into arrays that are there."""
    B, E, G = (
        np.ones((columns, X.shape[1]), np.float32),
        np.empty((columns, len(X)), np.float32),
        np.empty((columns, X.shape[1]), np.float32),
    )

    def both() -> None:
        with blas_threads(threads):
            np.matmul(B, X.T, out=E)
            np.matmul(E, X, out=G)

    return both


def gradient_rows(
    directory: str | Path, chains: Sequence[int] = (1, 4), threads: int = 1, repeats: int = 5
) -> list[HmcRow]:
    """One gradient on MNIST, X in float32 and in uint8, against its two products."""
    X, _, _, _ = read_mnist(directory)
    wide, rows, T = X.astype(np.float32), [], np.zeros((9, X.shape[1] + 1))
    kinds = {"float32": wide, "uint8": X}
    passes = {
        kind: SoftmaxGradient(pixels(table), T, None, True, Host(threads), np.float32) for kind, table in kinds.items()
    }
    for C in chains:
        B = np.random.default_rng(C).normal(0, 0.1, (C, 9, X.shape[1] + 1))

        def gradient(kind: str, B: np.ndarray = B) -> None:
            with blas_threads(1):
                passes[kind](B)

        calls = [products(wide, 9 * C, threads), *(lambda kind=kind: gradient(kind) for kind in kinds)]
        times = in_turn(calls, repeats)
        bound, flops = min(times[0]), 4 * X.size * 9 * C
        for kind, seconds in zip(kinds, times[1:], strict=True):
            pairs = statistics.median(a / b for a, b in zip(seconds, times[0], strict=True))
            measured = f"{flops / min(seconds) / 1e9:.0f} GFLOP/s, median of pairs {pairs:.2f}"
            setting = f"gradient, MNIST 60,000 x 785 x 10, {C} chain(s), X {kind}, {threads} thread(s)"
            rows.append(
                HmcRow(setting, "at most 1.3 of the two products", measured, min(seconds), bound, min(seconds) / bound)
            )
    return rows


def make_mnist_sampler(
    X: np.ndarray, y: np.ndarray, threads: int, step: float = MNIST_STEP, leapfrog_steps: int = 100
) -> MultinomialHMCSampler:
    """The paper's sampler of pixels (n, 784) and digits."""
    chosen: dict[str, Any] = {
        "adaptation": "none",
        "mass": "identity",
        "step_size": step,
        "leapfrog_steps": leapfrog_steps,
        "scale": 1.0,
        "intercept_scale": 1.0,
    }
    options = MultinomialHMCOptions(**chosen, precision="single")
    return MultinomialHMCModel.prepare(RegressionData(pixels(X), y), options, Host(threads))


def mnist_row(
    directory: str | Path,
    trajectories: int = 20,
    threads: int = 2,
    step: float = MNIST_STEP,
    leapfrog_steps: int = 100,
) -> HmcRow:
    """One chain from scratch, annealed in the first half; test accuracy of the softmax averaged over the second."""
    X, y, X_test, y_test = read_mnist(directory)
    model = make_mnist_sampler(X, y, threads, step, leapfrog_steps)
    keys, burn_in, beta, intercept, accepted, seconds = Keys(1, (0,)), trajectories // 2, [], [], [], 0.0
    model.adapt_until(burn_in)
    state = model.start(keys)
    for sweep in range(1, trajectories + 1):
        started = time.perf_counter()
        state = model.step(state, sweep, keys)
        kept = model.log(state)
        seconds += time.perf_counter() - started
        if sweep > burn_in:
            beta.append(kept["beta"][0])
            intercept.append(kept["intercept"][0])
            accepted.append(float(state["acceptance"][0]))
    predicted = averaged_softmax(np.array(beta), np.array(intercept), pixels(X_test)).argmax(1)
    bound = min(in_turn([products(X.astype(np.float32), 9, threads)], 3)[0]) * leapfrog_steps * trajectories
    measured = (
        f"{seconds:.1f} s for {trajectories}, extrapolated to 200: {200 * seconds / trajectories:.0f} s; "
        f"test accuracy {np.mean(predicted == y_test):.4f}, mean acceptance {np.mean(accepted):.2f}"
    )
    size = f"MNIST 60,000 x 785 x 10, L = {leapfrog_steps}, {trajectories} trajectories"
    setting = f"HMC, {size}, X uint8 / 255, {threads} thread(s)"
    return HmcRow(
        setting, "200 trajectories in 234 s on a K20, test accuracy 0.92", measured, seconds, bound, seconds / bound
    )


def grid(scale: float = 1.0, threads: int = 1, repeats: int = 3) -> list[GridRow]:
    """Gradient and leapfrog of the 224 combinations, float32, one chain; `scale` multiplies N and p."""
    sizes = [
        (max(2, round(n * scale)), max(1, round(p * scale))) for n, p in itertools.product(OBSERVATIONS, PREDICTORS)
    ]
    rng = np.random.default_rng(1)
    values = rng.standard_normal(max(n * p for n, p in sizes), dtype=np.float32)
    return [grid_row(values[: n * p].reshape(n, p), K, Host(threads), repeats, rng) for n, p in sizes for K in CLASSES]


def grid_row(X: np.ndarray, K: int, host: Host, repeats: int, rng: np.random.Generator) -> GridRow:
    n, p = X.shape
    chosen: dict[str, Any] = {
        "adaptation": "none",
        "mass": "identity",
        "step_size": 0.001,
        "leapfrog_steps": 1,
        "scale": 1.0,
        "intercept": False,
    }
    y: np.ndarray = np.asarray(rng.integers(0, K, n))
    y[:K] = np.arange(min(K, n))  # every class has a row
    predictors = Predictors(X, tuple(map(str, range(p))), np.zeros(p), np.ones(p))
    model = MultinomialHMCModel.prepare(
        RegressionData(predictors, y), MultinomialHMCOptions(**chosen, precision="single"), host
    )
    B, one = rng.normal(0, 0.1, (1, model.K - 1, p)), np.ones(1)
    start, z = model.target(B), rng.normal(size=B.shape)

    def leapfrog() -> None:
        tried = hmc.trajectory(model.target, model.mass, start, z, 0.001 * one, one)
        hmc.accept(start, tried, 0.5 * one)

    calls = [lambda: model.likelihood(B), leapfrog, products(X, model.K - 1, host.threads)]
    with blas_threads(1):
        gradient, trajectory, both = (min(seconds) for seconds in in_turn(calls, repeats))
    return GridRow(n, p, model.K, gradient, trajectory, both, gradient / both)
