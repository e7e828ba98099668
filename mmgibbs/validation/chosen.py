"""Which records are left out: what the options of a validation ask for, checked against the data."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from mmgibbs.data.levels import lookup
from mmgibbs.data.prepared import Prepared
from mmgibbs.errors import ConfigError, option, option_name
from mmgibbs.validation import cross, lr
from mmgibbs.validation.evaluation import Recorded
from mmgibbs.validation.focal import Focal, choose_focal
from mmgibbs.validation.folds import (
    Fold,
    animal_units,
    balanced_folds,
    families,
    fold_times,
    forward_folds,
    given_folds,
)
from mmgibbs.validation.plan import Plan
from pedigree.read import Pedigree


def codes_of(animals: pl.Series, ids: pl.Series | None) -> np.ndarray:
    """(n,) int64 code of each animal; without a pedigree animals are numbered as they appear, unknown ones -1."""
    ids = animals.drop_nulls().unique(maintain_order=True) if ids is None else ids
    return lookup(animals, ids).fill_null(-1).to_numpy().astype(np.int64)


@dataclass(frozen=True)
class Chosen:
    """What is left out."""

    folds: list[Fold]  # none where there is no cross-validation
    focal: Focal | None  # None without the LR method


def choose(records: Recorded, prepared: Prepared, plan: Plan) -> Chosen:
    """Everything is checked before the first of many solutions."""
    if prepared.pedigree is not None:
        records = replace(records, animal=prepared.pedigree.spelled(records.animal))
    codes = codes_of(records.animal, None if prepared.pedigree is None else prepared.pedigree.ids)
    folds = chosen_folds(records, plan, codes, prepared) if plan.method in ("kfold", "both") else []
    return Chosen(folds, chosen_focal(records, prepared, plan, codes) if plan.method in ("lr", "both") else None)


def chosen_folds(records: Recorded, plan: Plan, codes: np.ndarray, prepared: Prepared) -> list[Fold]:
    folds = _folds_of(records, plan, codes, prepared.pedigree)
    cross.check_folds(prepared.design, folds, plan.by)
    return folds


def _folds_of(records: Recorded, plan: Plan, codes: np.ndarray, pedigree: Pedigree | None) -> list[Fold]:
    if plan.by == "column":
        assert plan.column is not None, "a settled plan has it"
        return given_folds(records.phenotypes.text(plan.column, option_name("column")), plan.column)
    assert plan.folds is not None, "a settled plan has it"
    if plan.by == "time":
        return forward_folds(fold_times(records, codes, pedigree, plan.time), plan.folds)
    rng, n = (
        np.random.default_rng([plan.seed, 0]),
        int(codes.max(initial=-1)) + 1 if pedigree is None else len(pedigree.ids),
    )
    units = animal_units(records.animal, codes, n)
    if plan.by == "random":
        return balanced_folds(units, plan.folds, rng, records.units)
    if pedigree is None:
        raise ConfigError(f"validate: found no pedigree, needed one for {option('by', 'family')}")
    return balanced_folds(families(pedigree, units), plan.folds, rng, "half-sib families")


def chosen_focal(records: Recorded, prepared: Prepared, plan: Plan, codes: np.ndarray) -> Focal:
    if not lr.related_terms(prepared.design) and not prepared.design.markers:
        raise ConfigError(
            "validate: found no random effect with a relationship, and no SNP effects, whose breeding values the LR "
            f"method would compare; needed one, or {option('method', 'kfold')}"
        )
    focal = choose_focal(records, prepared.pedigree, codes, plan.cutoff, plan.focal)
    levels_of(focal, prepared)
    return focal


def levels_of(focal: Focal, prepared: Prepared) -> dict[int, np.ndarray]:
    """Term with relationships -> (n,) level codes of the focal animals."""
    related = lr.related_terms(prepared.design)
    return {i: focal.levels(prepared.levels[i].ids, prepared.design.terms[i].name) for i in related}


def family_of(focal: Focal, pedigree: Pedigree | None) -> np.ndarray:
    """(n,) int64 half-sib family of each focal animal."""
    codes = codes_of(focal.animals, None if pedigree is None else pedigree.ids)
    n = len(focal.animals) if pedigree is None else len(pedigree.ids)
    return families(pedigree, animal_units(focal.animals, codes, n))
