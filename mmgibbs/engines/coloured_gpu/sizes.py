"""How many bytes the structured engine takes on a device, and how many one sweep moves there."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mmgibbs.engines.coloured_gpu.dense import TILE, system_bytes
from mmgibbs.engines.coloured_gpu.resident import LONG_VISITS
from mmgibbs.equations.dense import DenseLevels
from mmgibbs.equations.structured import StructuredEquations
from mmgibbs.models.design import Design

STRANDS = 262_144  # of a sum over levels or records at most: a thread each
SUMS = 1 << 23  # of all strands of sums that are made together: 64 MB
THREADS = 128  # of a block, as in level.cu
MOMENT_BYTES = 40  # of a location: its value on the user's scale and four numbers, in float64
LIABILITY_BYTES = 24  # of a record: bounds, or a count and its exposure, and a sum
BUFFER_BYTES = 1 << 16  # of a term: its small buffers, and the rounding of all
MAX_CHUNKS = 2048  # of the records of interweaving's sums: a block each


def lower(k: int) -> int:
    """Elements of a lower triangle."""
    return k * (k + 1) // 2


def count_strands(n: int, sums: int) -> int:
    """Strands of `sums` sums over n levels or records, by the model and not by the device: so the order is fixed."""
    most = min(STRANDS, 1 << (SUMS // sums).bit_length() - 1) if sums <= SUMS else 1
    return min(most, THREADS * -(-n // THREADS))


def count_blocks(n: int | np.integer) -> int:
    """Blocks of threads for so many levels, records or strands; a sum of strands is left in as many parts."""
    return -(-int(n) // THREADS)


def resident_bytes(equations: StructuredEquations, interweaved: Sequence[int] = ()) -> int:
    """Device memory of a chain, from above: what the engine allocates when it starts, and what a run asks for besides.

    The lists, the state, y, one ordered copy of the largest Theta, the levels that records meet in one term and in the
    terms that are interweaved, data parts of classes, sums; moments of all locations, on the user's scale too; columns
    of liabilities; rounding of each buffer."""
    design, records, real = equations.design, equations.records, equations.real.itemsize
    n, locations = design.n_records, [t.n_levels * t.n_components for t in design.terms]
    met = [4 * n * len(t.effects) for t in design.terms]
    of_classes = [
        8 * (lists.cell_ptr.size - 1) * lower(t.n_components) if lists.cell_class.size else 0
        for t, lists in zip(design.terms, equations.terms, strict=True)
    ]
    of_sums = 8 * max(sums * count_blocks(count_strands(m, sums)) for m, sums in sums_in_blocks(design))
    pairs = zip(design.terms, equations.dense, strict=True)
    dense = [(t, d) for t, d in pairs if isinstance(d, DenseLevels)]
    of_deviations = [8 * size for t, size in zip(design.terms, locations, strict=True) if t.groups_fixed]
    return int(
        equations.bytes
        + records.y.nbytes
        + max(locations) * real
        + max(met)
        + sum(met[i] for i in interweaved)
        + sum(of_classes)
        + 8 * strand_sums(design)
        + of_sums
        + sum(of_deviations)
        + MOMENT_BYTES * sum(locations)
        + LIABILITY_BYTES * n * len(design.responses)
        + sum(8 * len(d.values) * t.n_components for t, d in dense)
        + sum(TILE * system_bytes(t.n_components) + len(d.values) for t, d in dense)
        + BUFFER_BYTES * len(design.terms)
    )


def scaling_sums(components: int) -> int:
    """H and s of interweaving (equations/scaling.py), for every element of a lower triangle."""
    elements = lower(components)
    return lower(elements) + elements


def scaling_strands(n: int, sums: int) -> int:
    """Strands of interweaving's sums over n records: a block each, and again for every 128 sums."""
    return min(MAX_CHUNKS, count_strands(n, sums), -(-n // 128))


def residual_sums(design: Design) -> int:
    """Sums of squares and products of residuals, of all their classes."""
    return lower(design.n_traits) * max(1, len(design.residual_classes))


def sums_in_blocks(design: Design) -> list[tuple[int, int]]:
    """List (elements, sums) of the sums that blocks make.

    They are of residuals, quadratic forms, and two of a pass over liabilities.
    """
    of_terms = [(t.n_levels, lower(t.n_components)) for t in design.terms]
    return [(design.n_records, residual_sums(design)), (design.n_records, 2), *of_terms]


def strand_sums(design: Design) -> int:
    """Count the most sums of strands that are made together."""
    most = max(sums * count_strands(n, sums) for n, sums in sums_in_blocks(design))
    return max(most, *(min(SUMS, MAX_CHUNKS * scaling_sums(t.n_components)) for t in design.terms))


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
    return int(total + sum(d.values.nbytes for d in equations.dense if isinstance(d, DenseLevels)))
