"""What the parts of the engine on a GPU know of it: the state on the device, its queue, launches and sums."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from mmgibbs.engines.coloured_gpu.resident import Resident
from mmgibbs.equations.structured import StructuredEquations
from mmgibbs.machine.device import Argument, DeviceArray
from mmgibbs.machine.gpu_queue import GpuQueue
from mmgibbs.machine.shared_arrays import SharedArrays


class DeviceState(Protocol):
    """A chain on a device: see engine.StructuredGpuEngine."""

    equations: StructuredEquations
    queue: GpuQueue
    shared: SharedArrays
    resident: Resident
    Rinv: np.ndarray
    class_of_pattern: DeviceArray

    @property
    def real(self) -> np.dtype: ...

    @property
    def sum_buffers(self) -> tuple[DeviceArray, DeviceArray]: ...

    def set_counter(self, number: int, key: tuple[int, int]) -> None: ...

    def launch(self, name: str, n: int, *arguments: Argument) -> None: ...

    def launch_term(self, i: int, name: str, blocks: int, *arguments: Argument) -> None: ...

    def launch_blocks(self, name: str, blocks: int, *arguments: Argument) -> None: ...

    def fold(self, n: int, parts: DeviceArray, n_parts: int, first: int = 0) -> None: ...

    def fold_sums(self, n: int, parts: int) -> None: ...

    def read_sums(self, n: int) -> np.ndarray: ...

    def forget_quadratic_forms(self) -> None: ...

    def refuse_failed(self) -> None: ...
