"""What `engine: auto` goes by, beside what it is on this machine: milliseconds of sweeps and of a factorisation."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from mmgibbs.config import Sampler
    from mmgibbs.sampler.chain import Chain
    from mmgibbs.sampler.mixed_model import MixedModel

WARM, TOGETHER = 8, 4  # sweeps before the clock runs, and sweeps that are timed together
SECONDS = 1.0  # for each figure


def bench_choice(args: argparse.Namespace) -> dict:
    from mmgibbs.build.assemble import assemble
    from mmgibbs.config import load_config
    from mmgibbs.data.prepare import prepare

    rows = []
    for config in args.config:
        analysis = load_config(config, [*args.set])
        model = assemble(analysis, prepare(analysis)).model
        rows.append({"analysis": analysis.name} | measured(analysis.sampler, model))
    return {"milliseconds, estimated and least measured": rows}


def measured(sampler: Sampler, model: MixedModel) -> dict[str, object]:
    """A row for one analysis."""
    from mmgibbs.build.engine import choose_engine, estimated_sweeps, find_obstacle, joined_components
    from mmgibbs.engines.choice import EngineChoice
    from mmgibbs.engines.direct.costs import factor_cost
    from mmgibbs.equations.partition import partition
    from mmgibbs.equations.structured import structured_equations
    from mmgibbs.likelihood.coefficients import coefficients
    from mmgibbs.likelihood.integrated import IntegratedLikelihood
    from mmgibbs.sampler.chain import Chain
    from mmgibbs.sampler.interweave import terms_to_interweave
    from mmgibbs.sampler.marginal.log_cholesky import log_cholesky
    from mmgibbs.sampler.schedule import Schedule

    row: dict[str, object] = {"equations": model.design.n_equations, "auto": choose_engine(sampler, model).engine.name}
    for name, estimate in estimated_sweeps(model).items():
        choice = EngineChoice(name)
        engine = choice.build(structured_equations(model.design, partition(model.design, choice.kind.partitions[0])))
        chain = Chain(model, engine, Schedule(0, 2**31, 2**31, interweave=terms_to_interweave(model)), (1, 0))
        chain.advance(WARM)
        found = least(partial(_sweeps, chain)) / TOGETHER
        row |= {f"{name}, estimated": estimate, f"{name}, measured": found}
    if find_obstacle("marginal", sampler.model_copy(update={"burn_in": 1000}), model) is None:
        joined = joined_components(model)
        cost = factor_cost(model.design, *joined)
        likelihood = IntegratedLikelihood(coefficients(model.design, *joined, columns_alone=True))
        start = log_cholesky(model).start
        row |= {
            "elements of L": cost.elements,
            "million operations": cost.operations / 1e6,
            "factor, estimated": cost.milliseconds,
            "factor, measured": least(lambda: likelihood.evaluate(start)),
        }
    return row


def _sweeps(chain: Chain) -> None:
    chain.advance(chain.number + TOGETHER)


def least(work: Callable[[], object]) -> float:
    """Milliseconds of the quickest of as many as fit into SECONDS."""
    best, started = np.inf, time.perf_counter()
    while time.perf_counter() - started < SECONDS or best == np.inf:
        before = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - before)
    return 1000 * float(best)
