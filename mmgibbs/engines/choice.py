"""Which engine a chain uses, in a form that another process can rebuild."""

from __future__ import annotations

import os
from dataclasses import dataclass

from mmgibbs.engines.serial import SerialEngine
from mmgibbs.engines.structured import StructuredEngine
from mmgibbs.equations.structured import StructuredEquations


@dataclass(frozen=True)
class EngineChoice:
    name: str  # 'serial' | 'structured'
    update: str = "level"
    threads: int = 1

    def build(self, equations: StructuredEquations):
        if self.name == "structured":
            return StructuredEngine(equations, self.update, self.threads)
        return SerialEngine(equations, self.update)


def cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
