"""Levels of classes that are one level written in two ways (male, Male), and words for an unknown one (UNK, ?).

Read as they are, each spelling has an effect of its own, estimated from its own records. Nothing is ever joined or
taken for missing without the user's word: here they are only found.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import polars as pl

from mmgibbs.config import Analysis
from mmgibbs.config.relationships import Identity
from mmgibbs.data.phenotypes import SHOWN
from mmgibbs.data.random import ANIMAL_COLUMNS, PARENT_COLUMNS
from mmgibbs.data.traits import Records, observing
from pedigree.tables import agreeing, counted, quoted

# 'none', 'missing' and '-' may be treatments or what was seen, and are left alone.
UNKNOWN = ("?", "??", ".", "unk", "unkn", "unknown", "na", "n/a", "n.a.", "nan", "null", "#n/a")
_BLANKS = re.compile(r"(?<!\d)\s+|\s+(?!\d)")  # '1 1' and '11' are other levels: between digits blanks tell apart
_SOME_BLANKS = re.compile(r"\s+")
_GENOTYPE = re.compile(r"(?:([^\W\d_])[/|]?\1)+", re.IGNORECASE)  # Aa, A/a, AaBb: case tells the alleles apart


def alike(levels: Iterable[str]) -> list[list[str]]:
    """Levels that differ only by case or blanks, in groups of two and more; the order of `levels` is kept. Genotypes
    at a gene (AA, Aa, aa) are other levels.
    """
    groups: dict[str, list[str]] = {}
    for level in dict.fromkeys(levels):
        groups.setdefault(_BLANKS.sub("", _SOME_BLANKS.sub(" ", level.casefold())), []).append(level)
    return [g for g in groups.values() if len(g) > 1 and not all(_GENOTYPE.fullmatch(level) for level in g)]


def said_of_alike(text: pl.Series, column: str) -> str | None:
    """What to say of levels that may be one. text: (n,) String, the level of each record, null where missing."""
    counts = _records_of_levels(text)
    folded = counts["level"].str.to_lowercase().str.replace_all(r"\s", "")
    of = _by_frequency(counts.filter(folded.is_duplicated()))  # of what may be millions
    groups = alike(of)
    if not groups:
        return None
    shown = [" and ".join(f"{quoted(v)} ({counted(of[v], 'record')})" for v in group) for group in groups[:SHOWN]]
    more = f"; and {len(groups) - SHOWN} more such" if len(groups) > SHOWN else ""
    return (
        f"levels of column {quoted(column)} differ by case or blanks alone, and are different levels: "
        f"{'; '.join(shown)}{more}. Where they mean the same, write it in one way in the table, as "
        f"{quoted(groups[0][0])}"
    )


def said_of_unknown(text: pl.Series, column: str, missing: Sequence[str]) -> str | None:
    """What to say of levels that may mean a missing value. text as above; missing: data.missing as it is."""
    counts = _records_of_levels(text)
    of = _by_frequency(counts.filter(pl.col("level").str.to_lowercase().is_in(UNKNOWN)))
    unknown = list(of)
    if not unknown or len(unknown) == counts.height:
        return None  # where all are such words they are names
    listed = ", ".join(f"{quoted(v)} ({counted(of[v], 'record')})" for v in unknown[:SHOWN])
    written = ", ".join(quoted(v) for v in dict.fromkeys((*missing, *unknown)))
    return (
        f"column {quoted(column)} has {counted(len(unknown), 'level')} that may mean a missing value and "
        f"{agreeing(len(unknown), 'counts')} as any other: {listed}. Where it means one, write data.missing: "
        f"[{written}]"
    )


def _records_of_levels(text: pl.Series) -> pl.DataFrame:
    """Columns level and count, its records."""
    return pl.DataFrame({"level": text}).drop_nulls()["level"].value_counts()


def _by_frequency(counts: pl.DataFrame) -> dict[str, int]:
    """Level -> its records, the most frequent first."""
    return dict(counts.sort(["count", "level"], descending=[True, False]).iter_rows())


def warn_of_similar_levels(analysis: Analysis, records: Records) -> tuple[str, ...]:
    """A warning for each class column, fixed or random, with levels that may be one, or may be none."""
    phenotypes, out = records.phenotypes, []
    for column, (path, traits, after) in _class_columns(analysis).items():
        if not phenotypes.has(column):
            continue  # parents that the pedigree has
        needed = observing(records.observed, [i for i, t in enumerate(analysis.traits) if t.name in traits])
        text = phenotypes.text(column, path).filter(pl.Series(needed))
        same, unknown = said_of_alike(text, column), said_of_unknown(text, column, phenotypes.missing)
        out += [] if same is None else [f"{phenotypes.name}: {path}: {same}"]
        out += [] if unknown is None else [f"{phenotypes.name}: {path}: {unknown}{after}"]
    return tuple(out)


_NEEDS_A_LEVEL = ", and correct these records or leave them out, as each needs a level"


def _class_columns(analysis: Analysis) -> dict[str, tuple[str, tuple[str, ...], str]]:
    """Column -> (YAML path, traits that it acts on, what its records need once a level is missing).

    Ids of animals are none: the pedigree and the genotypes say how these are written.
    """
    model = analysis.model
    found: dict[str, tuple[str, tuple[str, ...], str]] = {}
    ids = {*ANIMAL_COLUMNS, *PARENT_COLUMNS, *(m.level for m in model.markers.values())}
    for random in model.random.values():
        if not isinstance(random.relationship, Identity):
            ids |= {effect.level for effect in random.effects.values()}
    for name, fixed in model.fixed.items():
        if fixed.kind == "class":
            found.setdefault(fixed.column, (f"model.fixed.{name}", tuple(fixed.traits), _NEEDS_A_LEVEL))
        elif fixed.by is not None:
            found.setdefault(fixed.by, (f"model.fixed.{name}.by", tuple(fixed.traits), _NEEDS_A_LEVEL))
    by = analysis.variances.residual.by
    if by is not None:
        found.setdefault(by, ("variances.residual.by", tuple(t.name for t in analysis.traits), _NEEDS_A_LEVEL))
    for name, random in model.random.items():
        for of_effect, effect in random.effects.items():
            path = f"model.random.{name}" + (f".effects.{of_effect}" if of_effect else "")
            omit = "" if effect.unknown_level == "omit" else f" and {path}.unknown_level: omit"
            found.setdefault(effect.level, (path, tuple(effect.traits), omit))
    return {column: what for column, what in found.items() if column not in ids}
