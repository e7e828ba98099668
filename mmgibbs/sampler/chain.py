"""One chain: the steps of every sweep (loop.py), then the recorder. It names no model and knows no engine by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from mmgibbs.engines.base import Engine, HostState
from mmgibbs.errors import ModelError, VersionError
from mmgibbs.posterior.moments import Moments
from mmgibbs.posterior.result import ChainResult
from mmgibbs.sampler.loop import ResumableChain
from mmgibbs.sampler.mixed_model import MixedModel
from mmgibbs.sampler.recorder import IMPROPER, MOMENTS, Recorder
from mmgibbs.sampler.resident import ResidentSweep
from mmgibbs.sampler.schedule import Schedule
from mmgibbs.sampler.steps import OfKeptSweeps, gibbs_steps

RECORD = "record."  # of the recorder's names in a checkpoint
DRAWS = f"{RECORD}draws."  # of those that are kept draws


class Chain(ResumableChain):
    """A chain of a mixed model; key = (seed, chain).

    It continues from its state in a new Chain of the same model, engine, schedule and key.

    Raises OtherVersion for a state that lacks something.
    """

    def __init__(
        self,
        model: MixedModel,
        engine: Engine,
        schedule: Schedule,
        key: tuple[int, int],
        state: dict[str, np.ndarray] | None = None,
    ):
        super().__init__(schedule)
        self.engine, self.key = engine, key
        self.steps = gibbs_steps(model, engine, schedule, key)  # of a sweep, in their order
        self._of_every_sweep = [step for step in self.steps if not isinstance(step, OfKeptSweeps)]
        self._of_kept_sweeps = [step for step in self.steps if isinstance(step, OfKeptSweeps)]
        self._resident_sweeps = [
            step for step in self.steps if isinstance(step, ResidentSweep) and self._of_kept_sweeps
        ]
        self._record = Recorder(model, schedule, engine, self.steps, key[1])
        if state is not None:
            self._restore(state)

    def _sweep(self, number: int) -> dict[str, float]:
        facts: dict[str, float] = {"sweep": number}
        for step in self._of_every_sweep:
            facts |= step(number) or {}
        return facts

    def _keep(self, facts: Mapping[str, float]) -> None:
        for resident in self._resident_sweeps:  # the steps of kept sweeps read the matrices and thresholds
            resident.bring_over()
        for step in self._of_kept_sweeps:
            step(self.number)
        self._record(facts)

    def _refuse_lost_values(self) -> None:
        """ModelError where a location effect is no longer finite: what draws of the parameters need not show."""
        if not isinstance(self.engine, HostState):
            return  # a device says so itself
        for term, theta in zip(self.engine.equations.design.terms, self.engine.theta, strict=True):
            if not np.isfinite(theta).all():
                raise ModelError(
                    f"chain {self.key[1] + 1} cannot continue after sweep {self.number}: expected finite effects, got "
                    f"infinite or undefined ones of '{term.name}'; {IMPROPER}"
                )

    def draws(self) -> dict[str, np.ndarray]:
        """Return the current parameters, not copied: 'R', and 'G.i' for random term i."""
        return {name: values for step in self.steps for name, values in step.draws().items()}

    def state(self) -> dict[str, np.ndarray]:
        """Named arrays, not copied: number of sweeps, seconds, what the steps hold, and what was recorded."""
        own = {"number": np.array(self.number), "seconds": np.array(self.seconds)}
        for step in self.steps:
            own |= step.state()
        return own | {RECORD + name: array for name, array in self._record.state().items()}

    def _restore(self, state: dict[str, np.ndarray]) -> None:
        """Continue from the arrays of a checkpoint; OtherVersion where they lack something."""
        try:
            self.number, self._seconds = int(state["number"]), float(state["seconds"])
            for step in self.steps:
                step.restore(state)
            self._record.restore({n.removeprefix(RECORD): array for n, array in state.items() if n.startswith(RECORD)})
        except KeyError as lacking:
            raise VersionError(
                f"chain {self.key[1] + 1}: its checkpoint lacks {lacking}, without which this version cannot continue: "
                "another version of mmgibbs wrote it; needed that version, or a new run"
            ) from None

    def result(self) -> ChainResult:
        """Return the results of the sweeps so far."""
        tracked = dict(self._record.tracked)
        moments = Moments.from_state(tracked.pop(MOMENTS).state())  # waits for a device: before the clock is read
        draws, facts = self._record.arrays()
        return ChainResult(
            draws=draws,
            moments=moments,
            tracked=tracked,
            sample_stats=facts,
            chain=self.key[1],
            seconds=self.seconds,
            sweeps=self.number,
            notes=tuple(getattr(self.engine, "notes", ())),
        )


def sample_chain(
    model: MixedModel,
    engine: Engine,
    schedule: Schedule,
    key: tuple[int, int],
    progress: Callable[[Chain], None] | None = None,
) -> ChainResult:
    """Run one chain; key = (seed, chain). `progress(chain)` is called after every sweep.

    Draws are keyed by (seed, chain; sweep, level, draw), so the chain does not depend on who runs it, or when.
    """
    chain = Chain(model, engine, schedule, key)

    def show(chain: Chain) -> bool:
        """Tell of the progress; it never stops the chain."""
        if progress is not None:
            progress(chain)
        return False

    chain.advance(schedule.n_sweeps, show)
    return chain.result()
