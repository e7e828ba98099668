"""The whole flow on one page: analysis file -> tables -> design -> equations -> chains -> summary -> run folder."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import polars as pl

from mmgibbs.config import load_config
from mmgibbs.data.prepare import prepare
from mmgibbs.engines.pcg.direct import posterior_sd
from mmgibbs.engines.pcg.solver import PcgSolver
from mmgibbs.equations.partition import partition
from mmgibbs.equations.structured import StructuredEquations, estimated_bytes, structured_equations
from mmgibbs.errors import ModelError
from mmgibbs.machine.memory import refuse_beyond_free
from mmgibbs.model.labels import component_labels
from mmgibbs.posterior.decisions import Decided
from mmgibbs.posterior.moments import LONG_ENOUGH, PooledMoments, pool
from mmgibbs.posterior.parameters import NamedParameters, named_parameters
from mmgibbs.posterior.result import (
    ChainResult,
    pooled,
    pooled_under,
    posterior_mean,
    sample_stats,
    stacked_draws,
)
from mmgibbs.posterior.stopping import pauses
from mmgibbs.posterior.summary import LevelDraws, summary_table
from mmgibbs.results.animals import animals_file
from mmgibbs.results.decisions import candidates_frame, decision_files, response_frame
from mmgibbs.results.folder import write_run_folder
from mmgibbs.results.tables import solutions_frame, summary_frame
from mmgibbs.runs.assemble import Assembled, assemble, choose_engine
from mmgibbs.runs.chains import REPORT, Executor, LocalExecutor, run_chains, sampling_bytes
from mmgibbs.runs.decisions import candidate_ids, decision_facts, decision_notes, decisions_asked_for, short_batches
from mmgibbs.runs.place import FINISHED, RunFolder
from mmgibbs.runs.progress import Console
from mmgibbs.runs.record import run_record
from mmgibbs.runs.targets import StoppingRule, check_targets
from mmgibbs.runs.trends import birth_year_averages
from mmgibbs.sampler.covariances import START_SCALES, starting_matrices
from mmgibbs.sampler.interweave import reason_not_interweaved, terms_to_interweave
from mmgibbs.sampler.schedule import Schedule


@dataclass(frozen=True)
class Result:
    """What a run found: Polars frames, the folder they were written to, and what run.json holds."""

    summary: pl.DataFrame
    solutions: pl.DataFrame | None  # None for a regression
    info: dict
    directory: Path
    decisions: pl.DataFrame | None = None  # the candidates for selection, where the analysis asks for them
    response: pl.DataFrame | None = None

    @property
    def draws(self):
        """Draws of the variance components, derived parameters and chosen levels:
        an xarray DataTree with /posterior and /sample_stats.
        """
        import xarray

        return xarray.open_datatree(self.directory / "draws.nc", engine="h5netcdf")


@dataclass(frozen=True)
class Solved:
    """Posterior moments of every level, and the draws of the covariance matrices."""

    moments: PooledMoments
    draws: dict[str, np.ndarray]  # covariance matrices by name, (chains, draws, ...)
    levels: dict[str, np.ndarray]  # (chains, draws, levels, k) of chosen levels
    facts: dict  # for run.json
    averages: dict[str, np.ndarray] = field(default_factory=dict)  # (chains, draws, birth years, k)
    statistics: dict[str, np.ndarray] = field(default_factory=dict)  # name -> (chains, draws), for /sample_stats
    warnings: list[str] = field(default_factory=list)
    decided: Decided | None = None


def run(
    config,
    overrides=(),
    *,
    overwrite: bool = False,
    resume: bool = False,
    extend: int = 0,
    progress: bool = True,
    directory=None,
    cluster: str | None = None,
) -> Result:
    """Run an analysis and write its run folder.

    config: path of a YAML file, or a dict of the same keys (where `data.phenotypes` and `data.pedigree` may be Polars
    frames). overrides: 'key.path=value' strings. overwrite: replace the run that is there. resume: go on from the
    checkpoints of a run that ended early, to the draws of a run in one go. extend: sweeps to add to a finished run.
    cluster: 'tcp://host:port' of a Dask scheduler, whose workers then run the chains, to the same draws, or 'local:N'
    for N workers on this machine (a script then needs the usual `if __name__ == "__main__":`).
    Raises MmgibbsError or pedigree.errors.PedigreeError with one readable message; Stopped (a KeyboardInterrupt) where
    SIGINT or SIGTERM ends the sampling, its state kept.
    """
    console = Console(progress)
    analysis = load_config(
        config,
        [*overrides, *([f"output.directory={json.dumps(str(directory), ensure_ascii=False)}"] if directory else [])],
    )
    with RunFolder(analysis, console, overwrite=overwrite, resume=resume, extend=extend) as place:
        if cluster is None or place.kind == FINISHED:
            return run_at(place, console, LocalExecutor())
        from mmgibbs.runs.cluster import connect  # and Dask with it

        with connect(cluster, console.say) as workers:
            return run_at(place, console, workers.executor(console.say))


def run_at(place: RunFolder, console: Console, executor: Executor) -> Result:
    """The run of a place, on this machine or elsewhere."""
    if place.kind == FINISHED:
        return finished_result(place.path)
    if place.analysis.model.plugin is not None:
        from mmgibbs.runs.regression import run_regression  # a mixed model does not wait for the plugins

        summary, record = run_regression(place.analysis, place, console, executor)
        return Result(summary, None, record, place.path)
    return run_mixed_model(place.analysis, place, console, executor)


def run_mixed_model(analysis, place: RunFolder, console: Console, executor: Executor) -> Result:
    """Tables -> design -> equations -> chains -> summary -> run folder."""
    clock = _Clock()
    prepared = prepare(analysis, lambda stage: console.say(f"reading: {stage}"))
    assembled = with_decisions(with_trends(assemble(analysis, prepared), prepared), analysis, prepared)
    clock.lap("data")
    for note in (*prepared.design.notes, *assembled.notes):
        console.say(note)
    choice, kind, why = choose_engine(analysis.sampler, assembled.model)
    check_targets({} if analysis.sampler.stop is None else analysis.sampler.stop.targets, assembled.model)
    refuse_beyond_memory(analysis, assembled, place.samples)
    equations = structured_equations(prepared.design, partition(prepared.design, kind), analysis.sampler.precision)
    clock.lap("equations")
    console.say(
        f"{equations.n_equations:,} equations, {prepared.design.n_records:,} records, {equations.bytes / 1e6:,.1f} MB"
    )
    place.start()
    try:
        if analysis.sampler.method == "blup":
            solved = solve(analysis, assembled, equations, console, executor)
        else:
            solved = sample(analysis, prepared, assembled, equations, choice, place, console, executor)
            solved.facts["engine_chosen_because"] = why
    except ModelError as error:
        warned = (f"warning: {note}" for note in assembled.notes)  # most likely why
        raise ModelError("\n".join([str(error), *warned])) from error
    clock.lap("solving" if analysis.sampler.method == "blup" else "sampling")
    parameters = _parameters(analysis, assembled, solved)
    summary = summary_frame(summary_table(parameters.draws, parameters.fixed))
    means = {t.name: posterior_mean(solved.draws[t.matrix]) for t in assembled.terms}
    solutions = solutions_frame(prepared, solved.moments, means)
    clock.lap("summary")
    record = run_record(
        analysis, prepared, equations, [*assembled.notes, *solved.warnings], parameters, solved.facts, clock.seconds
    )
    candidates, response = _decision_tables(analysis, prepared, assembled, solved)
    path = write_run_folder(
        place.path,
        summary=summary,
        solutions=solutions,
        run=record | {"run_id": place.run_id},
        draws={
            "parameters": parameters.draws,
            "levels": _level_draws(assembled, prepared, solved),
            "sample_stats": solved.statistics,
            "attributes": {"analysis": analysis.name},
        },
        extra=animals_file(prepared.pedigree) | decision_files(candidates, response, analysis.output.csv),
        csv=analysis.output.csv,
        overwrite=True,  # whether it may be is settled, and the folder is locked
    )
    record = json.loads(
        (path / "run.json").read_text(encoding="utf-8")
    )  # with the files written and what the folder adds
    console.finish(summary, path, record)
    return Result(summary, solutions, record, path, candidates, response)


def finished_result(path: Path) -> Result:
    """The result of a finished run, from its folder."""
    record = json.loads((path / "run.json").read_text(encoding="utf-8"))
    files = (path / f"{name}.parquet" for name in ("summary", "solutions", "decisions", "response"))
    summary, solutions, *decisions = (pl.read_parquet(file) if file.exists() else None for file in files)
    return Result(summary, solutions, record, path, *decisions)


def refuse_beyond_memory(analysis, assembled: Assembled, samples: int | None = None) -> None:
    """A DeviceError with the numbers where the equations, and what is computed from them, would not fit into memory."""
    s, model = analysis.sampler, assembled.model
    n, design = model.design.n_equations, model.design
    equations = estimated_bytes(design, s.precision)
    if s.method == "gibbs":
        needed = sampling_bytes(
            model, _schedule(s, (), samples), equations, np.dtype(np.float32 if s.precision == "single" else np.float64)
        )
        what = (
            f"sampling {n:,} equations in {s.chains} chains, {_schedule(s, (), samples).n_kept:,} draws kept in each,"
        )
        refuse_beyond_free(
            needed,
            what,
            "fewer sampler.chains or output.save_levels, a larger sampler.thin, or a machine with more memory",
        )
        return
    vectors = sum(t.n_levels * t.n_components for t in design.terms) * (8 * 8 + REPORT)
    refuse_beyond_free(equations + vectors, f"solving {n:,} equations", "a machine with more memory")
    if n <= s.pev_limit:
        advice = f"a machine with more memory, or sampler.pev_limit below {n} (PEV and reliability are then blank)"
        refuse_beyond_free(equations + vectors + 2 * 8 * n * n, f"inverting {n:,} equations for PEV", advice)


def _schedule(s, interweave: tuple[int, ...], samples: int | None = None) -> Schedule:
    """samples: sweeps after burn-in to go to, where that is not for the analysis to say."""
    return Schedule(s.burn_in, s.samples, s.thin, s.refresh_every, s.chains, interweave, samples or s.most_samples)


def sample(
    analysis,
    prepared,
    assembled: Assembled,
    equations: StructuredEquations,
    choice,
    place: RunFolder,
    console: Console,
    executor: Executor,
) -> Solved:
    """Gibbs: all chains, pooled."""
    s = analysis.sampler
    model, names = assembled.model, [t.name for t in assembled.model.design.terms]
    interweave = terms_to_interweave(model, s.interweave)
    left_out = {
        names[i]: reason_not_interweaved(model, i) for i in model.random_terms if s.interweave and i not in interweave
    }
    notes = [
        f"sampler.interweave: term '{name}' is left out: {why}"
        for name, why in left_out.items()
        if s.interweave is True
    ]
    notes += decision_notes(analysis, prepared, model.decisions)
    for note in notes:
        console.say(note)
    schedule = _schedule(s, interweave, place.samples)
    judge = None
    if s.stop is not None and place.samples is None:
        judge = StoppingRule(
            s.stop.targets, assembled, lambda term, level: prepared.levels[term].ids[level], s.burn_in, console.say
        )
    with console.chains(schedule, assembled) as show:
        chains: list[ChainResult] = run_chains(
            model, equations, choice, schedule, s.seed, show, checkpoints=place.checkpoints, reached=place.reached,
            enough=judge, warn=console.say,
            pauses=(schedule.most,) if judge is None else pauses(s.samples, schedule.most, s.thin), executor=executor,
        )  # fmt: skip
    place.end(chains[0].sweeps - s.burn_in)
    said = list(dict.fromkeys(note for c in chains for note in c.notes))
    for note in said:
        console.say(note)
    facts = {
        "method": "gibbs",
        "engine": choice.name,
        "update": choice.update,
        "threads": choice.threads,
        "device": choice.device,
        "interweaved_terms": [names[i] for i in interweave],
        "not_interweaved": left_out,
        **executor.facts,
        "start_scales": [START_SCALES[c % len(START_SCALES)] for c in range(s.chains)],
        "seconds_per_chain": [c.seconds for c in chains],
        "sweeps_per_chain": chains[0].sweeps,
        "kept_draws_per_chain": chains[0].moments.n_draws,
        "begun": place.kind,
        "notes": [*notes, *said],
    }
    missed, decided = [], None
    if model.decisions is not None:
        decided = pooled(chains, "decisions")
        facts["decisions"] = decision_facts(analysis, model.decisions)
        for note in short_batches(decided):
            console.say(note)
            facts["notes"].append(note)
    if chains[0].moments.batch_length < LONG_ENOUGH:
        note = (
            f"MCSE and ESS of breeding values: {sum(c.moments.n_draws for c in chains):,} kept draws are too few "
            "to see how draws "
            "follow each other, so that errors are larger than they say; needed about 400 (sampler.samples, "
            "sampler.thin)"
        )
        console.say(note)
        facts["notes"].append(note)
    if judge is not None:
        facts["stop"], missed = judge.facts, judge.missed
    return Solved(
        pool([c.moments for c in chains]),
        stacked_draws(chains),
        pooled_under(chains, "levels."),
        facts,
        pooled_under(chains, "averages."),
        sample_stats(chains),
        missed,
        decided,
    )


def solve(
    analysis, assembled: Assembled, equations: StructuredEquations, console: Console, executor: Executor
) -> Solved:
    """BLUP by PCG at the given variances; PEV by a direct inverse where the equations are few enough."""
    model, s = assembled.model, analysis.sampler
    G, R = [None if c is None else c.start for c in model.covariances], model.residual.start
    if equations.real != np.float64:
        equations = structured_equations(model.design, equations.partition)
    ((solution, sd),) = executor.each(blup, (equations, G, R), [(s.tolerance, s.pev_limit)], ["solving"])
    console.say(f"PCG: {solution.iterations} iterations, relative residual {solution.relative_residual:.1e}")
    facts = {
        "method": "blup",
        "engine": "pcg",
        "iterations": solution.iterations,
        "relative_residual": solution.relative_residual,
        **executor.facts,
        "notes": [],
    }
    if sd is None:
        facts["notes"] = [
            f"PEV and reliability are blank: {equations.n_equations:,} equations are above sampler.pev_limit "
            f"{s.pev_limit:,}"
        ]
    moments = PooledMoments.exact(model.design.to_original_scale(solution.theta), sd)
    held = {name: matrix[None, None] for name, matrix in starting_matrices(model, 0).items()}
    return Solved(moments, held, {}, facts)


def blup(equations: StructuredEquations, G: list[np.ndarray | None], R: np.ndarray, tolerance: float, pev_limit: int):
    """(solution, posterior SD of every level, on the original scale): the latter None above `pev_limit` equations."""
    engine = PcgSolver(equations)
    engine.set_variances(G, R)
    solution = engine.solve(tolerance)
    return solution, posterior_sd(equations.design, G, R) if equations.n_equations <= pev_limit else None


def check(config, overrides=()) -> dict:
    """Read and check everything, count what a run would hold, then stop; nothing is written."""
    from mmgibbs.runs.record import model_counts

    analysis = load_config(config, overrides)
    if analysis.model.plugin is not None:
        from mmgibbs.runs.regression import regression_counts

        return regression_counts(analysis)
    prepared = prepare(analysis)
    assembled = with_decisions(assemble(analysis, prepared), analysis, prepared)
    choose_engine(analysis.sampler, assembled.model)
    check_targets({} if analysis.sampler.stop is None else analysis.sampler.stop.targets, assembled.model)
    refuse_beyond_memory(analysis, assembled)
    counts = model_counts(analysis, prepared, assembled)
    return counts | {"notes": [*counts["notes"], *decision_notes(analysis, prepared, assembled.model.decisions)]}


def _parameters(analysis, assembled: Assembled, solved: Solved) -> NamedParameters:
    return named_parameters(assembled.terms, solved.draws, assembled.residual)


def with_trends(assembled: Assembled, prepared) -> Assembled:
    """The mean of each birth year is kept in every draw of the terms whose levels are the animals of the pedigree."""
    years = birth_year_averages(prepared.pedigree)
    averaged = {} if years is None else {info.name: years for info in assembled.terms if info.of_pedigree}
    return replace(assembled, model=replace(assembled.model, averaged=averaged))


def with_decisions(assembled: Assembled, analysis, prepared) -> Assembled:
    """The ranks of the candidates are counted in every draw."""
    return replace(assembled, model=replace(assembled.model, decisions=decisions_asked_for(analysis, prepared)))


def _decision_tables(
    analysis, prepared, assembled: Assembled, solved: Solved
) -> tuple[pl.DataFrame, pl.DataFrame] | tuple[None, None]:
    if solved.decided is None:
        return None, None
    asked, top, names = assembled.model.decisions, analysis.decisions.top, list(solved.facts["decisions"]["criteria"])
    candidates = candidates_frame(solved.decided, names, candidate_ids(asked, prepared), top)
    return candidates, response_frame(solved.decided, names, top, asked.selected, asked.codes.size)


def _level_draws(assembled: Assembled, prepared, solved: Solved) -> dict[str, LevelDraws]:
    out = {}
    for name, draws in solved.levels.items():
        index = next(i for i, t in enumerate(prepared.design.terms) if t.name == name)
        codes = assembled.model.saved[name]
        term, labels = prepared.design.terms[index], prepared.levels[index]
        out[name] = LevelDraws(
            draws, labels.ids.gather(codes).to_list(), component_labels(term, prepared.design.traits)
        )
    components = {info.name: info.components for info in assembled.terms}
    for name, draws in solved.averages.items():
        out[f"trend[{name}]"] = LevelDraws(draws, assembled.model.averaged[name].labels, components[name])
    return out


class _Clock:
    """Wall seconds per stage."""

    def __init__(self):
        self.seconds, self._last = {}, time.perf_counter()

    def lap(self, stage: str) -> None:
        now = time.perf_counter()
        self.seconds[stage], self._last = now - self._last, now
