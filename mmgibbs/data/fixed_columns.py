"""The fixed effects as the records have them: levels of classes, covariates, and the intercept."""

from __future__ import annotations

import math

import numpy as np
import polars as pl

from mmgibbs.config import Analysis
from mmgibbs.config.types_of_traits import is_vague
from mmgibbs.data.covariates import Basis
from mmgibbs.data.fixed import INTERCEPT, ClassEffect, CovariateEffect, Effects
from mmgibbs.data.levels import code_levels, natural_order
from mmgibbs.data.phenotypes import SHOWN, Phenotypes, refuse_rows
from mmgibbs.data.prepared import LevelLabels
from mmgibbs.data.random import advise_omitting, covariate, legendre_range
from mmgibbs.data.traits import Records, observing
from mmgibbs.errors import DataError
from mmgibbs.pedigree.spelling import find_respelled
from mmgibbs.pedigree.tables import quoted

SHOWN_LEVELS = 10  # of an effect, where a reference is none of them


def read_fixed_effects(
    analysis: Analysis, records: Records
) -> tuple[list[ClassEffect | CovariateEffect], list[LevelLabels]]:
    """The intercept and the fixed effects on the records, with their labels."""
    phenotypes, observed = records.phenotypes, records.observed
    names = [t.name for t in analysis.traits]
    index = {name: i for i, name in enumerate(names)}
    effects: list[ClassEffect | CovariateEffect] = []
    labels = []
    coded: dict[tuple, tuple[pl.Series, np.ndarray]] = {}

    def class_levels(
        column: str, path: str, traits: tuple[int, ...], missing: tuple[str, ...] = ()
    ) -> tuple[pl.Series, np.ndarray]:
        key = (column, traits, missing)
        if key not in coded:
            coded[key] = read_class_levels(phenotypes, column, path, observing(observed, traits), missing)
        return coded[key]

    for name, fixed in analysis.model.fixed.items():
        traits = tuple(sorted(index[t] for t in fixed.traits))
        priors = tuple(fixed.trait_prior(names[t]) for t in traits)
        needed = observing(observed, traits)
        if fixed.kind == "class":
            ids, level = class_levels(fixed.column, f"model.fixed.{name}", traits, fixed.missing)
            reference = None
            if fixed.reference is not None:
                path = f"model.fixed.{name}.reference"
                reference = find_stated_level(fixed.reference, ids, path, "the levels are")
            vague = tuple(t for t in traits if is_vague(fixed, analysis.traits[t]))
            effects.append(ClassEffect(name, fixed.column, traits, level, ids.to_list(), priors, reference, vague))
            labels.append(LevelLabels(ids, np.arange(len(ids))))
            continue
        path = f"model.fixed.{name}"
        x = covariate(phenotypes, fixed.column, path, needed, fixed.missing, f"{path}.without_value")
        if fixed.by is None:
            ids, level = pl.Series("id", [""]), np.where(needed, 0, -1).astype(np.int32)
        else:
            ids, level = class_levels(fixed.by, f"{path}.by", traits, fixed.missing if fixed.interaction else ())
        span = None
        if fixed.legendre:
            span = legendre_range(phenotypes, fixed.column, f"{path}.legendre", x, needed, fixed.legendre.range)
        else:
            _refuse_powers(phenotypes, fixed.column, path, x[needed], fixed.degree)
        degree = fixed.legendre.degree if fixed.legendre else fixed.degree
        effects.append(
            CovariateEffect(name, traits, Basis(x, level, len(ids), degree, span), ids.to_list(), fixed.by, priors)
        )
        labels.append(LevelLabels(ids, np.arange(len(ids)), coefficient_in_level=True))
    intercept = _intercept_traits(analysis, effects)
    if intercept:
        level = np.where(observing(observed, intercept), 0, -1).astype(np.int32)
        effects.insert(0, ClassEffect(INTERCEPT, "", intercept, level, ["1"]))
        labels.insert(0, LevelLabels(pl.Series("id", ["1"]), np.arange(1)))
    return effects, labels


def _refuse_powers(phenotypes: Phenotypes, column: str, path: str, x: np.ndarray, degree: int) -> None:
    """A DataError where powers of the covariate overflow, or where those of its spread vanish."""
    largest = float(np.abs(x).max(initial=0.0))
    spread = float(np.ptp(x)) if len(x) else 0.0
    if degree * math.log10(max(largest, 1.0)) > 100 or (spread > 0 and degree * math.log10(spread) < -100):
        problem = (
            f"found values up to {largest:g} in size that differ by up to {spread:g} in column '{column}' ({path})"
        )
        raise DataError(f"{phenotypes.name}: {problem}; needed another unit: power {degree} of them cannot be computed")


def read_class_levels(
    phenotypes: Phenotypes, column: str, path: str, needed: np.ndarray, missing: tuple[str, ...]
) -> tuple[pl.Series, np.ndarray]:
    """(ids, level of each record): every level in the column is one, also where its records observe none of the
    effect's traits."""
    text = phenotypes.text(column, path, missing)
    absent = needed & text.is_null().to_numpy()
    if absent.any():
        raise refuse_rows(
            phenotypes.name,
            phenotypes.rows[absent],
            [
                f"found no value in column '{phenotypes.find_empty(column, path, int(i))}' ({path})"
                for i in np.flatnonzero(absent)[:SHOWN]
            ],
            "a level for every record of a trait that the effect acts on"
            + advise_omitting(f"{path.removesuffix('.by')}.without_value"),
        )
    ids, (level,) = code_levels([text])
    return ids, np.where(needed, level, -1).astype(np.int32)


def _intercept_traits(analysis: Analysis, effects: Effects) -> tuple[int, ...]:
    """`auto`: the traits that no flat-prior class effect spans, unless one has a reference: its mean is elsewhere."""
    choice, every = analysis.model.intercept, range(len(analysis.traits))
    if choice is False:
        return ()
    if choice is True:
        return tuple(every)
    classes = [e for e in effects if isinstance(e, ClassEffect) and e.reference is None]
    return tuple(t for t in every if not any(e.is_flat(t) for e in classes))


def find_stated_level(reference: str, ids: pl.Series, path: str, what: str) -> int:
    """The code of a reference level, also where it is spelled in another way; DataError where it is none."""
    exact = (ids == reference).arg_true()
    if len(exact):
        return int(exact[0])
    respelled = find_respelled(pl.Series([reference]), ids)
    if respelled.height and respelled["n_ids"][0] == 1:
        return int((ids == respelled["id"][0]).arg_true()[0])
    shown = [quoted(ids[i]) for i in natural_order(ids)[:SHOWN_LEVELS]]
    more = f" and {len(ids) - SHOWN_LEVELS:,} more" if len(ids) > SHOWN_LEVELS else ""
    raise DataError(f"{path}: found {quoted(reference)}, which is not a level; {what} {', '.join(shown)}{more}")
