"""Section `decisions` of an analysis against its data: candidates as levels, criteria as weights of components."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl

from mmgibbs.chains.decisions import EXACT, RELATIVE, Decisions
from mmgibbs.config import component_names, criteria
from mmgibbs.data.levels import lookup
from mmgibbs.errors import ConfigError
from mmgibbs.report.animals import birth_years

SHOWN = 5  # unknown ids named one by one


def decisions_asked_for(analysis, prepared) -> Decisions | None:
    """What every chain counts; ConfigError where candidates are unknown, or fewer than two."""
    asked = analysis.decisions
    if asked is None:
        return None
    random = analysis.model.random[asked.term]
    index = next(i for i, t in enumerate(prepared.design.terms) if t.name == asked.term)
    codes = _candidates(asked, prepared.levels[index], prepared.pedigree)
    if codes.size < 2:
        raise ConfigError(f"decisions.candidates: found {codes.size} of them, needed at least two to choose among")
    labels = component_names(random)
    weights = np.array([[of.get(label, 0.0) for label in labels] for of in criteria(asked, random).values()])
    return Decisions(asked.term, codes, weights, tuple(max(1, round(codes.size * x / 100)) for x in asked.top))


def decision_facts(analysis, decisions: Decisions) -> dict:
    """For run.json."""
    asked, m = analysis.decisions, decisions.codes.size
    return {
        "term": asked.term,
        "candidates": m,
        "criteria": criteria(asked, analysis.model.random[asked.term]),
        "selected": {f"{x:g}": n for x, n in zip(asked.top, decisions.selected, strict=True)},
        "ranks": "exact"
        if m <= EXACT
        else f"in bins at most 1/{RELATIVE} of their first rank wide ({m:,} candidates are above {EXACT:,})",
        "bytes_per_chain": decisions.nbytes,
    }


def _candidates(asked, labels, pedigree) -> np.ndarray:
    """(m,) int64 level codes: in the order given, or in that of the solutions."""
    n, wanted = len(labels.ids) - labels.n_groups, asked.candidates
    if wanted.ids:
        return _codes(wanted.ids, "decisions.candidates", labels.ids.head(n), asked.term)
    if wanted.file is not None:
        return _codes(
            _ids_of(wanted.file), f"decisions.candidates.file: '{wanted.file}'", labels.ids.head(n), asked.term
        )
    order = np.asarray(labels.order, np.int64)
    order = order[order < n]
    return (
        order
        if wanted.born_after is None
        else order[_born_after(wanted.born_after, labels.ids.gather(order), pedigree)]
    )


def _codes(ids: Sequence[str], where: str, known: pl.Series, term: str) -> np.ndarray:
    codes = lookup(pl.Series(ids, dtype=pl.String), known)
    unknown = [id_ for id_, missing in zip(ids, codes.is_null(), strict=True) if missing]
    if unknown:
        more = f" and {len(unknown) - SHOWN:,} more" if len(unknown) > SHOWN else ""
        named = ", ".join(f"'{u}'" for u in unknown[:SHOWN])
        raise ConfigError(f"{where}: found {named}{more}, needed ids among the {len(known):,} levels of {term}")
    return codes.to_numpy().astype(np.int64)


def _ids_of(path: Path) -> list[str]:
    """One id per line; blank lines are passed over."""
    where = f"decisions.candidates.file: '{path}'"
    try:
        ids = [line.strip() for line in path.read_text(encoding="utf-8-sig").splitlines() if line.strip()]
    except OSError as error:
        raise ConfigError(f"{where}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{where}: is not UTF-8 text, needed one id per line") from None
    if not ids:
        raise ConfigError(f"{where}: found no id, needed one id per line")
    twice = pl.Series(ids).filter(pl.Series(ids).is_duplicated())
    if len(twice):
        raise ConfigError(f"{where}: found '{twice[0]}' twice, needed every candidate once")
    return ids


def _born_after(year: float, ids: pl.Series, pedigree) -> np.ndarray:
    """(levels,) bool; animals without a known birth are no candidates."""
    where = "decisions.candidates.born_after"
    if pedigree is None or pedigree.birth is None:
        raise ConfigError(
            f"{where}: found no births, needed a pedigree with them (data.pedigree_columns: {{birth: COLUMN}})"
        )
    animals = pl.DataFrame(
        {"id": pedigree.ids.head(len(pedigree.birth)), "birth": pl.Series(pedigree.birth, nan_to_null=True)}
    )
    births = pl.DataFrame({"id": ids}).join(animals, on="id", how="left", maintain_order="left")["birth"]
    return (birth_years(births, most=len(births) + 10_000) > year).fill_null(False).to_numpy()
