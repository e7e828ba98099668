"""A mixed model from its analysis: tables -> design -> model -> equations, and what `mmgibbs check` counts."""

from __future__ import annotations

from dataclasses import replace

from mmgibbs.build.assemble import Assembled, assemble
from mmgibbs.build.decisions import decision_notes, read_decisions
from mmgibbs.build.device_memory import count_device, count_memory_of_device
from mmgibbs.build.engine import choose_engine
from mmgibbs.build.memory_estimate import (
    count_factor,
    count_sampling,
    count_solving,
    refuse_sampling_beyond_memory,
    refuse_solving_beyond_memory,
)
from mmgibbs.build.observed_scale import read_probabilities
from mmgibbs.build.saved_draws import saved_draws_notes
from mmgibbs.build.targets import check_functions, check_targets
from mmgibbs.build.totals import with_totals
from mmgibbs.build.trends import birth_year_averages
from mmgibbs.config import Analysis
from mmgibbs.data.prepare import prepare
from mmgibbs.data.prepared import Prepared
from mmgibbs.engines.choice import EngineChoice
from mmgibbs.equations.partition import partition
from mmgibbs.equations.structured import structured_equations
from mmgibbs.machine.speed import describe_duration, estimate_seconds
from mmgibbs.pedigree.messages import split_messages
from mmgibbs.runs.check_text import data_as_text
from mmgibbs.runs.mixed_model import MixedModelProblem
from mmgibbs.runs.problem import Clock
from mmgibbs.runs.progress import Console
from mmgibbs.runs.record import model_counts
from mmgibbs.sampler.schedule import Schedule


def read_mixed_model(
    analysis: Analysis, samples: int | None, console: Console, clock: Clock, begun_with: str | None = None
) -> MixedModelProblem:
    """Tables -> design -> equations.

    samples: sweeps after burn-in to go to, where that is not for the analysis to say. begun_with: see choose_engine.
    """
    prepared = prepare(
        analysis,
        lambda stage, operations=0.0: console.tell(
            f"reading: {stage}{describe_duration(estimate_seconds(operations))}"
        ),
    )
    assembled = with_totals(with_trends(_assemble(analysis, prepared), prepared), prepared)
    clock.lap("data")
    console.note((*prepared.design.notes, *assembled.notes))
    chosen = choose_engine(analysis.sampler, assembled.model, begun_with)
    schedule = _checked_schedule(analysis, assembled, chosen.engine, samples)
    order = partition(prepared.design, chosen.partition)
    equations = structured_equations(prepared.design, order, analysis.sampler.precision)
    if chosen.engine.device == "gpu":
        count_memory_of_device(chosen.engine, equations, schedule)  # refuses what does not fit
    clock.lap("equations")
    console.say(f"{analysis.name}: {data_as_text(prepared.counts)}")
    engine = f"; engine {chosen.engine.name}" if analysis.sampler.method == "gibbs" else ""
    console.say(f"{equations.n_equations:,} equations, {equations.bytes / 1e6:,.1f} MB{engine}")
    if engine:
        console.note([f"engine {chosen.engine.name} ({chosen.why})"])
    return MixedModelProblem(analysis, prepared, assembled, equations, chosen, schedule)


def mixed_model_counts(analysis: Analysis) -> dict:
    """Count what `mmgibbs check` prints of a mixed model; nothing is sampled."""
    prepared = prepare(analysis)
    assembled = _assemble(analysis, prepared)
    chosen = choose_engine(analysis.sampler, assembled.model)
    schedule = _checked_schedule(analysis, assembled, chosen.engine, None)
    counts = model_counts(analysis, prepared, assembled)
    counts |= {"memory": count_memory(analysis, assembled, chosen.engine, schedule)}
    if chosen.engine.device == "gpu":
        order = partition(prepared.design, chosen.partition)
        equations = structured_equations(prepared.design, order, analysis.sampler.precision)
        counts |= {"device": count_device(chosen.engine, equations, schedule)}
    if analysis.sampler.method == "gibbs":
        counts |= {"engine": chosen.engine.name, "engine_chosen_because": chosen.why}
    warned, notes = split_messages(decision_notes(analysis, prepared, assembled.model.decisions))
    of_draws = saved_draws_notes(assembled.model, schedule, analysis.sampler.method)
    return counts | {"notes": [*counts["notes"], *notes, *of_draws], "warnings": [*counts["warnings"], *warned]}


def count_memory(analysis: Analysis, assembled: Assembled, choice: EngineChoice, schedule: Schedule) -> dict[str, int]:
    """Bytes of the main process at its peak, beside those of libraries; and of the processes of chains, all of them."""
    model = assembled.model
    if analysis.sampler.method != "gibbs":
        of_factor = 0 if analysis.sampler.is_sampled_reml else count_factor(analysis, assembled)
        return {"main": count_solving(analysis, model, of_factor).peak, "workers": 0}
    from mmgibbs.runs.local import bytes_of_processes  # late, as the two below: REML and BLUP make no chains
    from mmgibbs.runs.mixed_model_chains import MixedModelFactory

    equations = structured_equations(model.design, partition(model.design), analysis.sampler.precision)
    factory = MixedModelFactory(model, equations, choice, schedule, analysis.sampler.seed)
    workers = bytes_of_processes(factory)
    of_engine = 0 if workers else choice.bytes
    return {"main": count_sampling(analysis, model, schedule, of_engine).peak, "workers": workers}


def _assemble(analysis: Analysis, prepared: Prepared) -> Assembled:
    """Assemble the model: it counts ranks of candidates and averages probabilities of categories over the draws."""
    assembled = assemble(analysis, prepared)
    asked = analysis.output.probabilities
    probabilities = read_probabilities(asked, prepared, assembled.terms, assembled.model.observed)
    decisions = read_decisions(analysis, prepared, assembled)
    return replace(assembled, model=replace(assembled.model, decisions=decisions, probabilities=probabilities))


def with_trends(assembled: Assembled, prepared: Prepared) -> Assembled:
    """The mean of each birth year is kept in every draw of the terms whose levels are the animals of the pedigree."""
    years = birth_year_averages(prepared.birth_years)
    names = [t.name for t in prepared.design.terms]
    is_complete = lambda name: prepared.levels[names.index(name)].diagonal is None  # no animal is set to 0
    averaged = {
        info.name: years
        for info in assembled.terms
        if years is not None and info.of_pedigree and is_complete(info.name)
    }
    return replace(assembled, model=replace(assembled.model, averaged=averaged))


def _checked_schedule(analysis: Analysis, assembled: Assembled, choice: EngineChoice, samples: int | None) -> Schedule:
    """ConfigError for targets of what is not sampled, DeviceError where it would not fit into memory."""
    s, solves = analysis.sampler, analysis.sampler.method != "gibbs"
    interweave: tuple[int, ...] = ()
    if not solves and not choice.kind.integrates:
        from mmgibbs.sampler.interweave import terms_to_interweave

        interweave = terms_to_interweave(assembled.model, s.interweave)
    runs = s.burn_in, s.samples, s.thin, s.refresh_every, s.chains
    schedule = Schedule(*runs, interweave, samples or s.most_samples)
    check_functions(assembled, s.method)
    if solves:
        refuse_solving_beyond_memory(analysis, assembled)
    else:
        check_targets(s.stop, assembled)
        refuse_sampling_beyond_memory(analysis, assembled, schedule, choice.bytes)
    return schedule
