"""Sweeps over SNP effects on simulated genotypes: milliseconds, the bounds of bytes and flops, effective draws.

Genotypes are independent binomials with frequencies from 0.05 to 0.5, packed; records are of every animal, from 1 % of
the SNPs. The bound of bytes reads each packed genotype once at the bandwidth that is given; ridge regression reads it
again where effects move. The bound of flops is one multiply-add a genotype at 16 lanes and a core's clock.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

from mmgibbs.engines.serial import SerialEngine
from mmgibbs.equations.partition import partition
from mmgibbs.equations.structured import structured_equations
from mmgibbs.genotypes.store import PackedGenotypes, Store
from mmgibbs.machine.memory import peak_bytes
from mmgibbs.models.covariance import CovarianceModel, full_block
from mmgibbs.models.design import Design
from mmgibbs.models.markers import MarkerPriorSpec, Markers
from mmgibbs.models.priors.inverse_wishart import InverseWishart
from mmgibbs.models.residual import ResidualModel
from mmgibbs.models.terms import Effect, Flat, Levels, Term
from mmgibbs.sampler.markers.effects import MarkerEffects
from mmgibbs.sampler.mixed_model import MixedModel
from mmgibbs.sampler.schedule import Schedule
from mmgibbs.sampler.steps import gibbs_steps

SIZES = ("1814x10346", "10000x50000")
MIXTURE = {"classes": (0.0, 0.01, 0.1, 1.0), "pi": (0.95, 0.03, 0.015, 0.005), "counts": (1.0, 1.0, 1.0, 1.0)}
HERITABILITY = 0.5


def bench_markers(args: argparse.Namespace) -> dict:
    rows = [row for size in args.sizes for row in measured(size, args)]
    return {"effects of SNPs": rows, "peak resident bytes": peak_bytes()}


def measured(size: str, args: argparse.Namespace) -> list[dict]:
    n, p = (int(part) for part in size.split("x"))
    store, y = simulated(n, p, args.seed)
    of_size = {"animals x SNPs": size, "packed MB": store.array.nbytes / 1e6}
    of_size["bound of bytes, ms"] = 1e3 * store.array.nbytes / (args.bandwidth * 1e9)
    return [of_size | {"prior": kind} | sweeps(store, y, kind, args) for kind in args.priors]


def simulated(n: int, p: int, seed: int) -> tuple[Store, np.ndarray]:
    """Packed genotypes of n animals at p SNPs, and a record of each animal."""
    rng, chunks = np.random.default_rng(seed), -(-n // 128)
    array = np.empty((p, chunks, PackedGenotypes.width), PackedGenotypes.dtype)
    store, g = PackedGenotypes(array, n), np.zeros(n)
    effect = np.where(rng.random(p) < 0.01, rng.standard_normal(p), 0.0)
    animals = np.arange(n)
    for first in range(0, p, 1024):
        frequency = rng.uniform(0.05, 0.5, min(1024, p - first))
        u = rng.random((len(frequency), n), np.float32)
        none, two = ((1 - frequency) ** 2)[:, None], (1 - frequency**2)[:, None]
        codes = (u > none).astype(np.uint8) + (u > two).astype(np.uint8)
        PackedGenotypes.pack(codes, animals, array[first : first + len(codes)])
        g += effect[first : first + len(codes)] @ codes
    noise = np.sqrt((1 - HERITABILITY) / HERITABILITY) * g.std()
    y = g + noise * rng.standard_normal(n)
    return store, (y - y.mean()) / y.std()


def make_model(store: Store, y: np.ndarray, kind: str) -> MixedModel:
    """An intercept and effects of the SNPs under a prior; start of the variance by the heritability."""
    n, p = store.n_animals, store.n_snps
    known, first, second = store.moments().T
    mean, total = first / known, float(np.sum(second / known - (first / known) ** 2))
    options = MIXTURE if kind == "bayes_r" else {}
    factor = float(np.dot(options["classes"], options["pi"])) if options else 1.0
    start = HERITABILITY / (total * factor)
    prior = MarkerPriorSpec(kind, start, False, 5.0, start * 7 / 5, options)
    markers = Markers("snps", 0, np.arange(n, dtype=np.int32), store, store.every, mean, np.ones(p), mean, prior, n)
    intercept = Term("intercept", Levels((Effect("", np.zeros(n, np.int32), (0,)),), 1), Flat())
    pattern = np.zeros(n, np.int32), np.ones((1, 1), bool)
    design = Design(("y",), y[:, None], *pattern, np.ones(n), (intercept,), markers=(markers,))
    residual = CovarianceModel(
        np.array([[1 - HERITABILITY]]), False, full_block(1), InverseWishart(5.0, np.array([[3.5]]))
    )
    return MixedModel(design, (None,), ResidualModel((residual,)))


def sweeps(store: Store, y: np.ndarray, kind: str, args: argparse.Namespace) -> dict:
    n, p, model = store.n_animals, store.n_snps, make_model(store, y, kind)
    equations = structured_equations(model.design, partition(model.design), args.precision)
    engine = SerialEngine(equations, threads=args.threads)
    engine.threads_of_effects = engine.threads
    clock = time.perf_counter()
    steps = gibbs_steps(
        model,
        engine,
        Schedule(0, args.sweeps, refresh_every=100),
        (args.seed, 0),
    )
    prepared = time.perf_counter() - clock
    step = next(s for s in steps if isinstance(s, MarkerEffects))
    seconds, of_effects, processor, variance = [], [], [], []
    for number in range(1, args.burn_in + args.sweeps + 1):
        started, before = time.process_time(), time.perf_counter()
        for s in steps:
            took = clocked(s, number)
            if s is step:
                of_effects.append(took)
        seconds.append(time.perf_counter() - before)
        processor.append(time.process_time() - started)
        variance.append(step.prior.variance)
    after = slice(args.burn_in, None)
    found = {
        "s to prepare": prepared,
        "ms a sweep": 1e3 * float(np.median(seconds[after])),
        "processor ms a sweep": 1e3 * float(np.median(processor[after])),
        "ms of effects": 1e3 * float(np.median(of_effects[after])),
        "ns a genotype": 1e9 * float(np.median(of_effects[after])) / (n * p),
    }
    if args.sweeps >= 500:
        from mmgibbs.posterior.diagnostics import diagnose

        draws = np.array(variance[after])
        found["ESS of v per 1,000"] = 1000 * diagnose(draws[None])["ess_bulk"] / len(draws)
    return found


def clocked(call: Callable[[int], object], number: int) -> float:
    started = time.perf_counter()
    call(number)
    return time.perf_counter() - started
