"""Milliseconds per sweep of an analysis file: one chain, everything included."""

from __future__ import annotations

import argparse


def bench_evaluation(args: argparse.Namespace) -> dict:
    from mmgibbs.config import load_config
    from mmgibbs.data.prepare import prepare
    from mmgibbs.equations.partition import partition
    from mmgibbs.equations.structured import structured_equations
    from mmgibbs.runs.assemble import assemble, choose_engine
    from mmgibbs.sampler.chain import sample_chain
    from mmgibbs.sampler.schedule import Schedule

    analysis = load_config(args.config, [*args.set])
    prepared = prepare(analysis)
    model = assemble(analysis, prepared).model
    choice, kind, _ = choose_engine(analysis.sampler, model)
    equations = structured_equations(prepared.design, partition(prepared.design, kind), analysis.sampler.precision)
    engine = choice.build(equations)
    thin, refresh = analysis.sampler.thin, analysis.sampler.refresh_every
    sample_chain(model, engine, Schedule(0, max(thin, 10), thin, 5), (1, 0))  # compiles every kernel
    engine.start()
    result = sample_chain(model, engine, Schedule(0, args.sweeps, thin, refresh), (2, 0))
    return {
        "equations": equations.n_equations,
        "records": prepared.design.n_records,
        "sweeps": args.sweeps,
        "milliseconds per sweep": 1000 * result.seconds / args.sweeps,
    }
