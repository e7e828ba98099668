"""What a validation is asked for: the options of `mmgibbs validate`, and which of them go together."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mmgibbs.errors import ConfigError, option, option_name
from mmgibbs.validation.folds import check_number

SAMPLE = "sample"  # in place of a run: variances are sampled in every chain
DEFAULTS: dict[str, Any] = {"folds": 5, "by": "random"}
REPLICATES = 100  # where solutions are those of BLUP
OPTIONS = {
    "kfold": ("folds", "by", "time", "column"),
    "lr": ("cutoff", "focal", "replicates"),
}  # that nothing else uses


@dataclass(frozen=True)
class Plan:
    """The options; None: not given."""

    method: str = "both"  # 'kfold' | 'lr' | 'both'
    folds: int | None = None
    by: str | None = None  # 'random' | 'family' | 'time' | 'column'
    time: str | None = None  # a column of the records
    cutoff: float | None = None  # birth year
    focal: str | None = None  # file of ids
    variances: str | None = None  # folder of a finished run, or SAMPLE
    seed: int = 1
    replicates: int | None = (
        None  # of the simulation behind standard errors of the LR method; 0: bootstrap of families; None:
    )
    # REPLICATES of BLUP, none of sampling
    column: str | None = None  # of the records: which fold


def settled(plan: Plan) -> Plan:
    """The plan with defaults for what was not given and is used.

    ConfigError for an option that is out of range, or would be ignored.
    """
    if plan.column is not None and plan.by != "column":
        _refuse("column", option("by", plan.by or "random"), option("by", "column"))
    if plan.by == "column" and (plan.column is None or plan.folds is not None):
        found = f"no {option_name('column')}" if plan.column is None else option_name("folds")
        raise ConfigError(
            f"validate: found {option('by', 'column')} with {found}, needed {option('column', 'NAME')} alone, whose "
            "values are the folds"
        )
    for method, options in OPTIONS.items():
        given = [name for name in options if getattr(plan, name) is not None]
        if plan.method in (method, "both"):
            unused = ["folds"] if plan.by == "column" else []
            plan = replace(plan, **{o: DEFAULTS[o] for o in options if o in DEFAULTS and o not in given + unused})
        elif given:
            _refuse(given[0], option("method", plan.method), f"{option('method', method)}, or both")
    if plan.folds is not None:
        check_number(plan.folds)
    if plan.time is not None and plan.by != "time":
        _refuse("time", option("by", plan.by), option("by", "time"))
    if plan.seed < 0:
        raise ConfigError(f"validate: found {option('seed', plan.seed)}, needed 0 or more")
    if plan.replicates is not None and (plan.replicates < 0 or plan.replicates == 1):
        found = option("replicates", plan.replicates)
        raise ConfigError(f"validate: found {found}, needed at least 2, or 0 for none")
    if plan.cutoff is not None and not np.isfinite(plan.cutoff):
        raise ConfigError(f"validate: found {option('cutoff', plan.cutoff)}, needed a birth year")
    return plan


def _refuse(name: str, with_what: str, needed: str) -> None:
    raise ConfigError(f"validate: {option_name(name)} cannot be combined with {with_what}; needed {needed}")
