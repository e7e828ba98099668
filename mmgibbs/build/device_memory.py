"""Device memory that a run with `device: gpu` takes, and the least time of a sweep there: known before it starts."""

from __future__ import annotations

from typing import Any

from mmgibbs.engines.choice import EngineChoice
from mmgibbs.equations.structured import StructuredEquations
from mmgibbs.machine.device import Device
from mmgibbs.sampler.schedule import Schedule


def refuse_beyond_device(choice: EngineChoice, equations: StructuredEquations, schedule: Schedule) -> None:
    """DeviceError with the numbers of bytes where a chain does not fit on the device.

    Engine hybrid copies what does not fit in every sweep, and is never refused.
    """
    if choice.device != "gpu" or choice.name != "structured":
        return
    from mmgibbs.engines.coloured_gpu.sizes import refuse_too_large  # late: runs on the CPU have no use for it

    refuse_too_large(equations, Device().free_bytes(), schedule.interweave)


def count_device(choice: EngineChoice, equations: StructuredEquations, schedule: Schedule) -> dict[str, Any]:
    """What `mmgibbs check` says of the device: bytes, and the bound of a sweep of the location effects.

    The bound is the bytes that a sweep must move over the nominal bandwidth of the device: no measurement.
    """
    device = Device()
    counts: dict[str, Any] = {"name": device.name, "free_bytes": device.free_bytes()}
    if choice.name != "structured":
        return counts
    from mmgibbs.engines.coloured_gpu.sizes import bytes_per_sweep, resident_bytes

    moved, bandwidth = bytes_per_sweep(equations), device.nominal_bandwidth
    return counts | {
        "bytes": resident_bytes(equations, schedule.interweave),
        "bytes_per_sweep": moved,
        "nominal_bytes_per_second": bandwidth,
        "seconds_per_sweep_at_least": moved / bandwidth,
    }
