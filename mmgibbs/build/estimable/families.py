"""A part of the records in which levels, relatives and fixed effects meet again, as they do in all of them.

Error contrasts of a part of the records are error contrasts of all. What a part determines, all determine; so a
thousand records chosen well save the work on millions. From a few records the part grows along what they share: a level
of an effect, a parent, a progeny. Of each it takes a few records, so that many levels have several records in the part.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

import numpy as np

from mmgibbs.models.design import Design
from mmgibbs.models.terms import Term

RECORDS_OF_EACH = 4  # that are taken of a level
SEEDS = 6  # records that the part grows from, beside one of each missing pattern


class _Groups:
    """Records by a code (n,) of each, -1: none."""

    def __init__(self, code: np.ndarray):
        self.code = code
        self.order = np.argsort(code, kind="stable")
        self.sorted = code[self.order]

    def members(self, code: int) -> np.ndarray:
        first, last = np.searchsorted(
            self.sorted, np.array([code, code + 1], self.sorted.dtype)
        )  # of one type: no copy
        return self.order[first:last]


class _Links:
    """Records of the same level of an effect, and of relatives: of each level some others, by kind (-1: none)."""

    def __init__(self, level: np.ndarray, relatives: Sequence[np.ndarray]):
        self.same_level = _Groups(level)
        self.relatives = relatives
        self.by_relative = [_Groups(np.where(level >= 0, of_level[level], -1)) for of_level in relatives]

    def groups(self, record: int) -> Iterator[np.ndarray]:
        """Groups of records that this one is linked to."""
        level = int(self.same_level.code[record])
        if level < 0:
            return
        yield self.same_level.members(level)
        for of_level, groups in zip(self.relatives, self.by_relative, strict=True):
            yield groups.members(level)
            if of_level[level] >= 0:
                yield groups.members(int(of_level[level]))
                yield self.same_level.members(int(of_level[level]))


def sample_families(design: Design, size: int, seed: int) -> np.ndarray:
    """(m,) positions of at most `size` records, rising; all of them where there are no more."""
    n = design.n_records
    if n <= size:
        return np.arange(n)
    rng = np.random.Generator(np.random.Philox(key=seed))
    links = [_Links(level, _list_relatives(term)) for term in design.terms for level in term.incidence.slots]
    links += [_Links(markers.animal, ()) for markers in design.markers]
    by_pattern = _Groups(design.pattern)
    seeds = [int(rng.choice(by_pattern.members(p))) for p in np.unique(design.pattern)]
    waiting = deque([*seeds[: size // 4], *rng.choice(n, SEEDS).tolist()])
    chosen = dict.fromkeys(waiting)
    while len(chosen) < size:
        record = waiting.popleft() if waiting else int(rng.integers(n))
        chosen[record] = None
        for link in links:
            for group in link.groups(record):
                for relative in rng.choice(group, min(RECORDS_OF_EACH, group.size), replace=False).tolist():
                    if relative not in chosen:
                        chosen[relative] = None
                        waiting.append(relative)
    return np.sort(np.fromiter(chosen, np.int64)[:size])


def _list_relatives(term: Term) -> list[np.ndarray]:
    """List for each kind of relative (q,) one of each level, -1 where there is none."""
    if term.kind != "random":
        return []
    out = []
    for first, second in term.relationship.edges():
        known = (np.asarray(first) >= 0) & (np.asarray(second) >= 0) & (np.asarray(first) != np.asarray(second))
        relative = np.full(term.n_levels, -1, np.int64)
        relative[np.asarray(first)[known]] = np.asarray(second)[known]
        out.append(relative)
    return out
