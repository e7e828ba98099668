"""`mmgibbs bench evaluation`: milliseconds per sweep of one chain, the time and memory traffic of each step, and the
processor.

Bytes are those that a step cannot do without: every array that it reads or writes, once for each pass over it, rows of
relatives included. What a cache saves or wastes is in the time. A step whose bytes are not known has none in the table.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import time
from collections.abc import Sequence
from pathlib import Path

from mmgibbs.engines.base import Engine
from mmgibbs.sampler.auxiliaries import Auxiliaries
from mmgibbs.sampler.covariances import ResidualCovariance, TermCovariance
from mmgibbs.sampler.interweave import Interweaving
from mmgibbs.sampler.liabilities import LiabilityStep
from mmgibbs.sampler.locations import Locations
from mmgibbs.sampler.marginal.liabilities import ExactLocations, LiabilityVariances
from mmgibbs.sampler.marginal.locations import KeptLocations
from mmgibbs.sampler.marginal.step import MarginalVariances
from mmgibbs.sampler.markers.effects import MarkerEffects
from mmgibbs.sampler.markers.joint import JointMarkerEffects
from mmgibbs.sampler.mixed_model import MixedModel
from mmgibbs.sampler.observed_scale import ObservedValues
from mmgibbs.sampler.predictive import PredictedRecords
from mmgibbs.sampler.recorder import Recorder
from mmgibbs.sampler.resident import ResidentSweep
from mmgibbs.sampler.schedule import Schedule
from mmgibbs.sampler.steps import Step, gibbs_steps
from mmgibbs.sampler.trait_moments import TraitMomentsStep

STEPPED = 200  # sweeps whose steps are timed one by one


def bench_evaluation(args: argparse.Namespace) -> dict:
    from mmgibbs.build.assemble import assemble
    from mmgibbs.build.engine import choose_engine
    from mmgibbs.data.prepare import prepare
    from mmgibbs.data.traits import load_analysis
    from mmgibbs.equations.partition import partition
    from mmgibbs.equations.structured import structured_equations
    from mmgibbs.sampler.chain import sample_chain
    from mmgibbs.sampler.interweave import terms_to_interweave
    from mmgibbs.sampler.schedule import Schedule

    analysis = load_analysis(args.config, [*args.set])
    prepared = prepare(analysis)
    model = assemble(analysis, prepared).model
    chosen = choose_engine(analysis.sampler, model)
    choice, order = chosen.engine, partition(prepared.design, chosen.partition)
    equations = structured_equations(prepared.design, order, analysis.sampler.precision)
    engine = choice.build(equations)
    thin, refresh = analysis.sampler.thin, analysis.sampler.refresh_every
    interweave = terms_to_interweave(model, analysis.sampler.interweave)
    short = Schedule(0, max(thin, 10), thin, 5, interweave=interweave)
    sample_chain(model, engine, short, (1, 0))  # compiles every kernel
    engine.start()
    schedule = Schedule(0, args.sweeps, thin, refresh, interweave=interweave)
    result = sample_chain(model, engine, schedule, (2, 0))
    steps, _ = timed_steps(model, engine, schedule, (3, 0), min(args.sweeps, STEPPED))
    return {
        "engine": f"{choice.name}, {choice.threads} thread(s)",
        "equations": equations.n_equations,
        "records": prepared.design.n_records,
        "sweeps": args.sweeps,
        "milliseconds per sweep": 1000 * result.seconds / args.sweeps,
        "steps of a sweep (medians)": steps,
    }


def processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


WORDS: dict[type, str] = {
    Locations: "location effects",
    KeptLocations: "location effects of kept draws",
    ExactLocations: "location effects given liabilities",
    LiabilityVariances: "variances given liabilities, location effects integrated out",
    MarginalVariances: "variances, location effects integrated out",
    ResidualCovariance: "residual covariance",
    ResidentSweep: "all of a sweep on the device",
    ObservedValues: "variances on the observed scale",
    PredictedRecords: "predicted records",
    TraitMomentsStep: "means of traits",
}
WARM = 2  # sweeps that are not timed: the first compiles, and a device records


def timed_steps(
    model: MixedModel, engine: Engine, schedule: Schedule, key: tuple[int, int], sweeps: int
) -> tuple[list[dict], float]:
    """A row for each step and one for what is kept of a draw; seconds of a sweep without that (median of all)."""
    steps = gibbs_steps(model, engine, schedule, key)
    wait = getattr(engine, "wait", lambda: None)  # a device works on when a step is over, in another step's time
    record, times = Recorder(model, schedule, engine, steps), []
    for number in range(1, sweeps + WARM + 1):
        marks, facts = [time.perf_counter()], {"sweep": float(number)}
        for step in steps:
            facts |= step(number) or {}
            wait()
            marks.append(time.perf_counter())
        record(facts)
        wait()
        marks.append(time.perf_counter())
        times.append([b - a for a, b in zip(marks[:-1], marks[1:], strict=True)])
    kept = times[WARM:]
    rows = [
        row(step_name(s, model), seconds, moved_bytes(s, engine))
        for s, seconds in zip(steps, medians(kept), strict=False)
    ]
    rows.append(row("recording of a kept draw", medians(kept)[-1], None))
    return rows, statistics.median(sum(sweep[:-1]) for sweep in kept)


def medians(times: Sequence[Sequence[float]]) -> list[float]:
    """Return the median of each step over the sweeps."""
    return [statistics.median(of_step) for of_step in zip(*times, strict=True)]


def row(name: str, seconds: float, size: int | None) -> dict:
    known = {} if size is None else {"MB": size / 1e6, "GB/s": size / 1e9 / seconds}
    return {"step": name, "ms": 1000 * seconds} | known


def step_name(step: Step, model: MixedModel) -> str:
    """Describe what a step draws; the name of its class where no words are known."""
    design = model.design
    match step:
        case TermCovariance():
            return f"covariance of {design.terms[step.term].name}"
        case Interweaving():
            return f"interweaving of {design.terms[step.term].name}"
        case LiabilityStep():
            return f"liabilities of {design.traits[step.trait]}"
        case MarkerEffects():
            return f"SNP effects of {step.markers.name} on {design.traits[step.markers.trait]}"
        case JointMarkerEffects():
            return f"SNP effects of {step.markers.name}"
        case Auxiliaries():
            of = step.of.term
            return f"scale prior of {design.terms[of].name if of < len(design.terms) else 'residual'}"
    return WORDS.get(type(step), type(step).__name__)


def moved_bytes(step: Step, engine: Engine) -> int | None:
    """Count the bytes that a step moves in one sweep; None where that is not known."""
    eq = engine.equations
    real, (n, T) = eq.real.itemsize, eq.records.y.shape
    residuals, patterns = n * T * real, eq.records.pattern.nbytes + eq.records.weight.nbytes
    if isinstance(step, Locations):
        thetas = eq.design.n_effects * real
        moved = 2 * len(eq.terms) * residuals + thetas  # each term reads e, and writes it; y is not read
        return eq.bytes - eq.records.y.nbytes - residuals + moved
    if isinstance(step, ResidualCovariance):
        return residuals + patterns + eq.records.record.nbytes
    if not isinstance(step, TermCovariance | Interweaving):
        return None
    term = eq.design.terms[step.term]
    row = term.n_components * real
    if isinstance(step, TermCovariance):
        K = eq.relationships[step.term]
        nbytes = sum(getattr(K, name).nbytes for name in ("sire", "dam", "own") if hasattr(K, name))
        return term.n_levels * row * (3 if nbytes else 1) + nbytes
    visits = eq.terms[step.term].visit_record.size
    reads = residuals + patterns + n * len(term.effects) * 4 + visits * row + eq.terms[step.term].covariates.nbytes
    return 2 * reads - patterns + residuals + 2 * term.n_levels * row
