"""Which flat fixed equations the records that are left determine, and which records they can predict.

Without the records of a fold some levels of a flat class have no record, others can no longer be separated. As in the
whole data (data/rank.py) the columns of X = (X_I, X_D) that depend on the others are set to 0:

    X_D = X_I M    in the records that are left.

A record x that was left out can be predicted where this holds of it too, x_D = x_I M: then x'b is the same whichever
columns are set to 0. Elsewhere no record says what its fixed effects are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import lsmr

from mmgibbs.build.separation import flat
from mmgibbs.data.fixed import INTERCEPT
from mmgibbs.data.rank import Columns, Rank, columns_independent_of_class, independent_columns
from mmgibbs.models.design import Design
from mmgibbs.models.terms import Term
from mmgibbs.pedigree.tables import counted
from mmgibbs.validation.splits import Fold

ACCURACY = 1e-12  # of M
ELSEWHERE = 1e-6  # |x_D - x_I M|, of the largest value of these columns, from which a record is not predicted
ROUNDS = 10  # of the search for columns of large classes that depend on others, each of seconds where there are many


@dataclass(frozen=True)
class FlatEquations:
    """The flat equations that one effect of a term has on a trait."""

    term: int
    components: np.ndarray  # (m,)
    columns: Columns


def drop_aliased(training: Design) -> tuple[Design, frozenset[int]]:
    """Flat fixed equations without a record, and those that depend on the others, are set to 0; and the traits for
    which the search for these ended after ROUNDS, so that some may be left.
    """
    active = [_active(term) for term in training.terms]
    changed, unfinished = [False] * len(active), set()
    for trait in range(training.n_traits):
        parts = list(_parts(training, trait))
        if not parts:
            continue
        names = [training.terms[subset.term].name for subset in parts]
        place = names.index(INTERCEPT) if INTERCEPT in names else None
        effects = [subset.columns for subset in parts]
        rank = independent_columns(effects, place)
        kept, finished = find_aliased(effects, rank) if rank.checked_apart else (rank.independent, True)
        unfinished |= set() if finished else {trait}
        for subset, keep in zip(parts, kept, strict=True):
            index = np.ix_(np.arange(len(keep)), subset.components)
            changed[subset.term] |= bool((active[subset.term][index] & ~keep).any())
            active[subset.term][index] &= keep
    terms = zip(training.terms, active, changed, strict=True)
    of_rank = replace(training, terms=tuple(replace(t, active=a) if c else t for t, a, c in terms))
    return of_rank, frozenset(unfinished)


def find_aliased(effects: Sequence[Columns], rank: Rank) -> tuple[list[np.ndarray], bool]:
    """The independent columns of a rank, (n_levels, m) bool per effect, less those that depend on others after all; and
    whether the search for them came to its end.

    Classes with too many levels are checked against the largest one alone. Against each other: first, exactly, where
    the levels of two classes sum to the same vector, as those of one region do that are nested in it. For the columns
    X (n, p) that are kept then and any z, z less the shortest b with X b = X z lies where X has nothing, Xv = 0: it is
    0 where they are independent. Columns that share no record have nothing apart from each other, so that of each
    connected part of the columns with a value one depends on the others. It goes where its distance from them is at
    most ELSEWHERE of its length. After ROUNDS of that, more that depend on others stay, as they do in the whole data:
    x'b of records that are determined is the same with them, and `unpredictable` finds fewer of the others.

    The intercept and covariates stay: they are known not to depend on each other, so that a class is part of whatever
    they depend on. Powers of an age are nearly collinear: an orthonormal basis of the same space stands in for them.
    """
    independent = _drop_equal_sums(effects, rank.independent)
    keep = np.concatenate([k.ravel() for k in independent])
    alone = [e.n_levels == 1 and i not in rank.checked_apart for i, e in enumerate(effects)]
    stays = keep & np.repeat(alone, [e.size for e in effects])
    X = _normalise_columns(_joined(effects), stays)
    finished = False
    for _ in range(ROUNDS):
        dependent = _component_representatives(X, np.flatnonzero(keep), stays)
        finished = not dependent.size
        if finished:
            break
        keep[dependent] = False
    cuts = np.cumsum([k.size for k in independent])[:-1]
    shaped = [kept.reshape(k.shape) for kept, k in zip(np.split(keep, cuts), independent, strict=True)]
    return shaped, finished


def _drop_equal_sums(effects: Sequence[Columns], independent: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Drop a level of an effect wherever the kept levels of two classes have one sum; (n_levels, m) bool per effect."""
    kept = [k.copy() for k in independent]
    for i, j in combinations([i for i, e in enumerate(effects) if e.covariates is None], 2):
        kept[j] = columns_independent_of_class(_only(effects[j], kept[j]), _only(effects[i], kept[i]))
    return kept


def _only(effect: Columns, kept: np.ndarray) -> Columns:
    """A class with the levels that are kept, (n_levels, 1) bool."""
    return replace(effect, level=np.where((effect.level >= 0) & kept[effect.level, 0], effect.level, -1))


def _normalise_columns(X: sparse.csc_array, together: np.ndarray) -> sparse.csc_array:
    """X (n, p) with columns of length 1, those that are `together` (p,) bool orthogonal to each other as well."""
    lengths = np.sqrt(X.power(2).sum(axis=0))
    X = sparse.csc_array(X @ sparse.diags_array(1 / np.where(lengths > 0, lengths, 1.0)))
    columns = np.arange(X.shape[1])
    columns[together] = X.shape[1] + np.arange(np.count_nonzero(together))
    basis = np.linalg.qr(X[:, together].toarray())[0]
    return sparse.csc_array(sparse.hstack([X, sparse.csc_array(basis)], format="csc")[:, columns])


def _component_representatives(X: sparse.csc_array, kept: np.ndarray, stays: np.ndarray) -> np.ndarray:
    """Columns of X, one of each connected part of those that depend on other columns that are kept."""
    columns = sparse.csc_array(X[:, kept])
    z = np.modf((kept + 1.0) * (1 + np.sqrt(5)) / 2)[0] - 0.5  # no pattern that levels may share
    nothing = np.abs(z - _solved(columns, columns @ z))
    dependent = np.flatnonzero(nothing > ELSEWHERE)
    subset = _parts_without_common_records(columns[:, dependent])
    may_go = np.flatnonzero(~stays[kept[dependent]])
    may_go = may_go[np.argsort(-nothing[dependent[may_go]], kind="stable")]
    chosen = may_go[np.unique(subset[may_go], return_index=True)[1]]
    if not chosen.size:
        return chosen
    return kept[dependent[chosen[_distances(columns[:, dependent], subset, chosen) <= ELSEWHERE]]]


def _distances(X: sparse.csc_array, subset: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """Compute the distance of each chosen column of X (n, p) from the space of the other columns of its part.

    One column of a part is chosen, and parts have no record in common: one solve does for all.
    """
    remaining, sum_of_chosen = np.delete(np.arange(X.shape[1]), chosen), X[:, chosen].sum(axis=1)
    residuals = sum_of_chosen - X[:, remaining] @ _solved(sparse.csc_array(X[:, remaining]), sum_of_chosen)
    of_record = np.zeros(X.shape[0], subset.dtype)
    records, columns = X.nonzero()
    of_record[records] = subset[columns]
    return np.sqrt(np.bincount(of_record, weights=residuals**2, minlength=len(X.indptr)))[subset[chosen]]


def _parts_without_common_records(X: sparse.csc_array) -> np.ndarray:
    """(p,) for X (n, p): the number of the connected part that each column belongs to."""
    n, p = X.shape
    records, columns = X.nonzero()
    graph = sparse.coo_array((np.ones(len(records), np.int8), (columns, records + p)), shape=(n + p, n + p))
    return connected_components(graph, directed=False)[1][:p]


def unpredictable(training: Design, rows: Design, trait: int) -> np.ndarray:
    """(n,) bool: the records of training do not determine the flat fixed effects of the row on the trait.

    rows: of the design of all records, with the equations that are in force there.
    """
    wanted, given = _matrix(rows, rows, trait), _matrix(training, rows, trait)
    kept = _active_columns(training, rows, trait)
    of_wanted, of_given = _largest(wanted), _largest(given)
    lost = _exceeds(wanted, of_wanted, np.flatnonzero(~kept & (of_given == 0)))  # M = 0 there, as without a record
    dropped = np.flatnonzero(~kept & (of_given > 0))
    if not dropped.size:
        return lost
    # one solve for all: x_D z = x_I M z for random weights z, in which errors do not cancel, and once more for others
    lengths = np.sqrt(given.power(2).sum(axis=0))[kept]  # covariates may be in any unit: columns of length 1 are solved
    to_one = sparse.diags_array(1 / np.where(lengths > 0, lengths, 1.0))
    x, X, largest = wanted[:, kept] @ to_one, given[:, kept] @ to_one, np.maximum(of_wanted, of_given)[dropped]
    rng = np.random.default_rng(1)
    for _ in range(2):
        z = rng.uniform(0.5, 1.5, dropped.size) / largest
        lost |= np.abs(wanted[:, dropped] @ z - x @ _solved(X, given[:, dropped] @ z)) > ELSEWHERE
    return lost


def levels_without_records(training: Design, rows: Design, trait: int) -> list[tuple[int, int]]:
    """(term, level) of the flat class effects that these rows meet and no record of the trait in training."""
    observed, empty = training.patterns[training.pattern][:, trait], []
    for i, (ours, theirs) in enumerate(zip(rows.terms, training.terms, strict=True)):
        for e, effect in enumerate(ours.effects):
            of_effect = (ours.component_effect == e) & (ours.component_trait == trait) & flat(ours)
            if of_effect.any():
                levels = np.setdiff1d(effect.level[effect.level >= 0], theirs.effects[e].level[observed])
                empty += [(i, int(level)) for level in levels]
    return empty


def records_alone(design: Design, folds: Sequence[Fold]) -> list[str]:
    """Notes on normal records that folds test and that are the only one of a level of a flat class effect.

    The level takes up what such a record differs by from its prediction in the whole data, so that y* = y - X b is that
    prediction, and no test of another.
    """
    out, observed = [], design.patterns[design.pattern]
    tested = np.any([fold.tested for fold in folds], axis=0) if folds else np.zeros(design.n_records, bool)
    for trait in sorted(set(range(design.n_traits)) - {response.trait for response in design.responses}):
        alone = np.zeros(design.n_records, bool)
        for term in design.terms:
            for e, effect in enumerate(term.effects):
                of_effect = (term.component_effect == e) & (term.component_trait == trait) & flat(term)
                if of_effect.any() and effect.covariates is None:
                    level = np.where(observed[:, trait], effect.level, -1)
                    alone |= (level >= 0) & (np.bincount(level[level >= 0], minlength=term.n_levels)[level] == 1)
        n = int(np.count_nonzero(alone & tested))
        if n:
            out.append(
                f"cross-validation, {design.traits[trait]}: {counted(n, 'record', 'is')} the only one of a level of a "
                "fixed effect: corrected for it, such a record is what the model predicts of it, and tests nothing"
            )
    return out


def _active(term: Term) -> np.ndarray:
    """(q, k) bool, a copy."""
    return np.ones((term.n_levels, term.n_components), bool) if term.active is None else term.active.copy()


def _parts(design: Design, trait: int, of: Design | None = None) -> Iterator[FlatEquations]:
    """List the parts of a trait, each with the columns in force in `of`, by default in the design itself.

    The others are 0.
    """
    observed = design.patterns[design.pattern][:, trait]
    for i, term in enumerate(design.terms):
        active = _active(term if of is None else of.terms[i])
        for e, effect in enumerate(term.effects):
            components = np.flatnonzero((term.component_effect == e) & (term.component_trait == trait))
            free = flat(term)[components] if components.size else np.zeros(0, bool)
            if not free.any():
                continue
            level = np.where(observed, effect.level, -1)
            z = np.ones((len(level), 1)) if effect.covariates is None else effect.covariates
            z = np.where((active[:, components] & free)[level] & (level >= 0)[:, None], z, 0.0)
            met = np.where((z != 0).any(axis=1), level, -1).astype(np.int32)
            columns = Columns(met, term.n_levels, None if effect.covariates is None else z)
            yield FlatEquations(i, components[free], columns if free.all() else replace(columns, covariates=z[:, free]))


def _matrix(design: Design, of: Design, trait: int) -> sparse.csc_array:
    """(n, p) the columns of all flat equations of a trait, 0 where they are not in force in `of`."""
    parts = list(_parts(design, trait, of))
    return _joined([subset.columns for subset in parts]) if parts else sparse.csc_array((design.n_records, 0))


def _joined(effects: Sequence[Columns]) -> sparse.csc_array:
    """(n, p) the columns of one effect after another."""
    blocks = []
    for columns in effects:
        m = columns.width
        rows = np.flatnonzero(columns.level >= 0)
        at = columns.level[rows].astype(np.int64)[:, None] * m + np.arange(m)
        z = np.ones((rows.size, 1)) if columns.covariates is None else columns.covariates[rows]
        shape = (len(columns.level), columns.size)
        blocks.append(sparse.coo_array((z.ravel(), (np.repeat(rows, m), at.ravel())), shape=shape))
    return sparse.csc_array(sparse.hstack(blocks))


def _active_columns(training: Design, rows: Design, trait: int) -> np.ndarray:
    """(p,) bool of the columns of `_matrix`."""
    parts = _parts(rows, trait)
    kept = [_active(training.terms[subset.term])[:, subset.components].ravel() for subset in parts]
    return np.concatenate(kept) if kept else np.zeros(0, bool)


def _largest(X: sparse.csc_array) -> np.ndarray:
    """(p,) of the absolute values of each column."""
    return abs(X).max(axis=0).toarray().ravel() if X.shape[0] and X.shape[1] else np.zeros(X.shape[1])


def _exceeds(X: sparse.csc_array, largest: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """(n,) bool: rows of X (n, p) with a value above ELSEWHERE times the largest (p,) in one of the columns."""
    selected, out = X[:, columns], np.zeros(X.shape[0], bool)
    out[selected.indices[np.abs(selected.data) > ELSEWHERE * np.repeat(largest[columns], np.diff(selected.indptr))]] = (
        True
    )
    return out


def _solved(X: sparse.csc_array, column: np.ndarray) -> np.ndarray:
    """m with X m = column."""
    return lsmr(X, column, atol=ACCURACY, btol=ACCURACY, conlim=0, maxiter=4 * sum(X.shape))[0]
