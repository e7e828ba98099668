"""Records that lack the value of a fixed effect with `without_value: drop`: their traits that have it are left out."""

from __future__ import annotations

import numpy as np

from mmgibbs.config import Analysis
from mmgibbs.config.effects import Fixed
from mmgibbs.data.phenotypes import Phenotypes
from mmgibbs.pedigree.tables import counted, quoted


def find_dropped(analysis: Analysis, phenotypes: Phenotypes) -> tuple[dict[str, np.ndarray], list[str]]:
    """Return ({trait: (n,) bool, its record is left out}, notes) for traits with an effect that drops records."""
    dropped: dict[str, np.ndarray] = {}
    notes = []
    for name, fixed in analysis.model.fixed.items():
        if fixed.without_value != "drop":
            continue
        path = f"model.fixed.{name}"
        lacking = _lack_value(fixed, path, phenotypes)
        for trait in fixed.traits:
            dropped[trait] = dropped.get(trait, False) | lacking
        columns = " or ".join(quoted(c) for c in (*fixed.number_columns, *fixed.class_columns))
        notes.append(
            f"{path}.without_value: drop: {counted(int(lacking.sum()), 'record', 'has')} no value in column {columns} "
            f"and {'is' if lacking.sum() == 1 else 'are'} left out for {', '.join(fixed.traits)}"
        )
    return dropped, notes


def _lack_value(fixed: Fixed, path: str, phenotypes: Phenotypes) -> np.ndarray:
    """(n,) bool: the record has no level or number of the effect."""
    if fixed.kind == "class":
        return phenotypes.text(fixed.column, path, fixed.missing).is_null().to_numpy()
    lacking = np.isnan(phenotypes.numbers(fixed.column, path, fixed.missing))
    if fixed.by is not None:
        cells = fixed.missing if fixed.interaction else ()
        lacking |= phenotypes.text(fixed.by, f"{path}.by", cells).is_null().to_numpy()
    return lacking
