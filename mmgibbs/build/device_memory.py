"""Device memory that a run with `device: gpu` takes, and the least time of a sweep there: known before it starts."""

from __future__ import annotations

from typing import Any

from mmgibbs.engines.choice import EngineChoice
from mmgibbs.equations.structured import StructuredEquations
from mmgibbs.machine.device import Device, count_bound, refuse_beyond_device
from mmgibbs.sampler.schedule import Schedule


def count_chains_at_once(choice: EngineChoice, equations: StructuredEquations, schedule: Schedule) -> int:
    """Chains that share the device, as many as its memory holds; 1 of an engine whose chains run one after another."""
    if schedule.chains == 1 or not choice.engine.runs_side_by_side:
        return 1
    needed = choice.engine.count_device_bytes(equations, schedule.interweave)
    return max(1, min(schedule.chains, Device().free_bytes() // needed))


def count_memory_of_device(choice: EngineChoice, equations: StructuredEquations, schedule: Schedule) -> dict[str, Any]:
    """Name the device, with the bytes that are free and those that are needed; DeviceError where it has too few."""
    device, needed = Device(), choice.engine.count_device_bytes(equations, schedule.interweave)
    free, remedy = device.free_bytes(), f"use {choice.engine.less_device_memory}device: cpu"
    refuse_beyond_device(needed, free, f"{equations.n_equations:,} equations", remedy)
    return {"name": device.name, "free_bytes": free, "bytes": needed}


def count_device(choice: EngineChoice, equations: StructuredEquations, schedule: Schedule) -> dict[str, Any]:
    """Count what `mmgibbs check` prints of the device: its memory, and the bound of a sweep of the location effects."""
    counts = count_memory_of_device(choice, equations, schedule)
    unit, moved, facts = choice.engine.count_device_traffic(equations, counts["bytes"], counts["free_bytes"])
    return counts | facts | ({} if moved is None else {"bound": count_bound(Device(), unit, moved)})
