"""Do flat fixed effects separate the records of a trait that is not normal? Then they have no posterior.

With coefficients b of flat prior and free thresholds t_2 .. t_{K-1} (t_1 = 0), a direction (b, t) along which no record
fits the worse has for record r with columns z_r

    category k     t_{k-1} <= z_r'b <= t_k, each where there is such a threshold
    censored       z_r'b >= 0 where only its lower bound is known, <= 0 where only the upper one, = 0 where both are
    count          z_r'b <= 0 of a count of 0, = 0 of another one

and one record at least fits the better. Random effects and effects with a normal prior do not hold such a direction
back. A single level whose records are all on one side is told before, by data/responses.py; here it is combinations
of levels and covariates, by linear programmes (posterior/separation.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array, csr_array

from mmgibbs.data.prepared import Prepared
from mmgibbs.errors import DataError
from mmgibbs.models.design import Design
from mmgibbs.models.families import Response
from mmgibbs.models.terms import Term
from mmgibbs.pedigree.tables import quoted
from mmgibbs.posterior.separation import BROKEN, separating_direction, simplest

MOST_COLUMNS = 300  # flat fixed equations of a trait up to which separation is looked for
MOST_VALUES = 20_000_000  # of them times records that differ in them
SHOWN = 5  # effects that a message names


@dataclass(frozen=True)
class Separated:
    """Flat effects that separate the records of a trait."""

    trait: int
    columns: list[tuple[int, int, int]]  # (term, component, level), the largest first
    values: np.ndarray  # of each, along the direction
    records: int  # that fit the better
    observed: int


class TooLarge(Exception):
    """More equations or records than separation is looked for in."""


class Sides:
    """z'b - t_lower >= 0 and t_upper - z'b >= 0 of the records that have them: see posterior.separation.Constraints.

    Equal records are one, with their number in `count`.
    """

    def __init__(self, Z: np.ndarray, lower: np.ndarray, upper: np.ndarray, thresholds: int, count: np.ndarray):
        """Z (n, p); lower, upper (n,) number of the free threshold, -1: one that is set to 0, -2: there is none."""
        self.Z, self.lower, self.upper, self.thresholds, self.count = Z, lower, upper, thresholds, count
        self.n = len(Z)

    def gain(self) -> np.ndarray:
        up, down = self.lower > -2, self.upper > -2
        b = self.Z.T @ (up.astype(float) - down)
        t = np.bincount(self.upper[self.upper >= 0], minlength=self.thresholds)
        return np.concatenate([b, t - np.bincount(self.lower[self.lower >= 0], minlength=self.thresholds)])

    def rows(self, records: np.ndarray) -> csr_array:
        parts = [
            _side(self.Z[records], of[records], self.thresholds, s) for s, of in ((1, self.lower), (-1, self.upper))
        ]
        values, row, column = (np.concatenate(of) for of in zip(*(p[:3] for p in parts), strict=True))
        first = parts[0][3]
        row[parts[0][0].size :] += first
        shape = (first + parts[1][3], self.Z.shape[1] + self.thresholds)
        return csr_array(coo_array((values, (row, column)), shape=shape))

    def slack(self, x: np.ndarray) -> np.ndarray:
        """(n, 2) of the two constraints of each record; inf where there is none."""
        eta, t = self.Z @ x[: self.Z.shape[1]], np.concatenate([x[self.Z.shape[1] :], [np.inf, 0.0]])
        return np.stack([eta - np.where(self.lower > -2, t[self.lower], -np.inf), t[self.upper] - eta], axis=1)

    def broken(self, x: np.ndarray) -> np.ndarray:
        return -self.slack(x).min(axis=1)

    def rising(self, x: np.ndarray) -> int:
        """Records that fit the better along x."""
        slack = self.slack(x)
        return int(self.count[np.where(np.isfinite(slack), slack, 0.0).max(axis=1) > BROKEN].sum())


def _side(
    Z: np.ndarray, threshold: np.ndarray, thresholds: int, sign: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """(values, rows, columns, number of rows) of sign (z'b - t) >= 0."""
    thresholds_met = np.flatnonzero(threshold > -2)
    row, column = np.nonzero(Z[thresholds_met])
    free = np.flatnonzero(threshold[thresholds_met] >= 0)
    values = np.concatenate([sign * Z[thresholds_met][row, column], np.full(free.size, -float(sign))])
    return (
        values,
        np.concatenate([row, free]),
        np.concatenate([column, Z.shape[1] + threshold[thresholds_met][free]]),
        thresholds_met.size,
    )


def find_separation(design: Design, response: Response) -> Separated | None:
    """Find what separates the records of a trait. TooLarge where it is not looked for."""
    t = response.trait
    columns = flat_columns(design, t)
    if not columns:
        return None
    if len(columns) > MOST_COLUMNS:
        raise TooLarge
    lower, upper, thresholds = response.sides()
    seen = np.flatnonzero((lower > -2) | (upper > -2))
    sides_of = _unique(design, columns, seen, lower[seen], upper[seen], thresholds)
    size = np.abs(sides_of.Z).max(axis=0, initial=0.0)
    sides_of.Z /= np.where(size > 0, size, 1.0)
    x = separating_direction(sides_of, "needed a normal prior of the fixed effects")
    if x is None:
        return None
    # A level set to 0 may tell in one effect what takes all other levels of its class.
    every = flat_columns(design, t, with_reference_levels=True)
    all_sides = _unique(design, every, seen, lower[seen], upper[seen], thresholds)
    size = np.abs(all_sides.Z).max(axis=0, initial=0.0)
    all_sides.Z /= np.where(size > 0, size, 1.0)
    start = np.zeros(len(every) + len(x) - len(columns))
    start[[every.index(column) for column in columns]] = x[: len(columns)]
    start[len(every) :] = x[len(columns) :]
    sides_of, columns, x = all_sides, every, simplest(all_sides, start)
    b = x[: len(columns)]
    order = [i for i in np.argsort(-np.abs(b), kind="stable") if abs(b[i]) > BROKEN]
    return Separated(t, [columns[i] for i in order], b[order], sides_of.rising(x), int(sides_of.count.sum()))


def flat(term: Term) -> np.ndarray:
    """(k,) bool: components with a flat prior."""
    if term.kind == "random":
        return np.zeros(term.n_components, bool)
    precision = term.prior_precision
    return np.ones(term.n_components, bool) if precision is None else np.diag(precision) == 0


def flat_columns(design: Design, trait: int, with_reference_levels: bool = False) -> list[tuple[int, int, int]]:
    """(term, component, level) of the flat fixed equations of a trait that are in force, or of all of them."""
    out = []
    for i, term in enumerate(design.terms):
        for c in np.flatnonzero(flat(term) & (term.component_trait == trait)):
            active = np.ones(term.n_levels, bool)
            if term.active is not None and not with_reference_levels:
                active = term.active[:, c]
            out += [(i, int(c), int(level)) for level in np.flatnonzero(active)]
    return out


def _unique(
    design: Design, columns: list[tuple[int, int, int]], seen: np.ndarray, lower: np.ndarray, upper: np.ndarray, K: int
) -> Sides:
    """The records that differ, each once. TooLarge beyond MOST_VALUES."""
    keys, effects = [lower[:, None], upper[:, None]], {}
    for i, c, _ in columns:
        term = design.terms[i]
        e = int(term.component_effect[c])
        if (i, e) not in effects:
            effect = term.effects[e]
            z = np.ones((seen.size, 1)) if effect.covariates is None else effect.covariates[seen]
            effects[i, e] = sum(k.shape[1] for k in keys)
            keys += [effect.level[seen][:, None], z]
    every, counts = np.unique(np.hstack(keys), axis=0, return_counts=True)
    if len(every) * len(columns) > MOST_VALUES:
        raise TooLarge
    Z = np.empty((len(every), len(columns)))
    for j, (i, c, level) in enumerate(columns):
        term, e = design.terms[i], int(design.terms[i].component_effect[c])
        regressor = (c - int(np.flatnonzero(term.component_effect == e)[0])) % term.effects[e].n_regressors
        at = effects[i, e]
        Z[:, j] = np.where(every[:, at] == level, every[:, at + 1 + regressor], 0.0)
    return Sides(Z, every[:, 0].astype(np.int64), every[:, 1].astype(np.int64), K, counts)


# ------------------------------------------------------------------------------------------------ in words


def refuse_separation(prepared: Prepared) -> list[str]:
    """DataError where flat effects separate the records of a trait; notes where that was not looked for."""
    design, notes = prepared.design, []
    for response in design.responses:
        name = design.traits[response.trait]
        try:
            separated = find_separation(design, response)
        except TooLarge:
            notes.append(
                f"trait '{name}': it was not checked whether its flat fixed effects together separate the records: the "
                f"check takes at most {MOST_COLUMNS} of their equations, and {MOST_VALUES:,} equations times records"
            )
            continue
        if separated is not None:
            raise DataError(describe_separation(separated, design, _make_labels(prepared)))
    return notes


def describe_separation(separated: Separated, design: Design, label: Callable[[int, int, int], str]) -> str:
    """Reason, combination, counts and remedies; label of (term, component, level)."""
    several = len(separated.columns) > 1
    shown = [
        f"{label(*column)} ({'+' if v > 0 else '-'})"
        for column, v in zip(separated.columns, separated.values, strict=True)
    ]
    more = f" and {len(shown) - SHOWN} more" if len(shown) > SHOWN else ""
    terms = dict.fromkeys(design.terms[i].name for i, _, _ in separated.columns)
    name = next((t for t in terms if t != "intercept"), "NAME")
    what = "these effects separate" if several else "this effect separates"
    return (
        f"trait '{design.traits[separated.trait]}': {what} its records: {', '.join(shown[:SHOWN])}{more}. The further "
        f"they go, + up and - down, the better {separated.records:,} of {separated.observed:,} records fit, "
        f"and no record "
        "fits worse: with flat priors they have no posterior; needed "
        f"model.fixed.{name}.prior: {{variance: 10}}, the effect among the random ones, or levels joined"
    )


def _make_labels(prepared: Prepared) -> Callable[[int, int, int], str]:
    def label(i: int, c: int, level: int) -> str:
        term, labels = prepared.design.terms[i], prepared.levels[i]
        id_ = labels.ids[level]
        return term.name if id_ in ("", term.name) or term.n_levels == 1 else f"{term.name} {quoted(str(id_))}"

    return label
