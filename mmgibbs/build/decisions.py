"""Section `decisions` of an analysis against its data: candidates as levels, criteria as weights of components."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from mmgibbs.build.assemble import Assembled
from mmgibbs.build.observed_scale import make_probabilities
from mmgibbs.build.totals import make_total
from mmgibbs.config import Analysis, component_names, criteria
from mmgibbs.config import Decisions as Asked
from mmgibbs.config.decisions import parse_record_criterion
from mmgibbs.data.animal_ids import explain_respelled
from mmgibbs.data.ids_file import read_ids_file
from mmgibbs.data.prepared import LevelLabels, Prepared
from mmgibbs.errors import ConfigError, nearest
from mmgibbs.pedigree.messages import ResultWarning
from mmgibbs.pedigree.parents import find_rows
from mmgibbs.pedigree.recode import IdIndex
from mmgibbs.pedigree.tables import counted, quoted
from mmgibbs.posterior.decisions import EXACT, RELATIVE, Decided, Decisions
from mmgibbs.posterior.moments import LONG_ENOUGH
from mmgibbs.posterior.probabilities import Probabilities
from mmgibbs.posterior.totals import TotalValues

SHOWN = 5  # unknown ids named one by one


def read_decisions(analysis: Analysis, prepared: Prepared, assembled: Assembled) -> Decisions | None:
    """List what every chain counts; ConfigError where candidates are unknown, or fewer than two."""
    asked = analysis.decisions
    if asked is None:
        return None
    random = analysis.model.random[asked.term]
    wanted = criteria(asked, random)
    totals = _totals(wanted, asked.term, prepared, assembled)
    labels = _labels(asked.term, prepared)
    if totals:
        labels = replace(labels, order=totals[0].codes)
    codes = _candidates(asked, labels, prepared)
    if totals:
        codes = _with_totals(asked, codes, totals, labels)
    if codes.size < 2:
        raise ConfigError(f"decisions.candidates: found {codes.size} of them, needed at least two to choose among")
    selected = tuple(_selected(codes.size, x) for x in asked.top)
    for x, n in zip(asked.top, selected, strict=True):
        if n == codes.size:
            raise ConfigError(f"decisions.top: {x:g} % of {n:,} candidates are all of them, needed fewer")
    components = component_names(random)
    weights = np.array([[of.get(label, 0.0) for label in components] for of in wanted.values()])
    on_scale = _record_scale_criteria(wanted, asked.term, prepared, assembled)
    totals_of_candidates = tuple(total.of_codes(codes) for total in totals)
    return Decisions(asked.term, codes, weights, selected, asked.rank_interval, on_scale, totals_of_candidates)


def _totals(
    wanted: Mapping[str, Mapping[str, float]], term: str, prepared: Prepared, assembled: Assembled
) -> list[TotalValues]:
    """List the totals of every trait that a criterion weighs and SNPs affect: breeding values include these."""
    design, infos = prepared.design, assembled.terms
    info = next(info for info in infos if info.name == term)
    names = {name for weights in wanted.values() for name in weights}
    traits = {info.trait_of_component[c] for c, label in enumerate(info.components) if label in names}
    traits |= {design.traits.index(asked[1]) for name in names if (asked := parse_record_criterion(name)) is not None}
    totals = []
    for t in sorted(traits & {m.trait for m in design.markers}):
        total = make_total(t, infos, prepared)
        if total is None or design.terms[total.term].name != term:
            snps = next(m.name for m in design.markers if m.trait == t)
            raise ConfigError(
                f"decisions: found SNP effects (model.markers.{snps}) on {design.traits[t]}, which cannot be "
                f"added to {term} to give breeding values; needed one effect of the animal itself in {term}, of the "
                f"column model.markers.{snps}.level and without covariates"
            )
        totals.append(total)
    return totals


def _with_totals(asked: Asked, codes: np.ndarray, totals: Sequence[TotalValues], labels: LevelLabels) -> np.ndarray:
    """The candidates whose genotypes are known, or predicted; ConfigError for one that was asked for by its id."""
    known = np.isin(codes, totals[0].codes)
    for total in totals[1:]:
        known &= np.isin(codes, total.codes)
    unknown = labels.ids.gather(codes[~known])
    if (asked.candidates.ids or asked.candidates.file is not None) and len(unknown):
        more = f" and {len(unknown) - SHOWN:,} more" if len(unknown) > SHOWN else ""
        raise ConfigError(
            f"decisions.candidates: found {', '.join(quoted(i) for i in unknown.head(SHOWN))}{more} without genotypes, "
            "whose genomic values are unknown; needed genotyped candidates (with single_step, those with records too)"
        )
    return codes[known]


def _record_scale_criteria(
    wanted: Mapping[str, Mapping[str, float]], term: str, prepared: Prepared, assembled: Assembled
) -> tuple[tuple[Probabilities, np.ndarray], ...]:
    """Probabilities and expected counts in the criteria, with the weights (criteria, columns) of their columns."""
    design = prepared.design
    criteria: dict[str, tuple[Probabilities, np.ndarray]] = {}
    for name in dict.fromkeys(name for weights in wanted.values() for name in weights):
        asked = parse_record_criterion(name)
        if asked is None:
            continue
        what, trait, category = asked
        where = f"decisions.index: {name}"
        of = criteria.get(trait)
        if of is None:
            p = make_probabilities(trait, prepared, assembled.terms, assembled.model.observed, where)
            of = criteria[trait] = p, np.zeros((len(wanted), len(p.columns)))
        if of[0].term is None or design.terms[of[0].term].name != term:
            raise ConfigError(f"{where}: the animals' own effect on {trait} is not in {term}, whose levels are ranked")
        column = of[0].columns[0] if not category else f"{what}[{category}]"
        if column not in of[0].columns:
            raise ConfigError(f"{where}: {nearest(category, of[0].labels, f'the categories of {trait} are')}")
        of[1][:, of[0].columns.index(column)] = [weights.get(name, 0.0) for weights in wanted.values()]
    return tuple(criteria.values())


def _selected(m: int, per_cent: float) -> int:
    """The nearest whole number, of a half the one above, at least 1."""
    return max(1, int(np.floor(m * per_cent / 100 + 0.5 + 1e-9)))  # 1e-9: 0.7 % of 500 is a half, whatever its bits


def _asked(analysis: Analysis) -> Asked:
    assert analysis.decisions is not None, "an analysis without decisions"
    return analysis.decisions


def decision_facts(analysis: Analysis, decisions: Decisions) -> dict:
    """Return the facts for run.json."""
    asked, m = _asked(analysis), decisions.codes.size
    binned = (
        f"from rank {2 * RELATIVE} on in bins at most 1/{RELATIVE} of their first rank wide ({m:,} "
        f"candidates are above {EXACT:,})"
    )
    return {
        "term": asked.term,
        "candidates": m,
        "criteria": criteria(asked, analysis.model.random[asked.term]),
        "selected": {f"{x:g}": n for x, n in zip(asked.top, decisions.selected, strict=True)},
        "ranks": "exact" if m <= EXACT else binned,
        "bytes_per_chain": decisions.nbytes,
    }


def decision_notes(analysis: Analysis, prepared: Prepared, decisions: Decisions | None) -> list[str]:
    """Describe what was understood: who is ranked by what, and who is not for want of a birth."""
    if decisions is None:
        return []
    facts = decision_facts(analysis, decisions)
    by = ", ".join(facts["criteria"])
    notes = [f"decisions: {facts['candidates']:,} candidates of {facts['term']} by {by}; ranks are {facts['ranks']}"]
    asked = _asked(analysis)
    notes += _equal_counts(asked.top, decisions)
    if decisions.totals:
        notes.append("decisions: breeding values are totals of what SNPs and the pedigree explain, in every draw")
        lost = _candidates(asked, _labels(asked.term, prepared), prepared)
        lost = lost[~np.isin(lost, decisions.codes)]
        notes += (
            [ResultWarning(f"decisions.candidates: not candidates, without genotypes: {counted(lost.size, 'animal')}")]
            if lost.size
            else []
        )
    if asked.candidates.born_after is not None:
        labels = _labels(asked.term, prepared)
        unknown = _birth_years(labels.ids.head(len(labels.ids) - labels.n_groups), prepared).null_count()
        notes += (
            [
                ResultWarning(
                    f"decisions.candidates.born_after: not candidates, without a birth: {counted(unknown, 'animal')}"
                )
            ]
            if unknown
            else []
        )
    return notes


def _equal_counts(top: Sequence[float], decisions: Decisions) -> list[str]:
    """Few candidates: several per cents select as many of them."""
    notes = []
    for n in dict.fromkeys(decisions.selected):
        same = [f"{x:g}" for x, n_selected in zip(top, decisions.selected, strict=True) if n_selected == n]
        if len(same) > 1:
            best = f"the best {n:,}" if n > 1 else "the best one"
            notes.append(
                f"decisions.top: {', '.join(same[:-1])} and {same[-1]} % of {decisions.codes.size:,} candidates are "
                f"all {best}: their columns and rows are the same"
            )
    return notes


def short_batches(decided: Decided) -> list[str]:
    """A note where MCSE and ESS are left empty."""
    if decided.batch_length >= LONG_ENOUGH:
        return []
    return [
        f"decisions: MCSE and ESS are left empty: {decided.scores.n_draws:,} kept draws make batches of "
        f"{decided.batch_length}, needed {LONG_ENOUGH} (about 400 draws) to see the autocorrelation"
    ]


def candidate_ids(decisions: Decisions, prepared: Prepared) -> pl.Series:
    """(m,) String."""
    return _labels(decisions.term, prepared).ids.gather(decisions.codes)


def _labels(term: str, prepared: Prepared) -> LevelLabels:
    return next(labels for t, labels in zip(prepared.design.terms, prepared.levels, strict=True) if t.name == term)


def _candidates(asked: Asked, labels: LevelLabels, prepared: Prepared) -> np.ndarray:
    """(m,) int64 level codes: in the order given, or in that of the solutions. Unknown-parent groups are none."""
    wanted = asked.candidates
    if wanted.ids:
        return _codes(wanted.ids, [quoted(id_) for id_ in wanted.ids], "decisions.candidates", labels, asked.term)
    if wanted.file is not None:
        where = f"decisions.candidates.file: '{wanted.file}'"
        ids = read_ids_file(wanted.file, where, "candidate")
        named = [f"{quoted(id_)} (row {row})" for row, id_ in ids]
        return _codes([id_ for _, id_ in ids], named, where, labels, asked.term)
    known, order = labels.ids.head(len(labels.ids) - labels.n_groups), np.asarray(labels.order, np.int64)
    order = order[order < len(known)]
    if wanted.born_after is None:
        return order
    return order[(_birth_years(known.gather(order), prepared) > wanted.born_after).fill_null(False).to_numpy()]


def _codes(ids: Sequence[str], named: Sequence[str], where: str, labels: LevelLabels, term: str) -> np.ndarray:
    """named: each id as a message shows it."""
    ids = [id_.strip() for id_ in ids]
    known, groups = labels.ids.head(len(labels.ids) - labels.n_groups), labels.ids.tail(labels.n_groups).to_list()
    codes = find_rows(IdIndex(known), pl.Series(ids, dtype=pl.String))
    unknown = np.flatnonzero(codes < 0).tolist()
    if unknown:
        more = f" and {len(unknown) - SHOWN:,} more" if len(unknown) > SHOWN else ""
        unknown_ids = ", ".join(named[i] for i in unknown[:SHOWN])
        none = next(
            (
                f"; '{ids[i]}' is an unknown-parent group, and groups are not candidates"
                for i in unknown
                if ids[i] in groups
            ),
            "",
        )
        hint = explain_respelled(pl.Series([ids[i] for i in unknown]), known, term)
        raise ConfigError(
            f"{where}: found {unknown_ids}{more}, needed ids among the {len(known):,} levels of {term}{none}"
            + ("" if hint is None else f"; {hint}")
        )
    first: dict[int, int] = {}
    for k, code in enumerate(codes.tolist()):
        if first.setdefault(code, k) != k:
            raise ConfigError(
                f"{where}: found {named[first[code]]} and {named[k]}, which are one animal, needed every candidate once"
            )
    return codes.astype(np.int64)


def _birth_years(ids: pl.Series, prepared: Prepared) -> pl.Series:
    """(levels,) Int64 year of birth, null where unknown."""
    if prepared.pedigree is None or prepared.birth_years is None:
        raise ConfigError(
            "decisions.candidates.born_after: found no births, needed a pedigree with them "
            "(data.pedigree_columns: {birth: COLUMN})"
        )
    years = prepared.birth_years
    animals = pl.DataFrame({"id": prepared.pedigree.ids.head(len(years)), "year": years})
    return pl.DataFrame({"id": ids}).join(animals, on="id", how="left", maintain_order="left")["year"]
