"""C, its right-hand side and y'R^-1 y as sums of known numbers times elements of G^-1 and R^-1, in lists.

    C_e = sum_m number_m v_c(m)          over the contributions m of element e; v the coefficients (matrices.py)

New variances are then one pass over the lists. The same lists turned over give derivatives: with w_e = df/dC_e,

    df/dv_c = sum over the contributions of c of number_m w_e(m)
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array, tril

from mmgibbs.likelihood.coefficients import Coefficients, correlated_products
from mmgibbs.likelihood.incidence import Incidence
from mmgibbs.likelihood.matrices import CovarianceMatrices
from mmgibbs.models.design import Design
from mmgibbs.models.residual import CorrelatedRecords
from mmgibbs.models.terms import Effect


class Lists(NamedTuple):
    """Places, and for each of them numbers times coefficients."""

    place: np.ndarray  # (m,) int64, ascending, each once
    first: np.ndarray  # (m + 1,) int64 its contributions
    coefficient: np.ndarray  # (contributions,) uint32
    number: np.ndarray  # (contributions,) float64


class RecordLists(NamedTuple):
    """Lists that make a right-hand side from y: number[target] += factor y[record, trait]."""

    target: np.ndarray  # (entries,) int64
    record: np.ndarray  # (entries,) int64
    trait: np.ndarray  # (entries,) int64
    factor: np.ndarray  # (entries,) float64


Contributions = tuple[np.ndarray, np.ndarray, np.ndarray]  # place, coefficient, number


def _gather(contributions: Iterator[Contributions], size: int) -> Lists:
    """Contributions of one coefficient to one place are added up; size: the number of coefficients."""
    every = list(contributions)
    if not every:
        every = [(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))]
    place, coefficient, number = (np.concatenate([c[i] for c in every]) for i in range(3))
    both, inverse = np.unique(place * size + coefficient, return_inverse=True)
    total = np.bincount(inverse, number, both.size)
    kept = total != 0.0
    places, first = np.unique(both[kept] // size, return_index=True)
    ends = np.append(first, int(kept.sum())).astype(np.int64)
    return Lists(places, ends, (both[kept] % size).astype(np.uint32), total[kept])


def list_C(known: Coefficients, at: CovarianceMatrices) -> Lists:
    """C by its places in the factor."""
    return _gather(chain(_contribute_blocks(known, at), _contribute_correlated(known, at)), at.size)


def _contribute_blocks(known: Coefficients, at: CovarianceMatrices) -> Iterator[Contributions]:
    """Contributions of pairs of scalar effects: records that have both, and the relationship of a term."""
    explicit, design = known.explicit, known.design
    for (i, j), places in known.indices.items():
        row, column = explicit.scalar_effects[i], explicit.scalar_effects[j]
        unit = explicit.units[row.effect, column.effect]
        if i == j:  # both triangles are stored
            places = np.where(_lower(unit.indptr, unit.indices), places, -1)
        if row.term == column.term and unit.kappa.size:
            coefficient, number = at.locate_inverse_G(design.terms[row.term], row.term, row.component, column.component)
            met = places >= 0
            yield places[met], np.full(met.sum(), coefficient), number * unit.kappa[met]
        if design.correlated:
            continue
        of_record = places[unit.position]
        met = of_record >= 0
        coefficients = at.locate_inverse_R(unit.pattern, row.trait, column.trait)
        yield of_record[met], coefficients[met], unit.sums[row.covariate, column.covariate][met]


def _contribute_correlated(known: Coefficients, at: CovarianceMatrices) -> Iterator[Contributions]:
    """W'K^-1 W of each group of correlated records, times 1 / R_tt."""
    design = known.design
    for group, products in zip(design.correlated, correlated_products(design), strict=True):
        below = coo_array(tril(products))
        places = known.symbolic.locate(below.row, below.col)
        yield places, np.full(places.size, _locate_variance(at, group)), below.data


def _locate_variance(at: CovarianceMatrices, group: CorrelatedRecords) -> int:
    """The coefficient 1 / R_tt of a group of correlated records."""
    pattern = at.design.pattern[group.records[:1]]
    return int(at.locate_inverse_R(pattern, group.trait, group.trait)[0])


def _lower(indptr: np.ndarray, indices: np.ndarray) -> np.ndarray:
    """Mark the elements of a CSR matrix on the diagonal or below it."""
    return np.repeat(np.arange(indptr.size - 1), np.diff(indptr)) >= indices


def list_right_hand_side(known: Coefficients, at: CovarianceMatrices, y: np.ndarray) -> Lists:
    """W' R^-1 y by places of equations in the factor; y (n, T), 0 where not observed."""
    if known.design.correlated:
        return _gather(_contribute_correlated_records(known, at, y), at.size)
    contributions = (
        (place, coefficient, factor * y[record, u])
        for place, coefficient, record, u, factor in _contribute_records(known, at)
    )
    return _gather(contributions, at.size)


def _contribute_correlated_records(
    known: Coefficients, at: CovarianceMatrices, y: np.ndarray
) -> Iterator[Contributions]:
    """W'K^-1 y of each group of correlated records, times 1 / R_tt."""
    design = known.design
    W, active = Incidence(design), known.explicit.layout.active
    for group in design.correlated:
        weighted = np.zeros((*y.shape, 1))
        weighted[group.records, group.trait, 0] = _weigh(group, y)
        sums = W.accumulate(weighted)[active, 0]
        yield known.symbolic.step, np.full(sums.size, _locate_variance(at, group)), sums


def _weigh(group: CorrelatedRecords, y: np.ndarray) -> np.ndarray:
    """(r,) K^-1 y of a group with a record in every cell."""
    values = np.zeros(group.relationship.n_levels)
    values[group.cells] = y[group.records, group.trait]
    return (group.relationship.inverse_matrix() @ values)[group.cells]


def list_records(known: Coefficients, at: CovarianceMatrices, position: np.ndarray) -> tuple[Lists, RecordLists]:
    """W' R^-1 y for y that changes: lists whose numbers are 0, and what fills them.

    position (n,): where a record stands in y, by its number in the design.
    """
    every = list(_contribute_records(known, at))
    places, coefficients, records, factors = (np.concatenate([e[i] for e in every]) for i in (0, 1, 2, 4))
    traits = np.concatenate([np.full(len(e[0]), e[3]) for e in every])
    both, target = np.unique(places * at.size + coefficients, return_inverse=True)
    place, first = np.unique(both // at.size, return_index=True)
    ends = np.append(first, both.size).astype(np.int64)
    lists = Lists(place, ends, (both % at.size).astype(np.uint32), np.zeros(both.size))
    return lists, RecordLists(target.reshape(-1), position[records], traits, factors)


RecordContributions = tuple[np.ndarray, np.ndarray, np.ndarray, int, np.ndarray]


def _contribute_records(known: Coefficients, at: CovarianceMatrices) -> Iterator[RecordContributions]:
    """Contributions of the records to W' R^-1 y: place, coefficient, record, trait of y, what y is multiplied by."""
    explicit, design = known.explicit, known.design
    effects: list[Effect] = [effect for term in design.terms for effect in term.effects]
    equations = explicit.layout.split(explicit.layout.equation)
    for scalar in explicit.scalar_effects:
        observes = design.patterns[design.pattern]
        for level, covariates in effects[scalar.effect].meetings():
            equation = np.where(level >= 0, equations[scalar.term][level, scalar.component], -1)
            for u in range(design.n_traits):
                seen = (equation >= 0) & observes[:, u] & observes[:, scalar.trait]
                z = 1.0 if covariates is None else covariates[seen, scalar.covariate]
                factor = design.weight[seen] * z
                coefficients = at.locate_inverse_R(design.pattern[seen], scalar.trait, u)
                yield known.symbolic.step[equation[seen]], coefficients, np.flatnonzero(seen), u, factor


def square_records(design: Design, y: np.ndarray) -> np.ndarray:
    """(patterns, T, T) sum of w_r y_r y_r' of each missing pattern, so that y'R^-1 y = sum_p tr(R_p^-1 Y_p); y'K^-1 y
    where records are correlated."""
    if design.correlated:
        out = np.zeros((len(design.patterns), design.n_traits, design.n_traits))
        for group in design.correlated:
            t = group.trait
            out[design.pattern[group.records[0]], t, t] += y[group.records, t] @ _weigh(group, y)
        return out
    return np.array(
        [(y[m] * design.weight[m, None]).T @ y[m] for m in map(design.pattern.__eq__, range(len(design.patterns)))]
    )
