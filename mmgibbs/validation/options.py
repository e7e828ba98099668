"""Options of a validation, and the variances that it is done at."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import yaml

from mmgibbs.config import Analysis
from mmgibbs.config.complete_variances import implied_variances
from mmgibbs.config.effects import component_names
from mmgibbs.config.variances import Variance
from mmgibbs.errors import ConfigError, nearest, option, option_name

SAMPLE = "sample"  # in place of a run: variances are sampled in every chain
DEFAULTS: dict[str, Any] = {"folds": 5, "by": "random"}
FOLD_DRAWS, BOOTSTRAP_DRAWS, SIMULATION_DRAWS = range(3)  # beside the seed of a generator: what its draws are for
REPLICATES = 100  # where solutions are those of BLUP
WORDS: dict[str, tuple[str | None, ...]] = {
    "method": ("kfold", "lr", "both"),
    "by": (None, "random", "family", "time", "column", "cell"),
}
OPTIONS = {
    "kfold": ("folds", "by", "time", "column"),
    "lr": ("cutoff", "focal", "replicates"),
}  # that nothing else uses


@dataclass(frozen=True)
class ValidationPlan:
    """Plan of a validation: the records that it leaves out, and how it compares.

    Parameters
    ----------
    method : {'both', 'kfold', 'lr'}, default 'both'
        'kfold' is cross-validation, 'lr' compares breeding values from partial and from whole data.
    folds : int, optional
        kfold: number of folds, 2 or more (default 5).
    by : {'random', 'family', 'time', 'column', 'cell'}, optional
        kfold: what is in a fold: animals at random (default), half-sib families by sire, the animals born in one of
        the last years, the records with one value of `column`, or animals in one environment at random.
    time : str, optional
        With ``by='time'``: a column of numbers in the records, in place of the birth year of the animal.
    cutoff : float, optional
        lr: leave out the records of animals born in this year or later (default: the last birth year of an animal
        with records).
    focal : str or path, optional
        lr: file with one id per line; these animals are compared and their records are left out.
    variances : str, path, or list of these, optional
        Folder of a finished run, whose posterior means replace the starts of the analysis, or 'sample' to sample the
        variances in every chain. A list has one for each analysis.
    seed : int, default 1
        Seed of folds, simulation and bootstrap; chains use `sampler.seed`.
    replicates : int, optional
        lr by BLUP: number of sets of records simulated for expected values and standard errors (default 100; 0:
        bootstrap of half-sib families).
    column : str, optional
        With ``by='column'``: the column of the records whose values are the folds. With ``by='cell'``: the column of
        the environments (default: that of traits by environment).

    Examples
    --------
    >>> import mmgibbs
    >>> mmgibbs.ValidationPlan("kfold", folds=3, by="family").folds
    3
    """

    method: str = "both"
    folds: int | None = None
    by: str | None = None
    time: str | None = None
    cutoff: float | None = None
    focal: str | os.PathLike | None = None
    variances: Any = None
    seed: int = 1
    replicates: int | None = None
    column: str | None = None


def plan_each(plan: ValidationPlan, n_analyses: int) -> list[ValidationPlan]:
    """Return the resolved plan of each analysis, with its variances: those of all, or one of a list."""
    _check_type(plan)
    given = plan.variances
    listed = list(given) if isinstance(given, Sequence) and not isinstance(given, str) else [given]
    each = (listed or [None]) * (n_analyses if len(listed) < 2 else 1)
    if len(each) != n_analyses:
        several = f"{n_analyses} analyses; needed one for each, or one for all"
        needed = "1 analysis; needed one" if n_analyses == 1 else several
        raise ConfigError(f"validate: {option_name('variances')}: found {len(each)} for {needed}")
    return [resolve_plan(replace(plan, variances=variances)) for variances in each]


def resolve_plan(plan: ValidationPlan) -> ValidationPlan:
    """The plan with defaults for what was not given and is used.

    ConfigError for an option of another type, that is out of range, or that would be ignored.
    """
    plan = _checked(plan)
    if plan.column is not None and plan.by not in ("column", "cell"):
        _refuse("column", option("by", plan.by or "random"), f"{option('by', 'column')} or {option('by', 'cell')}")
    if plan.by == "column" and (plan.column is None or plan.folds is not None):
        got = f"no {option_name('column')}" if plan.column is None else option_name("folds")
        raise ConfigError(
            f"validate: found {option('by', 'column')} with {got}, needed {option('column', 'NAME')} alone, whose "
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
        got = option("replicates", plan.replicates)
        raise ConfigError(f"validate: found {got}, needed at least 2, or 0 for none")
    return plan


def _checked(plan: ValidationPlan) -> ValidationPlan:
    """The plan with plain numbers and texts: from Python anything may come."""
    _check_type(plan)
    checked: dict[str, Any] = {name: _word(name, getattr(plan, name), words) for name, words in WORDS.items()}
    limits = {"folds": "a whole number of at least 2", "seed": "a whole number of 0 or more"}
    limits["replicates"] = "a whole number of at least 2, or 0 for none"
    checked |= {name: _read_integer(name, getattr(plan, name), needed) for name, needed in limits.items()}
    for name in ("time", "column"):
        checked[name] = _text(name, getattr(plan, name), "the name of a column of the records")
    checked["focal"] = _text("focal", plan.focal, "the path of a file of ids")
    checked["variances"] = _text("variances", plan.variances, f"the folder of a finished run, or '{SAMPLE}'")
    checked["cutoff"] = _year("cutoff", plan.cutoff)
    return replace(plan, **checked)


def _check_type(plan: object) -> None:
    if not isinstance(plan, ValidationPlan):
        raise ConfigError(f"validate: found plan={plan!r}, needed a ValidationPlan, such as ValidationPlan(folds=5)")


def _word(name: str, value: object, words: tuple[str | None, ...]) -> object:
    """Check that a value is one of the words."""
    if any(value is word or (isinstance(value, str) and value == word) for word in words):
        return value
    needed = [word for word in words if word is not None]
    close = nearest(value, needed) if isinstance(value, str) else ""
    hint = f"; {close}" if close.startswith("did") else ""
    raise _refuse_value(name, value, f"{', '.join(needed[:-1])} or {needed[-1]}{hint}")


def _read_integer(name: str, value: object, needed: str) -> int | None:
    if value is None and name != "seed":
        return None
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise _refuse_value(name, value, needed)
    return int(value)


def _year(name: str, value: object) -> float | None:
    if value is None:
        return None
    number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if not number or not np.isfinite(value):  # type: ignore[call-overload]
        raise _refuse_value(name, value, "a birth year")
    return float(value)  # type: ignore[arg-type]


def _text(name: str, value: object, needed: str) -> str | None:
    """Text or a path; None stays."""
    path = os.fspath(value) if isinstance(value, os.PathLike) else value
    if path is not None and (not isinstance(path, str) or path.strip() == ""):
        raise _refuse_value(name, value, needed)
    return path


def _refuse_value(name: str, value: object, needed: str) -> ConfigError:
    return ConfigError(f"validate: found {option(name, value)}, needed {needed}")


def _refuse(name: str, with_what: str, needed: str) -> None:
    raise ConfigError(f"validate: {option_name(name)} cannot be combined with {with_what}; needed {needed}")


# ------------------------------------------------------------ variances without a start

MOST = 6  # rows of a matrix that is written out
RESIDUAL = "residual"


def refuse_without_starts(analysis: Analysis) -> None:
    """ConfigError where a variance of a term or of the residuals has no start."""
    for name, random in analysis.model.random.items():
        if random.relationship.has_free_parameters and random.relationship.lacks_parameters:
            wanted = ", ".join(f"{key}: R" for key in random.relationship.parameters)
            raise ConfigError(f"model.random.{name}.relationship.rho: missing, needed {{{wanted}}} as estimated before")
    implied, missing = implied_variances(analysis.model), []
    for name, spec in (analysis.variances.terms | {RESIDUAL: analysis.variances.residual}).items():
        classes = getattr(spec, "classes", {})
        if (
            name not in implied
            and spec.start is None
            and not (classes and all(c.start is not None for c in classes.values()))
        ):
            missing.append(name)
    if missing:
        raise ConfigError(
            f"variances.{missing[0]}: found no start, needed one, {option('variances', 'RUN')} for the posterior means "
            f"of a finished run, or {option('variances', 'sample')} to sample them in every chain; a start is, with "
            f"your numbers for V (variance) and C (covariance):\n{starts_text(analysis, missing)}"
        )


def starts_text(analysis: Analysis, names: Sequence[str]) -> str:
    """YAML of the starts of these terms."""
    lines = ["variances:"]
    for name in names:
        spec: Variance = analysis.variances.residual if name == RESIDUAL else analysis.variances.terms[name]
        labels = component_names(analysis.traits if name == RESIDUAL else analysis.model.random[name])
        known = [i for i, t in enumerate(analysis.traits) if t.has_unit_residual and name == RESIDUAL]
        rows = f"  # rows and columns: {', '.join(labels)}" if len(labels) > 1 else ""
        lines.append(f"  {yaml.safe_dump(name, allow_unicode=True, width=1000).partition(chr(10))[0]}:{rows}")
        lines.append(f"    start: {_start(len(labels), not spec.structure.kind_class.has_covariances, known)}")
    return "\n".join(lines)


def _start(k: int, diagonal: bool, known: Sequence[int]) -> str:
    """'V' or '[[V1, C12], [C12, V2]]' of k components; known: those whose variance is 1."""
    if k > MOST:
        return f"...  # {k} rows of {k} numbers"
    if k == 1:
        return "1" if known else "V"
    element = lambda i, j: (
        ("1" if i in known else f"V{i + 1}") if i == j else "0" if diagonal else f"C{min(i, j) + 1}{max(i, j) + 1}"
    )
    return f"[{', '.join('[' + ', '.join(element(i, j) for j in range(k)) + ']' for i in range(k))}]"


def check_number(folds: int) -> None:
    """ConfigError for fewer than two folds."""
    if folds < 2:
        raise ConfigError(f"validate: found {option('folds', folds)}, needed at least 2")
