"""The design of some of the records of a model, for chains that do without the others.

Levels, columns and numbers of animals stay those of all records, so that what is drawn without some of them predicts
the others. Genotyped animals keep their genotypes.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mmgibbs.errors import DataError, option_name
from mmgibbs.model.design import Design
from mmgibbs.model.response import Categories
from mmgibbs.model.terms import Levels, Term
from mmgibbs.runs.separation import TooLarge, flat, separation_of


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


def without(design: Design, masked: np.ndarray, what: str) -> Design:
    """The design without some records; flat levels of which no record is left are set to 0.

    DataError where a category, or a trait, has no record left; `what` the records are.
    """
    training = rows_of(design, np.flatnonzero(~masked))
    for response in training.responses:
        if isinstance(response, Categories):
            counts = np.bincount(response.category[response.category >= 0], minlength=len(response.labels))
            empty = [label for label, n in zip(response.labels, counts, strict=True) if n == 0]
            if empty:
                raise DataError(
                    f"validate: {what} has every record of '{empty[0]}' of trait '{design.traits[response.trait]}'; "
                    f"needed records of every category in the others: fewer {option_name('folds')}, or another "
                    f"{option_name('by')}"
                )
    _check_levels(training, what)
    terms = tuple(replace(t, active=_active(t, training)) for t in training.terms)
    training = replace(training, terms=terms)
    _check_rank(training, what)
    _check_separation(training, what)
    return training


def _active(term: Term, training: Design) -> np.ndarray | None:
    """(q, k): flat components of levels without a record of their trait are set to 0."""
    of_term = flat(term)
    if not of_term.any():
        return term.active
    observed = training.patterns[training.pattern]
    active = np.ones((term.n_levels, term.n_components), bool) if term.active is None else term.active.copy()
    for c in np.flatnonzero(of_term):
        effect = term.effects[int(term.component_effect[c])]
        level = effect.level[observed[:, term.component_trait[c]]]
        active[np.setdiff1d(np.arange(term.n_levels), level), c] = False
    return active


def unpredictable(training: Design, rows: Design, trait: int) -> np.ndarray:
    """(n,) bool: the row meets a level whose flat effect on the trait has no record left in training."""
    lost = np.zeros(rows.n_records, bool)
    observed = training.patterns[training.pattern][:, trait]
    for ours, theirs in zip(rows.terms, training.terms, strict=True):
        of_ours = flat(ours)
        for e, effect in enumerate(ours.effects):
            own = (ours.component_effect == e) & (ours.component_trait == trait) & of_ours
            if own.any():
                left = theirs.effects[e].level[observed]
                lost |= (effect.level >= 0) & ~np.isin(effect.level, left)
    return lost


def _check_levels(training: Design, what: str) -> None:
    """DataError for a level of a flat class effect whose records left are all on one side: it has no posterior."""
    for response in training.responses:
        seen, down, up = response.one_sided()
        for term in training.terms:
            for e, effect in enumerate(term.effects):
                own = (term.component_effect == e) & (term.component_trait == response.trait)
                if effect.covariates is not None or not (flat(term) & own).any():
                    continue
                met = seen & (effect.level >= 0)
                level, n = effect.level[met], term.n_levels
                count, low, high = (np.bincount(level, weights, n) for weights in (None, down[met], up[met]))
                if ((count > 0) & ((low == count) | (high == count))).any():
                    raise DataError(
                        f"validate: {what}: without it, all records of '{training.traits[response.trait]}' in some "
                        f"levels of {term.name} are on one side, so that their flat effects have no posterior; needed "
                        f"fewer {option_name('folds')}, or model.fixed.{term.name}.prior: {{variance: 10}}"
                    )


def _check_separation(training: Design, what: str) -> None:
    """DataError where flat effects separate the records that are left."""
    for response in training.responses:
        try:
            found = separation_of(training, response)
        except TooLarge:
            continue
        if found is not None:
            terms = dict.fromkeys(training.terms[i].name for i, _, _ in found.columns)
            raise DataError(
                f"validate: {what}: without it, the flat effects {' and '.join(terms)} separate the records of "
                f"'{training.traits[response.trait]}', so that these effects have no posterior; needed fewer "
                f"{option_name('folds')}, or model.fixed.{next(iter(terms))}.prior: {{variance: 10}}"
            )


MOST_VALUES = 50_000_000  # records times flat fixed equations of a trait, up to which their rank is checked


def _check_rank(training: Design, what: str) -> None:
    """DataError where flat fixed effects cannot be separated without the fold: their draws would run away."""
    observed = training.patterns[training.pattern]
    for t, trait in enumerate(training.traits):
        columns: list[np.ndarray] = []
        of_column: list[str] = []  # the term of each
        for term in training.terms:
            for c in np.flatnonzero(flat(term) & (term.component_trait == t)):
                effect = term.effects[int(term.component_effect[c])]
                first = np.flatnonzero(term.component_effect == term.component_effect[c])[0]
                j = (int(c) - int(first)) % effect.n_regressors
                z = np.ones(training.n_records) if effect.covariates is None else effect.covariates[:, j]
                active = np.ones(term.n_levels, bool) if term.active is None else term.active[:, c]
                columns += [np.where(effect.level == q, z, 0.0) for q in np.flatnonzero(active)]
                of_column += [term.name] * (len(columns) - len(of_column))
                if len(columns) * training.n_records > MOST_VALUES:
                    return
        if not columns:
            continue
        X = np.stack(columns, axis=1)[observed[:, t]]
        if np.linalg.matrix_rank(X.T @ X, hermitian=True) < X.shape[1]:
            terms = _dependent(X, of_column)
            effects, cannot = ("effects", "separated") if len(terms) > 1 else ("effect", "estimated")
            raise DataError(
                f"validate: without the records of {what} the fixed {effects} {' and '.join(terms)} on trait '{trait}' "
                f"cannot be {cannot}; needed fewer {option_name('folds')}, or model.fixed.{terms[-1]}.prior: "
                "{variance: 10}"
            )


def _dependent(X: np.ndarray, of_column: list[str]) -> list[str]:
    """The terms of the columns of X (n, p) that a sum of 0 is made of: where the eigenvector of X'X, of columns of
    length 1, for its smallest eigenvalue, which is 0, has an element that is not 0.
    """
    size = np.maximum(np.sqrt((X**2).sum(axis=0)), np.finfo(float).tiny)
    weights = np.abs(np.linalg.eigh((X / size).T @ (X / size))[1][:, 0])
    return list(dict.fromkeys(of_column[j] for j in np.flatnonzero(weights > 1e-6 * weights.max())))
