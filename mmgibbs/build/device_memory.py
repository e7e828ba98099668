"""Device memory that a run with `device: gpu` takes, and the least time of a sweep there: known before it starts."""

from __future__ import annotations

from typing import Any

from mmgibbs.engines.choice import EngineChoice
from mmgibbs.equations.structured import StructuredEquations
from mmgibbs.machine.device import Device, count_bound, refuse_beyond_device
from mmgibbs.sampler.schedule import Schedule


def count_bytes(choice: EngineChoice, equations: StructuredEquations, schedule: Schedule) -> int:
    """Device memory of a chain, or of a solution; of engine hybrid, which copies what does not fit, vectors alone."""
    if choice.name == "structured":
        from mmgibbs.engines.coloured_gpu.markers import marker_bytes  # late: runs on the CPU have no use for it
        from mmgibbs.engines.coloured_gpu.sizes import resident_bytes

        return resident_bytes(equations, schedule.interweave) + marker_bytes(equations.design, equations.real)
    if choice.name == "pcg":
        from mmgibbs.engines.pcg import device_solver

        return sum(device_solver.count_bytes(equations))
    from mmgibbs.engines.hybrid.sizes import vector_bytes

    return vector_bytes(equations)


def count_chains_at_once(choice: EngineChoice, equations: StructuredEquations, schedule: Schedule) -> int:
    """Chains that share the device, as many as its memory holds; 1 of an engine whose chains run one after another."""
    if schedule.chains == 1 or not choice.runs_side_by_side:
        return 1
    return max(1, min(schedule.chains, Device().free_bytes() // count_bytes(choice, equations, schedule)))


def count_device(choice: EngineChoice, equations: StructuredEquations, schedule: Schedule) -> dict[str, Any]:
    """Count what `mmgibbs check` prints of the device: bytes, and the bound of a sweep of the location effects.

    DeviceError with the numbers where there is too little memory.
    """
    device, needed = Device(), count_bytes(choice, equations, schedule)
    counts: dict[str, Any] = {"name": device.name, "free_bytes": device.free_bytes()}
    remedy = f"use {'precision: single, engine: hybrid, or ' if choice.name == 'structured' else ''}device: cpu"
    refuse_beyond_device(needed, counts["free_bytes"], f"{equations.n_equations:,} equations", remedy)
    counts["bytes"] = needed
    if choice.name == "structured":
        from mmgibbs.engines.coloured_gpu.sizes import bytes_per_sweep

        return counts | {"bound": count_bound(device, "a sweep of the effects", bytes_per_sweep(equations))}
    if choice.name == "pcg":
        from mmgibbs.engines.pcg.device_solver import bytes_per_iteration

        return counts | {"bound": count_bound(device, "an iteration", bytes_per_iteration(equations))}
    return counts


def count_matrix(equations: StructuredEquations, counts: dict[str, Any]) -> dict[str, Any]:
    """Add the matrix of engine hybrid to what `count_device` counted, and the bound of a sweep where it fits."""
    from mmgibbs.engines.hybrid.sizes import matrix_bytes

    matrix = matrix_bytes(equations)
    counts |= {"matrix_bytes": matrix}
    if counts["bytes"] + matrix <= counts["free_bytes"]:
        counts |= {"bound": count_bound(Device(), "a sweep of the effects", counts["bytes"] + matrix)}
    return counts
