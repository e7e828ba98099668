"""What a run does for every kind of analysis: a protocol for mixed models (mixed_model.py) and regressions
(regression.py), and the sampling that they share.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import polars as pl

from mmgibbs.build.targets import StoppingRule
from mmgibbs.posterior.stopping import pauses
from mmgibbs.results.output_folder import Content
from mmgibbs.runs.chains import ChainFactory, Executor, run_chains
from mmgibbs.runs.live import LivePage, Named
from mmgibbs.runs.place import RunFolder
from mmgibbs.runs.progress import Console


class Problem(Protocol):
    """An analysis with its data read, ready to be solved."""

    @property
    def stage(self) -> str:
        """The stage that takes the time: 'sampling' or 'solving'."""

    def solve(self, folder: RunFolder, console: Console, executor: Executor) -> Any:
        """Return the posterior, or an estimate of it."""

    def tables(self, estimates: Any) -> Tables:
        """Make the tables of the results."""

    def record(self, estimates: Any, seconds: dict[str, float]) -> dict:
        """Return what run.json holds beside the record that all runs have; seconds: of each stage."""


@dataclass(frozen=True)
class Tables:
    """Tables of the run folder beside run.json."""

    summary: pl.DataFrame
    solutions: pl.DataFrame | None = None  # of a mixed model
    decisions: pl.DataFrame | None = None  # the candidates for selection, where the analysis asks for them
    response: pl.DataFrame | None = None
    draws: Mapping[str, object] | None = None  # arguments of posterior.summary.write_draws
    files: Mapping[str, Content] = field(default_factory=dict)


@dataclass(frozen=True)
class Sampled:
    """Results of all chains."""

    results: list
    facts: dict  # for run.json
    missed: list[str] = field(default_factory=list)  # targets


def sample(
    factory: ChainFactory,
    folder: RunFolder,
    console: Console,
    executor: Executor,
    rule: StoppingRule | None,
    describe: Callable[[Mapping[str, np.ndarray]], str],
    named: Named,
) -> Sampled:
    """Run the chains to their end, or until the rule says that they are good enough.

    describe: what there is to say of the draws that are shown. named: the parameters of the draws so far, for the page.
    """
    schedule = factory.schedule
    page: AbstractContextManager[LivePage | None] = nullcontext()
    if folder.page and folder.checkpoints is not None:
        page = folder.live = LivePage(
            folder.path, folder.analysis.name, factory, folder.checkpoints, named, console.say
        )
    rounds = (schedule.most,) if rule is None else pauses(schedule.samples, schedule.most, schedule.thin)
    with console.chains(schedule, factory.labels, describe) as show, page as live:
        results = run_chains(
            factory,
            executor,
            [schedule.burn_in + samples for samples in rounds],
            checkpoints=folder.checkpoints,
            reached=folder.reached,
            enough=rule,
            show=show if live is None else live.forward_to(show),
            warn=console.say,
        )
    samples = results[0].sweeps - schedule.burn_in
    folder.end(samples)
    facts = {
        **executor.facts,
        "sweeps_per_chain": results[0].sweeps,
        "kept_draws_per_chain": samples // schedule.thin,
        "begun": folder.kind,
    }
    return Sampled(
        results, facts if rule is None else facts | {"stop": rule.facts}, [] if rule is None else rule.missed
    )


class Clock:
    """Wall seconds per stage."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, stage: str) -> None:
        now = time.perf_counter()
        self.seconds[stage], self._last = now - self._last, now
