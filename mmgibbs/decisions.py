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
    codes = _candidates(asked, _labels(asked.term, prepared), prepared.pedigree)
    if codes.size < 2:
        raise ConfigError(f"decisions.candidates: found {codes.size} of them, needed at least two to choose among")
    labels = component_names(random)
    weights = np.array([[of.get(label, 0.0) for label in labels] for of in criteria(asked, random).values()])
    return Decisions(asked.term, codes, weights, tuple(max(1, round(codes.size * x / 100)) for x in asked.top))


def decision_facts(analysis, decisions: Decisions) -> dict:
    """For run.json."""
    asked, m = analysis.decisions, decisions.codes.size
    binned = f"in bins at most 1/{RELATIVE} of their first rank wide ({m:,} candidates are above {EXACT:,})"
    return {
        "term": asked.term,
        "candidates": m,
        "criteria": criteria(asked, analysis.model.random[asked.term]),
        "selected": {f"{x:g}": n for x, n in zip(asked.top, decisions.selected, strict=True)},
        "ranks": "exact" if m <= EXACT else binned,
        "bytes_per_chain": decisions.nbytes,
    }


def decision_notes(analysis, prepared, decisions: Decisions | None) -> list[str]:
    """What was understood, for the user: who is ranked by what, and who is not for want of a birth."""
    if decisions is None:
        return []
    facts = decision_facts(analysis, decisions)
    by = ", ".join(facts["criteria"])
    notes = [f"decisions: {facts['candidates']:,} candidates of {facts['term']} by {by}; ranks are {facts['ranks']}"]
    if analysis.decisions.candidates.born_after is not None:
        labels = _labels(analysis.decisions.term, prepared)
        unknown = _birth_years(labels.ids.head(len(labels.ids) - labels.n_groups), prepared.pedigree).null_count()
        notes += [f"decisions.candidates.born_after: {unknown:,} without a birth are no candidates"] if unknown else []
    return notes


def candidate_ids(decisions: Decisions, prepared) -> pl.Series:
    """(m,) String."""
    return _labels(decisions.term, prepared).ids.gather(decisions.codes)


def _labels(term: str, prepared):
    return next(labels for t, labels in zip(prepared.design.terms, prepared.levels, strict=True) if t.name == term)


def _candidates(asked, labels, pedigree) -> np.ndarray:
    """(m,) int64 level codes: in the order given, or in that of the solutions. Unknown-parent groups are none."""
    wanted, known = asked.candidates, labels.ids.head(len(labels.ids) - labels.n_groups)
    if wanted.ids:
        return _codes(wanted.ids, "decisions.candidates", known, asked.term)
    if wanted.file is not None:
        where = f"decisions.candidates.file: '{wanted.file}'"
        return _codes(_ids_of(wanted.file, where), where, known, asked.term)
    order = np.asarray(labels.order, np.int64)
    order = order[order < len(known)]
    if wanted.born_after is None:
        return order
    return order[(_birth_years(known.gather(order), pedigree) > wanted.born_after).fill_null(False).to_numpy()]


def _codes(ids: Sequence[str], where: str, known: pl.Series, term: str) -> np.ndarray:
    codes = lookup(pl.Series(ids, dtype=pl.String), known)
    unknown = [id_ for id_, missing in zip(ids, codes.is_null(), strict=True) if missing]
    if unknown:
        more = f" and {len(unknown) - SHOWN:,} more" if len(unknown) > SHOWN else ""
        named = ", ".join(f"'{u}'" for u in unknown[:SHOWN])
        raise ConfigError(f"{where}: found {named}{more}, needed ids among the {len(known):,} levels of {term}")
    return codes.to_numpy().astype(np.int64)


def _ids_of(path: Path, where: str) -> list[str]:
    """One id per line; blank lines are passed over."""
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


def _birth_years(ids: pl.Series, pedigree) -> pl.Series:
    """(levels,) Int64 year of birth, null where unknown."""
    if pedigree is None or pedigree.birth is None:
        raise ConfigError(
            "decisions.candidates.born_after: found no births, needed a pedigree with them "
            "(data.pedigree_columns: {birth: COLUMN})"
        )
    births = pl.Series(pedigree.birth, nan_to_null=True)
    animals = pl.DataFrame({"id": pedigree.ids.head(len(births)), "birth": births})
    own = pl.DataFrame({"id": ids}).join(animals, on="id", how="left", maintain_order="left")["birth"]
    return birth_years(own, most=len(own))  # each year by itself
