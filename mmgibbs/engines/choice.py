"""The engines that an analysis can ask for, and the choice of one in a form that another process can rebuild."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mmgibbs.engines.base import Engine, HostState
from mmgibbs.engines.coloured.engine import StructuredEngine
from mmgibbs.engines.coloured_gpu.engine import StructuredGpuEngine
from mmgibbs.engines.direct.engine import Joined, MarginalEngine
from mmgibbs.engines.hybrid.engine import HybridEngine
from mmgibbs.engines.pcg.engine import PcgEngine
from mmgibbs.engines.serial import SerialEngine
from mmgibbs.equations.renewable import copy_renewable_lists
from mmgibbs.equations.structured import StructuredEquations
from mmgibbs.errors import ConfigError

EngineClass = type[HostState] | type[StructuredGpuEngine]


@dataclass(frozen=True)
class EngineKind:
    words: str  # what it does, for readers who want breeding values: those of report/words.py
    cpu: EngineClass
    gpu: EngineClass | None = None  # None: `device: gpu` is refused


# sampler.engine -> what it is
ENGINES: dict[str, EngineKind] = {
    "serial": EngineKind("draws the levels of all effects one after another", SerialEngine),
    "structured": EngineKind(
        "draws many levels at the same time",
        StructuredEngine,
        StructuredGpuEngine,
    ),
    "hybrid": EngineKind("draws several blocks of the effects at the same time", HybridEngine, HybridEngine),
    "pcg": EngineKind("finds all effects together, by iterations that solve the mixed-model equations", PcgEngine),
    "marginal": EngineKind("draws the variances first, without the effects, then all effects together", MarginalEngine),
}


def engine_class(name: str, device: str) -> EngineClass:
    """The class behind `sampler.engine` on 'cpu' or 'gpu'; ConfigError where the engine has none there."""
    engine = ENGINES[name].gpu if device == "gpu" else ENGINES[name].cpu
    if engine is None:
        alternatives = " or ".join(alternative for alternative, kind in ENGINES.items() if kind.gpu is not None)
        raise ConfigError(
            f"sampler.device: found 'gpu', which cannot be combined with engine: {name}, which runs on the CPU; needed "
            f"engine: {alternatives}, or device: cpu"
        )
    return engine


@dataclass(frozen=True)
class EngineChoice:
    name: str  # of ENGINES, with `device`
    update: str = "level"
    threads: int = 1
    device: str = "cpu"
    variances_fixed: bool = False  # for pcg: several exact draws per pass over the data
    tolerance: float | None = None  # for pcg, which needs one
    joined: Joined | None = None  # for marginal: components that may covary
    share_effects: bool = False  # the threads share sweeps over SNP effects too
    bytes: int = 0  # that each chain takes for the engine beside the equations and its state

    def build(self, equations: StructuredEquations) -> Engine:
        engine = engine_class(self.name, self.device)
        options: dict[str, Any] = {option: getattr(self, option) for option in engine.options}
        built = engine(copy_renewable_lists(equations), **options)
        if self.share_effects and isinstance(built, HostState):
            built.threads_of_effects = built.threads
        return built
