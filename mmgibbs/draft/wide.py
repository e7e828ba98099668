"""Tables of thousands of columns: which of them are looked at one by one, and which are only counted.

To look at a column takes milliseconds. Columns of genotypes are set aside as one, and of the others the most promising
are looked at: those that the user asks for, those with a name that says something, then text, then the first.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import polars as pl

from mmgibbs.draft.roles import RESULTS, has_word, hint
from mmgibbs.pedigree.columns import RECOGNISED

MIN_ALIKE = 10  # columns of genotypes with similar names
MIN_GENOTYPES = 50  # with any names
MAX_LOOKED_AT = 200
MAX_READ = 20_000
_MAX_GENOTYPES_OF_A_SNP = 4  # different cells, one of them for a missing value
_CELL = r"^(?:[012]|-1|[59]|-9|NA|\.|-|--|[ACGTN0-]{2}|[AB-]{2}|[ACGTN0]/[ACGTN0]|[01.][/|][01.])$"


_OF_ANIMALS = {name for names in RECOGNISED.values() for name in names}


class SetAside(NamedTuple):
    """Columns that are not looked at one by one."""

    first: str
    n: int
    why: str


def choose_names(names: Sequence[str], wanted: Sequence[str]) -> tuple[list[str], list[SetAside]]:
    """Return (columns that are read, what is set aside unread) of a table of so many columns that not all are read."""
    if len(names) <= MAX_READ:
        return list(names), []
    likely = {n for n in names if n in wanted or hint(n) is not None or _plain(n) in _OF_ANIMALS}
    rest = [n for n in names if n not in likely]
    chosen = set([*[n for n in names if n in likely], *rest][:MAX_READ])
    unread = [n for n in names if n not in chosen]
    why = f"init reads {MAX_READ:,} columns at most; name other traits in --traits, and genotypes in --genotypes"
    return [n for n in names if n in chosen], [SetAside(unread[0], len(unread), why)]


def split_columns(frame: pl.DataFrame, wanted: Sequence[str]) -> tuple[list[str], list[SetAside]]:
    """Return (columns to look at, in the order of the table; what is set aside). wanted: columns asked for."""
    if frame.width <= MIN_ALIKE:
        return frame.columns, []
    aside = []
    genotypes = _genotypes(frame, wanted)
    if genotypes:
        aside.append(SetAside(genotypes[0], len(genotypes), "columns of 0, 1 and 2, or of alleles: genotypes?"))
    left_out = set(genotypes)
    rest = [c for c in frame.columns if c not in left_out]
    if len(rest) > MAX_LOOKED_AT:
        chosen = set(_most_promising(frame.select(rest), wanted))
        remaining = [c for c in rest if c not in chosen]
        why = f"init looks at {MAX_LOOKED_AT} columns at most; name in --traits what else is a trait"
        aside.append(SetAside(remaining[0], len(remaining), why))
        rest = [c for c in rest if c in chosen]
    return rest, aside


def _genotypes(frame: pl.DataFrame, wanted: Sequence[str]) -> list[str]:
    """Columns of few cells, all of them like genotypes: those with similar names, or all where they are many."""
    few = frame.select(pl.all().drop_nulls().n_unique() <= _MAX_GENOTYPES_OF_A_SNP).row(0)
    candidates = [c for c, is_few in zip(frame.columns, few, strict=True) if is_few and c not in wanted]
    if len(candidates) < MIN_ALIKE:
        return []
    alike = frame.select(pl.col(candidates).str.contains(_CELL).all()).row(0)
    candidates = [c for c, is_alike in zip(candidates, alike, strict=True) if is_alike]
    stems = {c: c.rstrip("0123456789") for c in candidates}
    counts = Counter(stems.values())
    series = [c for c in candidates if stems[c] != c and counts[stems[c]] >= MIN_ALIKE]
    nameless = [c for c in candidates if hint(c) is None]
    genotypes = set(series) | set(nameless if len(nameless) >= MIN_GENOTYPES else ())
    return [c for c in candidates if c in genotypes]


def _plain(column: str) -> str:
    return re.sub(r"[\W_]+", "", column.lower())


def _most_promising(frame: pl.DataFrame, wanted: Sequence[str]) -> list[str]:
    """MAX_LOOKED_AT columns, the most promising first."""
    no_number = frame.select(pl.all().cast(pl.Float64, strict=False).null_count() > pl.all().null_count()).row(0)
    is_text = dict(zip(frame.columns, no_number, strict=True))

    def rank(column: str) -> int:
        if column in wanted or _plain(column) in _OF_ANIMALS:
            return 0
        if hint(column) is not None and not has_word(column, RESULTS):
            return 1
        return 2 if is_text[column] else 3

    return sorted(frame.columns, key=rank)[:MAX_LOOKED_AT]
