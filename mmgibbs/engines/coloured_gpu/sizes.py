"""How many bytes the structured engine takes on a device, and how many one sweep moves there."""

from __future__ import annotations

import numpy as np

from mmgibbs.engines.coloured_gpu.queue import GpuQueue
from mmgibbs.engines.coloured_gpu.resident import LONG_VISITS
from mmgibbs.equations.structured import StructuredEquations
from mmgibbs.errors import DeviceError
from mmgibbs.model.design import Design

STRANDS = 65_536  # of a sum over levels or records: fixed, so that the sum does not depend on the device
MOST_COMPONENTS = 40  # 40 sums in float64 for each of 128 threads fit in 48 KB of shared memory


def lower(k: int) -> int:
    """Elements of a lower triangle."""
    return k * (k + 1) // 2


def resident_bytes(equations: StructuredEquations) -> int:
    """Device memory for the lists, the state, y, one ordered copy of the largest Theta and the strands of sums.

    Not in it: what a run may ask for besides, moments (four float64 per location) and interweaving."""
    design, records = equations.design, equations.records
    k, q = [t.n_components for t in design.terms], [t.n_levels for t in design.terms]
    largest = max(levels * size for levels, size in zip(q, k, strict=True))
    strands = 8 * lower(max(design.n_traits, *k)) * min(STRANDS, max(design.n_records, *q))
    return int(equations.bytes + records.y.nbytes + largest * equations.real.itemsize + strands)


def refuse_too_large(equations: StructuredEquations, queue: GpuQueue) -> None:
    """DeviceError where the state does not fit on the device: it is resident or not at all."""
    found, needed = queue.free_bytes(), resident_bytes(equations)
    if found < needed:
        raise DeviceError(
            f"device: gpu: found {found / 1e9:.1f} GB free on the device, needed {needed / 1e9:.1f} GB for the "
            f"lists and the state of {equations.n_equations:,} equations; use precision: single, engine: hybrid "
            "(which copies blocks as it needs them), or device: cpu"
        )


def too_many_components(design: Design) -> str | None:
    """The term, in words, of which a level has more components than a block of threads can sum side by side."""
    for term in design.terms:
        if term.n_components > MOST_COMPONENTS:
            return (
                f"term '{term.name}', which has {term.n_components} components per level, needed at most "
                f"{MOST_COMPONENTS}; use device: cpu"
            )
    return None


def bytes_per_sweep(equations: StructuredEquations) -> int:
    """Bytes that one sweep must move, with 32-bit positions.

    Each list is read once, each row of Theta and e that a visit reads or writes counts once; the visits of long lists
    count again, since they are read once to sum and once to move. Held against the copy bandwidth of the device this
    bounds the time of a sweep from below."""
    real, T, records = equations.real.itemsize, equations.design.n_traits, equations.records
    of_record = records.pattern.itemsize + (real if records.weight.size else 0)
    total = 0
    for lists, K in zip(equations.terms, equations.relationships, strict=True):
        q, row = lists.code.size, lists.trait.size * real
        of_visit = 4 + (lists.visit_effect.itemsize if lists.visit_effect.size else 0)
        of_visit += lists.covariates.shape[1] * real if lists.covariates.size else 0
        of_class = 4 * q if lists.cell_class.size else 4 * q + lists.cell_pattern.nbytes + lists.cell_sums.nbytes
        visits = np.diff(lists.visit_ptr.astype(np.int64))
        total += q * (4 + 4 + 2 * row) + of_class + lists.active.nbytes  # where visits start, code, theta twice
        total += int(visits.sum()) * (of_visit + of_record + 2 * T * real)
        total += int(visits[visits > LONG_VISITS].sum()) * (of_visit + T * real)
        total += K.bytes_per_sweep(row)
    return int(total)
