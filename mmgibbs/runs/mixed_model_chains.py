"""The chains of a mixed model: all there is to start one, on whatever machine."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from mmgibbs.build.device_memory import count_chains_at_once
from mmgibbs.engines.choice import EngineChoice
from mmgibbs.equations.structured import StructuredEquations
from mmgibbs.errors import MmgibbsError
from mmgibbs.runs.chains import ChainFactory
from mmgibbs.sampler.chain import DRAWS, Chain, sample_chain
from mmgibbs.sampler.covariances import starting_matrices
from mmgibbs.sampler.loop import ResumableChain
from mmgibbs.sampler.memory import bytes_of_results, bytes_per_chain
from mmgibbs.sampler.mixed_model import MixedModel
from mmgibbs.sampler.schedule import Schedule


@dataclass(frozen=True)
class MixedModelFactory(ChainFactory):
    """Chains of a mixed model, each of its own."""

    prefix_of_draws = DRAWS

    model: MixedModel
    equations: StructuredEquations
    choice: EngineChoice
    schedule: Schedule
    seed: int

    @property
    def device(self) -> str:  # type: ignore[override]  # frozen: nobody writes it
        return self.choice.device

    @property
    def engine(self) -> str:
        return self.choice.name

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"chain-{c + 1}" for c in range(self.schedule.chains))

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(f"chain {c + 1}" for c in range(self.schedule.chains))

    @property
    def shown(self) -> dict[str, tuple[int, ...]]:
        """Covariance matrices."""
        return {name: matrix.shape for name, matrix in starting_matrices(self.model, 0).items()}

    @property
    def shared_bytes(self) -> int:
        return self.equations.bytes

    @property
    def bytes_per_chain(self) -> int:
        """Bytes of a chain at work, and of its results in the process that began it."""
        kept = self.model.bytes_of_marker_draws // self.schedule.chains
        chain_bytes = bytes_per_chain(self.model.design, self.equations.real) + self.choice.bytes
        return chain_bytes + self.model.followed_bytes + kept + bytes_of_results(self.model, self.schedule)

    @property
    def chains_at_once(self) -> int:
        if self.device == "cpu":
            return 1
        return count_chains_at_once(self.choice, self.equations, self.schedule)

    def start(self, chain: int, state: dict[str, np.ndarray] | None, beside: ResumableChain | None = None) -> Chain:
        engine = self.choice.build(self.equations, beside.engine if isinstance(beside, Chain) else None)
        return Chain(self.model, engine, self.schedule, (self.seed, chain), state)

    def compile_kernels(self) -> None:
        """Sweep once and record the draw, in a chain that is thrown away. What is wrong with the model, the chains
        say."""
        short = replace(self.schedule, burn_in=0, samples=1, thin=1, refresh_every=1, most=0)
        with suppress(MmgibbsError):
            sample_chain(self.model, self.choice.build(self.equations), short, (self.seed, 0))
