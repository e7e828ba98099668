"""Device memory that a run with `device: gpu` takes, and the least time of a sweep there: known before it starts."""

from __future__ import annotations

from typing import Any

from mmgibbs.engines.choice import EngineChoice
from mmgibbs.equations.structured import StructuredEquations
from mmgibbs.machine.device import Device, refuse_beyond_device
from mmgibbs.sampler.schedule import Schedule


def count_bytes(choice: EngineChoice, equations: StructuredEquations, schedule: Schedule) -> int | None:
    """Device memory of a chain, or of a solution; None of engine hybrid, which copies what does not fit."""
    if choice.name == "structured":
        from mmgibbs.engines.coloured_gpu.markers import marker_bytes  # late: runs on the CPU have no use for it
        from mmgibbs.engines.coloured_gpu.sizes import resident_bytes

        return resident_bytes(equations, schedule.interweave) + marker_bytes(equations.design, equations.real)
    if choice.name == "pcg":
        from mmgibbs.engines.pcg import device_solver

        return sum(device_solver.count_bytes(equations))
    return None


def count_device(choice: EngineChoice, equations: StructuredEquations, schedule: Schedule) -> dict[str, Any]:
    """What `mmgibbs check` says of the device: bytes, and the bound of a sweep of the location effects.

    The bound is the bytes that a sweep must move over the nominal bandwidth of the device: no measurement. DeviceError
    with the numbers where there is too little memory.
    """
    device, needed = Device(), count_bytes(choice, equations, schedule)
    counts: dict[str, Any] = {"name": device.name, "free_bytes": device.free_bytes()}
    if needed is None:
        return counts
    remedy = f"use {'precision: single, engine: hybrid, or ' if choice.name == 'structured' else ''}device: cpu"
    refuse_beyond_device(needed, counts["free_bytes"], f"{equations.n_equations:,} equations", remedy)
    counts["bytes"] = needed
    if choice.name == "structured":
        from mmgibbs.engines.coloured_gpu.sizes import bytes_per_sweep

        moved, bandwidth = bytes_per_sweep(equations), device.nominal_bandwidth
        counts |= {"bytes_per_sweep": moved, "nominal_bytes_per_second": bandwidth}
        counts["seconds_per_sweep_at_least"] = moved / bandwidth
    return counts
