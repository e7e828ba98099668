"""The structured engine on a GPU: seconds per sample beside the bytes that a sweep must move and the copy bandwidth."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.effective import SAMPLED, sampled_model, seconds_per_sweep
from mmgibbs.engines.coloured_gpu.engine import StructuredGpuEngine
from mmgibbs.engines.coloured_gpu.sizes import bytes_per_sweep
from mmgibbs.equations.partition import partition
from mmgibbs.equations.structured import structured_equations
from mmgibbs.errors import DeviceError
from mmgibbs.machine.device import Device
from mmgibbs.machine.gpu_queue import GpuQueue
from mmgibbs.models.design import Design

COPIED = 1 << 30  # bytes of the copy that the bandwidth is measured by, memory permitting
NOT_MEASURED = "not measured"


def structured_on_gpu(
    design: Design,
    G: Sequence[np.ndarray | None],
    R: np.ndarray,
    sweeps: int = 50,
    seed: int = 1,
    precision: str = "single",
    device: Device | None = None,
) -> dict:
    """Figures of one system; device: a mmgibbs.machine.device.Device, the current one where None (DeviceError without
    one).

    Seconds per sample are those of recorded sweeps one after another, random draws included, by the clock of the
    device; with variances sampled each sweep also brings its products to the host, and takes new variances. Bytes per
    sweep over the copy bandwidth bound the time of a sweep from below."""
    equations = structured_equations(design, partition(design, "colour"), precision)
    started = time.perf_counter()
    engine = StructuredGpuEngine(equations, device=device)
    engine.set_variances(G, R)
    for number in range(1, 4):  # compiles, then records
        engine.sweep(number, (seed, 0))
    engine.queue.synchronize()
    built = time.perf_counter() - started
    numbers = iter(range(4, 4 + sweeps))

    def sweep_on() -> None:
        for _ in range(sweeps):
            engine.sweep(next(numbers), (seed, 0))

    seconds = engine.queue.seconds(sweep_on) / sweeps
    sampled = seconds_per_sweep(sampled_model(design, G, R), engine, True, (seed, 0), sweeps)
    moved, bandwidth = bytes_per_sweep(equations), copy_bandwidth(engine.queue)
    return {
        "device": engine.queue.device.name,
        "equations": equations.n_equations,
        "records": design.n_records,
        "precision": precision,
        "build s": built,
        "s per sample": seconds,
        SAMPLED: sampled,
        "bytes per sweep": moved,
        "copy bandwidth, GB/s": bandwidth / 1e9,
        "s per sample, copy bandwidth alone": moved / bandwidth,
    }


def copy_bandwidth(queue: GpuQueue) -> float:
    """Bytes read and written per second by a copy on the device."""
    size = int(min(COPIED, queue.free_bytes() // 4))
    source, target = (queue.empty(size, np.uint8) for _ in range(2))
    copies = 10
    queue.copy(source, target)

    def copy_on() -> None:
        for _ in range(copies):
            queue.copy(source, target)

    return copies * 2 * size / queue.seconds(copy_on)


def structured_row(
    design: Design,
    G: Sequence[np.ndarray | None],
    R: np.ndarray,
    sweeps: int = 50,
    seed: int = 1,
    device: Device | None = None,
) -> dict:
    """A row of `python -m benchmarks engines`: the figures, or why there are none."""
    row: dict[str, Any] = {"engine": "structured on a GPU"}
    try:
        return row | structured_on_gpu(design, G, R, sweeps, seed, device=device)
    except DeviceError as error:
        return row | {"s per sample": f"{NOT_MEASURED} ({error})"}
