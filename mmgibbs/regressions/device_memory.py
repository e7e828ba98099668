"""Device memory of the chains of a regression, and the least time of a sweep there: known before they start."""

from __future__ import annotations

from typing import Any

from mmgibbs.machine.device import Device, count_bound, refuse_beyond_device
from mmgibbs.regressions.device_chains import has_device_kernels
from mmgibbs.regressions.protocol import Keys, RegressionData, Sampler


def count_device(
    sampler: Sampler, data: RegressionData, device: Device, keys: Keys, burn_in: int, thin: int
) -> dict[str, Any]:
    """Count what `mmgibbs check` says of the device. DeviceError with the numbers where the chains do not fit there.

    A regression that runs as array operations takes memory as it needs it: its predictors, and more.
    """
    free = device.free_bytes()
    counts: dict[str, Any] = {"name": device.name, "free_bytes": free}
    if not has_device_kernels(sampler):
        return counts | {"bytes_at_least": data.predictors.values.nbytes}
    chains = sampler.plan_device_chains(keys, burn_in, thin)
    needed, (n_bytes, n_operations, unit) = chains.count_bytes(), chains.count_sweep()
    refuse_beyond_device(needed, free, f"{len(keys)} chain{'s' * (len(keys) > 1)}", chains.remedy)
    return counts | {"bytes": needed, "bound": count_bound(device, unit, n_bytes, n_operations)}
