"""Engines: a line here, and a class in `engines`, which says what it refuses.

The line says what the analysis file, the rules of a GPU and the report ask of an engine.
"""

from __future__ import annotations

from typing import NamedTuple


class EngineKind(NamedTuple):
    """An engine; its class, 'module:name' below `engines`, is imported where it is asked for."""

    words: str  # what it does, for readers who want breeding values; docs/explanation/engines.md says how
    cpu: str
    gpu: str = ""  # '': `device: gpu` is refused
    why_not_gpu: str = ""
    sweeps: bool = True  # draws level by level; False: all at once, by one thread
    solves: bool = False  # also the equations of method: blup, and of REML by Monte Carlo


ENGINES: dict[str, EngineKind] = {  # by the word of sampler.engine
    "serial": EngineKind(
        "draws the levels of all effects one after another",
        "serial:SerialEngine",
        why_not_gpu="it draws one level after another",
    ),
    "hybrid": EngineKind(
        "draws several blocks of the effects at the same time",
        "hybrid.engine:HybridEngine",
        "hybrid.engine:HybridEngine",
    ),
    "structured": EngineKind(
        "draws many levels at the same time",
        "coloured.engine:StructuredEngine",
        "coloured_gpu.engine:StructuredGpuEngine",
    ),
    "pcg": EngineKind(
        "finds all effects together, by iterations that solve the mixed-model equations",
        "pcg.engine:PcgEngine",
        "pcg.engine:PcgEngine",
        sweeps=False,
        solves=True,
    ),
    "marginal": EngineKind(
        "draws the variances first, without the effects, then all effects together",
        "direct.engine:MarginalEngine",
        why_not_gpu="it factorises sparse equations, which the CPU does",
        sweeps=False,
    ),
}
WITHOUT_SWEEPS = tuple(name for name, kind in ENGINES.items() if not kind.sweeps)
