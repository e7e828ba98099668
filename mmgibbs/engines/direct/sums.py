"""C, its right-hand side and y'R^-1 y as sums of known numbers times elements of G^-1 and R^-1, in lists.

    C_e = sum_m number_m v_c(m)          over the contributions m of element e; v the *coefficients*

    v = (1; G_j^-1, row by row, of each random term j; R_p^-1 of each missing pattern p)

New variances are then one pass over the lists. The same lists turned over give derivatives: with w_e = df/dC_e,

    df/dv_c = sum over the contributions of c of number_m w_e(m)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mmgibbs.engines.direct.coefficients import Coefficients
from mmgibbs.model.design import Design
from mmgibbs.model.terms import Effect, Term


class Sums(NamedTuple):
    """Places, and for each of them numbers times coefficients."""

    place: np.ndarray  # (m,) int64, ascending, each once
    first: np.ndarray  # (m + 1,) int64 its contributions
    coefficient: np.ndarray  # (contributions,) uint32
    number: np.ndarray  # (contributions,) float64


@dataclass(frozen=True)
class CoefficientPlaces:
    """Where elements of G^-1 and R^-1 stand among the coefficients."""

    of_term: tuple[int, ...]  # the first of each random term; -1: a fixed one
    of_records: int
    n_traits: int
    size: int

    def inverse_G(self, term: Term, number: int, a: int, b: int) -> tuple[int, float]:
        """(coefficient, number) of the prior precision of components a and b: of a fixed term it is known."""
        if term.kind == "random":
            return self.of_term[number] + a * term.n_components + b, 1.0
        return 0, 0.0 if term.prior_precision is None else float(term.prior_precision[a, b])

    def inverse_R(self, pattern: np.ndarray, t: int, u: int) -> np.ndarray:
        """The coefficients of R_p^-1[t, u]."""
        return self.of_records + (pattern.astype(np.int64) * self.n_traits + t) * self.n_traits + u


def coefficient_places(design: Design) -> CoefficientPlaces:
    """Of a design."""
    first, of_term = 1, []
    for term in design.terms:
        of_term.append(first if term.kind == "random" else -1)
        first += term.n_components**2 if term.kind == "random" else 0
    T = design.n_traits
    return CoefficientPlaces(tuple(of_term), first, T, first + len(design.patterns) * T * T)


Contributions = tuple[np.ndarray, np.ndarray, np.ndarray]  # place, coefficient, number


def gathered(contributions: Iterator[Contributions], size: int) -> Sums:
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
    return Sums(places, ends, (both[kept] % size).astype(np.uint32), total[kept])


def sums_of_C(known: Coefficients, at: CoefficientPlaces) -> Sums:
    """C by its places in the factor."""
    return gathered(_of_blocks(known, at), at.size)


def _of_blocks(known: Coefficients, at: CoefficientPlaces) -> Iterator[Contributions]:
    """Contributions of pairs of scalar effects: records that have both, and the relationship of a term."""
    explicit, design = known.explicit, known.design
    for (i, j), places in known.indices.items():
        row, column = explicit.scalar_effects[i], explicit.scalar_effects[j]
        unit = explicit.units[row.effect, column.effect]
        if i == j:  # both triangles are stored
            places = np.where(_lower(unit.indptr, unit.indices), places, -1)
        if row.term == column.term and unit.kappa.size:
            coefficient, number = at.inverse_G(design.terms[row.term], row.term, row.component, column.component)
            met = places >= 0
            yield places[met], np.full(met.sum(), coefficient), number * unit.kappa[met]
        of_record = places[unit.position]
        met = of_record >= 0
        coefficients = at.inverse_R(unit.pattern, row.trait, column.trait)
        yield of_record[met], coefficients[met], unit.sums[row.covariate, column.covariate][met]


def _lower(indptr: np.ndarray, indices: np.ndarray) -> np.ndarray:
    """Which elements of a CSR matrix lie on the diagonal or below it."""
    return np.repeat(np.arange(indptr.size - 1), np.diff(indptr)) >= indices


def sums_of_right_hand_side(known: Coefficients, at: CoefficientPlaces, y: np.ndarray) -> Sums:
    """W' R^-1 y by places of equations in the factor; y (n, T), 0 where not observed."""
    return gathered(_of_records(known, at, y), at.size)


def _of_records(known: Coefficients, at: CoefficientPlaces, y: np.ndarray) -> Iterator[Contributions]:
    """Contributions of the records to W' R^-1 y."""
    explicit, design = known.explicit, known.design
    effects: list[Effect] = [effect for term in design.terms for effect in term.effects]
    equations = explicit.layout.split(explicit.layout.equation)
    for scalar in explicit.scalar_effects:
        effect = effects[scalar.effect]
        met = effect.level >= 0
        equation = np.where(met, equations[scalar.term][effect.level, scalar.component], -1)
        for u in range(design.n_traits):
            seen = (equation >= 0) & design.patterns[design.pattern, u] & design.patterns[design.pattern, scalar.trait]
            z = 1.0 if effect.covariates is None else effect.covariates[seen, scalar.covariate]
            number = design.weight[seen] * z * y[seen, u]
            coefficients = at.inverse_R(design.pattern[seen], scalar.trait, u)
            yield known.symbolic.step[equation[seen]], coefficients, number


def squares_of_records(design: Design, y: np.ndarray) -> np.ndarray:
    """(patterns, T, T) sum of w_r y_r y_r' of each missing pattern, so that y'R^-1 y = sum_p tr(R_p^-1 Y_p)."""
    return np.array(
        [(y[m] * design.weight[m, None]).T @ y[m] for m in map(design.pattern.__eq__, range(len(design.patterns)))]
    )
