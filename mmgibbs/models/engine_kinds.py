"""Engines: a line here, and a class in `engines`, which says what it refuses and what it costs (engines/facts.py).

The line says what the analysis file, the rules of a GPU, `engine: auto` and the report ask of an engine.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class EngineKind(NamedTuple):
    """An engine; its class, 'module:name' below `engines`, is imported where it is asked for."""

    words: str  # what it does, for readers who want breeding values; docs/explanation/engines.md says how
    cpu: str
    gpu: str = ""  # '': `device: gpu` is refused
    why_not_gpu: str = ""
    auto: tuple[str, ...] = ()  # devices on which `engine: auto` may take it, on the CPU by the costs of its class
    fastest_from: int = 0  # equations from which auto takes it without counting colours; 0: never
    partitions: tuple[str, ...] = ("term", "effect", "equal", "colour")  # that it sweeps; the first where it is open
    sweeps: bool = True  # draws level by level; False: all at once, by one thread
    threads: bool = False  # share its sweeps; False: SNP effects at most
    solves: bool = False  # to a tolerance: also method: blup, and REML by Monte Carlo
    integrates: bool = False  # effects out of the likelihood, by a factor in double precision: nothing to interweave,
    # residuals may be correlated, and levels that have no distribution one by one are drawn all at once
    draws_correlations: bool = False  # parameters of relationships, which change their matrices in every sweep
    wide_levels_on_gpu: bool = False  # takes levels of more components than a block of threads can sum


ENGINES: dict[str, EngineKind] = {  # by the word of sampler.engine
    "serial": EngineKind(
        "draws the levels of all effects one after another",
        "serial:SerialEngine",
        why_not_gpu="it draws one level after another",
        auto=("cpu",),
        draws_correlations=True,
    ),
    "hybrid": EngineKind(
        "draws several blocks of the effects at the same time",
        "hybrid.engine:HybridEngine",
        "hybrid.engine:HybridEngine",
        partitions=("colour", "term", "effect", "equal"),
        threads=True,
        wide_levels_on_gpu=True,
    ),
    "structured": EngineKind(
        "draws many levels at the same time",
        "coloured.engine:StructuredEngine",
        "coloured_gpu.engine:StructuredGpuEngine",
        auto=("cpu", "gpu"),
        fastest_from=50_000,
        partitions=("colour",),
        threads=True,
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
        auto=("cpu",),
        sweeps=False,
        integrates=True,
    ),
}


def select_engines(is_wanted: Callable[[EngineKind], object]) -> tuple[str, ...]:
    """Return the words of the engines that are wanted, in the order of the table."""
    return tuple(name for name, kind in ENGINES.items() if is_wanted(kind))


WITHOUT_SWEEPS = select_engines(lambda kind: not kind.sweeps)
SOLVERS = select_engines(lambda kind: kind.solves)
INTEGRATING = select_engines(lambda kind: kind.integrates)
