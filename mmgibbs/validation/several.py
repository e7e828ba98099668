"""Several analyses of the same records validated alike, and compared, such as one with SNP effects and one without.

All leave out the same records. Folds and focal animals are chosen for one analysis that uses every record that any of
them uses, and taken over by row of the table.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from mmgibbs.config.analysis import Analysis
from mmgibbs.config.frames import as_polars
from mmgibbs.data.prepare import prepare
from mmgibbs.data.prepared import Prepared
from mmgibbs.errors import ConfigError, option, option_name
from mmgibbs.runs.chains import Executor
from mmgibbs.runs.progress import Console
from mmgibbs.validation import cross
from mmgibbs.validation.chosen import Chosen, choose
from mmgibbs.validation.compare import Comparison, compare
from mmgibbs.validation.evaluation import Recorded, recorded, without_others
from mmgibbs.validation.files import output_folder, write, write_comparison
from mmgibbs.validation.found import Validation
from mmgibbs.validation.make import analysis_of, examine
from mmgibbs.validation.place import Work, place_of_work
from mmgibbs.validation.plan import SAMPLE, Plan, settled

FOLDER = "validations"  # beside the run folder of the first analysis


@dataclass(frozen=True)
class _Loaded:
    """One analysis, its records and its design."""

    plan: Plan
    records: Recorded
    prepared: Prepared

    @property
    def rows(self) -> np.ndarray:
        """(n,) lines of the table."""
        return self.records.phenotypes.rows


def validate_several(
    files: Sequence[str | os.PathLike | dict],
    plan: Plan = Plan(),  # noqa: B008  frozen
    overrides: Sequence[str] = (),
    *,
    variances: str | os.PathLike | Sequence[str | os.PathLike | None] = (),
    output: str | os.PathLike | None = None,
    overwrite: bool = False,
    progress: bool = True,
    report: bool = True,
    cluster: str | None = None,
) -> Comparison:
    """Validate each analysis into a folder of its name, and write their comparison beside those.

    variances: as `plan.variances`, one for each analysis, or one for all. output: the folder of folders. The rest as of
    `make.validate`. Raises ConfigError too where the analyses have the same name, or not the same table of records.
    """
    console, plan = Console(progress), settled(plan)
    of_each = _listed(variances) or [plan.variances]
    of_each = of_each * len(files) if len(of_each) == 1 else of_each
    if len(of_each) != len(files):
        raise ConfigError(
            f"validate: {option_name('variances')}: found {len(of_each)} for {len(files)} analyses; needed one for "
            "each, or one for all"
        )
    plans = [settled(replace(plan, variances=v)) for v in of_each]
    analyses = [analysis_of(file, p, overrides) for file, p in zip(files, plans, strict=True)]
    refuse_alike(analyses)
    beside = Path(analyses[0].output.directory or ".").parent
    path = output_folder(output or beside / FOLDER, overwrite, [a.name or "" for a in analyses])
    loaded = [_load(analysis, p) for analysis, p in zip(analyses, plans, strict=True)]
    base = widest(loaded)
    chosen = choose(base.records, base.prepared, base.plan)

    works = [Work(a, one.prepared.design, one.plan, len(chosen.folds)) for a, one in zip(analyses, loaded, strict=True)]
    with place_of_work(cluster, works, console.say) as executors:
        found = [
            _examine(one, base, chosen, console.say, executor) for one, executor in zip(loaded, executors, strict=True)
        ]
    for validation in found:
        write(validation, path / validation.info["analysis"], report, console.say)
    comparison = compare(found)
    write_comparison(comparison, path, report, console.say)
    return replace(comparison, directory=path)


def _listed(variances: object) -> list[Any]:
    """One for each analysis, or one for all; none where none are given. ConfigError for what is neither."""
    if isinstance(variances, (str, os.PathLike)):
        return [variances]
    if not isinstance(variances, Sequence):
        raise ConfigError(
            f"validate: found {option('variances', variances)}, needed the folder of a finished run or '{SAMPLE}', or "
            "a list with one for each analysis"
        )
    return list(variances)


def refuse_alike(analyses: Sequence[Analysis]) -> None:
    """ConfigError where two analyses have the same name, or another table of records."""
    names = [a.name for a in analyses]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"validate: found {names.count(name)} analyses called '{name}', needed a name for each")
    first, *others = analyses
    for analysis in others:
        if not _same_table(first.data.phenotypes, analysis.data.phenotypes):
            one, other = (_called(a.data.phenotypes) for a in (analysis, first))
            raise ConfigError(
                f"validate: analysis '{analysis.name}' has the records of {one}, '{first.name}' those of {other}; "
                "needed the same data.phenotypes, so that the same records are left out"
            )


def _same_table(one: object, other: object) -> bool:
    """One file, or frames of the same rows: what is left out is chosen by row."""
    if isinstance(one, Path) or isinstance(other, Path):
        return isinstance(one, Path) and isinstance(other, Path) and one == other
    frame, another = as_polars(one), as_polars(other)
    return one is other or (frame is not None and another is not None and frame.equals(another))


def _called(table: object) -> str:
    return f"'{table}'" if isinstance(table, Path) else "another data frame"


def _load(analysis: Analysis, plan: Plan) -> _Loaded:
    records = recorded(analysis, sampled=plan.variances == SAMPLE)
    prepared = prepare(records.analysis)
    return _Loaded(plan, without_others(records, prepared), prepared)


def widest(loaded: Sequence[_Loaded]) -> _Loaded:
    """One that uses every record that another uses, with a pedigree where there is one. ConfigError without."""
    every = np.unique(np.concatenate([one.rows for one in loaded]))
    wide = [one for one in loaded if one.rows.size == every.size]
    if not wide:
        sizes = ", ".join(f"'{one.records.analysis.name}' {one.rows.size:,}" for one in loaded)
        raise ConfigError(
            f"validate: no analysis uses all {every.size:,} records that one of them uses ({sizes}); needed one that "
            "does, so that the same records are left out"
        )
    return next((one for one in wide if one.prepared.pedigree is not None), wide[0])


def _examine(one: _Loaded, base: _Loaded, chosen: Chosen, say: Callable[[str], None], executor: Executor) -> Validation:
    say(f"--- {one.records.analysis.name}")
    own = restricted(chosen, base.rows, one.rows)
    cross.check_folds(one.prepared.design, own.folds, one.plan.by)
    return examine(one.records, one.plan, say, executor, own, one.prepared)


def restricted(chosen: Chosen, rows: np.ndarray, own: np.ndarray) -> Chosen:
    """What is chosen among the records of `rows` (n,), for those of `own` (m,), which are some of them."""
    order = np.argsort(rows)
    place = order[np.searchsorted(rows, own, sorter=order)]
    folds = [replace(f, masked=f.masked[place], tested=f.tested[place]) for f in chosen.folds]
    focal = None if chosen.focal is None else replace(chosen.focal, masked=chosen.focal.masked[place])
    return Chosen(folds, focal)
