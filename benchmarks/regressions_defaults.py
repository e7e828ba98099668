"""What the defaults of two regressions go by: effective draws a second of both ways, on simulated data.

    python benchmarks/regressions_defaults.py horseshoe [--seconds 4] [--cells N,P,LARGE,SIZE,SHARED,POSITIVE[,SLAB]]
    python benchmarks/regressions_defaults.py hierarchical [--cells G,N,P,SHARED,MEAN,INTERCEPT[,TRIALS]]

horseshoe      a row for each data set of N records and P predictors, LARGE of them with effects of SIZE or -SIZE;
               SHARED is the standard deviation of what all predictors share, POSITIVE the share of 1:
               `collapsed: false` and `true`, and what `auto` takes (mmgibbs/regressions/horseshoe/choice.py)
hierarchical   a row for G groups of N records with P predictors of this MEAN and standard deviation 1, and what they
               share; INTERCEPT of the log odds, TRIALS of each record: `method: slice` and `polya_gamma`

Two chains from their starts; a fifth of the time is burn-in. Seconds are of the processor, one thread, and effective
draws are bulk ESS of both chains: of the slowest coefficient, the median one, and log tau (Delta and V).
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from mmgibbs.posterior.diagnostics import diagnose  # noqa: E402
from mmgibbs.regressions.arrays.base import Host  # noqa: E402
from mmgibbs.regressions.hierarchical.slice import HierarchicalSliceModel, HierarchicalSliceOptions  # noqa: E402
from mmgibbs.regressions.horseshoe.probit import HorseshoeProbitModel, HorseshoeProbitOptions  # noqa: E402
from mmgibbs.regressions.predictors import read_predictors  # noqa: E402
from mmgibbs.regressions.protocol import Keys, RegressionData, Sampler, State  # noqa: E402

KEYS = Keys(1, (0, 1))
BURN_IN = 0.2  # of the seconds
LEAST_KEPT = 60
MOST_COEFFICIENTS = 300  # of groups, that are diagnosed
GROUPED = (
    "50,5,1,0,0,0", "50,5,3,0,0,0", "20,15,3,0,0,0", "20,15,8,1,0,0", "200,15,3,1,0,0", "200,15,3,0,3,0",
    "200,15,3,0,0,-3", "50,50,3,0,0,0", "50,50,3,0,0,-4", "50,50,8,1,1,-2", "20,150,3,1,0,0", "20,150,3,0,3,0",
    "20,150,8,1,2,0", "200,150,3,0,0,0", "200,150,3,1,2,0", "20,500,2,0,0,-4", "20,15,3,0,0,0,20", "20,50,2,0,0,-4,50",
)  # fmt: skip
CELLS = (
    "400,5,3,1,0,.5", "400,5,3,3,0,.5", "400,5,3,8,0,.5", "400,5,3,1,0,.03",
    "400,12,3,1,0,.02", "400,12,3,2,0,.5", "400,12,12,1,0,.5", "400,12,12,3,0,.5", "400,12,12,1,3,.5,2.5",
    "400,25,3,3,0,.5", "400,25,3,5,0,.5", "400,25,25,1,3,.5", "400,25,3,1,0,.05", "400,25,3,3,0,.5,2.5",
    "400,25,3,5,0,.5,2.5", "400,50,3,3,0,.5,2.5", "400,50,3,1,0,.05,2.5", "400,50,50,1,3,.5,2.5",
    "400,100,3,2,0,.5,2.5", "400,100,3,1,0,.1,2.5", "100,25,3,1,0,.5,2.5", "100,25,3,4,0,.5,2.5",
    "100,50,3,1,0,.5,2.5",
    "2000,12,3,1,0,.5", "2000,12,3,3,0,.5", "2000,12,3,8,0,.5", "2000,12,12,1,3,.5", "2000,12,3,1,0,.02",
    "2000,25,3,3,0,.5", "2000,25,3,8,0,.5", "2000,25,3,1,0,.02", "2000,50,3,8,0,.5", "2000,50,50,1,3,.5",
    "2000,50,3,1,0,.05", "2000,100,3,3,0,.5", "2000,100,3,8,0,.5", "2000,100,3,1,0,.05", "2000,100,3,1,0,.05,2.5",
    "10000,12,3,1,0,.5", "10000,12,3,3,0,.5", "10000,12,3,1,0,.01", "10000,50,3,8,0,.5", "10000,50,3,1,0,.02",
)  # fmt: skip


@dataclass(frozen=True)
class Mixing:
    """Of one sampler."""

    milliseconds: float  # a sweep
    least: float  # effective draws a second, of the slowest coefficient
    median: float
    scale: float  # of log tau, or of the slowest element of the population and of V

    @property
    def worst(self) -> float:
        return min(self.least, self.scale)

    def __str__(self) -> str:
        return f"{self.milliseconds:8.3f} {self.least:9.2f} {self.median:9.1f} {self.scale:9.2f}"


def measure(sampler: Sampler, seconds: float, values: Callable[[State], tuple[np.ndarray, np.ndarray]]) -> Mixing:
    """values: (chains, coefficients) and (chains, scales) of a state."""
    sampler.adapt_until(0)
    state, kept, begun = sampler.start(KEYS), [], 0.0
    for sweep in range(1, 4):  # kernels are loaded
        state = sampler.step(state, sweep, KEYS)
    started, sweep = time.process_time(), 3
    while True:
        sweep += 1
        state = sampler.step(state, sweep, KEYS)
        spent = time.process_time() - started
        if spent < BURN_IN * seconds:
            continue
        begun = begun or spent
        kept.append(values(state))
        if spent > seconds and len(kept) >= LEAST_KEPT:
            break
    spent -= begun
    of_coefficients, of_scales = (effective(np.array(draws)) / spent for draws in zip(*kept, strict=True))
    median = float(np.median(of_coefficients))
    return Mixing(1e3 * spent / len(kept), float(of_coefficients.min()), median, float(of_scales.min()))


def effective(draws: np.ndarray) -> np.ndarray:
    """Bulk ESS of each column of (draws, chains, columns)."""
    return np.array([diagnose(draws[:, :, j].T)["ess_bulk"] for j in range(draws.shape[2])])


def simulate_classes(cell: str, seed: int = 1) -> tuple[np.ndarray, np.ndarray, float | None]:
    """Predictors, classes and slab of a cell."""
    fields = cell.split(",")
    n, p, large = map(int, fields[:3])
    size, shared, positive = map(float, fields[3:6])
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) + shared * rng.normal(size=(n, 1))
    beta = np.zeros(p)
    beta[:large] = size * rng.choice([-1.0, 1.0], large)
    latent = X @ beta + rng.normal(size=n)
    return X, (latent > np.quantile(latent, 1 - positive)).astype(int), float(fields[6]) if len(fields) > 6 else None


def measure_horseshoe(cells: list[str], seconds: float) -> None:
    print(f"{'n,p,large,size,shared,positive':32s}" + 2 * f" | {'ms':>8s} {'least':>9s} {'median':>9s} {'tau':>9s}")
    for cell in cells:
        X, y, slab = simulate_classes(cell)
        data = RegressionData(read_predictors(X, standardise=True), y)
        make = lambda way, data=data, slab=slab: HorseshoeProbitModel.prepare(
            data, HorseshoeProbitOptions(collapsed=way, slab_scale=slab), Host(1)
        )
        values = lambda state: (
            np.concatenate([state["beta"], state["intercept"][:, None]], 1),
            np.log(state["global"])[:, None],
        )
        plain, collapsed = (measure(make(way), seconds, values) for way in (False, True))
        choice = make("auto").choices["collapsed"]
        ratio = collapsed.worst / plain.worst
        print(f"{cell:32s} | {plain} | {collapsed} | worst {ratio:5.2f} | {choice.value!s:5s} {choice.why}", flush=True)


def simulate_groups(cell: str, seed: int = 1) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Predictors, labels (or counts of two classes) and groups of a cell."""
    fields = cell.split(",")
    n_groups, size, p = map(int, fields[:3])
    shared, mean, intercept = map(float, fields[3:6])
    trials = int(fields[6]) if len(fields) > 6 else 1
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(n_groups), size)
    X = rng.normal(size=(len(group), p)) + shared * rng.normal(size=(len(group), 1))
    beta = 0.5 * (-1.0) ** np.arange(p) + 0.5 * rng.normal(size=(n_groups, p))
    eta = intercept + 0.5 * rng.normal(size=n_groups)[group] + (X * beta[group]).sum(1)
    ones = rng.binomial(trials, 1 / (1 + np.exp(-eta)))
    return X + mean, ones if trials == 1 else np.column_stack([trials - ones, ones]), group


def measure_hierarchical(cells: list[str], seconds: float) -> None:
    head = f" | {'ms':>8s} {'least':>9s} {'median':>9s} {'Delta, V':>9s}"
    print(f"{'groups,size,p,shared,mean,intercept':36s}{head}{head}")
    for cell in cells:
        X, y, group = simulate_groups(cell)
        data = RegressionData(read_predictors(X), y, "y", group)
        make = lambda method, data=data: HierarchicalSliceModel.prepare(
            data, HierarchicalSliceOptions(method=method), Host(1)
        )
        values = lambda state: (
            state["beta"].reshape(2, -1)[:, :MOST_COEFFICIENTS],
            np.concatenate([state["population"].reshape(2, -1), state["covariance"].reshape(2, -1)], 1),
        )
        by_slice, by_polya_gamma = (measure(make(method), seconds, values) for method in ("slice", "polya_gamma"))
        ratio = by_polya_gamma.worst / by_slice.worst
        print(f"{cell:36s} | {by_slice} | {by_polya_gamma} | worst {ratio:5.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("horseshoe", "hierarchical"))
    parser.add_argument("--seconds", type=float, default=4.0, help="of each sampler (default: %(default)s)")
    parser.add_argument("--cells", nargs="+", help="data sets (default: those that the defaults go by)")
    arguments = parser.parse_args()
    measure_part, cells = {
        "horseshoe": (measure_horseshoe, CELLS),
        "hierarchical": (measure_hierarchical, GROUPED),
    }[arguments.part]
    measure_part(arguments.cells or list(cells), arguments.seconds)


if __name__ == "__main__":
    main()
