"""Which engine a chain uses, in a form that another process can rebuild."""

from __future__ import annotations

import os
from dataclasses import dataclass

from mmgibbs.engines.coloured.engine import StructuredEngine
from mmgibbs.engines.coloured_gpu.engine import StructuredGpuEngine
from mmgibbs.engines.hybrid.engine import HybridEngine
from mmgibbs.engines.pcg.engine import TOLERANCE, PcgEngine
from mmgibbs.engines.serial import SerialEngine
from mmgibbs.equations.structured import StructuredEquations


@dataclass(frozen=True)
class EngineChoice:
    name: str  # 'serial' | 'structured' | 'hybrid' | 'pcg'
    update: str = "level"
    threads: int = 1
    device: str = "cpu"
    variances_fixed: bool = False  # for pcg: several exact draws per pass over the data
    tolerance: float = TOLERANCE  # for pcg

    def build(self, equations: StructuredEquations):
        match self.name:
            case "structured" if self.device == "gpu":
                return StructuredGpuEngine(equations, self.update)
            case "structured":
                return StructuredEngine(equations, self.update, self.threads)
            case "hybrid":
                return HybridEngine(equations, self.update, device=self.device, threads=self.threads)
            case "pcg":
                return PcgEngine(equations, self.tolerance, self.variances_fixed)
            case _:
                return SerialEngine(equations, self.update)


def cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
