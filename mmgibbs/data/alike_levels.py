"""Levels of a column that may be one (male, Male; 1, 1.0), and codes for an unknown one (UNK, -9): found and described.

Read as they are, each spelling has an effect of its own, estimated from its own records. Nothing is ever joined or
taken for missing without the user's word.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np
import polars as pl

from mmgibbs.data.missing_codes import find_score_codes
from mmgibbs.data.phenotypes import SHOWN
from mmgibbs.pedigree.spelling import are_unknown_codes, normal_forms, parse_numbers
from mmgibbs.pedigree.tables import agreeing, counted, quoted

_GENOTYPE = re.compile(r"(?:([^\W\d_])[/|]?\1)+", re.IGNORECASE)  # Aa, A/a, AaBb: case tells the alleles apart
_DECIMALS = re.compile(r"([+-]?\d+[.,])(\d+)")
_MAX_SCORES = 12  # levels of which one of 9, 99 may be a code

Advice = Callable[[Sequence[str]], str]  # cells that may mean a missing value -> what to write


def group_alike(levels: Sequence[str], every: pl.Series) -> list[list[str]]:
    """Return levels that may be one in another spelling (`normal_form`), in groups of two and more, in their order.
    every: all levels of the column.

    Genotypes at a gene (AA, Aa, aa) are different levels, and so are numbers within numbers (1.1, ..., 1.9, 1.10).
    """
    forms = normal_forms(pl.Series(levels, dtype=pl.String)).to_list()
    groups: dict[str, list[str]] = {}
    for level, form in zip(levels, forms, strict=True):
        groups.setdefault(form, []).append(level)
    return [g for g in groups.values() if len(g) > 1 and not _are_genotypes(g) and not _are_numbered(g, every)]


def _are_genotypes(group: Sequence[str]) -> bool:
    return all(_GENOTYPE.fullmatch(level) for level in group)


def _are_numbered(group: Sequence[str], every: pl.Series) -> bool:
    """1.1 and 1.10, where 1.9 is a level too: the first and the tenth."""
    parts = [_DECIMALS.fullmatch(level) for level in group]
    return all(match is not None and int(match[2]) and (every == f"{match[1]}9").any() for match in parts)


def describe_alike(text: pl.Series, column: str) -> str | None:
    """Return what to say of levels that may be one. text: (n,) String, the level of each record, null where missing."""
    counts = _records_of_levels(text)
    repeated = normal_forms(counts["level"]).is_duplicated()
    of = _sort_levels(counts.filter(repeated))  # of what may be millions
    groups = group_alike(list(of), counts["level"])
    if not groups:
        return None
    shown = [" and ".join(f"{quoted(v)} ({counted(of[v], 'record')})" for v in group) for group in groups[:SHOWN]]
    more = f"; and {len(groups) - SHOWN} more such" if len(groups) > SHOWN else ""
    return (
        f"levels of column {quoted(column)} differ only in how they are written, and are different levels: "
        f"{'; '.join(shown)}{more}. Where they mean the same, write it in one way in the table, as "
        f"{quoted(groups[0][0])}"
    )


def describe_unknown(text: pl.Series, column: str, advise: Advice) -> str | None:
    """Return what to say of levels that may mean a missing value. text: as above."""
    counts = _records_of_levels(text)
    if counts.height == 0:
        return None
    words = counts["level"].filter(are_unknown_codes(counts["level"], "level")).to_list()
    codes = {*words, *_codes_of_scores(counts)}
    of = _sort_levels(counts.filter(pl.col("level").is_in(list(codes))))
    unknown = list(of)
    if not unknown or len(unknown) == counts.height:
        return None  # where all are such words they are names
    listed = ", ".join(f"{quoted(v)} ({counted(of[v], 'record')})" for v in unknown[:SHOWN])
    return (
        f"column {quoted(column)} has {counted(len(unknown), 'level')} that may mean a missing value and "
        f"{agreeing(len(unknown), 'counts')} as any other: {listed}. Where it means one, {advise(unknown)}"
    )


def _codes_of_scores(counts: pl.DataFrame) -> set[str]:
    """9 beside 1 and 2, or 99 beside 1, ..., 5: levels that are numbered from 0 or 1 but for one."""
    if not 3 <= counts.height <= _MAX_SCORES:
        return set()
    numbers = parse_numbers(counts["level"]).to_numpy()
    codes = None if np.isnan(numbers).any() else find_score_codes(numbers)
    if codes is None or codes.low not in (0, 1) or codes.high - codes.low + 2 != len(numbers):
        return set()
    return {level for level, number in zip(counts["level"], numbers, strict=True) if number == codes.codes[0].value}


def _records_of_levels(text: pl.Series) -> pl.DataFrame:
    """Columns level and count, its records."""
    return pl.DataFrame({"level": text}).drop_nulls()["level"].value_counts()


def _sort_levels(counts: pl.DataFrame) -> dict[str, int]:
    """Level -> its records, the most frequent first."""
    return dict(counts.sort(["count", "level"], descending=[True, False]).iter_rows())
