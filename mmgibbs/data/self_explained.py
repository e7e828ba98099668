"""Traits that explain themselves: their column, or a copy of it, stands among what is to explain them.

A covariate that is the trait, a linear function of it or any other that only rises or falls with it leaves nothing for
the animals: all breeding values are about 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from mmgibbs.config import Analysis, Trait
from mmgibbs.config.relationships import Identity
from mmgibbs.data.fixed import ClassEffect, Effects
from mmgibbs.data.phenotypes import Phenotypes
from mmgibbs.data.traits import Records
from mmgibbs.errors import DataError
from mmgibbs.pedigree.tables import counted, quoted

_UNEXPLAINED = 1e-4  # share of the sum of squares, of what is a linear function but for rounding
_MIN_RECORDS = 10  # beyond the coefficients, for an exact relation that is no chance
_MIN_RECORDS_OF_CURVE = 20


class _Use(NamedTuple):
    """A column of the records that explains traits."""

    path: str
    column: str
    traits: tuple[str, ...]
    what: str


# ------------------------------------------------------------------------------------------------ the same column


def refuse_traits_as_effects(analysis: Analysis, phenotypes: Phenotypes) -> None:
    """Raise DataError for an effect, weights or classes of residuals in the column of a trait that they act on."""
    for use in _uses(analysis):
        for trait in analysis.traits:
            if trait.name in use.traits and use.column in _columns_of_values(trait):
                alternative = ", or 'traits: [...]' with the others alone" if len(analysis.traits) > 1 else ""
                raise DataError(
                    f"{phenotypes.name}: found column {quoted(use.column)} as {use.what} ({use.path}) of traits."
                    f"{trait.name}, whose values it has: a trait cannot explain itself; needed another column"
                    + (alternative if use.path.startswith("model.") else "")
                )


def _uses(analysis: Analysis) -> Iterator[_Use]:
    every = tuple(t.name for t in analysis.traits)
    if analysis.data.weights is not None:
        yield _Use("data.weights", analysis.data.weights, every, "the weights of the records")
    if analysis.variances.residual.by is not None:
        yield _Use("variances.residual.by", analysis.variances.residual.by, every, "the classes of the residuals")
    for trait in analysis.traits:
        if trait.exposure is not None:
            yield _Use(f"traits.{trait.name}.exposure", trait.exposure, (trait.name,), "the exposure")
    for name, fixed in analysis.model.fixed.items():
        path, traits = f"model.fixed.{name}", tuple(fixed.traits)
        for column in fixed.number_columns:
            yield _Use(path, column, traits, "a covariate")
        for column in fixed.class_columns:
            of_covariate = fixed.kind == "covariate"
            at = f"{path}.by" if of_covariate and fixed.interaction is None else path
            yield _Use(at, column, traits, "the class of a covariate" if of_covariate else "a class effect")
    for name, random in analysis.model.random.items():
        for of_effect, effect in random.effects.items():
            path, traits = f"model.random.{name}" + (f".effects.{of_effect}" if of_effect else ""), tuple(effect.traits)
            if isinstance(random.relationship, Identity):  # ids of animals as a trait are refused as such
                at = path if effect.interaction else f"{path}.level"
                for column in effect.level_columns:
                    yield _Use(at, column, traits, "a random effect")
            for column in effect.covariates or ():
                yield _Use(f"{path}.covariates", column, traits, "a covariate")
            if effect.legendre is not None:
                yield _Use(f"{path}.legendre.column", effect.legendre.column, traits, "a covariate")


def _columns_of_values(trait: Trait) -> set[str | None]:
    return {trait.lower, trait.upper} if trait.lower or trait.upper else {trait.column}


# ------------------------------------------------------------------------------------------------ the same values


def warn_of_copies(analysis: Analysis, records: Records, effects: Effects) -> tuple[str, ...]:
    """Return a warning for each trait that fixed covariates, the weights, a fixed class or another trait determine."""
    phenotypes, out = records.phenotypes, []
    of_fixed = {
        name: phenotypes.numbers(fixed.column, f"model.fixed.{name}", fixed.missing)
        for name, fixed in analysis.model.fixed.items()
        if fixed.kind == "covariate"
    }
    values = [_values(records, t) for t in range(len(analysis.traits))]
    observed = records.observed.astype(np.float32)
    together = observed.T @ observed > 0  # of trials as traits hardly any pair
    for t, trait in enumerate(analysis.traits):
        y = values[t]
        columns = [
            (f"model.fixed.{name}", fixed.column, of_fixed[name])
            for name, fixed in analysis.model.fixed.items()
            if name in of_fixed and trait.name in fixed.traits
        ]
        if analysis.data.weights is not None:
            columns.append(("data.weights", analysis.data.weights, records.weight))
        out += [
            f"{phenotypes.name}: {said}"
            for said in (*_said_of_numbers(trait, y, columns), *_said_of_classes(trait, t, y, effects))
        ]
        for s in range(t):
            are_normal = trait.is_normal and analysis.traits[s].is_normal
            if are_normal and together[s, t] and is_linear_function(y, [values[s]]):
                out.append(
                    f"{phenotypes.name}: the values of traits.{trait.name} are a linear function of those of traits."
                    f"{analysis.traits[s].name} (columns {quoted(trait.column)} and "
                    f"{quoted(analysis.traits[s].column)}): their correlation is 1 or -1, and their covariances cannot "
                    "be estimated; leave out one of them"
                )
    return tuple(out)


def _values(records: Records, trait: int) -> np.ndarray:
    """(n,) the values of a trait as a table has them, or numbers in the same order; NaN where not observed."""
    response = next((r for r in records.responses if r.trait == trait), None)
    return records.y[:, trait] if response is None else response.values()


def _said_of_numbers(trait: Trait, y: np.ndarray, columns: Sequence[tuple[str, str, np.ndarray]]) -> Iterator[str]:
    """Describe columns (YAML path, column, values (n,)) that determine the trait, one by one or together."""
    alone = False
    for path, column, x in columns:
        relation = "a linear function" if is_linear_function(y, [x]) else "a function" if is_monotone(y, x) else ""
        if relation:
            alone = True
            yield (
                f"{path}: the values of column {quoted(column)} are {relation} of those of traits.{trait.name} (column "
                f"{quoted(trait.column)}): the trait explains itself, and nothing is left for other effects; leave out "
                "this column"
            )
    if not alone and len(columns) > 1 and is_linear_function(y, [x for _, _, x in columns]):
        names = ", ".join(quoted(column) for _, column, _ in columns)
        yield (
            f"traits.{trait.name}: its values (column {quoted(trait.column)}) are a linear function of the columns "
            f"{names}, which are covariates or weights: the trait explains itself, and nothing is left for other "
            "effects; leave out one of these columns"
        )


def _said_of_classes(trait: Trait, t: int, y: np.ndarray, effects: Effects) -> Iterator[str]:
    """Describe fixed classes each of whose levels has one value of the trait, or one record."""
    for effect in effects:
        if not isinstance(effect, ClassEffect) or not effect.column or not effect.is_flat(t):
            continue
        seen = ~np.isnan(y) & (effect.level >= 0)
        of_level, n = effect.level[seen], int(seen.sum())
        n_levels = int(np.count_nonzero(np.bincount(of_level, minlength=1)))
        if n_levels < 2 or n < _MIN_RECORDS or np.ptp(y[seen]) == 0:
            continue
        where = f"model.fixed.{effect.name}: column {quoted(effect.column)} has"
        if n_levels == n:
            yield (
                f"{where} a level of its own for each of the {n:,} records of traits.{trait.name}: the effect explains "
                "all of them, and nothing is left for other effects; leave it out, or write kind: covariate where the "
                "column has numbers that measure something"
            )
        elif n - n_levels >= _MIN_RECORDS and _is_constant_by_level(y[seen], of_level, len(effect.ids)):
            yield (
                f"{where} {counted(n_levels, 'level')}, and all records of a level have the same value of traits."
                f"{trait.name}: the effect explains all of them, and nothing is left for other effects; leave it out"
            )


def _is_constant_by_level(y: np.ndarray, of_level: np.ndarray, n_levels: int) -> bool:
    value = np.zeros(n_levels)
    value[of_level] = y
    return bool((value[of_level] == y).all())


def is_linear_function(y: np.ndarray, columns: Sequence[np.ndarray]) -> bool:
    """Return whether y = a + sum_j b_j x_j but for rounding, where all are known. y, columns: (n,) each."""
    seen = np.isfinite(y) & np.logical_and.reduce([np.isfinite(x) for x in columns])
    if int(seen.sum()) < len(columns) + 1 + _MIN_RECORDS:
        return False
    target, X = _standardised(y[seen]), [_standardised(x[seen]) for x in columns]
    of_target = float(target @ target)
    if of_target == 0 or not any(x.any() for x in X):
        return False
    gram, right = np.array([[a @ b for b in X] for a in X]), np.array([x @ target for x in X])
    coefficients, *_ = np.linalg.lstsq(gram, right, rcond=1e-10)
    return of_target - float(coefficients @ right) < _UNEXPLAINED * of_target


def _standardised(x: np.ndarray) -> np.ndarray:
    centred = x - x.mean()
    spread = float(np.abs(centred).max())
    return centred / spread if spread > 1e-12 * float(np.abs(x).max()) else np.zeros(len(x))


def is_monotone(y: np.ndarray, x: np.ndarray) -> bool:
    """Return whether y only rises, or only falls, with x, as its logarithm and its rank do. y, x: (n,)."""
    seen = np.isfinite(y) & np.isfinite(x)
    if int(seen.sum()) < _MIN_RECORDS_OF_CURVE:
        return False
    order = np.lexsort((y[seen], x[seen]))
    steps_x, steps_y = np.diff(x[seen][order]), np.diff(y[seen][order])
    if np.count_nonzero(steps_x) + 1 < _MIN_RECORDS_OF_CURVE or np.any((steps_x == 0) != (steps_y == 0)):
        return False
    moved = steps_y[steps_x != 0]
    return bool((moved > 0).all() or (moved < 0).all())
