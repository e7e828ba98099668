"""Records, lists and state of the structured equations on a device, as the kernels' structures hold them.

Everything is allocated once, and what chains only read is on the device once for all chains side by side. A level whose
list is longer than LONG_VISITS records or LONG_RELATIVES relatives is *long*: its lists are cut into pieces of PIECE
entries, each summed by one block of threads. Pieces are fixed, so that the order of every sum is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mmgibbs.draws.purpose import LOCATION, stream
from mmgibbs.equations.structured import StructuredEquations, TermLists
from mmgibbs.errors import DeviceError
from mmgibbs.machine.device import DeviceArray, Shape, make_struct
from mmgibbs.machine.gpu_queue import GpuQueue
from mmgibbs.machine.shared_arrays import SharedArrays
from mmgibbs.models.relationships.base import Lists

PIECE = 2048  # entries of a list in one piece: 16 for each thread of a block
LONG_VISITS = 32  # a thread that reads a list alone waits up to a microsecond for each entry
LONG_RELATIVES = 32
MOST = 2**32 - 1  # entries of one list that 32-bit positions can tell apart


@dataclass(frozen=True)
class Colour:
    """The levels first ... last - 1 of a term, which share nothing, and the pieces of the long ones."""

    first: np.uint32
    last: np.uint32
    long: np.ndarray  # struct Long
    n_long: int
    n_pieces: int
    n_visit_pieces: int
    most_pieces: int  # of a long level's visits or relatives

    @property
    def has_short(self) -> bool:
        return self.n_long < int(self.last) - int(self.first)


@dataclass(frozen=True)
class ResidentTerm:
    struct: np.ndarray  # struct Term<K>
    kin: np.ndarray  # struct Identity, Pedigree or Sparse
    theta: DeviceArray  # (q, k)
    code: DeviceArray  # (q,) level in model order
    colours: tuple[Colour, ...]
    classes: np.ndarray | None  # struct Classes; None where there are no classes
    n_classes: int


class Resident:
    """Buffers of the state of one chain, and the shared lists that it reads."""

    def __init__(self, equations: StructuredEquations, queue: GpuQueue, shared: SharedArrays):
        self.queue, self.shared = queue, shared
        self._kept: list[DeviceArray] = []  # buffers that only structures point to
        eq, records = equations, equations.records
        k = [t.n_components for t in eq.design.terms]
        n_patterns, T = eq.design.patterns.shape
        self._first = np.cumsum([0] + [size * size for size in k] + [n_patterns * T * T])
        # G^-1 of every term, then R^-1 of every pattern
        self.coefficients = queue.empty(int(self._first[-1]), np.float64)
        self.y, self.e = queue.upload(records.y), queue.upload(records.y)
        self.counter = queue.empty(3, np.uint32)
        self.records = make_struct(
            y=queue.address(self.y),
            e=queue.address(self.e),
            pattern=self._share(records.pattern, "pattern"),
            weight=self._share(records.weight, "weight"),
            record=self._share(records.record, "record"),
            Rinv=self._coefficient(len(k)),
            n=np.uint32(records.y.shape[0]),
        )
        self.terms = [self._term(eq, i) for i in range(len(k))]

    def set_coefficients(self, Ginv: list[np.ndarray], Rinv: np.ndarray) -> None:
        self.queue.write(self.coefficients, np.concatenate([np.ravel(m) for m in (*Ginv, Rinv)]).astype(np.float64))

    def _coefficient(self, i: int) -> int:
        """Address of the first coefficient of a term."""
        return self.queue.address(self.coefficients) + 8 * int(self._first[i])

    def _share(self, array: np.ndarray, *name: str | int) -> int:
        """Address of an array that chains share, 0 where it is empty."""
        if array.size == 0:
            return 0
        return self.queue.address(self.shared.find(name, lambda: self.queue.upload(np.ascontiguousarray(array))))

    def _room(self, shape: Shape, dtype: npt.DTypeLike) -> int:
        """Address of an array of this chain, without contents."""
        self._kept.append(self.queue.empty(shape, dtype))
        return self.queue.address(self._kept[-1])

    def _term(self, eq: StructuredEquations, i: int) -> ResidentTerm:
        """A term with its lists and its relationship on the device."""
        lists, K, term = eq.terms[i], eq.relationships[i], eq.design.terms[i]
        k, q = term.n_components, term.n_levels
        effect_of = np.repeat(np.arange(len(term.effects)), np.diff(lists.effect_first))
        theta, code = self.queue.empty((q, k), eq.real), self.queue.upload(lists.code.view(np.uint32))
        n_classes = lists.cell_ptr.size - 1 if lists.cell_class.size else 0
        values = make_struct(
            visit_ptr=self._share(positions(lists.visit_ptr), i, "visit_ptr"),
            visit_record=self._share(lists.visit_record, i, "visit_record"),
            visit_effect=self._share(lists.visit_effect, i, "visit_effect"),
            cell_ptr=self._share(positions(lists.cell_ptr), i, "cell_ptr"),
            cell_pattern=self._share(lists.cell_pattern, i, "cell_pattern"),
            cell_sums=self._share(lists.cell_sums, i, "cell_sums"),
            covariates=self._share(lists.covariates, i, "covariates"),
            active=self._share(lists.active, i, "active"),
            code=self.queue.address(code),
            classes=self._share(lists.cell_class, i, "classes"),
            parts=self._room((n_classes, k * (k + 1) // 2), np.float64) if n_classes else 0,
            Ginv=self._coefficient(i),
            theta=self.queue.address(theta),
            stream=np.uint32(stream(LOCATION, i)),
            number=np.uint32(i),
            regressors=np.int32(term.n_regressors),
            trait=lists.trait.astype(np.int32),
            regressor=lists.regressor.astype(np.int32),
            effect=effect_of.astype(np.int32),
        )
        colours = tuple(self._colour(lists, K, i, b.first, b.last, k) for b in eq.partition.blocks if b.term == i)
        classes = self._classes(i, values, n_classes) if n_classes else None
        return ResidentTerm(values, self._kin(i, K), theta, code, colours, classes, n_classes)

    def _classes(self, i: int, term: np.ndarray, n: int) -> np.ndarray:
        """struct Classes of a term, from its struct Term."""
        shared = {name: int(term[name][0]) for name in ("cell_ptr", "cell_pattern", "cell_sums")}
        return make_struct(
            **shared,
            trait=self._share(term["trait"][0].reshape(-1), i, "trait"),
            regressor=self._share(term["regressor"][0].reshape(-1), i, "regressor"),
            parts=int(term["parts"][0]),
            n=np.uint32(n),
            k=np.int32(term["trait"][0].size),
            regressors=term["regressors"][0],
        )

    def _kin(self, i: int, K: Lists) -> np.ndarray:
        """Make the structure of the kernels, which has the fields of the lists in their order."""

        def make_member(name: str, value: np.ndarray | int) -> np.uint32 | int:
            """A member of the structure of a relationship: a number, or the address of an array."""
            if not isinstance(value, np.ndarray):
                return np.uint32(value)
            return self._share(positions(value) if value.dtype == np.uint64 else value, i, "relationship", name)

        return make_struct(**{name: make_member(name, value) for name, value in K._asdict().items()})

    def _colour(self, lists: TermLists, K: Lists, i: int, first: int, last: int, k: int) -> Colour:
        """The levels first ... last - 1 of term i, with the lists of the long ones cut into pieces."""
        levels, visits, relatives = long_lists(lists, K, first, last)
        pieces = np.concatenate([visits[0], relatives[0]])
        n_visits = len(visits[0])
        long = make_struct(
            levels=self._share(levels, i, first, "long levels"),
            pieces=self._share(pieces, i, first, "pieces"),
            visit_piece_ptr=self._share(visits[1], i, first, "visit_piece_ptr"),
            relative_piece_ptr=self._share(relatives[1] + np.uint32(n_visits), i, first, "relative_piece_ptr"),
            sums=self._room((len(pieces), k), np.float64) if len(pieces) else 0,
            changes=self._room((levels.size, k), np.float64) if levels.size else 0,
            n_visit_pieces=np.uint32(n_visits),
            longest_visits=np.uint32(LONG_VISITS),
            longest_relatives=np.uint32(LONG_RELATIVES),
        )
        most = max(int(np.diff(ptr).max(initial=0)) for _, ptr in (visits, relatives))
        return Colour(np.uint32(first), np.uint32(last), long, levels.size, len(pieces), n_visits, most)


def positions(ptr: np.ndarray) -> np.ndarray:
    """32-bit positions in a list: half the bytes. DeviceError for a list that is too long for them."""
    if ptr[-1] > MOST:
        raise DeviceError(
            f"device: gpu: found a list of {int(ptr[-1]):,} records or relatives, needed at most {MOST:,}; "
            "device: cpu has no such limit"
        )
    return ptr.astype(np.uint32)


def long_lists(
    lists: TermLists, K: Lists, first: int, last: int
) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """The long levels among first ... last - 1, (m,) uint32, and the pieces of their visits and relatives (`cut`)."""
    visits = lists.visit_ptr[first : last + 1].astype(np.int64)
    ptr = K.relative_ptr
    relatives = np.zeros_like(visits) if ptr is None else ptr[first : last + 1].astype(np.int64)
    long = np.flatnonzero((np.diff(visits) > LONG_VISITS) | (np.diff(relatives) > LONG_RELATIVES))
    together = lists.visit_record if lists.visit_effect.size else None
    return (
        (first + long).astype(np.uint32),
        cut(visits[long], visits[long + 1], together),
        cut(relatives[long], relatives[long + 1]),
    )


def cut(first: np.ndarray, last: np.ndarray, record: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Pieces of the lists first[i] ... last[i] - 1: (n, 3) uint32 number of the list, first entry, last entry.

    Then (m + 1,) uint32 where each list's pieces start. Entries of one `record` stay together: one thread moves it."""
    counts = -(-(last - first) // PIECE)
    number = np.repeat(np.arange(first.size), counts)
    ptr = np.concatenate([[0], np.cumsum(counts)])
    start = first[number] + PIECE * (np.arange(number.size) - ptr[number])
    if record is not None and number.size:
        inside = np.flatnonzero(start > first[number])
        while inside.size:
            inside = inside[start[inside] < last[number[inside]]]
            inside = inside[record[start[inside]] == record[start[inside] - 1]]
            start[inside] += 1
    end = np.append(start[1:], 0)
    of_list_end = np.append(number[1:] != number[:-1], True) if number.size else np.empty(0, bool)
    end = np.where(of_list_end, last[number], end)
    return np.stack([number, start, end], axis=1).astype(np.uint32), ptr.astype(np.uint32)
