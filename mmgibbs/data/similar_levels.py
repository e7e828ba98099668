"""Levels of classes that may be one (male, Male; 1, 1.0), and codes for an unknown one (UNK, -9).

Read as they are, each spelling has an effect of its own, estimated from its own records. Nothing is ever joined or
taken for missing without the user's word: here they are only found.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from mmgibbs.config import Analysis
from mmgibbs.config.relationships import Identity
from mmgibbs.data.animal_ids import guess_parent_role
from mmgibbs.data.covariate_codes import advise_on_fixed
from mmgibbs.data.missing_codes import find_score_codes, written_codes
from mmgibbs.data.phenotypes import SHOWN
from mmgibbs.data.random import ANIMAL_COLUMNS, PARENT_COLUMNS
from mmgibbs.data.traits import Records, observing
from pedigree.spelling import are_unknown_codes, normal_forms, parse_numbers
from pedigree.tables import agreeing, counted, quoted

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


def warn_of_similar_levels(analysis: Analysis, records: Records) -> tuple[str, ...]:
    """Return a warning for each class column, fixed or random, with levels that may be one, or may be none."""
    phenotypes, out = records.phenotypes, []
    for of_class in _class_columns(analysis, phenotypes.missing):
        column, path = of_class.column, of_class.path
        if not phenotypes.has(column):
            continue  # parents that the pedigree has
        needed = observing(records.observed, [i for i, t in enumerate(analysis.traits) if t.name in of_class.traits])
        text = phenotypes.text(column, path, of_class.missing).filter(pl.Series(needed))
        for said in (describe_alike(text, column), describe_unknown(text, column, of_class.advise)):
            out += [] if said is None else [f"{phenotypes.name}: {path}: {said}"]
    return tuple(out)


class _ClassColumn(NamedTuple):
    """A column of classes."""

    column: str
    path: str  # in the analysis file
    traits: tuple[str, ...]  # that it acts on
    missing: tuple[str, ...]  # of the effect
    advise: Advice


def _class_columns(analysis: Analysis, missing: Sequence[str]) -> list[_ClassColumn]:
    """Every column of classes, once. missing: data.missing as it is.

    Ids of animals are none: the pedigree and the genotypes say how these are written.
    """

    def advise_for_table(cells: Sequence[str]) -> str:
        return (
            f"write data.missing: {written_codes((*missing, *cells))}, and correct these records or leave them out, as "
            "each needs a level"
        )

    def advise_for_fixed(path: str, present: Sequence[str]) -> Advice:
        return lambda cells: advise_on_fixed(path, written_codes((*present, *cells)))

    def advise_for_random(path: str, present: Sequence[str], omit: str) -> Advice:
        return lambda cells: f"write {path}.missing: {written_codes((*present, *cells))}{omit}"

    model = analysis.model
    columns: list[_ClassColumn] = []
    ids = {*ANIMAL_COLUMNS, *PARENT_COLUMNS, *(m.level for m in model.markers.values())}
    for random in model.random.values():
        related = not isinstance(random.relationship, Identity)
        levels = {c for e in random.effects.values() for c in e.level_columns}
        ids |= {c for c in levels if related or guess_parent_role(c) is not None}
    for name, fixed in model.fixed.items():
        path, traits = f"model.fixed.{name}", tuple(fixed.traits)
        if fixed.kind == "class" or fixed.interaction:
            advise = advise_for_fixed(path, fixed.missing)
            columns += [_ClassColumn(c, path, traits, fixed.missing, advise) for c in fixed.class_columns]
        elif fixed.by is not None:
            columns.append(_ClassColumn(fixed.by, f"{path}.by", traits, (), advise_for_table))
    by = analysis.variances.residual.by
    if by is not None:
        every = tuple(t.name for t in analysis.traits)
        columns.append(_ClassColumn(by, "variances.residual.by", every, (), advise_for_table))
    for name, random in model.random.items():
        for of_effect, effect in random.effects.items():
            path = f"model.random.{name}" + (f".effects.{of_effect}" if of_effect else "")
            omit = "" if effect.unknown_level == "omit" else f" and {path}.unknown_level: omit"
            advise = advise_for_random(path, effect.missing, omit)
            traits = tuple(effect.traits)
            columns += [_ClassColumn(c, path, traits, effect.missing, advise) for c in effect.level_columns]
    first = {of_class.column: of_class for of_class in reversed(columns)}
    return [of_class for of_class in columns if of_class is first[of_class.column] and of_class.column not in ids]
