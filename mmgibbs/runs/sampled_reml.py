"""REML by Monte Carlo: the iteration watched, kept after each iteration, and continued to the same bits."""

from __future__ import annotations

import signal
import time
from contextlib import suppress

import numpy as np

from mmgibbs.machine.speed import Tell
from mmgibbs.reml.estimate import Estimates
from mmgibbs.reml.monte_carlo.estimate import SampledState
from mmgibbs.reml.monte_carlo.maximise import IterationState
from mmgibbs.reml.monte_carlo.score import SampledLikelihood, SampledPoint
from mmgibbs.runs.place import RESUMED, RunFolder
from mmgibbs.runs.reml import STATE

NO_LIKELIHOOD = "the likelihood itself, AIC and BIC are not computed by Monte Carlo"


class SampledRemlWatch:
    """Says each iteration, keeps where it is for a run that is continued, and ends the iteration at a signal."""

    def __init__(self, folder: RunFolder, tell: Tell | None):
        self._folder, self._tell, self._is_asked_to_stop = folder, tell, False
        self.state: SampledState | None = None
        self._since = time.monotonic()
        if folder.kind == RESUMED and folder.checkpoints is not None:
            kept, _ = folder.checkpoints.read(STATE)
            if kept is not None:
                at = kept.arrays
                iteration = IterationState(
                    int(at["iteration"]), int(at["n_samples"]), at["vector"], at["base"], float(at["slope"])
                )
                self.state = SampledState(iteration, (at["starts"], at["starts_of_elements"]))

    def ask_to_stop(self) -> None:
        self._is_asked_to_stop = True

    def begin(self, likelihood: SampledLikelihood) -> None:
        """Begin the watch before the first iteration."""
        self._since = time.monotonic()
        if self._tell is not None:
            self._tell(f"REML: {likelihood.description}, {likelihood.bytes / 1e9:.2g} GB beside the equations")

    def __call__(self, iteration: int, point: SampledPoint, distance: float, following: IterationState) -> bool:
        """Return True to stop, after each iteration."""
        now = time.monotonic()
        if self._tell is not None:
            self._tell(
                f"REML: iteration {iteration}, {point.n_samples} samples, about {distance:.1e} standard errors from "
                f"the maximum, up to {point.likelihood.iterations} iterations of PCG, {now - self._since:.1f} s"
            )
        self._since = now
        if self._folder.checkpoints is not None:
            arrays = {name: np.asarray(value) for name, value in vars(following).items()}
            arrays["starts"], arrays["starts_of_elements"] = point.likelihood.known_starts()
            with suppress(OSError):  # a full disk does not end the iteration
                self._folder.checkpoints.write(STATE, arrays, {"sweep": following.iteration, "engine": None})
        return self._is_asked_to_stop


def stopped_sampled_words(number: int, estimates: Estimates) -> str:
    """Describe a sampled estimate whose iteration a signal ended."""
    distance, samples = estimates.facts["distance_to_maximum"], estimates.facts["samples"]
    return (
        f"REML was stopped by {signal.Signals(number).name}: estimates and solutions are those of the last iteration, "
        f"about {distance:.1e} standard errors from the maximum of {samples} samples"
    )


def describe_sampled(estimates: Estimates) -> str:
    """The last line of the iteration."""
    facts = estimates.facts
    return (
        f"REML: {facts['iterations']} iterations, {facts['samples']} samples, about "
        f"{facts['distance_to_maximum']:.1e} standard errors from their maximum; {NO_LIKELIHOOD}"
    )
