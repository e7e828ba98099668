"""Draws of small cases of the kernels, recorded: a real device is compared with what a compiler for the CPU made of
the same text.

    python -m benchmarks.recorded            compare the device of this machine with the recorded draws
    python -m benchmarks.recorded --write    record them anew, by g++; needs no device

Cases whose design promises the same bits on every device are compared bit for bit, others up to a tolerance, relative
to the largest element of an array. Their data are whole numbers where bits are compared, so that what the host prepares
does not depend on the type of its CPU. The kernels of `array_draws.cu` and `row_blocks.cu` are not here: `tests/gpu`
compares them with the CPU of the same machine.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "benchmarks" / "recorded.npz"
SEED, CHAINS = 3, (0, 4)
KEY = (7, 1)  # of a chain of a mixed model
Draws = dict[str, np.ndarray]
sys.path[:0] = [path for path in (str(ROOT), str(ROOT / "tests")) if path not in sys.path]  # reference.models


class Case(NamedTuple):
    """Draws of a device: `draw(device)` by name."""

    draw: Callable[[Any], Draws]
    tolerance: float = 0.0  # relative; 0: the same bits
    is_of_arrays: bool = False  # by the libraries behind CuPy, without kernels of this program


def run_regression(sampler: Any, device: Any, n_sweeps: int, burn_in: int = 1) -> Draws:
    """The kept draws of two chains, and their last state."""
    from mmgibbs.regressions.device_chains import ChainsOnDevice
    from mmgibbs.regressions.protocol import Keys

    chains = ChainsOnDevice(sampler, device, Keys(SEED, CHAINS), burn_in)
    chains.advance(n_sweeps)
    state = {name: values for name, values in chains.state().items() if name.startswith("state.")}
    return chains.result().draws | state


def read_data(X: np.ndarray, y: np.ndarray, **more: Any) -> Any:
    """Data of a regression on these predictors, standardised."""
    from mmgibbs.regressions.predictors import read_predictors
    from mmgibbs.regressions.protocol import RegressionData

    return RegressionData(read_predictors(X, standardise=more.pop("standardise", True)), y, **more)


def draw_lasso(device: Any, n: int, p: int) -> Draws:
    from mmgibbs.regressions.arrays.base import Host
    from mmgibbs.regressions.lasso import Lasso, LassoOptions

    rng = np.random.default_rng(1)
    X = rng.normal(2, 1, (n, p))
    data = read_data(X, X[:, 0] - X[:, -1] + rng.normal(size=n))
    return run_regression(Lasso.prepare(data, LassoOptions(), Host(1)), device, 3)


def draw_horseshoe(device: Any) -> Draws:
    from mmgibbs.regressions.arrays.base import Host
    from mmgibbs.regressions.horseshoe.probit import HorseshoeProbitModel, HorseshoeProbitOptions

    rng = np.random.default_rng(2)
    X = rng.normal(2, 1, (90, 66))
    data = read_data(X, (X[:, 0] + rng.normal(0, 2, 90) > 2).astype(int))
    options = HorseshoeProbitOptions(collapsed=False, slab_scale=2.0)
    return run_regression(HorseshoeProbitModel.prepare(data, options, Host(1)), device, 3)


def draw_multinomial_pg(device: Any) -> Draws:
    from mmgibbs.regressions.arrays.base import Host
    from mmgibbs.regressions.multinomial.polya_gamma import MultinomialPGModel, MultinomialPGOptions

    rng = np.random.default_rng(3)
    data = read_data(rng.normal(2, 1, (90, 5)), rng.integers(0, 3, 90))
    return run_regression(MultinomialPGModel.prepare(data, MultinomialPGOptions(), Host(1)), device, 3)


def draw_multinomial_hmc(device: Any) -> Draws:
    from mmgibbs.regressions.arrays.base import Host
    from mmgibbs.regressions.multinomial.hmc import MultinomialHMCModel, MultinomialHMCOptions

    rng = np.random.default_rng(4)
    data = read_data(rng.normal(2, 1, (90, 5)), np.arange(90) % 3)
    options = MultinomialHMCOptions(leapfrog_steps=9)
    return run_regression(MultinomialHMCModel.prepare(data, options, Host(1)), device, 5, burn_in=3)


def draw_hierarchical(device: Any, method: str) -> Draws:
    from mmgibbs.regressions.arrays.base import Host
    from mmgibbs.regressions.hierarchical.slice import HierarchicalSliceOptions, HierarchicalSliceSampler

    rng = np.random.default_rng(5)
    groups = rng.permutation(np.repeat(np.arange(4), (3, 9, 40, 18)))
    X = rng.integers(-2, 3, (len(groups), 2)).astype(np.float64)
    data = read_data(X, rng.integers(0, 2, len(groups)), groups=groups, standardise=False)
    return run_regression(HierarchicalSliceSampler(data, HierarchicalSliceOptions(method=method), Host(1)), device, 4)


OF_STATE = ("engine.", "markers.", "threshold.", "G.", "R")  # of the state of a chain, by the beginning of its names


def run_mixed_model(model: Any, device: Any, n_sweeps: int) -> Draws:
    """The draws of parameters in each sweep, means of the location effects, and the state after the last."""
    from mmgibbs.engines.coloured_gpu.engine import StructuredGpuEngine
    from mmgibbs.equations.partition import partition
    from mmgibbs.equations.structured import structured_equations
    from mmgibbs.sampler.chain import Chain
    from mmgibbs.sampler.interweave import terms_to_interweave
    from mmgibbs.sampler.schedule import Schedule

    equations = structured_equations(model.design, partition(model.design, "colour"))
    engine = StructuredGpuEngine(equations, device=device)
    chain = Chain(model, engine, Schedule(0, n_sweeps, interweave=terms_to_interweave(model, "auto")), KEY)
    chain.advance(n_sweeps)
    state = {name: np.array(values) for name, values in chain.state().items()}
    means = {"record.moments:batch_mean": state["record.moments:batch_mean"]}
    state = {name: values for name, values in state.items() if name.startswith(OF_STATE) and "drift" not in name}
    return {name: np.array(values) for name, values in chain.result().draws.items()} | means | state


def make_beef_model() -> Any:
    """Birth and weaning weights of a small herd, all variances sampled."""
    from benchmarks.effective import sampled_model
    from mmgibbs.simulation.simulate import beef_design, simulate_beef

    herds = simulate_beef(200, 1)
    return sampled_model(beef_design(herds), herds.G, herds.R)


def draw_structured(device: Any) -> Draws:
    return run_mixed_model(make_beef_model(), device, 3)


def draw_liabilities(device: Any) -> Draws:
    from benchmarks.on_a_gpu import with_binary_trait

    return run_mixed_model(with_binary_trait(make_beef_model())[0], device, 3)


def draw_marker_effects(device: Any, prior: str, n_sweeps: int = 3) -> Draws:
    from benchmarks.markers import make_model, simulated

    store, _ = simulated(130, 70, 1)
    y = np.random.default_rng(6).integers(-3, 4, 130).astype(np.float64)
    model = make_model(store, y, prior)
    # X'X is in single precision: with centres of 1/64 its sums are exact, in whatever order BLAS of a machine adds
    markers = replace(model.design.markers[0], centre=np.round(model.design.markers[0].centre * 64) / 64)
    return run_mixed_model(replace(model, design=replace(model.design, markers=(markers,))), device, n_sweeps)


def draw_first_marker_effects(device: Any) -> Draws:
    """What the first sweep draws before any sum of the host decides."""
    draws = draw_marker_effects(device, "rr", 1)
    return {name: draws[name] for name in ("markers.snps.0.a", "engine.e", "engine.theta.0")}


def draw_dense_block(device: Any) -> Draws:
    from benchmarks.on_a_gpu import make_dense_engine

    rng = np.random.default_rng(7)
    A = rng.normal(size=(140, 150))
    engine = make_dense_engine((A @ A.T / 150).astype(np.float32), device)
    for number in (1, 2, 3):
        engine.sweep(number, KEY)
    return {f"effects.{i}": theta for i, theta in enumerate(engine.fetch())}


def solve_pcg(device: Any) -> Draws:
    from mmgibbs.engines.pcg.device_solver import DevicePcgSolver
    from mmgibbs.equations.partition import partition
    from mmgibbs.equations.structured import structured_equations
    from mmgibbs.machine.threads import ALONE
    from mmgibbs.simulation.simulate import beef_design, simulate_beef

    herds = simulate_beef(200, 1)
    design = beef_design(herds)
    solver = DevicePcgSolver(structured_equations(design, partition(design)), ALONE, device)
    solver.set_variances(herds.G, herds.R)
    return {f"effects.{i}": theta for i, theta in enumerate(solver.solve(1e-12).theta)}


CASES = {
    "lasso": Case(lambda device: draw_lasso(device, 30, 5), 1e-9),
    "lasso, fewer rows than predictors": Case(lambda device: draw_lasso(device, 12, 20), 1e-9),
    "horseshoe probit": Case(draw_horseshoe, 1e-6),
    "multinomial logit, Polya-Gamma": Case(draw_multinomial_pg, 1e-7),
    "multinomial logit, HMC": Case(draw_multinomial_hmc, 1e-6),
    "hierarchical, slice": Case(lambda device: draw_hierarchical(device, "slice")),
    "hierarchical, Polya-Gamma": Case(lambda device: draw_hierarchical(device, "polya_gamma"), 1e-7),
    "mixed model, variances sampled": Case(draw_structured, 1e-8),
    "mixed model, a binary trait": Case(draw_liabilities, 1e-7),
    "SNP effects, the first sweep": Case(draw_first_marker_effects),
    "SNP effects": Case(lambda device: draw_marker_effects(device, "rr"), 1e-8),
    "SNP effects in classes": Case(lambda device: draw_marker_effects(device, "bayes_r"), 1e-8),
    "dense block": Case(draw_dense_block, 1e-9),
    "conjugate gradients": Case(solve_pcg, 1e-7, is_of_arrays=True),
}


def read_recorded(name: str) -> Draws:
    """The recorded draws of a case."""
    prefix = f"{name}: "
    with np.load(FILE) as file:
        return {key.removeprefix(prefix): file[key] for key in file.files if key.startswith(prefix)}


def compare(name: str, draws: Draws) -> str:
    """How the draws of a case compare with those recorded, in words; AssertionError where they differ."""
    tolerance, recorded = CASES[name].tolerance, read_recorded(name)
    assert recorded and draws.keys() == recorded.keys(), f"{name}: arrays {sorted(draws)}, recorded {sorted(recorded)}"
    largest = 0.0
    for array, expected in recorded.items():
        what = f"{name}: {array}"
        if tolerance == 0.0:
            np.testing.assert_array_equal(draws[array], expected, err_msg=what)
            continue
        is_finite = np.isfinite(expected)  # outer thresholds are not
        size = np.abs(expected[is_finite]).max(initial=0.0)
        np.testing.assert_allclose(draws[array], expected, rtol=0, atol=tolerance * size, err_msg=what)
        if size > 0:
            largest = max(largest, float(np.abs(draws[array] - expected)[is_finite].max() / size))
    if tolerance == 0.0 or largest == 0.0:
        return f"{name}: as recorded, bit for bit"
    return f"{name}: as recorded up to {largest:.1e}, tolerance {tolerance:.0e}"


def compare_device(device: Any) -> int:
    """Say of each case how a device compares; how many differ."""
    n_different = 0
    for name, case in CASES.items():
        try:
            print(compare(name, case.draw(device)), flush=True)
        except AssertionError as error:
            n_different += 1
            print(f"DIFFERENT: {error}", flush=True)
    print(f"{len(CASES) - n_different} of {len(CASES)} cases as recorded")
    return n_different


def write(folder: Path) -> None:
    """Record the draws of all cases by kernels that g++ compiles in `folder`."""
    arrays = {
        f"{name}: {array}": values
        for name, case in CASES.items()
        for array, values in case.draw(make_host_device(case, folder)).items()
    }
    np.savez_compressed(FILE, **arrays)


def make_host_device(case: Case, folder: Path) -> Any:
    """A device without a GPU, for a case."""
    from helpers.host_arrays import ArraysDevice
    from helpers.host_device import CompilingDevice

    return ArraysDevice() if case.is_of_arrays else CompilingDevice(folder)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="record the draws anew, by g++")
    if parser.parse_args().write:
        from tempfile import TemporaryDirectory

        with TemporaryDirectory() as folder:
            write(Path(folder))
        return 0
    from mmgibbs.machine.device import Device

    return int(compare_device(Device()) > 0)


if __name__ == "__main__":
    sys.exit(main())
