"""Milliseconds per sweep of an analysis file: one chain, everything included; and where they go, step by step."""

from __future__ import annotations

import argparse

STEPPED = 200  # sweeps whose steps are timed one by one


def bench_evaluation(args: argparse.Namespace) -> dict:
    from mmgibbs.bench.steps import timed_steps
    from mmgibbs.build.assemble import assemble
    from mmgibbs.build.engine import choose_engine
    from mmgibbs.data.environments import load_analysis
    from mmgibbs.data.prepare import prepare
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
