"""What `mmgibbs init` makes of the tables of `spelled_tables`: the breeding values of the analysis that it drafts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import yaml
from helpers.spelled_tables import PEDIGREE_COLUMNS, PLAIN, RECORD_COLUMNS, Spelling, delimited
from reference import dense

from mmgibbs.config import load_config
from mmgibbs.data.prepare import prepare
from mmgibbs.draft.make import Draft, init
from mmgibbs.errors import MmgibbsError
from mmgibbs.pedigree.errors import PedigreeError

VARIANCES = {"genetic": 90000.0, "permanent_environment": 40000.0, "residual": 160000.0}
TOO_FEW = "are too few to estimate variances well"  # 60 records: said of every table here
PLAIN_EFFECTS = ("fixed: age herd sex", "random: genetic permanent_environment")


@dataclass
class DraftCase:
    """Tables for `init`, and what is right.

    records, pedigree: text, or None for the plain tables. expected: 'same' breeding values as of the plain tables and
    no warning; 'new': other effects, those of `effects`; 'told': refused, or a warning of `init` or of the run;
    'refused'; more than one divided by '|'.
    """

    name: str
    expected: str = "same"
    records: str | bytes | None = None
    pedigree: str | bytes | None = None
    spelling: Spelling = PLAIN
    options: dict = field(default_factory=dict)
    endings: tuple[str, str] = ("csv", "csv")
    effects: Sequence[str] | None = PLAIN_EFFECTS  # None: only the breeding values are compared

    def write(self, folder: Path) -> tuple[Path, Path]:
        plain = (
            delimited(self.spelling.records(), RECORD_COLUMNS),
            delimited(self.spelling.pedigree(), PEDIGREE_COLUMNS),
        )
        paths = []
        for name, table, text, ending in zip(
            ("records", "pedigree"), (self.records, self.pedigree), plain, self.endings, strict=True
        ):
            table = text if table is None else table
            path = folder / f"{name}.{ending}"
            path.write_bytes(table if isinstance(table, bytes) else table.encode())
            paths.append(path)
        return paths[0], paths[1]


def solve_draft(
    case: DraftCase, folder: Path, right: np.ndarray | None, found: dict[str, float] | None = None
) -> tuple[str, str]:
    """('same', 'told', 'refused' or 'different', what was said); right: breeding values in the order of the ids.

    found: takes id -> breeding value.
    """
    records, pedigree = case.write(folder)
    try:
        made = init(records, pedigree, output=folder / "draft.yaml", overwrite=True, **case.options)
    except (MmgibbsError, PedigreeError) as error:
        return "refused", str(error)
    warnings = [line for line in made.said if line.startswith("warning") and TOO_FEW not in line]
    if made.refused is not None:
        return "told", made.refused
    try:
        prepared = prepare(load_config(with_fixed_variances(made)))
    except (MmgibbsError, PedigreeError) as error:
        return "told", str(error)
    warnings += prepared.warnings
    if warnings:
        return "told", "\n".join(warnings)
    values = breeding_values(prepared)
    if found is not None:
        found.update(values)
    effects = effects_of(made)
    if case.effects is not None and list(case.effects) != effects:
        return "different", f"effects {effects}"
    if sorted(values) != sorted(case.spelling.ids):
        return "different", f"animals {sorted(values)}"
    if case.expected == "new":
        return "new", str(effects)
    array = np.array([values[i] for i in case.spelling.ids])
    if right is not None and not np.allclose(array, right, rtol=1e-6, atol=1e-6 * np.abs(right).max()):
        return "different", f"breeding values differ by up to {np.abs(array - right).max()}, {effects}"
    return "same", str(effects)


def effects_of(made: Draft) -> list[str]:
    analysis = load_config(made.path)
    return [
        f"fixed: {' '.join(sorted(analysis.model.fixed))}",
        f"random: {' '.join(sorted(analysis.model.random))}",
    ]


def with_fixed_variances(made: Draft) -> Path:
    """The drafted analysis as a BLUP with the variances above, in a file beside it."""
    content = yaml.safe_load(made.path.read_text(encoding="utf-8"))
    names = list(content["model"].get("random") or {})
    content["variances"] = {"mode": "fixed", **{n: VARIANCES.get(n, 1e4) for n in (*names, "residual")}}
    content["sampler"] = {"method": "blup"}
    path = made.path.with_name("blup.yaml")
    path.write_text(yaml.safe_dump(content, allow_unicode=True), encoding="utf-8")
    return path


def breeding_values(prepared) -> dict[str, float]:
    """Id -> breeding value of the one trait, by the dense equations."""
    design = prepared.design
    names = [t.name for t in design.terms]
    variances = [None if n not in VARIANCES else np.array([[VARIANCES[n]]]) for n in names]
    equations = dense.build(design, variances, np.array([[VARIANCES["residual"]]]))
    k = next(i for i, n in enumerate(names) if n in ("genetic", "sire"))
    solutions = equations.theta(equations.solution)[k]
    return dict(zip(prepared.levels[k].ids.to_list(), np.asarray(solutions)[:, 0].tolist(), strict=True))


Change = Callable[[list[str], int], list[str]]


def changed(rows: Sequence[Sequence[str]], change: Change) -> list[list[str]]:
    return [change(list(row), k) for k, row in enumerate(rows)]
