"""What an engine says of itself before it is built: what it refuses, its time, its memory, what it moves on a device.

`engine: auto` and `mmgibbs check` ask its class. What is asked before any data are read is in models/engine_kinds.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from mmgibbs.models.design import Design

if TYPE_CHECKING:
    from mmgibbs.engines.costs import SweepCost
    from mmgibbs.engines.direct.costs import FactorCost, Joined
    from mmgibbs.equations.structured import StructuredEquations


class DeviceTraffic(NamedTuple):
    """What must be moved on a device, from which the least time follows."""

    unit: str  # of the work: 'a sweep of the effects'
    bytes: int | None  # that it moves; None: over the bus, at a speed that is not known
    facts: dict[str, int]  # for `mmgibbs check`, beside the bound


class EngineFacts:
    """The part of the contract of an engine (base.py) that its class answers."""

    name: ClassVar[str]
    options: ClassVar[tuple[str, ...]] = ("update",)  # what of an EngineChoice it takes (choice.py)
    runs_side_by_side: ClassVar[bool] = False  # chains of it in threads of one process, built with `beside`
    sweep_cost: ClassVar[SweepCost | None] = None  # of engines that sweep and that auto may take
    less_device_memory: ClassVar[str] = ""  # advice where its state does not fit on a device, before 'device: cpu'

    @staticmethod
    def refuses(design: Design) -> str | None:
        """Describe what a design has that the engine cannot do, to follow "cannot be combined with"; None: nothing."""
        return None

    @staticmethod
    def auto_obstacle(design: Design, chains: int) -> str | None:
        """Describe why auto does not take an engine that could do it, in the same form; asked if it integrates."""
        return None

    @staticmethod
    def likelihood_costs(design: Design, joined: Joined) -> Iterator[FactorCost]:
        """Yield what the likelihood costs, if it integrates: lower bounds that are soon known, then an estimate."""
        yield from ()

    @staticmethod
    def count_bytes(design: Design, joined: Joined) -> int:
        """Count the bytes that each chain takes for the engine, beside the equations and its state."""
        return 0

    @staticmethod
    def count_device_bytes(equations: StructuredEquations, interweaved: Sequence[int] = ()) -> int:
        """Count the device memory of a chain, or of a solution."""
        raise NotImplementedError("an engine with a GPU form needs count_device_bytes, which says what it takes there")

    @staticmethod
    def count_device_traffic(equations: StructuredEquations, needed: int, free: int) -> DeviceTraffic:
        """Count what a sweep or an iteration moves where `needed` bytes are taken of the `free` ones."""
        raise NotImplementedError("an engine with a GPU form needs count_device_traffic, which `mmgibbs check` prints")
