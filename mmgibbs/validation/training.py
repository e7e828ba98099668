"""The design of some of the records of a model, for chains that do without the others.

Levels, columns and numbers of animals stay those of all records, so that what is drawn without some of them predicts
the others. Genotyped animals keep their genotypes.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mmgibbs.build.separation import TooLarge, find_separation, flat
from mmgibbs.data.fixed import INTERCEPT
from mmgibbs.data.prepared import Prepared
from mmgibbs.errors import DataError, option_name
from mmgibbs.model.design import Design
from mmgibbs.model.response import Categories, Response
from mmgibbs.model.terms import Levels, Term
from mmgibbs.report.html_tables import listed
from mmgibbs.validation.determined import of_full_rank
from pedigree.tables import quoted


def rows_of(design: Design, rows: np.ndarray) -> Design:
    """The design of some of the records: the same levels, fewer rows."""

    def kept(term: Term) -> Term:
        effects = tuple(
            replace(e, level=e.level[rows], covariates=None if e.covariates is None else e.covariates[rows])
            for e in term.effects
        )
        return replace(term, incidence=Levels(effects, term.n_levels))

    return replace(
        design,
        y=design.y[rows],
        pattern=design.pattern[rows],
        weight=design.weight[rows],
        terms=tuple(kept(t) for t in design.terms),
        responses=tuple(r.keep(rows) for r in design.responses),
        markers=tuple(replace(m, animal=m.animal[rows]) for m in design.markers),
    )


def without(design: Design, masked: np.ndarray, what: str) -> tuple[Design, frozenset[int]]:
    """The design without some records; flat equations that the others do not determine are set to 0. And the traits of
    which some may be left (`of_full_rank`).

    DataError where flat effects separate the others; `what` the records are.
    """
    training, unfinished = of_full_rank(rows_of(design, np.flatnonzero(~masked)))
    _check_separation(training, what)
    return training, unfinished


def refuse_training(prepared: Prepared, masked: np.ndarray, what: str) -> None:
    """DataError where a category, or a trait, has no record left, and for levels of a flat class effect whose records
    left are all on one side: their effects have no posterior. `what` the records are.
    """
    training = rows_of(prepared.design, np.flatnonzero(~masked))
    observed = training.patterns[training.pattern].any(axis=0)
    for trait in (name for name, some in zip(training.traits, observed, strict=True) if not some):
        raise DataError(
            f"validate: {what} has every record of trait '{trait}'; needed records of every trait in the others: fewer "
            f"{option_name('folds')}, or another {option_name('by')}"
        )
    for response in training.responses:
        trait = training.traits[response.trait]
        if isinstance(response, Categories):
            counts = np.bincount(response.category[response.category >= 0], minlength=len(response.labels))
            empty = [label for label, n in zip(response.labels, counts, strict=True) if n == 0]
            if empty:
                raise DataError(
                    f"validate: {what} has every record of '{empty[0]}' of trait '{trait}'; "
                    f"needed records of every category in the others: fewer {option_name('folds')}, or another "
                    f"{option_name('by')}"
                )
        for i, term in enumerate(training.terms):
            levels = _one_sided(training, response, term)
            if levels.size:
                names = [quoted(str(prepared.levels[i].ids[int(level)])) for level in levels]
                raise DataError(
                    f"validate: {what}: without it, all records of '{trait}' in {listed(names)} of {term.name} are on "
                    f"one side, so that flat effects of these levels have no posterior; needed fewer "
                    f"{option_name('folds')}, or model.fixed.{term.name}.prior: {{variance: 10}}"
                )


def _one_sided(training: Design, response: Response, term: Term) -> np.ndarray:
    """Levels of a flat class effect whose records are all on one side."""
    seen, down, up = response.one_sided_masks()
    found = [np.empty(0, np.int64)]
    for e, effect in enumerate(term.effects):
        own = (term.component_effect == e) & (term.component_trait == response.trait)
        if effect.covariates is None and (flat(term) & own).any():
            met = seen & (effect.level >= 0)
            level, n = effect.level[met], term.n_levels
            count, low, high = (np.bincount(level, weights, n) for weights in (None, down[met], up[met]))
            found.append(np.flatnonzero((count > 0) & ((low == count) | (high == count))))
    return np.concatenate(found)


def _check_separation(training: Design, what: str) -> None:
    """DataError where flat effects separate the records that are left."""
    for response in training.responses:
        try:
            found = find_separation(training, response)
        except TooLarge:
            continue
        if found is not None:
            terms = list(dict.fromkeys(training.terms[i].name for i, _, _ in found.columns))
            several, remedied = len(terms) > 1, next((t for t in terms if t != INTERCEPT), terms[0])
            raise DataError(
                f"validate: {what}: without it, the flat {'effects' if several else 'effect'} {listed(terms)} "
                f"{'separate' if several else 'separates'} the records of '{training.traits[response.trait]}', so that "
                f"{'these effects have' if several else 'it has'} no posterior; needed fewer "
                f"{option_name('folds')}, or model.fixed.{remedied}.prior: {{variance: 10}}"
            )
