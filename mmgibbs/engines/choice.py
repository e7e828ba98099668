"""The class of an engine, and the choice of one in a form that another process can rebuild."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from mmgibbs.models.engine_kinds import ENGINES, EngineKind

if TYPE_CHECKING:
    from mmgibbs.engines.base import Engine, HostState
    from mmgibbs.engines.coloured_gpu.engine import StructuredGpuEngine
    from mmgibbs.engines.direct.costs import Joined
    from mmgibbs.equations.structured import StructuredEquations

    EngineClass = type[HostState] | type[StructuredGpuEngine]


def engine_class(name: str, device: str) -> EngineClass:
    """The class behind `sampler.engine` on 'cpu' or 'gpu', which has one."""
    path = ENGINES[name].gpu if device == "gpu" else ENGINES[name].cpu
    assert path, "models/gpu_rules.py refuses it"
    module, _, class_name = path.partition(":")
    engine: EngineClass = getattr(import_module(f"mmgibbs.engines.{module}"), class_name)
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

    @property
    def kind(self) -> EngineKind:
        """Its line in the table."""
        return ENGINES[self.name]

    @property
    def engine(self) -> EngineClass:
        """Its class."""
        return engine_class(self.name, self.device)

    def build(self, equations: StructuredEquations, beside: Engine | None = None) -> Engine:
        """The engine of a chain; beside: that of a chain in this process with which it shares a device."""
        engine = self.engine
        options: dict[str, Any] = {option: getattr(self, option) for option in engine.options}
        if beside is not None:
            options["beside"] = beside
        from mmgibbs.engines.base import HostState
        from mmgibbs.equations.renewable import copy_renewable_lists

        built = engine(copy_renewable_lists(equations), **options)
        if self.share_effects and isinstance(built, HostState):
            built.threads_of_effects = built.threads
        return built
